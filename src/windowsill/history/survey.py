"""The survey: what plans ask of a view, in columns that grow with it.

Between two folds a view only grows at its end, and what was found out about its items stays true. So a plan pays for
what was added since the last one and for what it decides, not for the length of the history.
"""

from __future__ import annotations

import weakref
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, chain, compress, islice, pairwise
from operator import attrgetter
from typing import TypeVar

from windowsill.errors import WindowsillError
from windowsill.history.tally import Tally, add_up
from windowsill.history.units import Bounds, Unit
from windowsill.history.view import Item, View
from windowsill.tokens import Weight

T = TypeVar("T")

_OWN, _FOLD, _MARKS, _HIDES = attrgetter("own"), attrgetter("fold"), attrgetter("marks"), attrgetter("hides")
_CALLS, _TOOLS, _WEIGHT = attrgetter("calls"), attrgetter("tools"), attrgetter("weight")


def survey(view: View) -> Survey:
    """What is known of a view, brought up to date."""
    known = view.surveyed
    # A copy of a view may be used in another thread, and gets a survey of its own.
    if not isinstance(known, Survey) or known.view() is not view or not known.follow(view.items):
        known = view.surveyed = Survey(view)
        known.follow(view.items)
    return known


def keep_up(view: View) -> None:
    """Take in what was added to a view since; whether it was changed besides is seen when a plan asks."""
    known = view.surveyed
    if isinstance(known, Survey) and known.view() is view and len(known.items) <= len(view.items):
        known.take(view.items[len(known.items) :])
    else:
        known = survey(view)
    if view.scale is not None and view.scale.calibration.fixed:
        # Where nothing is learnt about tokens, they can be added up before a plan asks.
        known.tally(view).count()


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
        self.sums = [Weight()]
        """What all items before each position weigh."""
        self._tally: Tally | None = None

    def follow(self, items: list[Item]) -> bool:
        """Take in what was added to a view; false when something else happened to it."""
        known = len(self.items)
        # Equal items are nearly always the same objects, which is seen without looking into them.
        if known > len(items) or self.items != (items if known == len(items) else items[:known]):
            return False
        if known < len(items):
            self.take(items[known:])
        return True

    def take(self, added: Sequence[Item]) -> None:
        """Take in what was added to a view."""
        same = self.bounds.take(added)
        self._place(added)
        self._call(added)
        self._answer(added)
        add_up(self.messages, [hides or 1 for hides in map(_HIDES, added)])
        self.sums.extend(islice(accumulate(map(_WEIGHT, added), initial=self.sums[-1]), 1, None))
        self.items.extend(added)
        if self._tally is not None:
            self._tally.forget(same)

    def _place(self, added: Sequence[Item]) -> None:
        places = range(len(self.items), len(self.items) + len(added))
        self.own.extend(compress(places, map(_OWN, added)))
        self.folds.extend(compress(places, map(_FOLD, added)))
        for place, marks in compress(zip(places, map(_MARKS, added), strict=True), map(_MARKS, added)):
            if "pinned" in marks:
                self.pinned.append(place)
            if "important" in marks:
                self.important.append(place)

    def _call(self, added: Sequence[Item]) -> None:
        tools = list(map(_TOOLS, added))
        names = list(chain.from_iterable(tools))
        self.tools += names
        add_up(self.called, list(map(len, tools)))
        calls = list(map(_CALLS, added))
        found = dict(zip(chain.from_iterable(calls), names, strict=False))
        if list(map(len, calls)) == list(map(len, tools)) and _is_new(self.names, found, len(names)):
            self.names.update(found)
            return
        for ids, listed in zip(calls, tools, strict=True):
            # A stand-in has calls without tools.
            for id, name in zip(ids, listed, strict=False):
                if self.names.setdefault(id, name) != name:
                    self.names[id] = name
                    self.renamed += 1

    def _answer(self, added: Sequence[Item]) -> None:
        first = len(self.items)
        places = [place for place, item in enumerate(added, first) if item.results]
        self.answers += [place for place in places if not added[place - first].fold]
        ids = [(id, place) for place in places for id in added[place - first].results]
        found = dict(ids)
        if _is_new(self.answered, found, len(ids)):
            self.answered.update(found)
            return
        for id, place in ids:
            if self.answered.setdefault(id, place) != place:
                self.again.setdefault(id, []).append(place)

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
        return self.sums[stop] - self.sums[start]

    def tally(self, view: View) -> Tally:
        """The same in tokens, as they are counted today."""
        if view.scale is None:
            raise WindowsillError("this view has no scale", remedy="take the view from a session")
        calibration = view.scale.calibration
        if self._tally is None or not self._tally.is_by(calibration):
            self._tally = Tally(self, calibration)
        return self._tally


def between(positions: Sequence[int], start: int, stop: int) -> Sequence[int]:
    """Those of some sorted positions that lie between two."""
    if not positions or positions[-1] < start:
        return ()
    return positions[bisect_left(positions, start) : bisect_left(positions, stop)]


def _is_new(known: dict[str, T], found: dict[str, T], count: int) -> bool:
    """Whether none of so many ids came before, nor twice."""
    return len(found) == count and known.keys().isdisjoint(found)
