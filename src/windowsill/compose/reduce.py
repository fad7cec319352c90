"""Keep the promise that a request fits, once, for every strategy: plan, check, write, fall back.

Each stage takes over where the one before left something too large: the strategy, a plain cut of the oldest, a cut that
keeps only the last unit; then what must stay is cut in the middle, and at the end to nothing. Old messages go before
anything is cut, and nothing that fits is cut.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from windowsill import telemetry
from windowsill.budget import Budget, Size, tokens_of
from windowsill.compose.payload import FitResult, RequestParts, RequestSpec, Statistics
from windowsill.compose.squeeze import (
    collapse,
    cut_bytes,
    drop_media,
    hide_held,
    over_limits,
    squeeze,
    tell_in_words,
)
from windowsill.compose.summaries import Drafted, SummaryQueue, write_records
from windowsill.errors import BudgetError, FoldError, StoreError, WindowsillError
from windowsill.history.folds import Proposal, ends
from windowsill.history.proposals import check_fold, check_plan
from windowsill.history.view import View
from windowsill.strategies import Plan, Strategy, fold_units, foldable_units
from windowsill.strategies.base import held_places
from windowsill.strategies.sliding_window import SlidingWindow
from windowsill.tokens import Scale

if TYPE_CHECKING:
    from windowsill.compose.composer import Composer

MOST_ROUNDS = 8
"""Times that a strategy may plan for one request: each round must make progress, so this is only a backstop."""

ROUNDS_WITHOUT_PROGRESS = 2

Fallback: TypeAlias = Callable[[View, Budget], Proposal | None]


def reductions(
    view: View, budget: Budget, spec: RequestSpec, summaries: SummaryQueue, result: FitResult
) -> Iterator[Proposal]:
    """Yield the folds that make a request fit, one at a time: apply each to the view before asking for the next.

    What is worth telling goes into `result`. `BudgetError` when what cannot be reduced is larger than the budget.
    """
    if over_limits(view, budget):
        yield from _fall_back(BYTE_CUTS, over_limits, view, budget, result)
        if over_limits(view, budget):
            raise _too_large(view, budget)
    if _is_due(view, budget, spec.strategy):
        yield from _by_strategy(view, budget, spec, summaries, result)
        yield from _fall_back(PLAIN_CUTS, _over_tokens, view, budget, result)
        # These aim at the mark of the window, not at one that was raised above what must stay: that is what they cut.
        window = msgspec.structs.replace(budget, high=spec.budget.high, step=spec.budget.step)
        yield from _fall_back(LAST_CUTS, _over_tokens, view, window, result, texts=False)
        if _over_tokens(view, budget):
            raise _too_large(view, budget)


def _is_due(view: View, budget: Budget, strategy: Strategy) -> bool:
    """Tell whether the strategy is to plan now."""
    return _total(view, budget) > budget.high or strategy.due(view, budget)


def _total(view: View, budget: Budget) -> int:
    return budget.fixed + view.tokens()


def _over_tokens(view: View, budget: Budget) -> bool:
    return _total(view, budget) > budget.limit


def _fall_back(
    fallbacks: Sequence[Fallback],
    is_over: Callable[[View, Budget], bool],
    view: View,
    budget: Budget,
    result: FitResult,
    *,
    texts: bool = True,
) -> Iterator[Proposal]:
    for fallback in fallbacks:
        if not is_over(view, budget):
            return
        if (proposal := fallback(view, budget)) is not None:
            yield write_records(view, proposal, budget, texts=texts)
            result.note(f"{proposal.strategy}: {proposal.reason}")


def _hide_bytes(view: View, budget: Budget) -> Proposal | None:
    """Hide the oldest until half of the bytes that are allowed remain."""
    if budget.room_bytes is None or view.weight.bytes <= budget.room_bytes:
        return None
    chosen, size = [], view.weight.bytes
    for unit in foldable_units(view, keep=1):
        if size <= budget.room_bytes // 2:
            break
        chosen.append(unit)
        size -= unit.weight(view.items).bytes
    reason = f"the request is larger than {budget.limits.bytes:,} bytes"
    return fold_units(view, chosen, strategy="composer", reason=reason)


def _by_strategy(
    view: View, budget: Budget, spec: RequestSpec, summaries: SummaryQueue, result: FitResult
) -> Iterator[Proposal]:
    strategy = spec.strategy
    idle = 0
    for number in range(MOST_ROUNDS):
        before = _total(view, budget)
        waiting = False
        try:
            # Whether the first is due was seen before.
            if number and not _is_due(view, budget, strategy):
                return
            with telemetry.span("plan", strategy=strategy.name, urgent=_over_tokens(view, budget)) as span:
                plan = strategy.plan(view, budget)
                span.set(proposals=len(plan.proposals), decision=plan.decision)
                waiting = yield from follow(plan, view, budget, spec, summaries, result)
        except StoreError:
            # A disk that fails is not the strategy's fault, and no other plan will mend it.
            raise
        except WindowsillError as error:
            result.note(f"strategy {strategy.name!r}: {error}")
        except Exception as error:  # noqa: BLE001 - a user's plug-in may raise anything, and must not cost the turn
            result.note(f"strategy {strategy.name!r} failed with {type(error).__name__}: {error}")
        if waiting:
            return
        idle = idle + 1 if _total(view, budget) >= before else 0
        if idle >= ROUNDS_WITHOUT_PROGRESS:
            if before > budget.limit:
                result.note(f"strategy {strategy.name!r} stopped: {idle} rounds without progress")
            return


def follow(
    plan: Plan, view: View, budget: Budget, spec: RequestSpec, summaries: SummaryQueue, result: FitResult
) -> Generator[Proposal, None, bool]:
    """Yield the folds of a plan, their texts written; return true when one is still being written."""
    waiting = False
    # A caller who keeps no session has no later request for what is written meanwhile.
    urgent = _over_tokens(view, budget) or spec.stateless or spec.now or plan.at_once
    result.middle = plan.middle or result.middle
    result.note(*plan.notes)
    result.decision = plan.decision or result.decision
    for proposal in plan.proposals:
        drafted = summaries.write(view, check_plan(view, proposal), spec, urgent=urgent)
        if drafted is None:
            waiting = True
            continue
        result.note(*drafted.notes)
        for fold in _foldable(view, budget, spec.strategy, drafted):
            again = [
                seq for seq in view.unfolded() if any(first <= seq <= last for first, last in map(ends, fold.spans))
            ]
            if again and not (_over_tokens(view, budget) or spec.goal or spec.now):
                continue
            yield _without_held(view, check_fold(view, write_records(view, fold, budget)))
            if again:
                result.note("what was unfolded is hidden again: the request had passed its limit")
    if waiting and plan.decision:
        why = f"the text in its place is being written: {plan.decision.get('why', '')}"
        result.decision = {**plan.decision, "action": "wait", "why": why}
    return waiting


def _without_held(view: View, fold: Proposal) -> Proposal:
    """Return a fold that hides nothing that `held_places` names; `FoldError` for another: a plug-in may not know."""
    held = [view.items[place] for place in held_places(view)]
    for first, last in map(ends, fold.spans):
        if hidden := next((item for item in held if first <= item.first <= last), None):
            raise FoldError(
                f"a strategy may not hide or cut {hidden.id!r}: the task, the request being worked on, instructions "
                "and pins stay",
                remedy="plan with windowsill.strategies.foldable_units, which leaves them out",
            )
    return fold


def _foldable(view: View, budget: Budget, strategy: Strategy, drafted: Drafted) -> tuple[Proposal, ...]:
    """Return what to fold: without its texts, what the strategy has instead, or nothing while there is room."""
    if drafted.whole:
        return (drafted.proposal,)
    if better := strategy.instead(view, budget).proposals:
        return better
    # A marker alone would hide words that have room.
    return () if _total(view, budget) <= budget.high else (drafted.proposal,)


def _cut_keeping(keep: int) -> Fallback:
    def cut(view: View, budget: Budget) -> Proposal | None:
        return next(iter(SlidingWindow(keep=keep).plan(view, budget).proposals), None)

    return cut


_squeeze_hard: Fallback = partial(squeeze, hard=True)

BYTE_CUTS: Sequence[Fallback] = (drop_media, _hide_bytes, cut_bytes, collapse, cut_bytes)
"""Bring bytes and media within the limits of the provider."""

PLAIN_CUTS: Sequence[Fallback] = (_cut_keeping(SlidingWindow().keep), _cut_keeping(1))
"""Hide the oldest: tried where a strategy did not free enough."""

LAST_CUTS: Sequence[Fallback] = (
    squeeze,
    squeeze,
    collapse,
    squeeze,
    tell_in_words,
    squeeze,
    hide_held,
    _squeeze_hard,
    _squeeze_hard,
)
"""Cut what must stay, each where the ones before did not suffice. A squeeze can only estimate what a cut will weigh, so
the next one takes what is left over."""


def _too_large(view: View, budget: Budget) -> BudgetError:
    systems, newest = view.items[: view.leading()], view.items[-1:]
    pins = [item for item in view.items[view.leading() : -1] if item.pinned]
    parts = {"system, tools and framing": budget.fixed}
    named = (("system messages", systems), ("pinned messages", pins), ("the newest message", newest))
    parts |= {name: view.tokens(*items) for name, items in named if items}
    remedy = "raise the budget, or take pins off" if pins or newest[0].pinned else "raise the budget"
    if not _over_tokens(view, budget):
        return BudgetError(
            f"the request has {view.weight.bytes + budget.fixed_bytes:,} bytes and may have {budget.limits.bytes:,}",
            wanted=view.weight.bytes + budget.fixed_bytes,
            available=budget.limits.bytes or 0,
            parts=parts,
            remedy=remedy.replace("raise the budget", "send less"),
        )
    return BudgetError(
        f"the request needs {_total(view, budget):,} tokens and may have {budget.limit:,}: "
        + ", ".join(f"{name} {size:,}" for name, size in parts.items()),
        wanted=_total(view, budget),
        available=budget.limit,
        parts=parts,
        remedy=remedy,
    )


def fixed_too_large(parts: RequestParts, budget: Budget, scale: Scale, overhead: int) -> BudgetError:
    """Make the error for a request whose parts besides its messages leave no room for any."""
    sizes = {
        "system prompt": scale.tokens(parts.system_weight),
        "tool definitions": scale.tokens(parts.tools_weight),
    }
    if parts.schema_weight.bytes:
        sizes["schema of the answer"] = scale.tokens(parts.schema_weight)
    if overhead:
        sizes["stated overhead"] = overhead
    return BudgetError(
        "what is never cut does not fit: "
        + ", ".join(f"{name} {size:,} tokens" for name, size in sizes.items())
        + f", and a request may have {budget.limit:,}",
        wanted=budget.fixed,
        available=budget.limit,
        parts=sizes,
        remedy="raise the budget or the window, or shorten them",
    )


def repairs_too_large(view: View, budget: Budget, result: FitResult) -> BudgetError:
    """Make the error for a request that fits, but not with what a provider wants mended in it."""
    repairs = result.rendered.extra
    sizes = {"system, tools and framing": budget.fixed, "messages": view.tokens(), "repairs": repairs}
    return BudgetError(
        f"repairs need {repairs:,} tokens more than the {budget.limit:,} there are",
        wanted=sum(sizes.values()),
        available=budget.limit,
        parts=sizes,
        remedy="raise the budget",
    )


# By hand: then every strategy acts, and a model that writes is waited for


COMPACTED = 0.25
"""The share of the messages that compacting leaves of one long turn."""


def reduce(
    composer: Composer,
    *,
    format: str | None = None,
    system: Any = None,
    tools: Sequence[Any] = (),
    to: Size | None = None,
) -> Statistics:
    """Reduce now what is too large for a request with these parts; return what that did.

    With `to`, tokens or a share of what a request may have, reduce to that, or as far as possible.
    """
    with composer.journal.lock:
        composer.journal.refresh()
        spec = _spec(composer, format, system, tools)
        if to is not None:
            goal = tokens_of(to, spec.budget.limit, "to")
            spec = msgspec.structs.replace(spec, goal=goal, budget=spec.budget.lowered(goal))
        return composer.fit(spec).statistics


def compact(
    composer: Composer, wish: str = "", *, format: str | None = None, system: Any = None, tools: Sequence[Any] = ()
) -> Statistics:
    """Put a summary in the place of all but the last turn now, however full the window is; return what that did.

    `wish` is a directive for whoever writes it. A strategy `compact` is followed with its settings.
    """
    from windowsill.strategies.compact import Compact  # noqa: PLC0415 - few sessions are compacted

    with composer.journal.lock:
        composer.journal.refresh()
        view, result = composer.journal.view, FitResult(folds=[], notes=[])
        before = (len(view.items), view.tokens())
        stages = (composer.strategy, *getattr(composer.strategy, "stages", ()))
        strategy = next((each for each in stages if isinstance(each, Compact)), Compact())
        spec = msgspec.structs.replace(_spec(composer, format, system, tools), strategy=strategy)
        # Of a single long turn, the oldest steps go too.
        budget = spec.budget.lowered(spec.budget.fixed + int(view.tokens() * COMPACTED))
        composer.journal.load(view)
        plan = strategy.with_wish(wish).compact(view, budget)
        for proposal in follow(plan, view, budget, spec, composer.summaries, result):
            result.folds.append(composer.fold(proposal))
        # They are in the report of the next request.
        composer.summaries.notes += result.notes
        return composer.finish(result, before, emergency=False)


def _spec(composer: Composer, format: str | None, system: Any, tools: Sequence[Any]) -> RequestSpec:
    from windowsill.strategies.compact import Compact  # noqa: PLC0415 - as above

    format = format or composer.format
    spec = composer.spec(composer.parts(system, tools, {}, format), format)
    strategy = spec.strategy
    if isinstance(strategy, Compact):
        strategy = msgspec.structs.replace(strategy, auto=True)
    return msgspec.structs.replace(spec, now=True, strategy=strategy)
