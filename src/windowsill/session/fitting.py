"""Folds a session's view until its request fits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from windowsill import telemetry
from windowsill.budget import Budget
from windowsill.compose.checking import checked
from windowsill.compose.payload import FoldMade, Statistics
from windowsill.compose.reduce import reduce
from windowsill.compose.rendering import Rendered
from windowsill.compose.squeeze import cut_giants, over_limits
from windowsill.compose.writing import Filled
from windowsill.errors import BudgetError, FoldError
from windowsill.history.folds import Proposal, touched
from windowsill.history.view import Item, View
from windowsill.logs import log
from windowsill.session.desk import Desk
from windowsill.session.ledger import Ledger
from windowsill.session.metering import commit_fold
from windowsill.strategies import Strategy, follows, is_eager
from windowsill.strategies.sliding_window import free_units
from windowsill.writers import Shared

MOST_ATTEMPTS = 3
"""Repairs may add a few tokens to a view that just fits; then it is reduced again with that much less room."""


class Marks(Protocol):
    """Gives the budget of a request whose parts that always stay have `fixed` tokens."""

    def __call__(self, fixed: int, *, max_output: int | None, anchored: bool) -> Budget:
        """The budget."""


class Fitted(msgspec.Struct):
    """A view that fits, rendered, and what was done for it."""

    folds: list[FoldMade]
    notes: list[str]
    middle: tuple[Item, ...] = ()
    rendered: Rendered = Rendered((), [], [], (), 0)
    statistics: Statistics = Statistics()


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A request that is to fit."""

    budget: Budget
    strategy: Strategy
    render: Callable[[View], Rendered]
    shared: Callable[[], Shared | None]
    """The request as it would be now, for a summary to be asked at its end."""
    max_output: int | None = None
    anchored: bool = False
    goal: int = 0
    """Reduce to this, whatever the marks are; 0 for the marks."""


def lowered(budget: Budget, goal: int) -> Budget:
    """A budget whose marks are no higher than `goal`."""
    return msgspec.structs.replace(budget, high=min(budget.high, goal), low=min(budget.low, goal))


class Fitting:
    """Makes the requests of one session fit."""

    def __init__(self, ledger: Ledger, desk: Desk, marks: Marks) -> None:
        self._ledger = ledger
        self._marks = marks
        self._runs = 0
        self._warned = False
        self._nothing_to_do: object = None
        self.desk = desk

    def fit(self, wanted: Wanted) -> Fitted:
        """Fold until the rendered request, repairs included, is within its budget."""
        view, budget = self._ledger.view, wanted.budget
        before = (len(view.items), view.tokens())
        done = Fitted(folds=[], notes=[])
        emergency = budget.fixed + view.tokens() > budget.limit
        self.desk.begin()
        if _acts(view, wanted):
            # What was prepared earlier is held until then: hiding what has room would cost words and cache for nothing.
            self._use_what_is_ready(done)
        done.notes += self.desk.untold()
        self.prepare(wanted)
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
            self._ledger.journal.load(view)
            if follows(wanted.strategy):
                wanted.strategy.follow(view)
            done.rendered = wanted.render(view)
            if budget.fixed + done.rendered.extra + view.tokens() <= budget.limit:
                done.statistics = self._counted(done, before, emergency=emergency)
                return done
            extra = max(extra, done.rendered.extra) + 1
        if overtaken is not None:
            raise overtaken
        raise self._too_much(budget, done)

    def again(self, wanted: Wanted, first: Fitted) -> Fitted:
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
        view, budget, strategy = self._ledger.view, wanted.budget, wanted.strategy
        too_long = budget.fixed + extra + view.tokens() > budget.high
        known = (view.edits, len(view.items), budget, id(strategy))
        if known == self._nothing_to_do and budget.fixed + extra + view.tokens() <= budget.limit:
            return
        due = is_eager(strategy) and strategy.due(view, budget)
        if not too_long and not due and not over_limits(view, budget):
            return
        folds = len(done.folds)
        # Giants first: what always stays is smaller then, and the marks follow from what always stays.
        if too_long and (giants := cut_giants(view, budget)) is not None:
            done.folds.append(self._fold(giants))
        tighter = self._with_floor(wanted, budget.fixed + extra)
        self._ledger.journal.load(view)

        def write(proposal: Proposal, *, urgent: bool) -> Filled | None:
            # A caller who keeps no session has no later request for what is written meanwhile.
            return self.desk.write(view, proposal, wanted.shared, urgent=urgent or wanted.anchored)

        reduced = reduce(view, tighter, strategy, lambda proposal: done.folds.append(self._fold(proposal)), write)
        done.notes += [note for note in dict.fromkeys(reduced.notes) if note not in done.notes]
        done.middle = reduced.middle or done.middle
        # A session to which nothing was added is not planned for again.
        self._nothing_to_do = known if len(done.folds) == folds else None

    def _use_what_is_ready(self, done: Fitted) -> None:
        """Fold what was written in the background."""
        filled = self.desk.ready(self._ledger.view)
        if filled is None:
            return
        try:
            done.folds.append(self._fold(checked(self._ledger.view, filled.proposal)))
        except FoldError as error:
            done.notes.append(f"a summary that was prepared no longer fits: {error}")
        done.notes += filled.notes

    def prepare(self, wanted: Wanted) -> None:
        """Above the warning mark say so, and let summaries be written before they are needed."""
        view, budget = self._ledger.view, wanted.budget
        total = budget.fixed + view.tokens()
        above = bool(budget.warn) and total > budget.warn
        if above and not self._warned:
            share = 100 * total // budget.limit
            log.warning("session %s: %s tokens, %d%% of what fits", self._ledger.session, f"{total:,}", share)
        self._warned = above
        if not above or total > budget.high or not self.desk.prepares or wanted.anchored:
            return
        self._ledger.journal.load(view)
        tighter = msgspec.structs.replace(budget, high=total - 1, low=min(budget.low, total - 1))
        with telemetry.span("plan", session=self._ledger.session, strategy=wanted.strategy.name, early=True):
            for proposal in wanted.strategy.plan(view, tighter).proposals:
                self.desk.prepare(view, proposal, wanted.shared)

    def _with_floor(self, wanted: Wanted, fixed: int) -> Budget:
        """Marks that leave room above what always stays, or a large task would be folded around every turn."""
        view, budget = self._ledger.view, wanted.budget
        free = {index for unit in free_units(view, keep=0) for index in range(unit.start, unit.stop)}
        held = [item for index, item in enumerate(view.items[:-1]) if index not in free]
        floor = fixed + (view.tokens(*held) if held else 0)
        marks = self._marks(min(floor, budget.limit), max_output=wanted.max_output, anchored=wanted.anchored)
        if wanted.goal:
            marks = lowered(marks, wanted.goal)
        return msgspec.structs.replace(marks, fixed=fixed, fixed_bytes=budget.fixed_bytes)

    def _fold(self, proposal: Proposal) -> FoldMade:
        view = self._ledger.view
        before = view.tokens()
        after = view.tokens_of(view.after(proposal.spans))
        entry = commit_fold(self._ledger, proposal, before, after)
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
        view = self._ledger.view
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
        messages, repairs = self._ledger.view.tokens(), done.rendered.extra
        parts = {"system, tools and framing": budget.fixed, "messages": messages, "repairs": repairs}
        return BudgetError(
            f"repairs need {repairs:,} tokens more than the {budget.limit:,} there are",
            wanted=sum(parts.values()),
            available=budget.limit,
            parts=parts,
            remedy="raise the budget",
        )


def _acts(view: View, wanted: Wanted) -> bool:
    """Whether something is to be hidden now."""
    budget, strategy = wanted.budget, wanted.strategy
    too_long = budget.fixed + view.tokens() > budget.high
    return too_long or (is_eager(strategy) and strategy.due(view, budget))
