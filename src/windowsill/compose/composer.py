"""Compose requests: read the parts, set the budget, add context, fold what is too large, render, report."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from windowsill import providers, strategies, telemetry
from windowsill.budget import Budget, Size, budget_for, tokens_of
from windowsill.compose.managed import ManagerCalls, history_of, read_composed
from windowsill.compose.model_context import ModelContext
from windowsill.compose.payload import (
    FitResult,
    FoldMade,
    Payload,
    RequestParts,
    RequestSpec,
    Statistics,
    first_difference,
    parts_key,
    read_parts,
)
from windowsill.compose.reduce import follow, reductions
from windowsill.compose.render import Breakpoints, Rendered, Renderer, own_tools, same_blocks, same_start
from windowsill.compose.squeeze import hide_passing, over_limits
from windowsill.compose.summaries import Source, SummaryQueue
from windowsill.config import Settings, apply_profile, states_high
from windowsill.config.settings import has_profile, with_tables
from windowsill.errors import BudgetError, FoldError, InputError, StoreError, UnknownModelError, WindowsillError, log
from windowsill.history.folds import Proposal, count_touched
from windowsill.history.head import MANAGED, Call, call_meta
from windowsill.history.proposals import check_fold
from windowsill.history.view import Item, View, fold_meta
from windowsill.journal.writer import JournalWriter
from windowsill.messages import READ_TOOL, Message, Usage, text_message
from windowsill.models import record_usage
from windowsill.strategies import ProviderRequestFields, Strategy, foldable_units
from windowsill.strategies.manager import Managed
from windowsill.strategies.registry import guarded
from windowsill.strategies.sliding_window import SlidingWindow
from windowsill.telemetry import names
from windowsill.tokens import Weight

if TYPE_CHECKING:
    from windowsill.compose.recall import Recall
    from windowsill.compose.state_messages import StateMessages
    from windowsill.search import Archive, Embedder
    from windowsill.state.prompt import StateSettings
    from windowsill.state.session_state import SessionState


# ruff: noqa: PLC0415 - the state and the archive are loaded by the sessions that use them

MOST_ATTEMPTS = 3
"""Repairs may add a few tokens to a view that just fits; then it is reduced again with that much less room."""

FORMAT_SAMPLE = 20
"""Items at the start of the view that are asked for the session's format."""

MOST_RECENT = 32
"""Requests that may wait for their answers at the same time, each to be compared with its own."""

COMPACTED = 0.25
"""The share of the messages that compacting by hand leaves of one long turn."""

OUTPUTS = "outputs"
"""The strategy that limits what is shown of tool outputs, in every session."""

MOST_UNSEEN = 0.9
"""The share of what a request may have that is left to what only the provider sees, so that messages have the rest."""

RECENT_ENTRIES = 100
"""Entries before the end of a session among which its last request is looked for when it is opened."""

MOST_CHANGES = 3
"""Requests in a row that begin anew before it is told: a new phase or another tool is no mistake."""

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
        self._before: tuple[Rendered, RequestParts] | None = None
        self._changed = 0
        """Requests in a row whose start was another one than before."""
        self._total = 0
        self._runs = 0
        self._warned = False
        self._nothing_to_do: object = None
        self._passing: tuple[int, int, list[Item]] = (-1, 0, [])
        self._strategy_line = ""
        self._state_size: Size | None = None
        self._state_apart: frozenset[str] = frozenset()
        self._recent: dict[str, SentRequest] = {}
        self._format: tuple[object, str] | None = None
        # An unknown format or strategy, or a wrong setting of the state, is refused now, not at the first request.
        if settings.format is not None:
            providers.get(settings.format)
        _ = self.strategy
        if settings.state:
            _ = self._state_settings

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
    def state(self) -> SessionState:
        """The layered state of the session."""
        from windowsill.state.session_state import SessionState

        return SessionState(self.journal)

    @cached_property
    def state_messages(self) -> StateMessages:
        """Shows the model the layered state."""
        from windowsill.compose.state_messages import StateMessages

        return StateMessages(
            self.journal, self.state, self.count, settings=self._state_settings, embedder=self._embedder
        )

    @cached_property
    def archive(self) -> Archive:
        """Search over everything ever said in the session, and in those its `scope` includes."""
        from windowsill.search import Archive

        settings = self._user_settings
        store, session = self.journal.store, self.journal.session
        return Archive(store, session, scope=settings.scope, embedder=self._embedder, count=self.count)

    @cached_property
    def _embedder(self) -> Embedder | None:
        from windowsill.search import WordLlama

        return WordLlama() if self._user_settings.embedder else None

    @cached_property
    def _state_settings(self) -> StateSettings:
        from windowsill.state.prompt import read_state_settings

        return read_state_settings(self._user_settings.state)

    @cached_property
    def _recall(self) -> Recall:
        from windowsill.compose.recall import Recall

        return Recall(self.archive)

    def count(self, text: str) -> int:
        """Count the tokens of a text, as a message of its own."""
        scale = self.journal.scale
        return scale.tokens(scale.weigh(text_message("user", text)))

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

    @contextmanager
    def show_state(
        self, size: Size, *, apart: Iterable[str] = (), settings: StateSettings | None = None
    ) -> Iterator[None]:
        """Let requests show the layered state within `size`, unless the settings or the strategy say how much.

        `apart` are layers that the caller puts into the system prompt; `settings` say how it is shown.
        """
        before = (self._state_size, self._state_apart, self.state_messages)
        self._state_size, self._state_apart = size, frozenset(apart)
        if settings is not None:
            self.state_messages = before[-1].shown_with(settings)
        try:
            yield
        finally:
            self._state_size, self._state_apart, self.state_messages = before

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
        self._parts = self._before = self.last = None

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
        return self.strategy.ask(format, self.budget(0)) if self.strategy.delegates else None

    def budget(self, fixed: int, *, max_output: int | None = None, stateless: bool = False) -> Budget:
        """Return the budget of a request whose fixed parts have this many tokens."""
        # A strategy that decides by prices folds before the limit where that pays: it needs no mark of its own.
        by_price = self.strategy.priced and not stateless and not self._states_high
        found = budget_for(
            self.context.model,
            budget=self.settings.budget,
            high=PRICED_HIGH if by_price else self.settings.high,
            low=self.settings.low,
            low_below_high=self.strategy.low_below_high,
            max_output=max_output,
            fixed=fixed,
            stateless=stateless,
            ceiling=self.context.ceiling,
            warn=self.settings.warn,
        )
        if self.strategy.priced and not stateless and 2 * (fixed + self.journal.view.tokens()) > found.limit:
            # Only then a strategy weighs what a fold costs, and what it saves.
            found = msgspec.structs.replace(found, cache=self.context.cache_prices)
        if self.summaries.writer is not None:
            found = msgspec.structs.replace(found, writer=True)
        if self.journal.view.unfolded():
            # What somebody had shown again stays until the window is too small for it.
            found = msgspec.structs.replace(found, high=found.limit)
        if self.strategy.layers(found):
            phase = self.state.value.runtime.phase
            shares = self.state_messages.settings.shares.allocate(found.limit, phase=phase, size=found.size)
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
            spec = self._spec(parts, format, max_output, model_name, stateless=stateless)
            managed = None if stateless or self._manager is None else self._fit_managed(spec, self._manager)
            try:
                result, apart = managed or (fit(spec), None)
            except BudgetError:
                if self.context.ceiling is None:
                    raise
                self.context.ceiling = None
                spec = self._spec(parts, format, max_output, model_name, stateless=stateless)
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

    def reduce(
        self, *, format: str | None = None, system: Any = None, tools: Sequence[Any] = (), to: Size | None = None
    ) -> Statistics:
        """Reduce now what is too large for a request with these parts; return what that did.

        With `to`, tokens or a share of what a request may have, reduce to that, or as far as possible.
        """
        with self.journal.lock:
            self.journal.refresh()
            spec = self._spec_by_hand(format, system, tools)
            if to is not None:
                goal = tokens_of(to, spec.budget.limit, "to")
                spec = msgspec.structs.replace(spec, goal=goal, budget=_lowered(spec.budget, goal))
            return self.fit(spec).statistics

    def compact(
        self, wish: str = "", *, format: str | None = None, system: Any = None, tools: Sequence[Any] = ()
    ) -> Statistics:
        """Put a summary in the place of all but the last turn now, however full the window is; return what that did.

        `wish` is a directive for whoever writes it. A strategy `compact` is followed with its settings.
        """
        from windowsill.strategies.compact import Compact

        with self.journal.lock:
            self.journal.refresh()
            view, result = self.journal.view, FitResult(folds=[], notes=[])
            before = (len(view.items), view.tokens())
            stages = (self.strategy, *getattr(self.strategy, "stages", ()))
            strategy = next((each for each in stages if isinstance(each, Compact)), Compact())
            spec = msgspec.structs.replace(self._spec_by_hand(format, system, tools), strategy=strategy)
            # Of a single long turn, the oldest steps go too.
            budget = _lowered(spec.budget, spec.budget.fixed + int(view.tokens() * COMPACTED))
            self.journal.load(view)
            plan = strategy.with_wish(wish).compact(view, budget)
            for proposal in follow(plan, view, budget, spec, self.summaries, result):
                result.folds.append(self._fold(proposal))
            self._runs += bool(result.folds)
            # They are in the report of the next request.
            self.summaries.notes += result.notes
            return self._statistics(result, before, emergency=False)

    def _spec_by_hand(self, format: str | None, system: Any, tools: Sequence[Any]) -> RequestSpec:
        """Return a request that is to be reduced because a caller says so: then every strategy acts, and waits."""
        from windowsill.strategies.compact import Compact

        format = format or self.format
        spec = self._spec(self.parts(system, tools, {}, format), format)
        strategy = spec.strategy
        if isinstance(strategy, Compact):
            strategy = msgspec.structs.replace(strategy, auto=True)
        return msgspec.structs.replace(spec, now=True, strategy=strategy)

    def _statistics(self, result: FitResult, before: tuple[int, int], *, emergency: bool) -> Statistics:
        view = self.journal.view
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
        self._prepare(self._spec(parts, format))

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

    def _spec(
        self,
        parts: RequestParts,
        format: str,
        max_output: int | None = None,
        model_name: str | None = None,
        *,
        stateless: bool = False,
    ) -> RequestSpec:
        weight = self._fixed = self._fixed_weight(parts)
        if self.context.ceiling is not None and self.fixed_tokens >= self.context.ceiling:
            self.context.ceiling = None
        budget = self.budget(self.fixed_tokens, max_output=max_output, stateless=stateless)
        most = int(budget.limit * MOST_UNSEEN)
        if self.context.unseen and budget.fixed > most:
            # What only the provider sees may pass a stated budget. It is no reason to send nothing any more.
            seen = budget.fixed - self.context.unseen
            budget = self.budget(max(seen, most), max_output=max_output, stateless=stateless)
        budget = msgspec.structs.replace(
            budget, fixed_bytes=weight.bytes + ENVELOPE, refs=READ_TOOL in own_tools(parts.tools)
        )
        if budget.fixed >= budget.limit:
            raise self._nothing_left(parts, budget)
        idle = self.strategy.delegates and self._provider_fields(format) is None
        return RequestSpec(
            parts=parts,
            format=format,
            demands=self.context.demands,
            budget=budget,
            strategy=SlidingWindow() if idle else self.strategy,
            model_name=model_name,
            max_output=max_output,
            stateless=stateless,
        )

    def _fixed_weight(self, parts: RequestParts) -> Weight:
        return parts.system_weight + parts.tools_weight + parts.schema_weight + self.context.scale.frame

    def _nothing_left(self, parts: RequestParts, budget: Budget) -> BudgetError:
        scale = self.context.scale
        sizes = {
            "system prompt": scale.tokens(parts.system_weight),
            "tool definitions": scale.tokens(parts.tools_weight),
        }
        if parts.schema_weight.bytes:
            sizes["schema of the answer"] = scale.tokens(parts.schema_weight)
        if self.settings.overhead:
            sizes["stated overhead"] = self.settings.overhead
        return BudgetError(
            "what is never cut does not fit: "
            + ", ".join(f"{name} {size:,} tokens" for name, size in sizes.items())
            + f", and a request may have {budget.limit:,}",
            wanted=budget.fixed,
            available=budget.limit,
            parts=sizes,
            remedy="raise the budget or the window, or shorten them",
        )

    # Context

    def _fit_with_context(self, spec: RequestSpec) -> FitResult:
        """Add the state and recalled text, recorded like messages, and fit the request.

        Where the folds hid the state, it is shown again, and the request fitted again. What stands last
        always stays, so a second time is enough.
        """
        room = self._state_tokens(spec)
        ended = self._hide_passing()
        notes = [*self._show_state(room), *self.journal.retry(lambda: self._add_recalled(spec))]
        result = self.fit(spec)
        if again := self._show_state(room):
            notes += again
            result = _together(result, self.fit(spec))
        if ended is not None:
            result.folds.insert(0, ended)
            notes.append(f"context of an earlier step left: {ended.before - ended.after:,} tokens")
        result.notes.extend(notes)
        return result

    def _hide_passing(self) -> FoldMade | None:
        """Hide dynamic context whose turn is over: the user has spoken since, or another context was given."""
        view = self.journal.view
        edits, start, current = self._passing
        if edits != view.edits:
            start, current = 0, []
        over: list[Item] = []
        for item in view.items[start:]:
            if item.own or item.passing:
                over += current
                current = [item] if item.passing else []
        proposal = hide_passing(view, over) if over else None
        made = self._fold(proposal) if proposal is not None else None
        self._passing = (view.edits, len(view.items), current)
        return made

    def _state_tokens(self, spec: RequestSpec) -> int:
        """Return the tokens in which the layered state may be shown; 0 when it is not."""
        wanted = spec.strategy.layers(spec.budget)
        size = self.settings.layers if self.settings.layers is not None else None if wanted else self._state_size
        return wanted if size is None else tokens_of(size, spec.budget.limit, "layers")

    def _show_state(self, room: int) -> list[str]:
        if not room:
            return []
        return self.journal.retry(lambda: self.state_messages.show(self.context.model, room, self._state_apart))

    def _add_recalled(self, spec: RequestSpec) -> list[str]:
        """Bring back what the step at hand needs of what is hidden; return notes about it."""
        size, view = self.settings.recall, self.journal.view
        if size is None:
            return []
        try:
            found = self._recall.recall(view, tokens_of(size, spec.budget.limit, "recall"))
        except WindowsillError as error:
            # The archive can be made again; a turn that fails cannot be had back.
            return [f"recall failed: {error}"]
        if found is None:
            return []
        message, lines = found
        self.journal.add([message], conversation=view.conversation_hash)
        return [f"recall: {lines} hidden lines brought back"]

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
            self._manager.complete(history_of(self._messages(), providers.get(self.format))[0])

    def close(self) -> None:
        """Stop what runs in the background."""
        self.summaries.close()
        if self._manager is not None:
            self._manager.close()

    def _messages(self) -> list[Message]:
        """Return every message of the branch, as it came."""
        view = self.journal.view
        if not any(item.fold for item in view.items):
            return [view.whole(item) for item in view.items]
        return [self.journal.decode(entry) for entry in self.journal.branch("message", bodies=True)]

    def _fit_managed(self, spec: RequestSpec, calls: ManagerCalls) -> tuple[FitResult, View] | None:
        """Let the context manager compose, and make that valid and fit; `None`, and a note, when it fails.

        It is fitted apart from the session, whose view stays whole: what a manager leaves out is no fold.
        """
        native = providers.get(spec.format, spec.demands)
        history, rag_context = history_of(self._messages(), native)
        tools = [msgspec.json.decode(native.render_tool(tool)) for tool in spec.parts.tools]
        system = spec.parts.system.text if spec.parts.system is not None else None
        try:
            messages = read_composed(calls.compose(system, history, tools, rag_context), native, spec.parts)
            inner = self._apart(messages)
            result = inner.fit(inner._spec(spec.parts, spec.format, spec.max_output, stateless=True))  # noqa: SLF001 - a twin
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - a program's own manager may raise anything, and must not cost the turn
            self.summaries.notes.append(f"{calls.fault(error)}; {SlidingWindow.name} takes over")
            return None
        result.note(*calls.take_notes())
        if result.folds:
            result.note(f"what context manager {calls.name!r} composed did not fit, and was reduced")
            result.folds = []
        return result, inner.journal.view

    def _apart(self, messages: Sequence[Message]) -> Composer:
        """Make a composer of a list that is not the session's history."""
        from windowsill.store.memory import MemoryStore

        store, context = MemoryStore(), copy(self.context)
        context.settings = msgspec.structs.replace(
            self.settings, strategy=SlidingWindow.name, writer="offline", high=1.0, low=0.75, outputs=False
        )
        store.create(self.journal.session, at=0.0, settings=b"{}")
        journal = JournalWriter(store, self.journal.session, context.scale, self.journal.clock)
        journal.add([msgspec.structs.replace(message, id="") for message in messages])
        return Composer(journal, context, context.settings)

    # Fitting

    def fit(self, spec: RequestSpec) -> FitResult:
        """Fold until the rendered request, repairs included, is within its budget."""
        view, budget = self.journal.view, spec.budget
        before = (len(view.items), view.tokens())
        result = FitResult(folds=[], notes=[])
        emergency = budget.fixed + view.tokens() > budget.limit
        is_high = budget.fixed + view.tokens() > budget.high
        if self.summaries.job is not None and (is_high or spec.strategy.due(view, budget)):
            # What was prepared earlier is held until then: hiding what has room would cost words and cache for nothing.
            result.decision = spec.strategy.explain(view, budget)
            self._fold_prepared(
                result, f"{budget.fixed + view.tokens():,} tokens passed {budget.high:,}" if is_high else ""
            )
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
                self._runs += bool(result.folds)
                result.statistics = self._statistics(result, before, emergency=emergency)
                return result
            extra = max(extra, result.rendered.extra) + 1
        raise overtaken if overtaken is not None else self._repairs_too_large(budget, result)

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
            result.folds.append(self._fold(proposal))
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
                result.folds += [self._fold(check_fold(view, proposal)) for proposal in proposals]
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
            result.folds.append(self._fold(check_fold(self.journal.view, proposal)))
        except FoldError as error:
            result.note(f"a summary that was prepared no longer fits: {error}")
        result.note(*drafted.notes)

    def _prepare(self, spec: RequestSpec) -> None:
        """Warn above the warning mark, and have summaries written before they are needed."""
        view, budget = self.journal.view, spec.budget
        total = budget.fixed + view.tokens()
        above = bool(budget.warn) and total > budget.warn
        if above and not self._warned:
            share = 100 * total // budget.limit
            log.warning("session %s: %s tokens, %d%% of what fits", self.journal.session, f"{total:,}", share)
        self._warned = above
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
            marks = _lowered(marks, spec.goal)
        return msgspec.structs.replace(marks, fixed=fixed, fixed_bytes=budget.fixed_bytes, refs=budget.refs)

    def _fold(self, proposal: Proposal) -> FoldMade:
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

    def _repairs_too_large(self, budget: Budget, result: FitResult) -> BudgetError:
        messages, repairs = self.journal.view.tokens(), result.rendered.extra
        sizes = {"system, tools and framing": budget.fixed, "messages": messages, "repairs": repairs}
        return BudgetError(
            f"repairs need {repairs:,} tokens more than the {budget.limit:,} there are",
            wanted=sum(sizes.values()),
            available=budget.limit,
            parts=sizes,
            remedy="raise the budget",
        )

    # The payload

    def _payload(self, spec: RequestSpec, result: FitResult, managed: View | None = None) -> Payload:
        """Record a request that fits, and return it; `managed` is the view of one that a context manager composed."""
        parts, model = spec.parts, self.context.model
        view = self.journal.view if managed is None else managed
        blobs, ids = dict(parts.blobs.values()), parts.ids
        if managed is not None:
            # No view of the session gives these messages: the request can only be built again from them.
            result.rendered = msgspec.structs.replace(result.rendered, settled=0, edits=-1)
            data = msgspec.json.encode(msgspec.structs.replace(result.rendered, repairs=()))
            ids = {**ids, MANAGED: hashlib.sha256(data).hexdigest()[:32]}
            blobs[ids[MANAGED]] = data
        rendered = result.rendered
        total = spec.budget.fixed + rendered.extra + view.tokens()
        common, stable = self._same_as_before(spec, rendered)
        self._note_change(parts, result)
        if spec.demands.refused:
            result.note("the provider refused reasoning: none that was written before is sent")
        self._before, self._total = (rendered, parts), total
        self._remember(SentRequest(self.context, self._fixed_weight(parts) + view.weight, parts.rest, total))
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
            passing=self._passing_blocks(view),
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

    def _passing_blocks(self, view: View) -> int:
        """Count the blocks at the end of the request that the next turn does not have."""
        if not self._passing[2]:
            return 0
        tail = list(itertools.takewhile(lambda item: not item.own and item.role == "user", reversed(view.items)))
        place = next((place for place, item in enumerate(tail) if item.passing), -1)
        return sum(len(view.read(item).blocks) for item in tail[: place + 1])

    def _remember(self, sent: SentRequest) -> None:
        self.last = sent
        end = self.journal.view.items[-1].id
        self._recent.pop(end, None)
        self._recent[end] = sent
        if len(self._recent) > MOST_RECENT:
            del self._recent[next(iter(self._recent))]

    def _note_change(self, parts: RequestParts, result: FitResult) -> None:
        """Tell that no request begins as the one before, so that no prompt cache can serve it; log it once."""
        place = first_difference(self._before[1], parts) if self._before is not None else ""
        self._changed = self._changed + 1 if place else 0
        if self._changed < MOST_CHANGES:
            return
        note = f"no prompt cache can serve these requests: {place}, each time"
        result.note(note)
        if self._changed == MOST_CHANGES:
            log.warning("session %s: %s", self.journal.session, note)

    def _same_as_before(self, spec: RequestSpec, rendered: Rendered) -> tuple[int, int]:
        """Count the messages, and the tokens, at the start that equal the request before."""
        if self._before is None or self._before[1].ids != spec.parts.ids:
            # The system prompt and the tools stand at the start: after other ones nothing is the same.
            return 0, 0
        before = self._before[0]
        known = before.settled if before.edits == rendered.edits else 0
        common = same_start(before.chunks, rendered.chunks, known)
        stable = spec.budget.fixed + sum(rendered.tokens[:common])
        if common < min(len(before.chunks), len(rendered.chunks)):
            # Of the first message that differs, the same blocks.
            stable += int(rendered.tokens[common] * same_blocks(before.chunks[common], rendered.chunks[common]))
        return common, min(stable, self._total)


def _lowered(budget: Budget, goal: int) -> Budget:
    return msgspec.structs.replace(budget, high=min(budget.high, goal), low=min(budget.low, goal))


def _together(first: FitResult, second: FitResult) -> FitResult:
    """Join the results of fitting a request twice."""
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
        decision=second.decision or first.decision,
        statistics=statistics,
    )
