"""Sliding window: the oldest units go first, whole, and a marker stands where they were."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

import msgspec

from windowsill.budget import Budget
from windowsill.errors import SettingError
from windowsill.history.folds import Brief, FoldKind, Proposal, Run
from windowsill.history.hiding import hide_between
from windowsill.history.marker import gather_between, marker
from windowsill.history.survey import between, survey
from windowsill.history.units import Unit
from windowsill.history.view import View
from windowsill.messages import Message
from windowsill.strategies import Plan
from windowsill.strategies.free import Free, free

CHARACTERS_PER_TOKEN = 4
"""Turns a token budget for quotations into characters; the marker itself is weighed exactly."""

MARKER_TOKENS = 120
"""What a marker weighs without its quotations."""

LARGEST_KEEP = 10_000


class SlidingWindow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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


def free_units(view: View, keep: int) -> list[Unit]:
    """The units that may go: not the system messages that lead, the task, pins, running calls, or the latest `keep`.

    The last unit always stays: a request without it would ask for nothing.
    """
    return list(free(view, keep))


def fold_units(
    view: View,
    chosen: Sequence[Unit],
    *,
    strategy: str,
    reason: str,
    quote: int,
    kind: FoldKind = "truncate",
    brief: Brief | None = None,
) -> Proposal | None:
    """A fold of these units: neighbours become one run, each run gets a marker if that makes it smaller.

    With a `brief` a summary is to be written for each run; the marker remains where that fails.
    """
    spans: list[Run] = []
    markers: list[Message] = []
    known = survey(view)
    for start, stop in chosen.stretches if isinstance(chosen, Free) else _runs(chosen):
        if len(between(known.folds, start, stop)) == stop - start:
            continue
        facts = gather_between(view, known, start, stop, quote * CHARACTERS_PER_TOKEN // max(1, len(spans) + 1))
        stand_in = marker(facts)
        run = hide_between(view, known, start, stop, facts, stand_in)
        if view.tokens_of(run.saves + run.weight) <= view.tokens_of(run.weight):
            continue
        spans.append(run)
        markers.append(stand_in)
    if not spans:
        return None
    return Proposal(
        kind=kind,
        reason=reason,
        strategy=strategy,
        spans=tuple(spans),
        stand_ins=tuple(markers),
        briefs=() if brief is None else (brief,) * len(spans),
    )


def _runs(chosen: Sequence[Unit]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for unit in chosen:
        if runs and runs[-1][1] == unit.start:
            runs[-1] = (runs[-1][0], unit.stop)
        else:
            runs.append((unit.start, unit.stop))
    return runs
