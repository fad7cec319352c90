"""Units: what may only be hidden or kept together. A tool call and its results are one, parallel calls included."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from operator import attrgetter

import msgspec

from windowsill.history.view import Item, sum_weights
from windowsill.tokens import Weight

_CALLS, _RESULTS, _LEADS = attrgetter("calls"), attrgetter("results"), attrgetter("leads")


class Unit(msgspec.Struct, frozen=True):
    """Items `start` to `stop` (exclusive) of a view; `open` while a call in it has no result."""

    start: int
    stop: int
    open: bool = False

    def weight(self, items: Sequence[Item]) -> Weight:
        """What the unit weighs."""
        return sum_weights(item.weight for item in items[self.start : self.stop])


def units(items: Sequence[Item]) -> list[Unit]:
    """The view in units, in order. Between two of them it may be cut, nowhere else.

    A result that comes late makes everything between its call and itself one unit; a call that is never answered does
    not: it ends with its own message unless it stands at the end, where it may still be running.
    """
    bounds = Bounds()
    bounds.take(items)
    running = bounds.running(items)
    closed = bounds.starts if running is None else bounds.starts[: running + 1]
    found = [Unit(start, stop) for start, stop in pairwise(closed)]
    if closed:
        found.append(Unit(closed[-1], len(items), open=running is not None))
    return found


def cut_points(items: Sequence[Item]) -> list[int]:
    """The positions before which a view may be cut."""
    return [unit.start for unit in units(items)]


class Bounds:
    """Where the units of a list of items begin; what is added at its end costs no walk over the rest."""

    __slots__ = ("_bound", "_calls", "_count", "starts")

    def __init__(self) -> None:
        self.starts: list[int] = []
        self._calls: dict[str, int] = {}
        self._count = 0
        self._bound = False

    def take(self, added: Sequence[Item]) -> int:
        """Take in what was added; gives how many of the first units stayed as they were."""
        starts, calls = self.starts, self._calls
        same = len(starts)
        bound = self._bound
        rows = zip(map(_CALLS, added), map(_RESULTS, added), map(_LEADS, added), strict=True)
        for index, (asked, answered, leads) in enumerate(rows, self._count):
            reach = index
            for id in answered:
                if (call := calls.get(id, index)) < reach:
                    reach = call
            if asked:
                for id in asked:
                    calls[id] = index
            if bound and reach == index:
                # Reasoning that is a message of its own belongs to the message after it.
                reach -= 1
            bound = leads
            if reach == index:
                starts.append(index)
            else:
                while starts[-1] > reach:
                    starts.pop()
                if same >= len(starts):
                    same = len(starts) - 1
        self._bound = bound
        self._count += len(added)
        return same

    def running(self, items: Sequence[Item]) -> int | None:
        """The number of the unit with the first call at the end that still waits: all from there on is one open unit.

        Only the calls at the end can be running: the walk stops at the last unit in which the model spoke.
        """
        answered: set[str] = set()
        stop = len(items)
        for number in range(len(self.starts) - 1, -1, -1):
            start = self.starts[number]
            inside = items[start:stop]
            for item in inside:
                answered.update(item.results)
            if any(id not in answered for item in inside for id in item.calls):
                return number
            if any(item.role == "assistant" for item in inside):
                break
            stop = start
        return None
