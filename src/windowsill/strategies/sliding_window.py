"""Sliding window: the oldest units go first, whole, and a marker stands where they were."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from windowsill.budget import Budget
from windowsill.history.units import Unit
from windowsill.history.view import View
from windowsill.strategies.base import (
    MARKER_TOKENS,
    Plan,
    Strategy,
    check_count,
    check_range,
    fold_units,
    foldable_units,
    items_of,
)


class SlidingWindow(Strategy, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keeps the system prompt, the task, the pins and the latest `keep` messages; hides the oldest of the rest."""

    keep: int = 4
    """The latest messages that are never hidden while anything else can be."""
    quote: float = 0.05
    """The share of the window in which the user's hidden words are quoted word for word."""

    name = "sliding-window"

    def __post_init__(self) -> None:
        check_count(self, "keep", "messages")
        check_range(self, "quote", 0, 1, "a share of the window from 0 to 1")

    def plan(self, view: View, budget: Budget) -> Plan:
        """Hide the oldest units until the low mark is reached."""
        total = budget.fixed + view.tokens()
        wanted = budget.to_hide(total)
        if wanted <= 0:
            return Plan()
        quote = int(self.quote * budget.limit)
        middle = foldable_units(view, self.keep)
        chosen = _oldest(view, middle, wanted + MARKER_TOKENS, quote)
        reason = f"{total:,} tokens passed {budget.high:,}"
        proposal = fold_units(view, chosen, strategy=self.name, reason=reason, quote=quote)
        return Plan(proposals=(proposal,) if proposal else (), middle=items_of(view, middle))


def _oldest(view: View, middle: Sequence[Unit], wanted: int, quotable: int) -> Sequence[Unit]:
    """Take the oldest units until so many tokens are hidden; what a marker quotes is not."""
    each = view.each(view.items)
    for count, unit in enumerate(middle):
        if wanted <= 0:
            return middle[:count]
        for place in range(unit.start, unit.stop):
            item, tokens = view.items[place], each[place]
            if item.own or item.fold:
                quoted = min(tokens, quotable)
                quotable -= quoted
                tokens -= quoted
            wanted -= tokens
    return middle
