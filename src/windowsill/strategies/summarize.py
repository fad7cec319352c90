"""Summarize: a running summary after the task, rewritten together with the oldest turns."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from windowsill.budget import Budget
from windowsill.errors import SettingError
from windowsill.history.view import Unit, View
from windowsill.strategies.base import (
    MARKER_TOKENS,
    Plan,
    SummaryStrategy,
    check_count,
    items_of,
    least_gain,
    new_tokens,
    oldest_units,
    turns,
    units_after_task,
    units_before,
)


class Summarize(SummaryStrategy, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keeps a running summary after the task; past `threshold` turns the oldest `batch` of them are worked into it.

    Past the high mark it works in as many of the oldest units as it takes to reach the low mark. The task, pins,
    running calls, the user's latest words and the last unit stay.
    """

    threshold: int = 10
    """The turns that may stand in full; a turn begins with a message of the user's own words."""
    batch: int = 5
    """The turns that are worked into the summary at a time, or a multiple of them after a long absence."""

    name = "summarize"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self, "threshold", "turns", low=1)
        if not 1 <= self.batch <= self.threshold:
            raise SettingError("batch", self.batch, f"a number of turns from 1 to the threshold, {self.threshold:,}")

    def due(self, view: View, budget: Budget) -> bool:
        """Tell whether the history has passed so many turns that a batch is worth a summary."""
        cut = self._cut(view)
        return cut > 0 and self._is_worth_it(view, budget, units_before(units_after_task(view), cut))

    def plan(self, view: View, budget: Budget) -> Plan:
        """Work the oldest turns, and the summary before them, into a new summary."""
        total = budget.fixed + view.tokens()
        brief = self.brief("summary", budget)
        middle = units_after_task(view)
        cut = self._cut(view)
        if cut and not self._is_worth_it(view, budget, units_before(middle, cut)):
            cut = 0
        chosen = oldest_units(view, middle, cut=cut, wanted=budget.to_hide(total), room=brief.room)
        if not cut and total <= budget.limit and new_tokens(view, chosen) < least_gain(budget):
            return Plan(middle=items_of(view, middle))
        reason = (
            f"{total:,} tokens passed {budget.high:,}"
            if total > budget.high
            else f"more than {self.threshold} turns stood in full"
        )
        proposal = self.rewrite(view, chosen, reason=reason, brief=brief)
        return Plan(proposals=(proposal,) if proposal else (), middle=items_of(view, middle))

    def _cut(self, view: View) -> int:
        """Return where the turns end that are too many; 0 while there are not."""
        found = turns(view)
        over = len(found) - self.threshold
        return found[min(len(found), self.batch * ceil(over / self.batch)) - 1].stop if over > 0 else 0

    def _is_worth_it(self, view: View, budget: Budget, chosen: Sequence[Unit]) -> bool:
        """Tell whether these weigh more than the marker that would stand there."""
        return new_tokens(view, chosen) >= min(MARKER_TOKENS, least_gain(budget))
