"""The path from the root to a head, as ranges of entry numbers.

Nearly every entry's parent is the entry before it, so a path through a million entries is as many ranges as the session
was rewound.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TypeAlias

from windowsill.history.entries import ROOT

Range: TypeAlias = tuple[int, int]


def path_to(head: int, jumps: Sequence[tuple[int, int]]) -> list[Range]:
    """The entries on the way to `head`, oldest first; `jumps` are the entries whose parent is not the one before."""
    starts = [seq for seq, _ in jumps]
    ranges: list[Range] = []
    while head != ROOT:
        index = bisect_right(starts, head) - 1
        first, before = jumps[index] if index >= 0 else (ROOT + 1, ROOT)
        ranges.append((first, head))
        head = before
    return ranges[::-1]


def on_path(ranges: Sequence[Range], seq: int) -> bool:
    """Whether an entry lies on a path."""
    index = bisect_right(ranges, seq, key=lambda each: each[0]) - 1
    return index >= 0 and ranges[index][0] <= seq <= ranges[index][1]


def within(ranges: Sequence[Range], first: int, last: int) -> list[Range]:
    """The part of a path between two entries, both included."""
    cut = ((max(start, first), min(stop, last)) for start, stop in ranges)
    return [(start, stop) for start, stop in cut if start <= stop]
