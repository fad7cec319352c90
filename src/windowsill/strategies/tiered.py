"""Tiered: an immediate buffer that is never touched, a short-term window before it, and an archive for all the rest.

What leaves the window is marked, stays in the journal, and is found there by `history_search` and by recall.
"""

from __future__ import annotations

import msgspec

from windowsill.budget import Budget
from windowsill.history.view import View
from windowsill.strategies.base import (
    LARGEST_COUNT,
    RECORD_SHARE,
    Plan,
    Strategy,
    check_count,
    check_range,
    fold_units,
    foldable_units,
    items_of,
    oldest_until_free,
    units_before,
)
from windowsill.strategies.masks import UNNAMED, Mask, is_exempt, result_keys, tool_names

LARGEST_TTL = 30 * 86_400
"""Seconds: an observation that is a month old is none."""


class Tiered(Strategy, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keeps the latest `immediate` turns and up to `short` turns before them; what is older is marked and archived.

    A turn is one answer of the model with what led to it and the results of its calls. Tool outputs of the short-term
    window that are older than `ttl` seconds are masked along with the next fold. The task and pins stay.
    """

    immediate: int = 8
    """The latest turns, which are never touched while anything else can be."""
    short: int = 30
    """The turns before them that may stand in full."""
    batch: int = 10
    """The turns that leave the short-term window at a time, so that the cached prefix breaks seldom."""
    ttl: float = 300.0
    """Seconds after which a tool output outside the immediate buffer is stale; 0 for never."""
    quote: float = RECORD_SHARE
    """The share of the limit that is left for the record of what is hidden: the user's words, decisions, failures."""

    name = "tiered"

    def __post_init__(self) -> None:
        check_count(self, "immediate", "turns", low=1)
        check_count(self, "short", "turns")
        check_count(self, "batch", "turns", low=1)
        check_range(self, "ttl", 0, LARGEST_TTL, f"seconds from 0 to {LARGEST_TTL:,}")
        check_range(self, "quote", 0, 1, "a share of the limit from 0 to 1")

    def due(self, view: View, budget: Budget) -> bool:
        """Tell whether a batch of turns has grown out of the short-term window."""
        return len(_turns(view)) >= self.immediate + self.short + self.batch

    def plan(self, view: View, budget: Budget) -> Plan:
        """Mark the turns that grew out of the window, and more of them when the request is too large."""
        total = budget.fixed + view.tokens()
        wanted = budget.to_hide(total)
        turns = _turns(view)
        full = len(turns) >= self.immediate + self.short + self.batch
        if not full and wanted <= 0:
            return Plan()
        kept = turns[-self.immediate] if len(turns) >= self.immediate else turns[0] if turns else 0
        free = [unit for unit in foldable_units(view) if unit.stop <= kept]
        cut = turns[-(self.immediate + self.short)] if full else 0
        stale = self._stale(view, budget, kept) if wanted > 0 else Plan()
        if stale.proposals:
            return stale
        chosen = units_before(free, cut)
        if wanted > 0:
            chosen = max(chosen, list(oldest_until_free(view, free, wanted, int(self.quote * budget.limit))), key=len)
        reason = (
            f"{total:,} tokens passed {budget.high:,}"
            if wanted > 0
            else f"more than {self.immediate + self.short} turns stood in full"
        )
        proposal = fold_units(view, chosen, strategy=self.name, reason=reason)
        return Plan(proposals=(proposal,) if proposal else (), middle=items_of(view, free))

    def _stale(self, view: View, budget: Budget, kept: int) -> Plan:
        """Mask outputs that are too old to be relied on; times are those of the messages, so that no clock is read."""
        if not self.ttl:
            return Plan()
        now = view.read(view.items[-1]).at
        mask, names = Mask(batch=1), tool_names(view)
        fresh = 0
        for index in range(len(view.items) - 1, -1, -1):
            item = view.items[index]
            if item.results and index < kept and now - view.read(item).at > self.ttl:
                # What stands before is older, whatever a clock that was set back said then.
                break
            fresh += sum(not is_exempt(mask.exempt, names.get(key, UNNAMED)) for key in result_keys(item))
        return msgspec.structs.replace(mask, keep=min(fresh, LARGEST_COUNT)).plan(view, budget)


def _turns(view: View) -> list[int]:
    """Return where each turn begins that still stands: right behind the answer before, and what its calls gave."""
    found: list[int] = []
    start = view.leading()
    for index, item in enumerate(view.items):
        if item.is_empty:
            continue
        if index < start or item.fold:
            start = max(start, index + 1) if item.fold else start
            continue
        if item.role == "assistant":
            if index == start or view.items[index - 1].role != "assistant":
                found.append(start)
            start = index + 1
            while start < len(view.items) and view.items[start].results and not view.items[start].fold:
                start += 1
    return found
