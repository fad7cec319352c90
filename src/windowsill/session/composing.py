"""Composing: from a session's view to a payload that fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from windowsill import formats
from windowsill.budget import Budget, budget_for
from windowsill.compose.breakpoints import Breakpoints
from windowsill.compose.payload import FoldMade, Payload, Report, weigh_item
from windowsill.compose.prefix import same_blocks, same_start
from windowsill.compose.reduce import reduce
from windowsill.compose.rendering import Rendered, Rendering
from windowsill.compose.squeeze import cut_giants, over_limits
from windowsill.config import Settings
from windowsill.errors import BudgetError, FoldError, InputError, UnknownModelError
from windowsill.history.folds import Proposal, touched
from windowsill.history.history import Call, terms
from windowsill.history.view import Item, View
from windowsill.session.fixed import Fixed, key_of, read_fixed
from windowsill.session.ledger import Ledger
from windowsill.session.lens import Lens
from windowsill.strategies import Asking, Delegating, Strategy
from windowsill.strategies.sliding_window import SlidingWindow, free_units
from windowsill.tokens import Weight

ENVELOPE = 1_024
"""Bytes of a body around its messages: model, parameters, breakpoints, brackets."""

MOST_ATTEMPTS = 3
"""Repairs may add a few tokens to a view that just fits; then it is reduced again with that much less room."""


class Fitted(msgspec.Struct):
    """A view that fits, rendered, and what was done for it."""

    folds: list[FoldMade]
    notes: list[str]
    middle: tuple[Item, ...] = ()
    rendered: Rendered = Rendered((), [], [], (), 0)

    def accept(self, fold: Callable[[Proposal], FoldMade]) -> Callable[[Proposal], None]:
        """Fold, and note that it was done."""
        return lambda proposal: self.folds.append(fold(proposal))


class Composer:
    """Composes the requests of one session."""

    def __init__(self, ledger: Ledger, lens: Lens, settings: Settings, strategy: Strategy) -> None:
        self.ledger = ledger
        self.lens = lens
        self._lenses = {settings.model: lens}
        self.settings = settings
        self.strategy = strategy
        self._renderings: dict[str, Rendering] = {}
        self._fixed: tuple[object, Fixed] | None = None
        self._before: Rendered | None = None
        self._total = 0
        self._parts: tuple[str, ...] = ()
        self.fixed_tokens = settings.overhead
        """Tokens of the last request besides its messages."""
        self._terms = b""
        self.sent: dict[str, msgspec.Raw] = {}
        """The further fields of the last request."""
        self.last: tuple[Weight, object] | None = None
        """What the last request weighed, and what tells it apart from one that does not continue it."""

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
        self.lens = lens
        self.ledger.weigh_with(lens.scale)
        # What was rendered and weighed for the model before says nothing about this one.
        self._renderings.clear()
        self._fixed = self._before = self.last = None

    def _lens_for(self, model: str) -> Lens:
        try:
            return Lens(msgspec.structs.replace(self.settings, model=model), self.ledger.store)
        except UnknownModelError:
            if self.settings.model is None:
                raise
            return self._lenses[self.settings.model]

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
        view = self.ledger.view
        rules = formats.get(format).rules
        if len(view.items) == (view.leading() if rules.system_apart and not rules.system_inside else 0):
            raise InputError("there is nothing to send yet", remedy="add a message from the user first")
        scale = self.lens.scale
        weight = fixed.system_weight + fixed.tools_weight + scale.frame
        tokens = self.fixed_tokens = scale.tokens(weight) + self.settings.overhead
        budget = msgspec.structs.replace(
            self.budget(tokens, max_output=max_output, anchored=anchored), fixed_bytes=weight.bytes + ENVELOPE
        )
        self._check_fixed(fixed, budget)
        self.sent = fixed.rest
        blobs = {name: id for name, (id, _) in fixed.blobs.items()}
        under = self._terms = terms(blobs)
        asking = self._asking(format)
        idle = asking is None and isinstance(self.strategy, Delegating)
        done = self._fit(budget, format, max_output, SlidingWindow() if idle else self.strategy, anchored=anchored)
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
        self.last = (weight + view.weight, (view.edits, parts))
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
        shown = self._frozen(view)
        return Payload(
            tokens=total,
            tell=lambda: self._report(fixed, budget, shown(), done, total=total, stable=stable),
            format=format,
            model=self.lens.model,
            model_name=model_name,
            system=fixed.system,
            tools=fixed.tools,
            rest=fixed.rest,
            render=lambda name: rendered if name == format else self._new_rendering(name).render(shown(), under),
            breakpoints=breakpoints,
            headers=asking.headers if asking is not None else {},
        )

    def _fit(
        self, budget: Budget, format: str, max_output: int | None, strategy: Strategy, *, anchored: bool
    ) -> Fitted:
        """Fold until the rendered request, repairs included, is within its budget."""
        view = self.ledger.view
        done = Fitted(folds=[], notes=[])
        overtaken: FoldError | None = None
        extra = 0
        for _ in range(MOST_ATTEMPTS):
            too_long = budget.fixed + extra + view.tokens() > budget.high
            if too_long or over_limits(view, budget):
                accept = done.accept(self._fold)
                try:
                    # Giants first: what always stays is smaller then, and the marks follow from what always stays.
                    if too_long and (giants := cut_giants(view, budget)) is not None:
                        accept(giants)
                    tighter = self._with_floor(budget, budget.fixed + extra, max_output, anchored=anchored)
                    reduced = reduce(view, tighter, strategy, accept)
                except BudgetError:
                    # What the repairs took was counted before the folds: with less to repair it may fit all the same.
                    if not extra:
                        raise
                except FoldError as error:
                    # Somebody else folded the same messages first: what they left is read by now, and planned anew.
                    overtaken = error
                    continue
                else:
                    done.notes += reduced.notes
                    done.middle = reduced.middle or done.middle
            self.ledger.journal.load(view)
            done.rendered = self._rendering(format).render(view, self._terms)
            if budget.fixed + done.rendered.extra + view.tokens() <= budget.limit:
                return done
            extra = max(extra, done.rendered.extra) + 1
        if overtaken is not None:
            raise overtaken
        parts = {"system, tools and framing": budget.fixed, "messages": view.tokens(), "repairs": done.rendered.extra}
        raise BudgetError(
            f"repairs need {done.rendered.extra:,} tokens more than the {budget.limit:,} there are",
            wanted=sum(parts.values()),
            available=budget.limit,
            parts=parts,
            remedy="raise the budget",
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
        )

    def _with_floor(self, budget: Budget, fixed: int, max_output: int | None, *, anchored: bool) -> Budget:
        """Marks that leave room above what always stays, or a large task would be folded around every turn."""
        view = self.ledger.view
        free = {index for unit in free_units(view, keep=0) for index in range(unit.start, unit.stop)}
        held = [item for index, item in enumerate(view.items[:-1]) if index not in free]
        floor = fixed + (view.tokens(*held) if held else 0)
        marks = self.budget(min(floor, budget.limit), max_output=max_output, anchored=anchored)
        return msgspec.structs.replace(marks, fixed=fixed, fixed_bytes=budget.fixed_bytes)

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

    def _asking(self, format: str) -> Asking | None:
        """What the strategy has to say to the provider; always the same, so that the request only grows."""
        return self.strategy.ask(format, self.budget(0)) if isinstance(self.strategy, Delegating) else None

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

    def _fold(self, proposal: Proposal) -> FoldMade:
        view = self.ledger.view
        before = view.tokens()
        after = view.tokens_of(view.after(proposal.spans))
        entry = self.ledger.commit(lambda draft: draft.fold(proposal, before, after))
        return FoldMade(
            id=entry.id,
            kind=proposal.kind,
            strategy=proposal.strategy,
            reason=proposal.reason,
            messages=touched(proposal.spans),
            before=before,
            after=after,
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

    def _rendering(self, format: str) -> Rendering:
        if format not in self._renderings:
            self._renderings[format] = self._new_rendering(format)
        return self._renderings[format]

    def _new_rendering(self, format: str) -> Rendering:
        demands = self.lens.model.demands
        return Rendering(formats.get(format, demands), demands)

    def _frozen(self, view: View) -> Callable[[], View]:
        """The view as it is now, for a payload that is looked at after the session has moved on."""
        items, at, thread = list(view.items), view.at, view.thread
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
        )
