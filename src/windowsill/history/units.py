"""Units: what may only be hidden or kept together. A tool call and its results are one, parallel calls included."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from windowsill.history.view import Item, sum_weights
from windowsill.tokens import Weight


class Unit(msgspec.Struct, frozen=True):
    """Items `start` to `stop` (exclusive) of a view; `open` while a call in it has no result."""

    start: int
    stop: int
    open: bool = False

    def weight(self, items: Sequence[Item]) -> Weight:
        """Add up what the items of the unit weigh."""
        return sum_weights(item.weight for item in items[self.start : self.stop])

    def holds(self, position: int | None) -> bool:
        """Tell whether an item is part of the unit."""
        return position is not None and self.start <= position < self.stop


def units(items: Sequence[Item]) -> list[Unit]:
    """Divide a view into units, in order. Between two of them it may be cut, nowhere else.

    A result that comes late makes everything between its call and itself one unit; a call that is never answered does
    not: it ends with its own message unless it stands at the end, where it may still be running.
    """
    starts = _starts(items)
    running = _running(items, starts)
    if running is not None:
        del starts[running + 1 :]
    found = [Unit(start, stop) for start, stop in pairwise([*starts, len(items)])]
    if running is not None:
        found[-1] = Unit(starts[-1], len(items), open=True)
    return found


def _starts(items: Sequence[Item]) -> list[int]:
    """Find where units begin."""
    starts: list[int] = []
    calls: dict[str, int] = {}
    leads = False
    for index, item in enumerate(items):
        reach = index
        for id in item.results:
            reach = min(reach, calls.get(id, index))
        for id in item.calls:
            calls[id] = index
        if leads and reach == index:
            # Reasoning that is a message of its own belongs to the message after it.
            reach -= 1
        leads = item.leads
        if reach == index:
            starts.append(index)
        else:
            while starts[-1] > reach:
                starts.pop()
    return starts


def _running(items: Sequence[Item], starts: Sequence[int]) -> int | None:
    """Find the first unit with a call at the end that still waits: all from there on is one open unit.

    Only the calls at the end can be running: the walk stops at the last unit in which the model spoke.
    """
    answered: set[str] = set()
    stop = len(items)
    for number in range(len(starts) - 1, -1, -1):
        start = starts[number]
        inside = items[start:stop]
        for item in inside:
            answered.update(item.results)
        if any(id not in answered for item in inside for id in item.calls):
            return number
        if any(item.role == "assistant" for item in inside):
            break
        stop = start
    return None
