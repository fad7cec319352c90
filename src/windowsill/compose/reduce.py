"""Keeps the promise that a request fits, once, for every strategy: plan, check, accept, fall back.

Each stage takes over where the one before left something too large: the strategy, a plain cut of the oldest, a cut that
keeps only the last unit, and at the end the largest blocks cut in the middle, which cannot fail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import msgspec

from windowsill import telemetry
from windowsill.budget import Budget
from windowsill.compose.checking import checked
from windowsill.compose.squeeze import cut_bytes, drop_media, over_limits, squeeze
from windowsill.compose.writing import Filled
from windowsill.errors import BudgetError, StoreError, WindowsillError
from windowsill.history.folds import Proposal
from windowsill.history.view import Item, View
from windowsill.strategies import Strategy, is_eager, substitutes
from windowsill.strategies.sliding_window import SlidingWindow, fold_units, free_units

MOST_ROUNDS = 8
"""How often a strategy may plan for one request: each round must make progress, so this is only a backstop."""

ROUNDS_WITHOUT_PROGRESS = 2

Fallback: TypeAlias = Callable[[View, Budget], Proposal | None]


class Reduction(msgspec.Struct):
    """What was done to make a request fit."""

    notes: list[str]
    middle: tuple[Item, ...] = ()


class Write(Protocol):
    """Fills a proposal with text; `None` when that is still being written, and the request can go without."""

    def __call__(self, proposal: Proposal, *, urgent: bool) -> Filled | None:
        """The proposal as it can be folded."""


def as_it_is(proposal: Proposal, *, urgent: bool) -> Filled | None:
    """For callers without a writer: what a strategy wanted written stays a marker."""
    del urgent
    return Filled(proposal)


def reduce(
    view: View, budget: Budget, strategy: Strategy, accept: Callable[[Proposal], None], write: Write = as_it_is
) -> Reduction:
    """Fold until the request is within its budget; `accept` records each fold and applies it to the view.

    `BudgetError` when what cannot be reduced is larger than the budget.
    """
    done = Reduction(notes=[])
    if over_limits(view, budget):
        _try_each((drop_media, _hide_bytes, cut_bytes), _bytes_fit, view, budget, accept, done)
        if not _bytes_fit(view, budget):
            raise _too_large(view, budget)
    if not _wants(view, budget, strategy):
        return done
    _by_strategy(view, budget, strategy, accept, write, done)
    _try_each(FALLBACKS, _tokens_fit, view, budget, accept, done)
    if not _tokens_fit(view, budget):
        raise _too_large(view, budget)
    return done


def _wants(view: View, budget: Budget, strategy: Strategy) -> bool:
    """Whether the strategy has something to do."""
    return _total(view, budget) > budget.high or (is_eager(strategy) and strategy.due(view, budget))


def _total(view: View, budget: Budget) -> int:
    return budget.fixed + view.tokens()


def _tokens_fit(view: View, budget: Budget) -> bool:
    return _total(view, budget) <= budget.limit


def _bytes_fit(view: View, budget: Budget) -> bool:
    return not over_limits(view, budget)


def _try_each(
    fallbacks: Sequence[Fallback],
    fits: Callable[[View, Budget], bool],
    view: View,
    budget: Budget,
    accept: Callable[[Proposal], None],
    done: Reduction,
) -> None:
    """One after the other, until it fits; each is looked for when the ones before did not suffice."""
    for fallback in fallbacks:
        if fits(view, budget):
            return
        if (proposal := fallback(view, budget)) is not None:
            accept(proposal)
            done.notes.append(f"{proposal.strategy}: {proposal.reason}")


def _hide_bytes(view: View, budget: Budget) -> Proposal | None:
    """Hide the oldest until half of the bytes that are allowed remain."""
    if budget.room_bytes is None or view.weight.bytes <= budget.room_bytes:
        return None
    chosen, size = [], view.weight.bytes
    for unit in free_units(view, keep=1):
        if size <= budget.room_bytes // 2:
            break
        chosen.append(unit)
        size -= unit.weight(view.items).bytes
    reason = f"the request is larger than {budget.limits.bytes:,} bytes"
    return fold_units(view, chosen, strategy="composer", reason=reason, quote=0)


def _by_strategy(
    view: View,
    budget: Budget,
    strategy: Strategy,
    accept: Callable[[Proposal], None],
    write: Write,
    done: Reduction,
) -> None:
    idle = 0
    for _ in range(MOST_ROUNDS):
        before = _total(view, budget)
        try:
            if not _wants(view, budget, strategy) or not _round(view, budget, strategy, accept, write, done):
                return
        except StoreError:
            # A disk that fails is not the strategy's fault, and no other plan will mend it.
            raise
        except WindowsillError as error:
            done.notes.append(f"strategy {strategy.name!r}: {error}")
        except Exception as error:  # noqa: BLE001 - a user's plug-in may raise anything, and must not cost the turn
            done.notes.append(f"strategy {strategy.name!r} failed with {type(error).__name__}: {error}")
        idle = idle + 1 if _total(view, budget) >= before else 0
        if idle >= ROUNDS_WITHOUT_PROGRESS:
            if before > budget.limit:
                done.notes.append(f"strategy {strategy.name!r} stopped: {idle} rounds without progress")
            return


def _round(
    view: View,
    budget: Budget,
    strategy: Strategy,
    accept: Callable[[Proposal], None],
    write: Write,
    done: Reduction,
) -> bool:
    """Plan once and fold; false when a text is still being written, and the fold comes with a later request."""
    urgent = _total(view, budget) > budget.limit
    with telemetry.span("plan", strategy=strategy.name, urgent=urgent) as span:
        plan = strategy.plan(view, budget)
        span.set(proposals=len(plan.proposals))
        done.middle = plan.middle or done.middle
        done.notes.extend(plan.notes)
        waiting = False
        for proposal in plan.proposals:
            filled = write(checked(view, proposal), urgent=urgent)
            waiting = waiting or filled is None
            if filled is not None:
                done.notes.extend(filled.notes)
                _accept(view, budget, strategy, filled, accept)
    return not waiting


def _accept(view: View, budget: Budget, strategy: Strategy, filled: Filled, accept: Callable[[Proposal], None]) -> None:
    """Fold; where a text could not be written, what the strategy knows instead, or nothing while there is room."""
    proposals: tuple[Proposal, ...] = (filled.proposal,)
    if not filled.whole:
        if substitutes(strategy):
            proposals = strategy.instead(view, budget).proposals or proposals
        elif _total(view, budget) <= budget.high:
            # A marker alone would hide words that have room.
            return
    for proposal in proposals:
        accept(checked(view, proposal))


def _cut_keeping(keep: int) -> Fallback:
    def cut(view: View, budget: Budget) -> Proposal | None:
        return next(iter(SlidingWindow(keep=keep, quote=0.0).plan(view, budget).proposals), None)

    return cut


FALLBACKS = (_cut_keeping(SlidingWindow().keep), _cut_keeping(1), squeeze, squeeze, squeeze, squeeze)
"""Each is tried when the ones before did not suffice. A squeeze can only estimate what a cut will weigh, so the next
one takes what is left over."""


def _too_large(view: View, budget: Budget) -> BudgetError:
    systems = view.items[: view.leading()]
    parts = {"system, tools and framing": budget.fixed}
    if systems:
        parts["system messages"] = view.tokens(*systems)
    parts["messages that must stay"] = view.tokens() - parts.get("system messages", 0)
    if _tokens_fit(view, budget):
        return BudgetError(
            f"the request has {view.weight.bytes + budget.fixed_bytes:,} bytes and may have {budget.limits.bytes:,}",
            wanted=view.weight.bytes + budget.fixed_bytes,
            available=budget.limits.bytes or 0,
            parts=parts,
            remedy="take pins off, or send less",
        )
    return BudgetError(
        f"the request needs {_total(view, budget):,} tokens and may have {budget.limit:,}: "
        + ", ".join(f"{name} {size:,}" for name, size in parts.items()),
        wanted=_total(view, budget),
        available=budget.limit,
        parts=parts,
        remedy="raise the budget, or take pins off",
    )
