"""Search a line that is longer than a part, of which there is never more than a part in memory."""

from __future__ import annotations

from collections.abc import Iterator

from windowsill.outputs.found import MORE_COLUMNS, Found, Hit, Search
from windowsill.outputs.output import Output
from windowsill.outputs.patterns import Pattern

OVERLAP = 64 * 1024
"""The longest match that is surely found in a line which is longer than a part."""

SMALL_STEPS = 200
"""Patterns up to this size run as automata; a larger one may fall back to a simulation, 1,000 times slower."""

SMALL_STRETCH = 32 * 1024
"""How much a large pattern searches between two looks at the clock."""


def surely_found(pattern: Pattern) -> int:
    """The longest match, in bytes, that is never missed in a line which is longer than a part."""
    return OVERLAP if pattern.programsize <= SMALL_STEPS else SMALL_STRETCH // 2


def in_long_line(output: Output, search: Search, first: int, final: int) -> Found:
    """Search a line of many parts, each together with the end of the one before."""
    line = output.parts[first].line
    columns: list[int] = []
    tail, column, done = b"", 1, 0
    for number in range(first, final + 1):
        data = tail + output.data(number)
        if number == final:
            data = data.removesuffix(b"\n").removesuffix(b"\r")
        # Neither the beginning of a tail nor the end of a part that goes on is an end of the line: one byte beyond
        # each stays outside the search, which looks at it only to know that.
        end = len(data) if number == final else len(data) - 1
        place = max(done, 0 if column == 1 else 1)
        for begin, stop in _overlapping(place, end, search.pattern):
            if search.late():
                # The next line, not this one again: who goes on there must get further.
                return _long(line, columns, late_at=line + 1)
            place = max(place, begin)
            while len(columns) <= MORE_COLUMNS and place <= stop:
                match = search.pattern.search(data, place, stop)
                if match is None:
                    break
                columns.append(column + len(data[: match.start()].decode(errors="replace")))
                place = max(match.end(), match.start() + 1)
        if len(columns) > MORE_COLUMNS:
            break
        keep = _tail_start(data)
        column += len(data[:keep].decode(errors="replace"))
        done = max(0, place - keep)
        tail = data[keep:]
    longest = search.pattern.longest
    is_sure = bool(columns) or (longest is not None and longest <= surely_found(search.pattern))
    return _long(line, columns, unsure=None if is_sure else line)


def _overlapping(begin: int, end: int, pattern: Pattern) -> Iterator[tuple[int, int]]:
    """Stretches of one line, each reaching back into the one before by half its size."""
    if pattern.programsize <= SMALL_STEPS:
        yield begin, end
        return
    while True:
        yield begin, min(end, begin + SMALL_STRETCH)
        if begin + SMALL_STRETCH >= end:
            return
        begin += SMALL_STRETCH // 2


def _tail_start(data: bytes) -> int:
    """Where the tail to carry over begins: at a character, and one that was searched together with what follows it."""
    start = max(0, len(data) - OVERLAP)
    while start and start < len(data) and 0x80 <= data[start] < 0xC0:  # noqa: PLR2004 - UTF-8's continuation bytes
        start -= 1
    return start


def _long(line: int, columns: list[int], *, late_at: int | None = None, unsure: int | None = None) -> Found:
    hits = [Hit(line, tuple(columns))] if columns else []
    return Found(len(hits), hits, late_at, unsure=unsure)
