"""Sliding window: the oldest units go first, whole, and a marker stands where they were."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

import msgspec

from windowsill.budget import Budget
from windowsill.errors import SettingError
from windowsill.history.survey import between
from windowsill.history.view import View
from windowsill.strategies import Plan, Strategy, fold_units
from windowsill.strategies.free import Free, free

MARKER_TOKENS = 120
"""What a marker weighs without its quotations."""

LARGEST_KEEP = 10_000


class SlidingWindow(Strategy, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keeps the system prompt, the task, the pins and the latest `keep` messages; hides the oldest of the rest."""

    keep: int = 4
    """The latest messages that are never hidden while anything else can be."""
    quote: float = 0.05
    """The share of the window in which the user's hidden words are quoted word for word."""

    name = "sliding-window"

    def __post_init__(self) -> None:
        if not 0 <= self.keep <= LARGEST_KEEP:
            raise SettingError("keep", self.keep, f"a number of messages from 0 to {LARGEST_KEEP:,}")
        if not 0 <= self.quote <= 1:
            raise SettingError("quote", self.quote, "a share of the window from 0 to 1")

    def plan(self, view: View, budget: Budget) -> Plan:
        """Hide the oldest units until the low mark is reached."""
        total = budget.fixed + view.tokens()
        wanted = budget.to_hide(total)
        if wanted <= 0:
            return Plan()
        quote = int(self.quote * budget.limit)
        middle = free(view, self.keep)
        chosen = middle[: _oldest(view, middle, wanted + MARKER_TOKENS, quote)]
        proposal = fold_units(
            view, chosen, strategy=self.name, reason=f"{total:,} tokens passed {budget.high:,}", quote=quote
        )
        return Plan(proposals=(proposal,) if proposal else (), middle=middle.items)


def _oldest(view: View, middle: Free, wanted: int, quotable: int) -> int:
    """How many of the oldest units have to go until so many tokens are hidden; what a marker quotes is not."""
    known = middle.known
    tally = known.tally(view)
    quotes = _quotes(middle, tally.each, quotable)
    places, kept = [place for place, _ in quotes], [0, *accumulate(tokens for _, tokens in quotes)]

    def shown(position: int) -> int:
        """Tokens before a position, without those that stay as quotations."""
        return tally.sums[position] - kept[bisect_left(places, position)]

    count = 0
    for first, last in middle.ranges:
        aim = wanted + shown(known.starts[first])
        reached = bisect_left(range(first, last), aim, key=lambda number: shown(known.stop_of(number)))
        if reached < last - first:
            return count + reached + 1
        count += last - first
        wanted = aim - shown(known.stop_of(last - 1))
    return count


def _quotes(middle: Free, each: Sequence[int], quotable: int) -> list[tuple[int, int]]:
    """Where the user's words and earlier markers stand, and how many tokens of each a new marker has room for."""
    known = middle.known
    found: list[tuple[int, int]] = []
    for start, stop in middle.stretches:
        for place in sorted((*between(known.own, start, stop), *between(known.folds, start, stop))):
            if quotable <= 0:
                return found
            found.append((place, min(each[place], quotable)))
            quotable -= found[-1][1]
    return found
