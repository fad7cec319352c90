"""Compact: near the end of the window, what to retain and a summary take the place of all but the last turns."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from windowsill.budget import Budget
from windowsill.errors import SettingError
from windowsill.history.folds import Brief
from windowsill.history.view import Unit, View
from windowsill.strategies.base import (
    Plan,
    SummaryStrategy,
    check_count,
    items_of,
    least_gain,
    new_tokens,
    oldest_units,
    split_directives,
    turns,
    units_after_task,
)

RETAIN = (
    "List what has to be retained word for word: goals, binding rules, decisions, paths, identifiers, references to "
    "tool outputs, and exact values that the work will need again."
)
SUMMARY = (
    "Summarise what happened: what was asked, what was done and found, what failed and how it was solved, where the "
    "work stands and what comes next."
)
"""The prompt for one half when a user states the other; without either the writer's own prompt is used."""


class Compact(SummaryStrategy, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Replaces everything but the last `keep` turns by what to retain and a summary, when `threshold` is reached.

    The task, pins and running calls stay. When the last turns alone are more than the low mark allows, as in an agent
    that works on one task, the oldest of their steps go too; the user's latest words stay.
    """

    enabled: bool = True
    """False switches it off; what is too large is then cut by the composer."""
    auto: bool = True
    """False compacts only when a caller asks (`session.compact`, `session.reduce`); till then the composer cuts."""
    threshold: float = 0.8
    """The share of the window at which it acts; where so much of the window may not be filled, the share of the limit.
    The session's high mark acts too: whichever comes first."""
    keep: int = 1
    """The latest turns that stay in full; a turn begins with a message of the user's own words."""
    retain: str = ""
    """Your own prompt for what is to be retained."""
    summary: str = ""
    """Your own prompt for the summary."""
    retain_directives: str | tuple[str, ...] = ()
    """Further wishes for what is to be retained; `directives` are those for the whole."""

    name = "compact"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.threshold <= 1:
            raise SettingError("threshold", self.threshold, "a share of the window above 0 and up to 1")
        check_count(self, "keep", "turns")
        if self.instructions and (self.retain or self.summary or self.retain_directives):
            raise SettingError(
                "instructions", self.instructions, "either the whole prompt here, or its halves as retain and summary"
            )

    def due(self, view: View, budget: Budget) -> bool:
        """Tell whether the threshold is reached."""
        return self.enabled and self.auto and budget.fixed + view.tokens() >= self.mark(budget)

    def mark(self, budget: Budget) -> int:
        """Return the tokens at which it acts by itself."""
        of_window = int(self.threshold * budget.window)
        return of_window if 0 < of_window <= budget.limit else int(self.threshold * budget.limit)

    def plan(self, view: View, budget: Budget) -> Plan:
        """Compact if the threshold or the high mark is passed."""
        total = budget.fixed + view.tokens()
        if not self.auto or (total <= budget.high and total < self.mark(budget)):
            return Plan()
        return self.compact(view, budget, small=total > budget.limit)

    def compact(self, view: View, budget: Budget, *, small: bool = True) -> Plan:
        """Compact now, however full the window is; `small` also where it frees little."""
        if not self.enabled:
            return Plan()
        total = budget.fixed + view.tokens()
        middle = units_after_task(view)
        brief = self._brief(budget)
        chosen = self._chosen(view, budget, middle, total, brief.room)
        if not small and new_tokens(view, chosen) < least_gain(budget):
            return Plan(middle=items_of(view, middle))
        reason = f"{total:,} tokens of {budget.limit:,}"
        proposal = self.rewrite(view, chosen, reason=reason, brief=brief)
        return Plan(proposals=(proposal,) if proposal else (), middle=items_of(view, middle))

    def with_wish(self, wish: str) -> Compact:
        """Return the same with one more directive."""
        return msgspec.structs.replace(self, directives=(*split_directives(self.directives), wish))

    def _chosen(self, view: View, budget: Budget, middle: Sequence[Unit], total: int, room: int) -> list[Unit]:
        found = turns(view)
        cut = len(view.items) if not self.keep else found[-self.keep].start if len(found) > self.keep else 0
        wanted = total - budget.low
        if budget.step and total > budget.high:
            # Whoever sends the whole list again gets the same cut, and the same text in its place, for many turns.
            cut, wanted = 0, budget.to_hide(total)
        return oldest_units(view, middle, cut=cut, wanted=wanted, room=room)

    def _brief(self, budget: Budget) -> Brief:
        brief = self.brief("compact", budget)
        if not (self.retain or self.summary or self.retain_directives):
            return brief
        halves = [
            "For <retain>: " + (self.retain or RETAIN),
            *(f"- {each}" for each in split_directives(self.retain_directives)),
            "",
            "For <summary>: " + (self.summary or SUMMARY),
        ]
        return msgspec.structs.replace(brief, instructions="\n".join(halves))
