"""The messages that can be the best of their unit, where what comes later in it counts a little more."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, count
from operator import gt

from windowsill.history.survey import Survey


class Peaks:
    """For each unit of a view its last message, and those before it that are worth more than all after them.

    What the messages are worth by themselves stays as it is, so this is found out once for each unit.
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._last: list[int] = []
        self._worth: list[float] = []
        self._more: list[tuple[int, int, float]] = []
        """The others: number of the unit, position and worth."""

    def follow(self, known: Survey, worth: Sequence[float]) -> None:
        """Take in what was added; `worth` is what each message is worth wherever it stands."""
        starts = known.starts
        # The last unit may have grown since, and several may have become one: a position that is no start any more
        # never becomes one again, so those before one that still is are as they were.
        same = min(len(self._starts), len(starts))
        while same and self._starts[same - 1] != starts[same - 1]:
            same -= 1
        same = max(0, same - 1)
        del self._starts[same:], self._last[same:], self._worth[same:]
        while self._more and self._more[-1][0] >= same:
            self._more.pop()
        begun = starts[same:]
        ends = [*begun[1:], len(known.items)] if begun else []
        last = [end - 1 for end in ends]
        least = list(map(worth.__getitem__, last))
        most = map(max, map(worth.__getitem__, map(slice, begun, ends)))
        for place in compress(count(), map(gt, most, least)):
            found = _rising(worth[begun[place] : ends[place]], begun[place])
            self._more += [(same + place, position, worth[position]) for position in found]
        self._last += last
        self._worth += least
        self._starts += begun

    def best(self, step: float) -> list[float]:
        """What the best message of each unit is worth when each place counts `step` more than the one before."""
        found = [place * step + value for place, value in zip(self._last, self._worth, strict=True)]
        for number, place, value in self._more:
            found[number] = max(found[number], place * step + value)
        return found


def _rising(inside: Sequence[float], start: int) -> list[int]:
    """The positions before the last whose value is above all that follow."""
    best, found = inside[-1], []
    for place in range(len(inside) - 2, -1, -1):
        if inside[place] > best:
            best = inside[place]
            found.append(start + place)
    return found
