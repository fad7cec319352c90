"""The survey: what plans ask of a view, in columns that grow with it.

Between two folds a view only grows at its end, and what was found out about its items stays true. So a plan pays for
what was added since the last one and for what it decides, not for the length of the history.
"""

from __future__ import annotations

import math
import weakref
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, chain, islice, pairwise, repeat
from operator import attrgetter

from windowsill.errors import WindowsillError
from windowsill.history.units import Bounds, Unit
from windowsill.history.view import Item, View
from windowsill.tokens import Calibration, Weight


def survey(view: View) -> Survey:
    """What is known of a view, brought up to date."""
    known = view.surveyed
    # A copy of a view may be used in another thread, and gets a survey of its own.
    if not isinstance(known, Survey) or known.view() is not view or not known.follow(view.items):
        known = view.surveyed = Survey(view)
        known.follow(view.items)
    return known


class Survey:
    """Columns over the items of one view. A change that is no addition at the end needs a new one."""

    def __init__(self, view: View) -> None:
        self.view = weakref.ref(view)
        self.items: list[Item] = []
        self.bounds = Bounds()
        self.own: list[int] = []
        """Positions of the user's own words; so are the next four, of what their names say."""
        self.folds: list[int] = []
        self.pinned: list[int] = []
        self.important: list[int] = []
        self.answers: list[int] = []
        """Tool results that are not hidden."""
        self.tools: list[str] = []
        """The tools that were called, one call after the other,"""
        self.called = [0]
        """and how many calls there are before each position."""
        self.names: dict[str, str] = {}
        """The tool of each call."""
        self.renamed = 0
        """How often the id of a call came again for another tool."""
        self.answered: dict[str, int] = {}
        """Where the first result of each call stands,"""
        self.again: dict[str, list[int]] = {}
        """and where those of an id do that came again."""
        self.words: dict[int, str] = {}
        """The user's own words by position, where they were read."""
        self.messages: list[int] = [0]
        """How many messages are shown or stood for before each position."""
        self._sums = [array("q", [0]) for _ in Weight.__struct_fields__]
        self._tally: Tally | None = None

    def follow(self, items: list[Item]) -> bool:
        """Take in what was added to a view; false when something else happened to it."""
        known = len(self.items)
        # Equal items are nearly always the same objects, which is seen without looking into them.
        if known > len(items) or self.items != (items if known == len(items) else items[:known]):
            return False
        if known < len(items):
            self._take(items[known:])
        return True

    def _take(self, added: list[Item]) -> None:
        same = self.bounds.take(added)
        self._place(added)
        self._pair(added)
        tools = [item.tools for item in added]
        self.tools.extend(chain.from_iterable(tools))
        _add_up(self.called, list(map(len, tools)))
        _add_up(self.messages, [item.hides or 1 for item in added])
        weights = [item.weight for item in added]
        for column, name in zip(self._sums, Weight.__struct_fields__, strict=True):
            _add_up(column, list(map(attrgetter(name), weights)))
        self.items.extend(added)
        if self._tally is not None:
            self._tally.forget(same)

    def _place(self, added: list[Item]) -> None:
        for index, item in enumerate(added, len(self.items)):
            if item.own:
                self.own.append(index)
            if item.fold:
                self.folds.append(index)
            if item.marks:
                if "pinned" in item.marks:
                    self.pinned.append(index)
                if "important" in item.marks:
                    self.important.append(index)

    def _pair(self, added: list[Item]) -> None:
        for index, item in enumerate(added, len(self.items)):
            for id, name in zip(item.calls, item.tools, strict=False):
                if self.names.setdefault(id, name) != name:
                    self.names[id] = name
                    self.renamed += 1
            if item.results and not item.fold:
                self.answers.append(index)
            for id in item.results:
                if self.answered.setdefault(id, index) != index:
                    self.again.setdefault(id, []).append(index)

    @property
    def starts(self) -> list[int]:
        """Where units begin; those of an open unit at the end are not joined."""
        return self.bounds.starts

    def stop_of(self, number: int) -> int:
        """Where a unit ends."""
        return self.starts[number + 1] if number + 1 < len(self.starts) else len(self.items)

    def unit_at(self, position: int) -> int:
        """The number of the unit that holds a position."""
        return bisect_right(self.starts, position) - 1

    def units(self, first: int, last: int) -> list[Unit]:
        """Units by their numbers."""
        starts = self.starts[first : last + 1]
        if last >= len(self.starts):
            starts.append(len(self.items))
        return [Unit(start, stop) for start, stop in pairwise(starts)]

    def weight(self, start: int, stop: int) -> Weight:
        """What the items between two positions weigh together."""
        return Weight(*[column[stop] - column[start] for column in self._sums])

    def tally(self, view: View) -> Tally:
        """The same in tokens, as they are counted today."""
        if view.scale is None:
            raise WindowsillError("this view has no scale", remedy="take the view from a session")
        calibration = view.scale.calibration
        if self._tally is None or not self._tally.is_by(calibration):
            self._tally = Tally(self, calibration)
        return self._tally


class Tally:
    """What the items and units of a survey are in tokens, under one calibration."""

    def __init__(self, about: Survey, calibration: Calibration) -> None:
        self._about = about
        self._calibration = calibration
        self._estimates: list[float] = []
        self._each: list[int] = []
        self._sums = [0]
        self._units = [0]
        self._sizes: list[float] = []

    def is_by(self, calibration: Calibration) -> bool:
        """Whether another calibration counts alike."""
        return calibration is self._calibration or self.ratios == _ratios(calibration)

    @property
    def ratios(self) -> tuple[float, ...]:
        """What the tokens depend on."""
        return _ratios(self._calibration)

    def forget(self, same: int) -> None:
        """Units from this number on were joined by what came."""
        del self._units[same + 1 :]
        del self._sizes[same:]

    @property
    def estimates(self) -> list[float]:
        """The tokens of each item, not rounded."""
        missing = self._about.items[len(self._estimates) :]
        if missing:
            self._estimates.extend(map(self._calibration.estimate, map(attrgetter("weight"), missing)))
        return self._estimates

    @property
    def each(self) -> list[int]:
        """The tokens of each item, rounded up."""
        if len(self._each) < len(self._about.items):
            estimates = self.estimates
            self._each.extend(map(math.ceil, estimates[len(self._each) :]))
        return self._each

    @property
    def sums(self) -> list[int]:
        """The tokens of all items before each position, each item rounded up."""
        if len(self._sums) <= len(self._about.items):
            each = self.each
            _add_up(self._sums, each[len(self._sums) - 1 :])
        return self._sums

    @property
    def units(self) -> list[int]:
        """The tokens of all units before each number, each unit rounded up."""
        known = len(self._units) - 1
        about = self._about
        # The last unit may still grow: it is counted when it is asked for, and forgotten again.
        if known < len(about.starts):
            estimate, weight = self._calibration.estimate, about.weight
            ends = [*about.starts[known:], len(about.items)]
            found = [math.ceil(estimate(weight(start, stop))) for start, stop in pairwise(ends)]
            _add_up(self._units, found)
        return self._units

    @property
    def sizes(self) -> list[float]:
        """The tokens of each unit, not rounded: the sum of its items."""
        known = len(self._sizes)
        about = self._about
        if known < len(about.starts):
            estimates = self.estimates
            ends = [*about.starts[known:], len(about.items)]
            self._sizes.extend(_total(estimates[start:stop]) for start, stop in pairwise(ends))
        return self._sizes


def between(positions: Sequence[int], start: int, stop: int) -> Sequence[int]:
    """Those of some sorted positions that lie between two."""
    if not positions or positions[-1] < start:
        return ()
    return positions[bisect_left(positions, start) : bisect_left(positions, stop)]


def _add_up(sums: list[int] | array[int], values: Sequence[int]) -> None:
    """Go on with the sums of all before each position."""
    if any(values):
        sums.extend(islice(accumulate(values, initial=sums[-1]), 1, None))
    else:
        sums.extend(repeat(sums[-1], len(values)))


def _total(values: list[float]) -> float:
    # One after the other: from Python 3.12 on `sum` rounds differently.
    total = 0.0
    for value in values:
        total += value
    return total


def _ratios(calibration: Calibration) -> tuple[float, ...]:
    return (calibration.prose, calibration.code, calibration.json, calibration.cjk)
