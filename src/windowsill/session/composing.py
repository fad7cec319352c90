"""Composing: from a session's view to a payload that fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from windowsill import formats, strategies, telemetry
from windowsill.budget import Budget, Size, budget_for, tokens_of
from windowsill.compose.breakpoints import Breakpoints
from windowsill.compose.payload import Payload, Report, Statistics, build_body, weigh_item
from windowsill.compose.prefix import same_blocks, same_start
from windowsill.compose.rendering import Rendered, Rendering, shows_refs
from windowsill.config import Settings, tuned
from windowsill.errors import BudgetError, InputError, UnknownModelError
from windowsill.history.history import Call, terms
from windowsill.history.view import Item, View
from windowsill.session.bringing import Bringing
from windowsill.session.desk import Desk
from windowsill.session.fitting import Fitted, Fitting, Wanted, lowered
from windowsill.session.fixed import Fixed, key_of, read_fixed
from windowsill.session.ledger import Ledger
from windowsill.session.lens import Lens
from windowsill.strategies import Asking, Strategy, delegates
from windowsill.strategies.guard import trusted
from windowsill.strategies.sliding_window import SlidingWindow
from windowsill.telemetry import names
from windowsill.tokens import Scale, Weight
from windowsill.writers import Shared

MOST_RECENT = 32
"""How many requests may wait for their answers at the same time, each to be held against its own."""

ENVELOPE = 1_024
"""Bytes of a body around its messages: model, parameters, breakpoints, brackets."""


class Sent(NamedTuple):
    """A composed request, as what the provider says of it is held against it."""

    lens: Lens
    weight: Weight
    shape: object
    """What tells it apart from a request that does not continue it."""
    fields: dict[str, msgspec.Raw]
    """Its further fields."""
    tokens: int


class Composer:
    """Composes the requests of one session."""

    def __init__(self, ledger: Ledger, lens: Lens, stated: Settings, strategy: Strategy, desk: Desk) -> None:
        """`stated` are the settings as the user gave them; those of `lens` are tuned for its model."""
        self.ledger = ledger
        self.fitting = Fitting(ledger, desk, self.budget)
        self.lens = lens
        self._lenses = {stated.model: lens}
        self._stated = stated
        self._strategies = {lens.settings.strategy: trusted(strategy)}
        self._given: Strategy | None = None
        self.bringing = Bringing(ledger, self.fitting)
        self._renderings: dict[tuple[str, bool], Rendering] = {}
        self._fixed: tuple[object, Fixed] | None = None
        self._before: Rendered | None = None
        self._total = 0
        self._parts: tuple[str, ...] = ()
        self.fixed_tokens = stated.overhead
        """Tokens of the last request besides its messages."""
        self.last: Sent | None = None
        """The last request."""
        self._recent: dict[str, Sent] = {}
        """The last requests, by the message they end with."""

    @property
    def settings(self) -> Settings:
        """The settings as they hold for the model that is composed for."""
        return self.lens.settings

    @property
    def strategy(self) -> Strategy:
        """Who plans: the strategy that was given, or the one that the settings name."""
        if self._given is not None:
            return self._given
        line = self.settings.strategy
        if line not in self._strategies:
            self._strategies[line] = trusted(strategies.get(line))
        return self._strategies[line]

    @strategy.setter
    def strategy(self, strategy: Strategy) -> None:
        self._given = trusted(strategy)

    def see(self, model: str | None) -> None:
        """Compose for this model from now on; one that is not known is measured as the stated one."""
        if model is None or model == self.lens.settings.model:
            return
        if model not in self._lenses:
            self._lenses[model] = self._lens_for(model)
        lens = self._lenses[model]
        if lens is self.lens:
            return
        self.lens.save()
        if self.fitting.desk.source == self.settings.writer != lens.settings.writer:
            self.fitting.desk.use(lens.settings.writer)
        self.lens = lens
        self.ledger.weigh_with(lens.scale)
        # What was rendered and weighed for the model before says nothing about this one.
        self._renderings.clear()
        self._fixed = self._before = self.last = None

    def _lens_for(self, model: str) -> Lens:
        try:
            return Lens(tuned(msgspec.structs.replace(self._stated, model=model)), self.ledger.store)
        except UnknownModelError:
            if self._stated.model is None:
                raise
            return self._lenses[self._stated.model]

    def compose(
        self,
        fixed: Fixed,
        *,
        format: str,
        max_output: int | None = None,
        anchored: bool = False,
        model_name: str | None = None,
    ) -> Payload:
        """Reduce what is too large, render, and report."""
        with telemetry.span(
            "compose", timed=names.COMPOSE_DURATION, session=self.ledger.session, format=format
        ) as span:
            payload = self._composed(fixed, format, max_output, model_name, anchored=anchored)
            if span.live:
                model = self.lens.model
                span.set(
                    model=model_name or model.name,
                    provider=names.provider_name(model.provider),
                    tokens=payload.tokens,
                    window=model.window,
                    compacted=payload.compacted or None,
                )
            return payload

    def _composed(
        self, fixed: Fixed, format: str, max_output: int | None, model_name: str | None, *, anchored: bool
    ) -> Payload:
        view = self.ledger.view
        rules = formats.get(format).rules
        if len(view.items) == (view.leading() if rules.system_apart and not rules.system_inside else 0):
            raise InputError("there is nothing to send yet", remedy="add a message from the user first")
        scale = self.lens.scale
        wanted = self._wanted(fixed, format, max_output, model_name, anchored=anchored)
        tokens, blobs = wanted.budget.fixed, _ids(fixed)
        asking = self._asking(format)
        done = self.fitting.fit(wanted) if anchored else self.bringing.fit(wanted, self.settings, self.lens.model)
        rendered = done.rendered
        total = tokens + rendered.extra + view.tokens()
        parts = tuple(id for id, _ in fixed.blobs.values())
        if self._parts != parts:
            # The system prompt and the tools stand at the start: after another one nothing is the same.
            self._before, self._parts = None, parts
        before = self._before
        known = before.settled if before is not None and before.edits == rendered.edits else 0
        common = same_start(before.chunks, rendered.chunks, known) if before is not None else 0
        stable = self._stable(tokens, rendered, common)
        self._before, self._total = rendered, total
        self.last = Sent(self.lens, _weight(fixed, scale) + view.weight, (view.edits, parts), fixed.rest, total)
        ends = view.items[-1].id
        self._recent.pop(ends, None)
        self._recent[ends] = self.last
        if len(self._recent) > MOST_RECENT:
            del self._recent[next(iter(self._recent))]
        task = view.task()
        breakpoints = Breakpoints(
            minimum=self.lens.model.cache_minimum,
            system=scale.tokens(fixed.system_weight + fixed.tools_weight),
            head=max(0, task + 1 - len(rendered.systems)) if task is not None else 0,
            head_blocks=len(view.read(view.items[task]).blocks) if task is not None else 0,
            previous=common,
        )
        call = Call(
            at=self.ledger.history.version,
            format=format,
            model=model_name,
            blobs=blobs,
            tokens=total,
            cached=stable,
            folds=tuple(fold.id for fold in done.folds),
            breakpoints=msgspec.structs.asdict(breakpoints),
            demands=self.lens.model.demands,
        )
        self.ledger.pend(call, dict(fixed.blobs.values()))
        items = list(view.items)
        shown, refs = self._frozen(view, items), shows_refs(fixed.tools)
        payload = Payload(
            tokens=total,
            tell=lambda: self._report(fixed, wanted.budget, shown(), done, total=total, stable=stable),
            format=format,
            model=self.lens.model,
            model_name=model_name,
            system=fixed.system,
            tools=fixed.tools,
            rest=fixed.rest,
            render=lambda name: (
                rendered if name == format else self._new_rendering(name, refs=refs).render(shown(), terms(blobs))
            ),
            breakpoints=breakpoints,
            headers=asking.headers if asking is not None else {},
            items=items,
        )
        payload.folds = tuple(done.folds)
        return payload

    def sent_behind(self, message_id: str) -> Sent | None:
        """The last request that ended with this message, if it was not long ago."""
        return self._recent.get(message_id)

    def reduce(self, fixed: Fixed, format: str, to: Size | None = None) -> Statistics:
        """Reduce what is too large already, without a request; with `to`, everything above that."""
        wanted = self._wanted(fixed, format, None, None)
        if to is not None:
            goal = tokens_of(to, wanted.budget.limit, "to")
            wanted = msgspec.structs.replace(wanted, goal=goal, budget=lowered(wanted.budget, goal))
        return self.fitting.fit(wanted).statistics

    def prepare(self, fixed: Fixed, format: str) -> None:
        """Let what will soon be needed be written in the background."""
        self.fitting.prepare(self._wanted(fixed, format, None, None))

    def _wanted(
        self, fixed: Fixed, format: str, max_output: int | None, model_name: str | None, *, anchored: bool = False
    ) -> Wanted:
        scale = self.lens.scale
        weight = _weight(fixed, scale)
        tokens = self.fixed_tokens = scale.tokens(weight) + self.settings.overhead
        budget = msgspec.structs.replace(
            self.budget(tokens, max_output=max_output, anchored=anchored), fixed_bytes=weight.bytes + ENVELOPE
        )
        self._check_fixed(fixed, budget)
        under = terms(_ids(fixed))
        idle = delegates(self.strategy) and self._asking(format) is None
        return Wanted(
            budget=budget,
            strategy=SlidingWindow() if idle else self.strategy,
            render=lambda shown: self._rendering(format, refs=shows_refs(fixed.tools)).render(shown, under),
            shared=lambda: self._shared(fixed, format, model_name, under),
            max_output=max_output,
            anchored=anchored,
        )

    def budget(self, fixed: int, *, max_output: int | None = None, anchored: bool = False) -> Budget:
        """The budget of a request whose fixed parts have this many tokens."""
        return budget_for(
            self.lens.model,
            budget=self.settings.budget,
            high=self.settings.high,
            low=self.settings.low,
            max_output=max_output,
            fixed=fixed,
            anchored=anchored,
            ceiling=self.lens.ceiling,
            warn=self.settings.warn,
        )

    def fix(self, system: Any, tools: Sequence[Any], rest: Mapping[str, Any], format: str) -> Fixed:
        """Read and weigh the parts that are never cut; the same parts are weighed once."""
        asking = self._asking(format)
        if asking is not None:
            # What the caller states itself is not overruled.
            rest = {**asking.fields, **rest}
        key = key_of(system, tools, rest, format)
        if self._fixed is None or self._fixed[0] != key:
            self._fixed = (key, read_fixed(system, tools, rest, formats.get(format), self.lens.scale))
        return self._fixed[1]

    def _shared(self, fixed: Fixed, format: str, model_name: str | None, under: bytes) -> Shared:
        """The request as it would be sent now, whether it fits or not."""
        view = self.ledger.view
        self.ledger.journal.load(view)
        rendered = self._new_rendering(format, refs=shows_refs(fixed.tools)).render(view, under)
        body = build_body(
            formats.get(format),
            rendered,
            system=fixed.system,
            tools=fixed.tools,
            rest=fixed.rest,
            model=model_name,
            breakpoints=None,
        )
        return Shared(format=format, body=body)

    def _asking(self, format: str) -> Asking | None:
        """What the strategy has to say to the provider; always the same, so that the request only grows."""
        return self.strategy.ask(format, self.budget(0)) if delegates(self.strategy) else None

    def _check_fixed(self, fixed: Fixed, budget: Budget) -> None:
        if budget.fixed < budget.limit:
            return
        scale = self.lens.scale
        parts = {
            "system prompt": scale.tokens(fixed.system_weight),
            "tool definitions": scale.tokens(fixed.tools_weight),
        }
        if self.settings.overhead:
            parts["stated overhead"] = self.settings.overhead
        raise BudgetError(
            "what is never cut does not fit: "
            + ", ".join(f"{name} {size:,} tokens" for name, size in parts.items())
            + f", and a request may have {budget.limit:,}",
            wanted=budget.fixed,
            available=budget.limit,
            parts=parts,
            remedy="raise the budget or the window, or shorten them",
        )

    def _stable(self, fixed: int, rendered: Rendered, common: int) -> int:
        """Tokens at the start that equal the request before; of the first message that differs, the same blocks."""
        if self._before is None:
            return 0
        stable = fixed + sum(rendered.tokens[:common])
        if common < min(len(self._before.chunks), len(rendered.chunks)):
            share = same_blocks(self._before.chunks[common], rendered.chunks[common])
            stable += int(rendered.tokens[common] * share)
        return min(stable, self._total)

    def _rendering(self, format: str, *, refs: bool) -> Rendering:
        key = (format, refs)
        if key not in self._renderings:
            self._renderings[key] = self._new_rendering(format, refs=refs)
        return self._renderings[key]

    def _new_rendering(self, format: str, *, refs: bool) -> Rendering:
        demands = self.lens.model.demands
        return Rendering(formats.get(format, demands), demands, refs=refs)

    def _frozen(self, view: View, items: list[Item]) -> Callable[[], View]:
        """The view as it is now, for a payload that is looked at after the session has moved on."""
        at, thread = view.at, view.thread
        changes = view.changes

        def frozen() -> View:
            copy = self.ledger.dress(View(items, at=at, thread=thread))
            copy.changes = changes
            return copy

        return frozen

    def _report(self, fixed: Fixed, budget: Budget, view: View, done: Fitted, *, total: int, stable: int) -> Report:
        scale = self.lens.scale
        stand_ins = [item for item in view.items if item.fold]
        summaries = view.tokens(*stand_ins) if stand_ins else 0
        parts = {
            "system": scale.tokens(fixed.system_weight),
            "tools": scale.tokens(fixed.tools_weight),
            "summaries": summaries,
            "messages": view.tokens() - summaries + done.rendered.extra,
        }
        parts["framing"] = total - sum(parts.values())
        calibration = scale.calibration
        return Report(
            tokens=total,
            parts=parts,
            limit=budget.limit,
            window=self.lens.model.window,
            messages=len(done.rendered.chunks),
            hidden=sum(item.hides for item in stand_ins),
            folds=tuple(done.folds),
            repairs=done.rendered.repairs,
            weights=tuple(weigh_item(view, item, self.lens.model.window) for item in done.middle),
            notes=tuple(done.notes),
            stable=stable,
            error=round(calibration.error, 2) if calibration.observations else None,
            exact=self.lens.exact,
            statistics=done.statistics,
        )


def _weight(fixed: Fixed, scale: Scale) -> Weight:
    """What a request weighs besides its messages."""
    return fixed.system_weight + fixed.tools_weight + scale.frame


def _ids(fixed: Fixed) -> dict[str, str]:
    return {name: id for name, (id, _) in fixed.blobs.items()}
