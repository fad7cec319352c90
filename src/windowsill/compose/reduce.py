"""Keeps the promise that a request fits, once, for every strategy: plan, check, accept, fall back.

Each stage takes over where the one before left something too large: the strategy, a plain cut of the oldest, a cut that
keeps only the last unit, and at the end the largest blocks cut in the middle, which cannot fail.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from windowsill.budget import Budget
from windowsill.compose.squeeze import cut_giants, drop_media, over_limits, squeeze
from windowsill.errors import BudgetError, FoldError, WindowsillError
from windowsill.history.folds import Part, Proposal, Run
from windowsill.history.units import units
from windowsill.history.view import Item, View, sum_weights
from windowsill.strategies import Strategy
from windowsill.strategies.sliding_window import SlidingWindow, fold_units, free_units

MOST_ROUNDS = 8
"""How often a strategy may plan for one request: each round must make progress, so this is only a backstop."""

ROUNDS_WITHOUT_PROGRESS = 2


class Reduction(msgspec.Struct):
    """What was done to make a request fit."""

    notes: list[str]
    middle: tuple[Item, ...] = ()


def reduce(view: View, budget: Budget, strategy: Strategy, accept: Callable[[Proposal], None]) -> Reduction:
    """Fold until the request is within its budget; `accept` writes each fold and applies it to the view.

    `BudgetError` when what cannot be reduced is larger than the budget.
    """
    done = Reduction(notes=[])
    if over_limits(view, budget):
        _media(view, budget, accept, done)
    if _total(view, budget) <= budget.high:
        return done
    if (proposal := cut_giants(view, budget)) is not None:
        accept(proposal)
    _by_strategy(view, budget, strategy, accept, done)
    for fallback in FALLBACKS:
        if _total(view, budget) <= budget.limit:
            return done
        if (proposal := fallback(view, budget)) is not None:
            accept(proposal)
            done.notes.append(f"{proposal.strategy}: {proposal.reason}")
    if _total(view, budget) > budget.limit:
        raise _too_large(view, budget)
    return done


def _total(view: View, budget: Budget) -> int:
    return budget.fixed + view.tokens()


def _media(view: View, budget: Budget, accept: Callable[[Proposal], None], done: Reduction) -> None:
    if (proposal := drop_media(view, budget)) is not None:
        accept(proposal)
    most = budget.limits.bytes
    if most is None or view.weight.bytes <= most:
        return
    chosen, size = [], view.weight.bytes
    for unit in free_units(view, keep=1):
        if size <= most // 2:
            break
        chosen.append(unit)
        size -= unit.weight(view.items).bytes
    reason = f"the request is larger than {most:,} bytes"
    if (proposal := fold_units(view, chosen, strategy="composer", reason=reason, quote=0)) is not None:
        accept(proposal)
    done.notes.append(reason)


def _by_strategy(
    view: View, budget: Budget, strategy: Strategy, accept: Callable[[Proposal], None], done: Reduction
) -> None:
    idle = 0
    for _ in range(MOST_ROUNDS):
        before = _total(view, budget)
        if before <= budget.high:
            return
        try:
            plan = strategy.plan(view, budget)
            proposals = plan.proposals
            done.middle = plan.middle or done.middle
            done.notes.extend(plan.notes)
            for proposal in proposals:
                check(view, proposal)
                accept(proposal)
        except WindowsillError as error:
            done.notes.append(f"strategy {strategy.name!r}: {error}")
        except Exception as error:  # noqa: BLE001 - a user's plug-in may raise anything, and must not cost the turn
            done.notes.append(f"strategy {strategy.name!r} failed with {type(error).__name__}: {error}")
        idle = idle + 1 if _total(view, budget) >= before else 0
        if idle >= ROUNDS_WITHOUT_PROGRESS:
            if before > budget.limit:
                done.notes.append(f"strategy {strategy.name!r} stopped: {idle} rounds without progress")
            return


def _cut_keeping(keep: int) -> Callable[[View, Budget], Proposal | None]:
    def cut(view: View, budget: Budget) -> Proposal | None:
        return next(iter(SlidingWindow(keep=keep, quote=0.0).plan(view, budget).proposals), None)

    return cut


FALLBACKS = (_cut_keeping(SlidingWindow().keep), _cut_keeping(1), _cut_keeping(0), squeeze, squeeze)
"""Each is tried when the ones before did not suffice. The second squeeze takes what the first could only estimate."""


def check(view: View, proposal: Proposal) -> None:
    """Refuse a fold that would split a unit, hide what must stay, or not make the view smaller."""
    if len(proposal.spans) != len(proposal.stand_ins):
        raise FoldError("a fold needs one stand-in for each span", remedy="give None where nothing stands in")
    saves = sum_weights(span.saves for span in proposal.spans)
    if view.tokens_of(view.weight - saves) >= view.tokens():
        raise FoldError(f"{proposal.kind} does not make the view smaller", remedy="fold more, or write less")
    starts = {unit.start for unit in units(view.items)}
    task = view.task()
    for span in proposal.spans:
        if isinstance(span, Part):
            continue
        where = view.slice_of(span.first, span.last)
        _check_run(view, span, where, starts, task)


def _check_run(view: View, run: Run, where: slice, starts: set[int], task: int | None) -> None:
    if where.start not in starts or (where.stop not in starts and where.stop != len(view.items)):
        raise FoldError(
            f"messages {run.first} to {run.last} split a tool call from its result",
            remedy="cut only at the view's cut points (windowsill.history.units.cut_points)",
        )
    if task is not None and where.start <= task < where.stop:
        raise FoldError("a fold may not hide the task", remedy="leave the first user message out of it")
    if any(item.pinned for item in view.items[where]):
        raise FoldError("a fold may not hide what is pinned", remedy="leave pinned messages out, or take the pin off")


def _too_large(view: View, budget: Budget) -> BudgetError:
    parts = {"system, tools and framing": budget.fixed, "messages that must stay": view.tokens()}
    return BudgetError(
        f"the request needs {_total(view, budget):,} tokens and may have {budget.limit:,}: "
        + ", ".join(f"{name} {size:,}" for name, size in parts.items()),
        wanted=_total(view, budget),
        available=budget.limit,
        parts=parts,
        remedy="raise the budget, or take pins off",
    )
