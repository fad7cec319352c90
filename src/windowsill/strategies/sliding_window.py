"""Sliding window: the oldest units go first, whole, and a marker stands where they were."""

from __future__ import annotations

import msgspec

from windowsill.budget import Budget
from windowsill.history.view import View
from windowsill.strategies.base import (
    RECORD_SHARE,
    Plan,
    Strategy,
    check_count,
    check_range,
    fold_units,
    foldable_units,
    items_of,
    oldest_until_free,
)


class SlidingWindow(Strategy, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keeps the system prompt, the task, the pins and the latest `keep` messages; hides the oldest of the rest."""

    keep: int = 4
    """The latest messages that are never hidden while anything else can be."""
    quote: float = RECORD_SHARE
    """The share of the limit that is left for the record of what is hidden: the user's words, decisions, failures."""

    name = "sliding-window"

    def __post_init__(self) -> None:
        check_count(self, "keep", "messages")
        check_range(self, "quote", 0, 1, "a share of the limit from 0 to 1")

    def plan(self, view: View, budget: Budget) -> Plan:
        """Hide the oldest units until the low mark is reached."""
        total = budget.fixed + view.tokens()
        wanted = budget.to_hide(total)
        if wanted <= 0:
            return Plan()
        middle = foldable_units(view, self.keep)
        chosen = oldest_until_free(view, middle, wanted, int(self.quote * budget.limit))
        reason = f"{total:,} tokens passed {budget.high:,}"
        proposal = fold_units(view, chosen, strategy=self.name, reason=reason)
        return Plan(proposals=(proposal,) if proposal else (), middle=items_of(view, middle))
