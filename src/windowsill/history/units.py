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

    A result belongs to its call as long as no request was sent between them. One that comes later is a unit of its own,
    because the request tells it as words at its own place (see `repair`). A call that is never answered ends with its
    own message unless it stands at the end, where it may still be running.
    """
    starts = _starts(items)
    running = _running(items, starts)
    if running is not None:
        del starts[running + 1 :]
    found = [Unit(start, stop) for start, stop in pairwise([*starts, len(items)])]
    if running is not None:
        found[-1] = Unit(starts[-1], len(items), open=True)
    return found


def begins_turn(items: Sequence[Item], index: int) -> bool:
    """Tell whether a request was sent right before an item: what stands before it was sent, answered or not."""
    item = items[index]
    return item.sent or (item.role == "assistant" and index > 0 and items[index - 1].role != "assistant")


def _starts(items: Sequence[Item]) -> list[int]:
    """Find where units begin."""
    starts: list[int] = []
    calls: dict[str, int] = {}
    answering: int | None = None
    leads = False
    for index, item in enumerate(items):
        if begins_turn(items, index):
            calls.clear()
            answering = None
        reach = index
        for id in item.results:
            # Right behind calls a result of another id may answer one of them, see `repair`.
            reach = min(reach, calls.get(id, index if answering is None else answering))
        for id in item.calls:
            calls[id] = index
        answering = index if item.calls else answering if item.results else None
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
