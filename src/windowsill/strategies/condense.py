"""Condense: one summary in sections for everything between the task and the last messages; where that fails, a cut.

A plan cannot know whether its summary will be written. So there are three steps, each of which a reader of the report
can see: the summary; if none could be written, a marker in its place, with the texts of earlier summaries; and if the
request is still too large, or there is nothing left to condense, the next plan truncates what it had kept: the oldest
first, but no message that is important, holds a decision, or calls a tool. What does not fit then is cut by the
composer.
"""

from __future__ import annotations

from collections.abc import Sequence

from windowsill.budget import Budget
from windowsill.history.view import Item, View
from windowsill.strategies.base import (
    Plan,
    SummaryStrategy,
    check_count,
    check_range,
    items_of,
    least_gain,
    new_tokens,
    oldest_units,
    tokens_freed,
    units_after_task,
)
from windowsill.strategies.scores import DECISIONS, plain


class Condense(SummaryStrategy, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Past the high mark one summary replaces everything between the task and the last `keep` messages.

    It has the sections: previous conversation, current work, key technical concepts, relevant files and code, problem
    solving, pending tasks.
    """

    keep: int = 3
    """The latest messages that stay; a call and its results stay together, so it may be a few more."""
    share: float = 0.5
    """The least share of the messages that may go which a truncation takes, oldest first."""
    decisions: tuple[str, ...] = DECISIONS
    """Phrases that tell a decision: a truncation leaves messages that hold one."""

    name = "condense"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self, "keep", "messages")
        check_range(self, "share", 0, 1, "a share of the messages from 0 to 1")

    def plan(self, view: View, budget: Budget) -> Plan:
        """Condense if the high mark is passed; truncate if there is nothing left to condense."""
        total = budget.fixed + view.tokens()
        wanted = budget.to_hide(total)
        if wanted <= 0:
            return Plan()
        middle = units_after_task(view, self.keep)
        items = items_of(view, middle)
        brief = self.brief("condense", budget)
        # Whoever sends the whole list again gets the same cut, and the same text in its place, for many turns.
        cut = 0 if budget.step else len(view.items)
        chosen = oldest_units(view, middle, cut=cut, wanted=wanted, room=brief.room)
        urgent = total > budget.limit
        if urgent or new_tokens(view, chosen) >= least_gain(budget):
            reason = f"{total:,} tokens passed {budget.high:,}"
            condensed = self.rewrite(view, chosen, reason=reason, brief=brief)
            if condensed is not None:
                return Plan(proposals=(condensed,), middle=items)
        instead = self.instead(view, budget)
        if urgent and not instead.proposals:
            return Plan(middle=items, notes=("condense: nothing is left to condense or to truncate",))
        if urgent or tokens_freed(view, instead.proposals) >= least_gain(budget):
            return Plan(proposals=instead.proposals, middle=items)
        return Plan(middle=items)

    def instead(self, view: View, budget: Budget) -> Plan:
        """Hide the oldest `share` where no summary can be had, or more if the low mark needs it.

        Important messages, decisions and tool calls with their results stay.
        """
        total = budget.fixed + view.tokens()
        units = units_after_task(view)
        most = self.share * sum(unit.stop - unit.start for unit in units)
        wanted = budget.to_hide(total)
        chosen = []
        count = hidden = 0
        for unit in units:
            if count >= most and hidden >= wanted:
                break
            count += unit.stop - unit.start
            if not self._stays(view, view.items[unit.start : unit.stop]):
                chosen.append(unit)
                hidden += view.tokens_of(unit.weight(view.items))
        reason = f"{total:,} tokens passed {budget.high:,}, and no summary was to be had"
        proposal = self.rewrite(view, chosen, reason=reason, brief=None, kind="truncate")
        return Plan(proposals=(proposal,) if proposal else ())

    def _stays(self, view: View, items: Sequence[Item]) -> bool:
        """Tell whether a truncation leaves the items of a unit where they are."""
        if any(item.calls or item.results or "important" in item.marks for item in items):
            return True
        texts = [plain(view.read(item).text) for item in items if not item.fold]
        return any(plain(phrase) in text for text in texts for phrase in self.decisions)
