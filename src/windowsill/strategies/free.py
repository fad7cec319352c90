"""The units of a view that may go, as ranges: a plan over ten thousand messages handles a few of them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeVar, overload

from windowsill.history.folds import Brief, FoldKind, Proposal, Run
from windowsill.history.hiding import hide_between
from windowsill.history.marker import gather_between, marker
from windowsill.history.survey import Survey, between, survey
from windowsill.history.units import Unit
from windowsill.history.view import Item, View
from windowsill.messages import Message
from windowsill.tokens import Weight

T = TypeVar("T")

CHARACTERS_PER_TOKEN = 4
"""Turns a token budget for quotations into characters; the marker itself is weighed exactly."""


def free(view: View, keep: int) -> Free:
    """What may go: not the system messages that lead, the task, pins, running calls, or the latest `keep` messages.

    The last unit always stays: a request without it would ask for nothing.
    """
    known = survey(view)
    starts, items = known.starts, view.items
    first = bisect_left(starts, view.leading())
    last = bisect_right(starts, len(items) - max(keep, 1)) - 1
    running = known.bounds.running(items)
    if running is not None:
        last = min(last, running)
    task = view.task()
    held = {known.unit_at(place) for place in known.pinned}
    if task is not None:
        held.add(known.unit_at(task))
    return Free(known, [(first, last)]).but_for(held)


def joined(view: View, units: Sequence[Unit]) -> Free:
    """Units of a view, however they are listed, as ranges."""
    if isinstance(units, Free):
        return units
    known = survey(view)
    ranges: list[tuple[int, int]] = []
    for unit in units:
        first, last = known.unit_at(unit.start), known.unit_at(unit.stop - 1) + 1
        if ranges and ranges[-1][1] == first:
            first = ranges.pop()[0]
        ranges.append((first, last))
    return Free(known, ranges)


class Free(Sequence[Unit]):
    """Units of a view, oldest first; a slice of them is again such a sequence."""

    def __init__(self, known: Survey, ranges: Iterable[tuple[int, int]]) -> None:
        self.known = known
        self.ranges = [(first, last) for first, last in ranges if first < last]
        """`(first, last)`, exclusive, of the numbers of neighbouring units."""

    def __len__(self) -> int:
        return sum(last - first for first, last in self.ranges)

    def __iter__(self) -> Iterator[Unit]:
        return chain.from_iterable(self.known.units(first, last) for first, last in self.ranges)

    @overload
    def __getitem__(self, index: int) -> Unit: ...

    @overload
    def __getitem__(self, index: slice) -> Free: ...

    def __getitem__(self, index: int | slice) -> Unit | Free:
        """One unit, or those of a slice whose step is 1."""
        if isinstance(index, slice):
            start, stop, _ = index.indices(len(self))
            return Free(self.known, self._part(start, stop))
        place = range(len(self))[index]
        ((first, last),) = self._part(place, place + 1)
        return self.known.units(first, last)[0]

    def _part(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        before = 0
        for first, last in self.ranges:
            found = (max(first, first + start - before), min(last, first + stop - before))
            if found[0] < found[1]:
                yield found
            before += last - first

    def but_for(self, numbers: Iterable[int]) -> Free:
        """These without the units of some numbers."""
        ranges = self.ranges
        held = sorted(numbers)
        found: list[tuple[int, int]] = []
        for first, last in ranges:
            ends = between(held, first, last)
            found += zip((first, *(number + 1 for number in ends)), (*ends, last), strict=True)
        return Free(self.known, found)

    def without(self, position: int | None) -> Free:
        """These but for the unit that holds a position."""
        return self if position is None else self.but_for([self.known.unit_at(position)])

    def after(self, position: int) -> Free:
        """Those that begin after a position."""
        least = bisect_right(self.known.starts, position)
        return Free(self.known, ((max(first, least), last) for first, last in self.ranges))

    def before(self, position: int) -> Free:
        """Those that end at a position or before."""
        known = self.known
        most = len(known.starts) if position >= len(known.items) else bisect_right(known.starts, position) - 1
        return Free(known, ((first, min(last, most)) for first, last in self.ranges))

    def of(self, column: Sequence[T]) -> list[T]:
        """Of what is known of every unit of the view, what is of these."""
        return list(chain.from_iterable(column[first:last] for first, last in self.ranges))

    @property
    def stretches(self) -> list[tuple[int, int]]:
        """`(start, stop)` of the items of each row of neighbours."""
        return [(self.known.starts[first], self.known.stop_of(last - 1)) for first, last in self.ranges]

    @property
    def items(self) -> tuple[Item, ...]:
        """All items, in order."""
        return tuple(chain.from_iterable(self.known.items[start:stop] for start, stop in self.stretches))

    @property
    def weight(self) -> Weight:
        """What they weigh together."""
        return _sum(self.known.weight(start, stop) for start, stop in self.stretches)

    @property
    def told(self) -> Weight:
        """What the stand-ins of earlier folds among them weigh."""
        known = self.known
        folds = (between(known.folds, start, stop) for start, stop in self.stretches)
        return _sum(known.items[place].weight for place in chain.from_iterable(folds))


def _sum(weights: Iterable[Weight]) -> Weight:
    return sum(weights, Weight())


def foldable_units(view: View, keep: int) -> list[Unit]:
    """Return the units that may go: not leading system messages, the task, pins, running calls, the latest `keep`.

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
    """Fold these units: neighbours become one run, each run gets a marker if that makes it smaller.

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
