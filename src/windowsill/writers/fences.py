"""Finds fenced code in an answer, in one pass: whoever writes an answer must not decide how long it takes to read."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

SHORTEST = 3
"""Characters of the line that opens or closes a fence."""


class Fence(NamedTuple):
    """Where a fence stands, and what is inside of it."""

    start: int
    inner: int
    """Behind the line that opens it,"""
    close: int
    """before the line that closes it,"""
    end: int
    """and behind that line, without its line break."""


class _Line(NamedTuple):
    start: int
    end: int
    mark: str
    """The backticks or tildes it begins with; empty where it opens and closes nothing."""
    bare: bool
    """Whether nothing else stands in it, so that it can close."""


def fences(text: str) -> list[Fence]:
    """The fences of a text, one after the other: a line of backticks or tildes, up to the next one that is the same."""
    lines = _lines(text)
    closing: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        if line.bare:
            closing.setdefault(line.mark, []).append(number)
    found: list[Fence] = []
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        closers = closing.get(line.mark, []) if line.mark else []
        place = bisect_right(closers, number - 1)
        if place < len(closers):
            last = lines[closers[place]]
            found.append(Fence(line.start, min(line.end + 1, last.start), last.start, last.end))
            number = closers[place] + 1
    return found


def _lines(text: str) -> list[_Line]:
    found: list[_Line] = []
    start = 0
    for line in text.split("\n"):
        words = line.strip(" \t")
        first = words[:1]
        mark = words[: len(words) - len(words.lstrip(first))] if first in ("`", "~") and first else ""
        mark = mark if len(mark) >= SHORTEST else ""
        found.append(_Line(start, start + len(line), mark, bool(mark) and mark == words))
        start += len(line) + 1
    return found
