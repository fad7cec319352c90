"""Composing: from a session's view to a payload that fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from windowsill import formats, strategies, telemetry
from windowsill.budget import Budget, Size, budget_for, tokens_of
from windowsill.compose.breakpoints import Breakpoints
from windowsill.compose.checking import checked
from windowsill.compose.payload import FoldMade, Payload, Report, Statistics, build_body, weigh_item
from windowsill.compose.prefix import same_blocks, same_start
from windowsill.compose.reduce import Reduction, reductions
from windowsill.compose.rendering import Rendered, Rendering, shows_refs
from windowsill.compose.squeeze import cut_giants, over_limits
from windowsill.compose.writing import Filled
from windowsill.config import Settings, tuned
from windowsill.errors import BudgetError, FoldError, InputError, UnknownModelError, WindowsillError
from windowsill.history.folds import Proposal, touched
from windowsill.history.history import Call, terms
from windowsill.history.view import Item, View
from windowsill.logs import log
from windowsill.session.adding import write
from windowsill.session.desk import Desk
from windowsill.session.fixed import Fixed, key_of, read_fixed
from windowsill.session.ledger import Ledger
from windowsill.session.lens import Lens
from windowsill.session.metering import commit_fold
from windowsill.strategies import Asking, Strategy, foldable_units
from windowsill.strategies.guard import guarded
from windowsill.strategies.sliding_window import SlidingWindow
from windowsill.telemetry import names
from windowsill.tokens import Scale, Weight
from windowsill.writers import Shared

if TYPE_CHECKING:
    from windowsill.session.recalling import Recalling
    from windowsill.session.session import Session

MOST_ATTEMPTS = 3
"""Repairs may add a few tokens to a view that just fits; then it is reduced again with that much less room."""

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


class Fitted(msgspec.Struct):
    """A view that fits, rendered, and what was done for it."""

    folds: list[FoldMade] = []
    notes: list[str] = []
    middle: tuple[Item, ...] = ()
    rendered: Rendered = Rendered((), [], [], (), 0)
    statistics: Statistics = Statistics()


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A request that is to fit."""

    fixed: Fixed
    format: str
    budget: Budget
    strategy: Strategy
    model_name: str | None = None
    max_output: int | None = None
    anchored: bool = False
    goal: int = 0
    """Reduce to this, whatever the marks are; 0 for the marks."""

    @property
    def terms(self) -> bytes:
        """The fingerprint of its system prompt and tools."""
        return terms(_ids(self.fixed))


def lowered(budget: Budget, goal: int) -> Budget:
    """A budget whose marks are no higher than `goal`."""
    return msgspec.structs.replace(budget, high=min(budget.high, goal), low=min(budget.low, goal))


class Composer:
    """Composes the requests of one session."""

    def __init__(
        self, session: Session, ledger: Ledger, lens: Lens, stated: Settings, strategy: Strategy, desk: Desk
    ) -> None:
        """`stated` are the settings as the user gave them; those of `lens` are tuned for its model."""
        self.ledger = ledger
        self.lens = lens
        self.desk = desk
        self.layers: Size | None = None
        """How much of the state requests tell, where neither setting nor strategy says."""
        self._session = session
        self._recalling: Recalling | None = None
        self._runs = 0
        self._warned = False
        self._nothing_to_do: object = None
        self._lenses = {stated.model: lens}
        self._stated = stated
        self._strategies = {lens.settings.strategy: guarded(strategy)}
        self._given: Strategy | None = None
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
            self._strategies[line] = guarded(strategies.get(line))
        return self._strategies[line]

    @strategy.setter
    def strategy(self, strategy: Strategy) -> None:
        self._given = guarded(strategy)

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
        if self.desk.source == self.settings.writer != lens.settings.writer:
            self.desk.use(lens.settings.writer)
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
        done = self.fit(wanted) if anchored else self._fit_with_context(wanted)
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
        return self.fit(wanted).statistics

    def prepare(self, fixed: Fixed, format: str) -> None:
        """Let what will soon be needed be written in the background."""
        self._prepare(self._wanted(fixed, format, None, None))

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
        idle = self.strategy.delegates and self._asking(format) is None
        return Wanted(
            fixed=fixed,
            format=format,
            budget=budget,
            strategy=SlidingWindow() if idle else self.strategy,
            model_name=model_name,
            max_output=max_output,
            anchored=anchored,
        )

    def _fit_with_context(self, wanted: Wanted) -> Fitted:
        """Fit a request to which the state and what it recalls are added. All of that is recorded like a message.

        Where that hid what was told of the state, it is told again, and the request fitted again. What stands last
        always stays, so a second time is enough.
        """
        room = self._layer_tokens(wanted)
        told = [*self._tell_state(room), *self._recall(wanted)]
        done = self.fit(wanted)
        if again := self._tell_state(room):
            told += again
            done = self._again(wanted, done)
        done.notes.extend(told)
        return done

    def _layer_tokens(self, wanted: Wanted) -> int:
        """Tokens in which the layered state may be told; 0 when it is not."""
        told = wanted.strategy.layers(wanted.budget)
        size = self.settings.layers if self.settings.layers is not None else None if told else self.layers
        return told if size is None else tokens_of(size, wanted.budget.limit, "layers")

    def _tell_state(self, room: int) -> list[str]:
        note = self._session.layering.tell(self.lens.model, room) if room else None
        return [] if note is None else [note]

    def _recall(self, wanted: Wanted) -> list[str]:
        """Bring back what the step at hand needs of what is hidden; what is to be told about it."""
        size, view = self.settings.recall, self.ledger.view
        if size is None:
            return []
        if self._recalling is None:
            from windowsill.session.recalling import Recalling  # noqa: PLC0415 - most sessions bring nothing back

            self._recalling = Recalling(lambda: self._session.archive)
        try:
            found = self._recalling.recall(view, tokens_of(size, wanted.budget.limit, "recall"))
        except WindowsillError as error:
            # The archive can be made again; a turn that fails cannot be had back.
            return [f"recall failed: {error}"]
        if found is None:
            return []
        write(self.ledger, [found.message], None, steady=view.thread)
        return [f"recall: {found.lines} hidden lines brought back"]

    def _rendered(self, wanted: Wanted) -> Rendered:
        refs = shows_refs(wanted.fixed.tools)
        return self._rendering(wanted.format, refs=refs).render(self.ledger.view, wanted.terms)

    def fit(self, wanted: Wanted) -> Fitted:
        """Fold until the rendered request, repairs included, is within its budget."""
        view, budget = self.ledger.view, wanted.budget
        before = (len(view.items), view.tokens())
        done = Fitted(folds=[], notes=[])
        emergency = budget.fixed + view.tokens() > budget.limit
        self.desk.begin()
        if _acts(view, wanted):
            # What was prepared earlier is held until then: hiding what has room would cost words and cache for nothing.
            self._use_what_is_ready(done)
        done.notes += self.desk.untold()
        self._prepare(wanted)
        overtaken: FoldError | None = None
        extra = 0
        for _ in range(MOST_ATTEMPTS):
            try:
                self._reduce(wanted, done, extra)
            except BudgetError:
                # What the repairs took was counted before the folds: with less to repair it may fit all the same.
                if not extra:
                    raise
            except FoldError as error:
                # Somebody else folded the same messages first: what they left is read by now, and planned anew.
                overtaken = error
                continue
            self.ledger.journal.load(view)
            done.rendered = self._rendered(wanted)
            if budget.fixed + done.rendered.extra + view.tokens() <= budget.limit:
                done.statistics = self._counted(done, before, emergency=emergency)
                return done
            extra = max(extra, done.rendered.extra) + 1
        if overtaken is not None:
            raise overtaken
        raise self._too_much(budget, done)

    def _again(self, wanted: Wanted, first: Fitted) -> Fitted:
        """Fit a request once more, to which something was added; what both times did."""
        second = self.fit(wanted)
        before, after = first.statistics, second.statistics
        statistics = msgspec.structs.replace(
            after,
            pruned=before.pruned or after.pruned,
            messages_before=before.messages_before,
            tokens_before=before.tokens_before,
            emergency=before.emergency or after.emergency,
        )
        return msgspec.structs.replace(
            second,
            folds=[*first.folds, *second.folds],
            notes=[*first.notes, *second.notes],
            middle=second.middle or first.middle,
            statistics=statistics,
        )

    def _reduce(self, wanted: Wanted, done: Fitted, extra: int) -> None:
        view, budget, strategy = self.ledger.view, wanted.budget, wanted.strategy
        too_long = budget.fixed + extra + view.tokens() > budget.high
        known = (view.edits, len(view.items), budget, id(strategy))
        if known == self._nothing_to_do and budget.fixed + extra + view.tokens() <= budget.limit:
            return
        due = strategy.due(view, budget)
        if not too_long and not due and not over_limits(view, budget):
            return
        folds = len(done.folds)
        # Giants first: what always stays is smaller then, and the marks follow from what always stays.
        if too_long and (giants := cut_giants(view, budget)) is not None:
            done.folds.append(self._fold(giants))
        tighter = self._with_floor(wanted, budget.fixed + extra)
        self.ledger.journal.load(view)

        reduced = Reduction(notes=[])

        def write(proposal: Proposal, *, urgent: bool) -> Filled | None:
            # A caller who keeps no session has no later request for what is written meanwhile.
            urgent = urgent or wanted.anchored
            return self.desk.write(view, proposal, lambda: self._shared(wanted), urgent=urgent)

        for proposal in reductions(view, tighter, strategy, write, reduced):
            done.folds.append(self._fold(proposal))
        done.notes += [note for note in dict.fromkeys(reduced.notes) if note not in done.notes]
        done.middle = reduced.middle or done.middle
        # A session to which nothing was added is not planned for again.
        self._nothing_to_do = known if len(done.folds) == folds else None

    def _use_what_is_ready(self, done: Fitted) -> None:
        """Fold what was written in the background."""
        filled = self.desk.ready(self.ledger.view)
        if filled is None:
            return
        try:
            done.folds.append(self._fold(checked(self.ledger.view, filled.proposal)))
        except FoldError as error:
            done.notes.append(f"a summary that was prepared no longer fits: {error}")
        done.notes += filled.notes

    def _prepare(self, wanted: Wanted) -> None:
        """Above the warning mark say so, and let summaries be written before they are needed."""
        view, budget = self.ledger.view, wanted.budget
        total = budget.fixed + view.tokens()
        above = bool(budget.warn) and total > budget.warn
        if above and not self._warned:
            share = 100 * total // budget.limit
            log.warning("session %s: %s tokens, %d%% of what fits", self.ledger.session, f"{total:,}", share)
        self._warned = above
        if not above or total > budget.high or not self.desk.prepares or wanted.anchored:
            return
        self.ledger.journal.load(view)
        tighter = msgspec.structs.replace(budget, high=total - 1, low=min(budget.low, total - 1))
        with telemetry.span("plan", session=self.ledger.session, strategy=wanted.strategy.name, early=True):
            for proposal in wanted.strategy.plan(view, tighter).proposals:
                self.desk.prepare(view, proposal, lambda: self._shared(wanted))

    def _with_floor(self, wanted: Wanted, fixed: int) -> Budget:
        """Marks that leave room above what always stays, or a large task would be folded around every turn."""
        view, budget = self.ledger.view, wanted.budget
        free = {index for unit in foldable_units(view, keep=0) for index in range(unit.start, unit.stop)}
        held = [item for index, item in enumerate(view.items[:-1]) if index not in free]
        floor = fixed + (view.tokens(*held) if held else 0)
        marks = self.budget(min(floor, budget.limit), max_output=wanted.max_output, anchored=wanted.anchored)
        if wanted.goal:
            marks = lowered(marks, wanted.goal)
        return msgspec.structs.replace(marks, fixed=fixed, fixed_bytes=budget.fixed_bytes)

    def _fold(self, proposal: Proposal) -> FoldMade:
        view = self.ledger.view
        before = view.tokens()
        after = view.tokens_of(view.after(proposal.spans))
        entry = commit_fold(self.ledger, proposal, before, after)
        return FoldMade(
            id=entry.id,
            kind=proposal.kind,
            strategy=proposal.strategy,
            reason=proposal.reason,
            messages=touched(proposal.spans),
            before=before,
            after=after,
        )

    def _counted(self, done: Fitted, before: tuple[int, int], *, emergency: bool) -> Statistics:
        view = self.ledger.view
        self._runs += bool(done.folds)
        return Statistics(
            pruned=bool(done.folds),
            messages_before=before[0],
            messages_after=len(view.items),
            tokens_before=before[1],
            tokens_after=view.tokens(),
            emergency=emergency,
            runs=self._runs,
        )

    def _too_much(self, budget: Budget, done: Fitted) -> BudgetError:
        messages, repairs = self.ledger.view.tokens(), done.rendered.extra
        parts = {"system, tools and framing": budget.fixed, "messages": messages, "repairs": repairs}
        return BudgetError(
            f"repairs need {repairs:,} tokens more than the {budget.limit:,} there are",
            wanted=sum(parts.values()),
            available=budget.limit,
            parts=parts,
            remedy="raise the budget",
        )

    def budget(self, fixed: int, *, max_output: int | None = None, anchored: bool = False) -> Budget:
        """The budget of a request whose fixed parts have this many tokens."""
        found = budget_for(
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
        if self.strategy.layers(found):
            found = msgspec.structs.replace(found, phase=self._session.state.value.runtime.phase)
        return found

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

    def _shared(self, wanted: Wanted) -> Shared:
        """The request as it would be sent now, whether it fits or not."""
        view, fixed, format = self.ledger.view, wanted.fixed, wanted.format
        self.ledger.journal.load(view)
        rendered = self._new_rendering(format, refs=shows_refs(fixed.tools)).render(view, wanted.terms)
        body = build_body(
            formats.get(format),
            rendered,
            system=fixed.system,
            tools=fixed.tools,
            rest=fixed.rest,
            model=wanted.model_name,
            breakpoints=None,
        )
        return Shared(format=format, body=body)

    def _asking(self, format: str) -> Asking | None:
        """What the strategy has to say to the provider; always the same, so that the request only grows."""
        return self.strategy.ask(format, self.budget(0)) if self.strategy.delegates else None

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


def _acts(view: View, wanted: Wanted) -> bool:
    """Whether something is to be hidden now."""
    budget, strategy = wanted.budget, wanted.strategy
    too_long = budget.fixed + view.tokens() > budget.high
    return too_long or strategy.due(view, budget)
