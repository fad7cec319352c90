"""Units: what may only be hidden or kept together. A tool call and its results are one, parallel calls included."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from windowsill.history.view import Item, sum_weights
from windowsill.tokens import Weight


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
    reaches = _reaches(items)
    found: list[Unit] = []
    start = reach = 0
    farthest = reaches.get
    for index in range(len(items)):
        reached = farthest(index)
        if reached is not None and reached > reach:
            reach = reached
        if reach <= index:
            found.append(Unit(start=start, stop=index + 1))
            start = reach = index + 1
    return _with_running_calls(items, found)


def cut_points(items: Sequence[Item]) -> list[int]:
    """The positions before which a view may be cut."""
    return [unit.start for unit in units(items)]


def _reaches(items: Sequence[Item]) -> dict[int, int]:
    """For each item with calls, the position of the last result that answers one of them."""
    waiting: dict[str, int] = {}
    reaches: dict[int, int] = {}
    for index, item in enumerate(items):
        if item.leads and index + 1 < len(items):
            reaches[index] = index + 1
        for id in item.results:
            if id in waiting:
                reaches[waiting[id]] = index
        for id in item.calls:
            waiting[id] = index
    return reaches


def _with_running_calls(items: Sequence[Item], found: list[Unit]) -> list[Unit]:
    """Join the calls at the end that still wait for results, and all that came after them, into one open unit."""
    answered: set[str] = set()
    for number in range(len(found) - 1, -1, -1):
        unit = found[number]
        inside = items[unit.start : unit.stop]
        for item in inside:
            answered.update(item.results)
        if any(id not in answered for item in inside for id in item.calls):
            return [*found[:number], Unit(start=unit.start, stop=len(items), open=True)]
        if any(item.role == "assistant" for item in inside):
            break
    return found
