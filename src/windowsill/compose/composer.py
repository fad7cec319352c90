"""Compose requests: read the parts, set the budget, add context, fold what is too large, render, report."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from windowsill import providers, strategies, telemetry
from windowsill.budget import Budget, WriterPrices, budget_for
from windowsill.compose.managed import ManagerCalls, fit_managed, history_of
from windowsill.compose.model_context import ModelContext
from windowsill.compose.payload import (
    MOST_CHANGES,
    FitResult,
    FoldMade,
    Payload,
    RequestBefore,
    RequestParts,
    RequestSpec,
    Statistics,
    output_room,
    parts_key,
    read_parts,
)
from windowsill.compose.reduce import fixed_too_large, reductions, repairs_too_large
from windowsill.compose.render import Breakpoints, Renderer, own_tools
from windowsill.compose.squeeze import over_limits
from windowsill.compose.step_context import StepContext
from windowsill.compose.summaries import Source, SummaryQueue
from windowsill.config import Settings, apply_profile, states_high
from windowsill.config.settings import has_profile, with_tables
from windowsill.errors import BudgetError, FoldError, InputError, UnknownModelError, log
from windowsill.history.folds import Proposal, count_touched
from windowsill.history.head import MANAGED, Call, call_meta
from windowsill.history.proposals import check_fold
from windowsill.history.view import View, fold_meta
from windowsill.journal.writer import JournalWriter
from windowsill.messages import READ_TOOL, Message, Usage
from windowsill.models import record_usage
from windowsill.strategies import ProviderRequestFields, Strategy, foldable_units
from windowsill.strategies.registry import Managed, guarded
from windowsill.strategies.sliding_window import SlidingWindow
from windowsill.telemetry import names
from windowsill.tokens import Weight

MOST_ATTEMPTS = 3
"""Repairs may add a few tokens to a view that just fits; then it is reduced again with that much less room."""

FORMAT_SAMPLE = 20
"""Items at the start of the view that are asked for the session's format."""

MOST_RECENT = 32
"""Requests that may wait for their answers at the same time, each to be compared with its own."""

OUTPUTS = "outputs"
"""The strategy that limits what is shown of tool outputs, in every session."""

MOST_UNSEEN = 0.9
"""The share of what a request may have that is left to what only the provider sees, so that messages have the rest."""

RECENT_ENTRIES = 100
"""Entries before the end of a session among which its last request is looked for when it is opened."""

ENVELOPE = 1_024
"""Bytes of a body around its messages: model, parameters, breakpoints, brackets."""


PRICED_HIGH = 0.97
"""The high mark of a strategy that decides by prices: a provider may count a few tokens more than we do."""


class SentRequest(NamedTuple):
    """A composed request, with which the usage and the errors that the provider reports are compared."""

    context: ModelContext
    weight: Weight
    fields: dict[str, msgspec.Raw]
    """Its further fields."""
    tokens: int

    def observe(self, usage: Usage) -> None:
        """Learn from the usage that the provider reported for it."""
        self.context.observe(self.weight, usage, self.tokens)


class Composer:
    """Composes the requests of one session."""

    def __init__(
        self,
        journal: JournalWriter,
        context: ModelContext,
        settings: Settings,
        *,
        strategy: Strategy | None = None,
        writer: Source | None = None,
    ) -> None:
        """Compose for the model of `context`. `settings` are those of the user, before any profile of a model."""
        self.journal = journal
        self.context = context
        """The model composed for, and how its tokens are counted."""
        self.summaries = SummaryQueue(self._writer(writer), wait=self.settings.wait)
        self.context.unseen = self._last_unseen()
        self.last: SentRequest | None = None
        """The last request."""
        self._user_settings = settings
        self._states_high = states_high(settings)
        self.own_strategy = guarded(strategy) if strategy is not None else None
        self.own_writer = writer
        self._contexts = {settings.model: context}
        self._strategies: dict[str, Strategy] = {}
        self._renderers: dict[tuple[str, frozenset[str], bool], Renderer] = {}
        self._parts: RequestParts | None = None
        self._fixed = Weight()
        self._before = RequestBefore()
        self._runs = 0
        self._warned = False
        self._nothing_to_do: object = None
        self._strategy_line = ""
        self._recent: dict[str, SentRequest] = {}
        self._format: tuple[object, str] | None = None
        # An unknown format or strategy is refused now, not at the first request.
        if settings.format is not None:
            providers.get(settings.format)
        _ = self.strategy
        if settings.state:
            _ = self.step

    def _writer(self, given: Source | None) -> Source:
        return self.settings.writer if given is None or isinstance(given, str) else given

    @property
    def settings(self) -> Settings:
        """The settings as they hold for the model that is composed for."""
        return self.context.settings

    @property
    def strategy(self) -> Strategy:
        """The strategy that was given, or the one that the settings name."""
        if self.own_strategy is not None:
            return self.own_strategy
        line = self._strategy_line or self.settings.strategy
        if line not in self._strategies:
            self._strategies[line] = guarded(strategies.get(line))
        return self._strategies[line]

    @property
    def format(self) -> str:
        """The wire format of the session: the stated one, that of its messages, or that of its model."""
        if self._user_settings.format:
            return self._user_settings.format
        view, model = self.journal.view, self.context.model
        key = (view.edits, model.name)
        if self._format is not None and self._format[0] == key:
            return self._format[1]
        with self.journal.lock:
            for item in view.items[:FORMAT_SAMPLE]:
                found = view.read(item).format
                if found in providers.names():
                    self._format = (key, providers.dialect(model) if found in providers.DIALECTS else found)
                    return self._format[1]
        return providers.for_model(model)

    @cached_property
    def step(self) -> StepContext:
        """Adds what the step at hand needs besides the conversation."""
        return StepContext(self.journal, self._user_settings)

    @property
    def fixed_tokens(self) -> int:
        """Tokens of the last request besides its messages, what only the provider saw of it included."""
        return self.context.scale.tokens(self._fixed) + self.settings.overhead + self.context.unseen

    def _last_unseen(self) -> int:
        """Return what only the provider saw of the last request before this session was opened."""
        last = self.journal.version
        entry = self.journal.last([(max(1, last - RECENT_ENTRIES), last)], "call")
        call = call_meta(entry.meta) if entry is not None else None
        return call.unseen if call is not None and call.model == self.settings.model else 0

    @property
    def fill(self) -> tuple[int, int]:
        """The tokens that a request has now, with the system prompt and tools of the last one, and may have."""
        fixed = self.fixed_tokens
        return fixed + self.journal.view.tokens(), self.budget(fixed).limit

    def explain(self) -> str:
        """Say what the strategy does now and why, with the system prompt and tools of the last request."""
        decided = self.strategy.explain(self.journal.view, self.budget(self.fixed_tokens))
        act = "waits" if decided.get("action") == "wait" else "folds at the next request"
        return f"{self.strategy.name} {act}, as {decided['why']}" if decided.get("why") else ""

    @contextmanager
    def keep_latest(self, messages: int) -> Iterator[None]:
        """Let `condense` keep so many of the latest messages, unless the user states how many."""
        user = self._user_settings
        stated = user.profile is not None or (user.model is not None and has_profile(user.model, user.profiles))
        line = user.strategy if stated else with_tables(user.strategy, {"condense": {"keep": messages}})
        if line != user.strategy:
            settings = msgspec.structs.replace(user, model=self.settings.model, strategy=line)
            self._strategy_line = apply_profile(settings).strategy
        try:
            yield
        finally:
            self._strategy_line = ""

    def use_model(self, model: str | None) -> None:
        """Compose for another model from now on; an unknown one is counted like the configured model."""
        if model is None or model == self.settings.model:
            return
        context = self._contexts[model] = self._contexts.get(model) or self._context_for(model)
        if context is self.context:
            return
        self.context.save()
        self.context = context
        writer = self._writer(self.own_writer)
        if self.summaries.source != writer:
            self.summaries.close()
            self.summaries = SummaryQueue(writer, wait=self.settings.wait)
        self.journal.weigh_with(context.scale)
        # What was rendered and weighed for the model before says nothing about this one.
        self._renderers.clear()
        self._parts = self.last = None
        self._before = RequestBefore()

    def _context_for(self, model: str) -> ModelContext:
        try:
            return ModelContext(
                apply_profile(msgspec.structs.replace(self._user_settings, model=model)), self.journal.store
            )
        except UnknownModelError:
            if self._user_settings.model is None:
                raise
            return self._contexts[self._user_settings.model]

    def parts(self, system: Any, tools: Sequence[Any], rest: Mapping[str, Any], format: str) -> RequestParts:
        """Read and weigh the parts that are never cut; the same parts are weighed once."""
        if (fields := self._provider_fields(format)) is not None:
            # What the caller states itself is not overruled.
            rest = {**fields.fields, **rest}
        key = parts_key(system, tools, rest, format)
        if self._parts is None or self._parts.key != key:
            self._parts = read_parts(system, tools, rest, providers.get(format), self.context.scale, key)
        return self._parts

    def _provider_fields(self, format: str) -> ProviderRequestFields | None:
        """Return what the strategy asks of the provider; always the same, so that the request only grows."""
        strategy = self.strategy
        return strategy.ask(format, self.budget(0)) if strategy.delegates else None

    def budget(self, fixed: int, *, max_output: int | None = None, stateless: bool = False) -> Budget:
        """Return the budget of a request whose fixed parts have this many tokens."""
        # A strategy that decides by prices folds before the limit where that pays: it needs no mark of its own.
        strategy, settings, view = self.strategy, self.settings, self.journal.view
        by_price = strategy.priced and not stateless and not self._states_high
        found = budget_for(
            self.context.model,
            budget=settings.budget,
            high=PRICED_HIGH if by_price else settings.high,
            low=settings.low,
            low_below_high=strategy.low_below_high,
            max_output=max_output or None,
            fixed=fixed,
            stateless=stateless,
            ceiling=self.context.ceiling,
            warn=settings.warn,
        )
        if strategy.priced and not stateless and 2 * (fixed + view.tokens()) > found.limit:
            # Only then a strategy weighs what a fold costs, and what it saves.
            found = self.context.priced(found, self.summaries)
        elif self.summaries.writer is not None:
            found = msgspec.structs.replace(found, writer=WriterPrices())
        if view.restored and view.unfolded():
            # What somebody had shown again stays until the window is too small for it.
            found = msgspec.structs.replace(found, high=found.limit)
        if strategy.layers(found):
            phase = self.step.state.value.runtime.phase
            shares = self.step.state_messages.settings.shares.allocate(found.limit, phase=phase, size=found.size)
            found = msgspec.structs.replace(found, phase=phase, layers=shares.layers)
        return found

    def compose(
        self,
        parts: RequestParts,
        *,
        format: str,
        max_output: int | None = None,
        model_name: str | None = None,
        stateless: bool = False,
    ) -> Payload:
        """Add context, reduce what is too large, render, and record the request."""
        with telemetry.span(
            "compose", timed=names.COMPOSE_DURATION, session=self.journal.session, format=format
        ) as span:
            view, rules = self.journal.view, providers.get(format).rules
            if len(view.items) == (view.leading() if rules.system_apart and not rules.system_inside else 0):
                raise InputError("there is nothing to send yet", remedy="add a message from the user first")
            fit = self.fit if stateless else self._fit_with_context
            spec = self.spec(parts, format, max_output, model_name, stateless=stateless)
            managed = None if stateless or self._manager is None else fit_managed(self, spec, self._manager)
            try:
                result, apart = managed or (fit(spec), None)
            except BudgetError:
                if self.context.ceiling is None:
                    raise
                self.context.ceiling = None
                spec = self.spec(parts, format, max_output, model_name, stateless=stateless)
                result, apart = fit(spec), None
            payload = self._payload(spec, result, apart)
            if span.live:
                model = self.context.model
                span.set(
                    model=model_name or model.name,
                    provider=names.provider_name(model.provider),
                    tokens=payload.tokens,
                    window=model.window,
                    compacted=payload.compacted or None,
                    decision=payload.decision,
                )
            return payload

    def finish(self, result: FitResult, before: tuple[int, int], *, emergency: bool) -> Statistics:
        """Count a reduction; `before` are the items and tokens of the view before it."""
        view = self.journal.view
        # One request may be fitted twice.
        self._runs += bool(result.folds) and not result.statistics.pruned
        return Statistics(
            pruned=bool(result.folds),
            messages_before=before[0],
            messages_after=len(view.items),
            tokens_before=before[1],
            tokens_after=view.tokens(),
            emergency=emergency,
            runs=self._runs,
        )

    def observe(self, usage: Usage | Mapping[str, Any]) -> None:
        """Learn from the usage a provider reported for the last request, where `Session.add` did not see it."""
        reported = usage if isinstance(usage, Usage) else providers.read_usage(usage)
        with self.journal.lock:
            self.journal.append(lambda draft: draft.record("usage", reported))
            record_usage(reported, self.context.model)
            if self.last is not None:
                self.last.observe(reported)

    def overflowed(self, error: BaseException | str, *, sent: int | SentRequest | None = None) -> int | None:
        """Learn a lower window from a provider's overflow error; return the window from now on, if the error says one.

        With `sent`, the refused request or the tokens it was counted as, the next one is smaller in any case.
        """
        if isinstance(sent, SentRequest):
            return sent.context.overflowed(str(error), sent.tokens)
        return self.context.overflowed(str(error), sent)

    def prepare(self, parts: RequestParts, format: str) -> None:
        """Have summaries that will soon be needed written in the background."""
        self._prepare(self.spec(parts, format))

    def drop_reasoning(self) -> None:
        """Leave out the reasoning of everything said so far: the provider refused a signature in it.

        It stays in the history. What is said from now on keeps its reasoning.
        """
        with self.journal.lock:
            self.journal.refresh()
            self.context.demands = msgspec.structs.replace(self.context.demands, refused=self.journal.version)
            self._renderers.clear()
        log.warning("session %s: the provider refused reasoning; it is sent without", self.journal.session)

    def sent_behind(self, message_id: str) -> SentRequest | None:
        """Return the last request that ended with this message, if it was not long ago."""
        return self._recent.get(message_id)

    def spec(
        self,
        parts: RequestParts,
        format: str,
        max_output: int | None = None,
        model_name: str | None = None,
        *,
        stateless: bool = False,
    ) -> RequestSpec:
        """Return a request with these parts, and its budget.

        Room is kept for the answer that its fields allow, unless `max_output` says how much; 0 leaves it to the model.
        """
        if max_output is None:
            max_output = output_room(parts.max_output, self.context.model)
        weight = parts.system_weight + parts.tools_weight + parts.schema_weight + self.context.scale.frame
        self._fixed = weight
        strategy, fixed = self.strategy, self.fixed_tokens
        if self.context.ceiling is not None and fixed >= self.context.ceiling:
            self.context.ceiling = None
        budget = self.budget(fixed, max_output=max_output, stateless=stateless)
        most = int(budget.limit * MOST_UNSEEN)
        if self.context.unseen and budget.fixed > most:
            # What only the provider sees may pass a stated budget. It is no reason to send nothing any more.
            seen = budget.fixed - self.context.unseen
            budget = self.budget(max(seen, most), max_output=max_output, stateless=stateless)
        budget = msgspec.structs.replace(
            budget, fixed_bytes=weight.bytes + ENVELOPE, refs=READ_TOOL in own_tools(parts.tools)
        )
        if budget.fixed >= budget.limit:
            raise fixed_too_large(parts, budget, self.context.scale, self.settings.overhead)
        idle = strategy.delegates and self._provider_fields(format) is None
        return RequestSpec(
            parts=parts,
            format=format,
            demands=self.context.demands,
            budget=budget,
            strategy=SlidingWindow() if idle else strategy,
            model_name=model_name,
            max_output=max_output,
            stateless=stateless,
        )

    # Context

    def _fit_with_context(self, spec: RequestSpec) -> FitResult:
        """Add the state and recalled text, recorded like messages, and fit the request.

        Where the folds hid the state, it is shown again, and the request fitted again. What stands last
        always stays, so a second time is enough.
        """
        step, model = self.step, self.context.model
        room = step.state_tokens(self.settings, spec.strategy, spec.budget)
        passed = step.passed()
        ended = self.fold(passed) if passed is not None else None
        notes = [*step.add_state(model, room), *step.add_recalled(self.settings.recall, spec.budget)]
        result = self.fit(spec)
        if again := step.add_state(model, room):
            notes += again
            result = self.fit(spec, result)
        if ended is not None:
            result.folds.insert(0, ended)
            notes.append(f"context of an earlier step left: {ended.before - ended.after:,} tokens")
        result.notes.extend(notes)
        return result

    # A context manager in the place of a strategy

    @property
    def waits(self) -> bool:
        """True when composing may wait for a model, or for a context manager."""
        return self.summaries.writer is not None or self._manager is not None

    @cached_property
    def _manager(self) -> ManagerCalls | None:
        strategy = self.strategy
        return ManagerCalls(strategy, wait=self.settings.wait) if isinstance(strategy, Managed) else None

    def complete_turn(self) -> None:
        """Tell the context manager, if there is one, that the model has answered."""
        if self._manager is not None:
            self._manager.complete(history_of(self.messages(), providers.get(self.format))[0])

    def close(self) -> None:
        """Stop what runs in the background."""
        self.summaries.close()
        if self._manager is not None:
            self._manager.close()

    def messages(self) -> list[Message]:
        """Return every message of the branch, as it came."""
        view = self.journal.view
        if not any(item.fold for item in view.items):
            return [view.whole(item) for item in view.items]
        return [self.journal.decode(entry) for entry in self.journal.branch("message", bodies=True)]

    # Fitting

    def fit(self, spec: RequestSpec, earlier: FitResult | None = None) -> FitResult:
        """Fold until the rendered request, repairs included, is within its budget; `earlier` was done for it before."""
        view, budget = self.journal.view, spec.budget
        before = (len(view.items), view.tokens())
        result = earlier or FitResult(folds=[], notes=[])
        total = budget.fixed + before[1]
        emergency, is_high = total > budget.limit, total > budget.high
        if earlier is not None:
            before = (earlier.statistics.messages_before, earlier.statistics.tokens_before)
            emergency = emergency or earlier.statistics.emergency
        if self.summaries.job is not None and (is_high or spec.strategy.due(view, budget)):
            # What was prepared earlier is held until then: hiding what has room would cost words and cache for nothing.
            result.decision = spec.strategy.explain(view, budget)
            self._fold_prepared(result, f"{total:,} tokens passed {budget.high:,}" if is_high else "")
        if self.summaries.notes:
            result.note(*self.summaries.take_notes())
        self._prepare(spec)
        overtaken: FoldError | None = None
        extra = 0
        for _ in range(MOST_ATTEMPTS):
            try:
                self._reduce(spec, result, extra)
            except BudgetError:
                # What the repairs took was counted before the folds: with less to repair it may fit all the same.
                if not extra:
                    raise
            except FoldError as error:
                # Somebody else folded the same messages first: what they left is read by now, and planned anew.
                overtaken = error
                continue
            self.journal.load(view)
            result.rendered = self._renderer(spec).render(view, spec.prompt_hash)
            if budget.fixed + result.rendered.extra + view.tokens() <= budget.limit:
                result.statistics = self.finish(result, before, emergency=emergency)
                return result
            extra = max(extra, result.rendered.extra) + 1
        raise overtaken if overtaken is not None else repairs_too_large(view, budget, result)

    def _renderer(self, spec: RequestSpec) -> Renderer:
        key = (spec.format, spec.own_tools, spec.continued)
        if key not in self._renderers:
            self._renderers[key] = spec.renderer()
        return self._renderers[key]

    def _reduce(self, spec: RequestSpec, result: FitResult, extra: int) -> None:
        view, budget, strategy = self.journal.view, spec.budget, spec.strategy
        total = budget.fixed + extra + view.tokens()
        known = (view.edits, len(view.items), budget, id(strategy))
        if known == self._nothing_to_do and total <= budget.limit:
            # A session to which nothing was added is not planned for again.
            return
        if self._limit_outputs(spec, result):
            total = budget.fixed + extra + view.tokens()
        over = budget.is_exceeded(view.weight) and over_limits(view, budget)
        if total <= budget.high and not over and not strategy.due(view, budget):
            return
        folds = len(result.folds)
        tighter = self._raise_marks(spec, budget.fixed + extra)
        self.journal.load(view)
        for proposal in reductions(view, tighter, spec, self.summaries, result):
            result.folds.append(self.fold(proposal))
        self._nothing_to_do = known if len(result.folds) == folds else None

    def _limit_outputs(self, spec: RequestSpec, result: FitResult) -> bool:
        """Show less of outputs above the limits: decided when one is first shown, it leaves the cached prefix whole."""
        view, limiter, folds = self.journal.view, self._limiter, len(result.folds)
        if limiter is None:
            return False
        try:
            self.journal.load(view)
            # What is too large alone comes first, then what all together are.
            while len(result.folds) < folds + 2 and limiter.due(view, spec.budget):
                proposals = limiter.plan(view, spec.budget).proposals
                result.folds += [self.fold(check_fold(view, proposal)) for proposal in proposals]
                if not proposals:
                    break
        except FoldError as error:
            result.note(f"outputs are not limited: {error}")
        return len(result.folds) > folds

    @cached_property
    def _limiter(self) -> Strategy | None:
        """The limits of outputs, unless the session has none or the strategy has its own."""
        if not self._user_settings.outputs or OUTPUTS in self.strategy.name.split("+"):
            return None
        return strategies.get(OUTPUTS, {"at_high": False})

    def _fold_prepared(self, result: FitResult, reason: str) -> None:
        """Fold what was written in the background; `reason` says which mark was passed, where one was."""
        drafted = self.summaries.take_prepared(self.journal.view)
        if drafted is None:
            return
        try:
            proposal = drafted.proposal
            if reason:
                # It was planned before there was a need: its own reason names the mark of then.
                proposal = msgspec.structs.replace(proposal, reason=f"{reason}; its text was written before")
            result.folds.append(self.fold(check_fold(self.journal.view, proposal)))
        except FoldError as error:
            result.note(f"a summary that was prepared no longer fits: {error}")
        result.note(*drafted.notes)

    def _prepare(self, spec: RequestSpec) -> None:
        """Warn above the warning mark, and have summaries written before they are needed."""
        view, budget = self.journal.view, spec.budget
        total = budget.fixed + view.tokens()
        above = bool(budget.warn) and total > budget.warn
        if above and not self._warned:
            # Once: a strategy that folds in time fills the window again and again.
            self._warned = True
            share, mark = 100 * total // budget.limit, f"above {budget.high:,} at the latest"
            when = "now" if total > budget.high else mark
            text = "session %s: %s tokens, %d%% of what fits; it is reduced %s"
            log.warning(text, self.journal.session, f"{total:,}", share, when)
        if not above or total > budget.high or not self.summaries.prepares or spec.stateless or spec.strategy.priced:
            # A strategy that decides by prices has its texts written when it has decided to fold.
            return
        self.journal.load(view)
        tighter = msgspec.structs.replace(budget, high=total - 1, low=min(budget.low, total - 1))
        with telemetry.span("plan", session=self.journal.session, strategy=spec.strategy.name, early=True):
            for proposal in spec.strategy.plan(view, tighter).proposals:
                self.summaries.prepare(view, proposal, spec)

    def _raise_marks(self, spec: RequestSpec, fixed: int) -> Budget:
        """Raise the marks above what can never be folded: around a large task every turn would fold otherwise."""
        view, budget = self.journal.view, spec.budget
        free = {index for unit in foldable_units(view, keep=0) for index in range(unit.start, unit.stop)}
        held = [item for index, item in enumerate(view.items[:-1]) if index not in free]
        floor = min(fixed + (view.tokens(*held) if held else 0), budget.limit)
        marks = self.budget(floor, max_output=spec.max_output, stateless=spec.stateless)
        if spec.goal:
            marks = marks.lowered(spec.goal)
        return msgspec.structs.replace(marks, fixed=fixed, fixed_bytes=budget.fixed_bytes, refs=budget.refs)

    def fold(self, proposal: Proposal) -> FoldMade:
        """Write a fold that was checked, and return what it did."""
        entry = self.journal.fold(proposal)
        fold = fold_meta(entry.meta)
        return FoldMade(
            id=entry.id,
            kind=fold.kind,
            strategy=fold.strategy,
            reason=fold.reason,
            messages=count_touched(fold.spans),
            before=fold.before,
            after=fold.after,
        )

    # The payload

    def _payload(self, spec: RequestSpec, result: FitResult, managed: View | None = None) -> Payload:
        """Record a request that fits, and return it; `managed` is the view of one that a context manager composed."""
        parts, model = spec.parts, self.context.model
        view = self.journal.view if managed is None else managed
        blobs, ids = parts.blobs, parts.ids
        if managed is not None:
            # No view of the session gives these messages: the request can only be built again from them.
            result.rendered = msgspec.structs.replace(result.rendered, settled=0, edits=-1)
            data = msgspec.json.encode(msgspec.structs.replace(result.rendered, repairs=()))
            ids = {**ids, MANAGED: hashlib.sha256(data).hexdigest()[:32]}
            blobs = {**blobs, ids[MANAGED]: data}
        rendered = result.rendered
        total = spec.budget.fixed + rendered.extra + view.tokens()
        common, stable = self._before.common_start(spec, rendered)
        if note := self._before.follow(rendered, parts, total):
            result.note(note)
            if self._before.changed == MOST_CHANGES:
                log.warning("session %s: %s", self.journal.session, note)
        if spec.demands.refused:
            result.note("the provider refused reasoning: none that was written before is sent")
        self._remember(SentRequest(self.context, self._fixed + view.weight, parts.rest, total))
        bound = spec.demands.bound_reasoning
        given = providers.get(spec.format).fit_fields(dict(parts.rest), rendered.chunks, bound_reasoning=bound)
        if given != parts.rest:
            how = "is left to the model" if "thinking" in given else "is off"
            result.note(f"thinking {how} in this request: the tool loop that runs no longer begins with its own")
        task = view.task()
        breakpoints = Breakpoints(
            minimum=model.cache_minimum,
            system=self.context.scale.tokens(parts.system_weight + parts.tools_weight),
            head=max(0, task + 1 - len(rendered.systems)) if task is not None else 0,
            head_blocks=len(view.read(view.items[task]).blocks) if task is not None else 0,
            previous=common,
            passing=0 if spec.stateless else self.step.passing_blocks(view),
        )
        call = Call(
            at=self.journal.version,
            format=spec.format,
            model=spec.model_name,
            blobs=ids,
            tokens=total,
            unseen=self.context.unseen,
            cached=stable,
            folds=tuple(fold.id for fold in result.folds),
            breakpoints=msgspec.structs.asdict(breakpoints),
            demands=spec.demands,
        )
        self.journal.queue_call(call, blobs)
        fields = self._provider_fields(spec.format)
        return Payload(
            spec,
            result,
            view.copy(),
            tokens=total,
            stable=stable,
            model=model,
            exact=self.context.exact,
            error=self.context.error,
            unseen=spec.budget.fixed - self.context.scale.tokens(self._fixed) - self.settings.overhead,
            breakpoints=breakpoints,
            headers=fields.headers if fields is not None else {},
        )

    def _remember(self, sent: SentRequest) -> None:
        self.last = sent
        end = self.journal.view.items[-1].id
        self._recent.pop(end, None)
        self._recent[end] = sent
        if len(self._recent) > MOST_RECENT:
            del self._recent[next(iter(self._recent))]
