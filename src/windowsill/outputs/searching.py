"""Find the lines of an output that a pattern matches, part by part, on several cores and never for too long."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import islice

import msgspec

from windowsill.outputs.cutting import PART_BYTES
from windowsill.outputs.output import Output, last_piece, part_of
from windowsill.outputs.patterns import Match, Pattern

COUNTED = 100_000
"""Matching lines after which counting ends: nobody reads so many, and a pattern that common tells nothing more."""

MORE_COLUMNS = 10
"""How many further matches of one long line are told."""

OVERLAP = 64 * 1024
"""The longest match that is surely found in a line which is longer than a part."""

SMALL_STEPS = 200
"""Patterns up to this size run as automata; a larger one may fall back to a simulation, 1,000 times slower."""

SMALL_STRETCH = 32 * 1024
"""How much a large pattern searches between two looks at the clock."""

MOST_WORKERS = 4
"""Threads of one search: past a few, they wait for the store."""

TOGETHER = 8
"""Stretches one thread searches in a row: 4 MiB, against which handing them over weighs little."""

FEW_PARTS = 8
"""Outputs of so few parts are searched faster than threads start."""


class Hit(msgspec.Struct, frozen=True):
    """A line that matches; where it is long, the characters at which it does."""

    line: int
    columns: tuple[int, ...] = ()


class Found(msgspec.Struct):
    """What a search, or a stretch of one, came to."""

    count: int = 0
    hits: list[Hit] = msgspec.field(default_factory=list)
    late_at: int | None = None
    """The line from which time did not suffice; `None` when it did."""
    more: bool = False
    """Whether counting ended before the output did."""


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for, and how much to tell of it."""

    pattern: Pattern
    first: int
    """The line to begin at."""
    limit: int
    """How many lines to tell."""
    width: int
    """Characters of a line above which the places of its matches are told too."""
    late: Callable[[], bool]
    """Whether time is over."""


def find(output: Output, search: Search) -> Found:
    """The matching lines: the first `limit` of them, and how many there are, up to `COUNTED`."""
    found = Found()
    with closing(_results(output, search)) as results:
        for result in results:
            _add(found, result, search)
            found.more = found.count > COUNTED
            if found.more or found.late_at is not None:
                break
    return found


def _add(found: Found, result: Found, search: Search) -> None:
    """Put together what was found in one stretch and in the next."""
    found.count += result.count
    found.hits += result.hits[: search.limit - len(found.hits)]
    found.late_at = result.late_at


def _results(output: Output, search: Search) -> Generator[Found, None, None]:
    """What was found in each stretch, in order."""
    stretches = _stretches(output, search.first)
    workers = min(MOST_WORKERS, os.cpu_count() or 1)
    if workers == 1 or len(output.parts) <= FEW_PARTS:
        for first, final in stretches:
            yield _search(output, search, first, final)
        return
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[Found]] = deque()
        try:
            while several := list(islice(stretches, TOGETHER)):
                waiting.append(pool.submit(_search_several, output, search, several))
                # Twice as many as work: none waits for the next stretch, and few are in memory.
                if len(waiting) >= 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _search_several(output: Output, search: Search, stretches: Sequence[tuple[int, int]]) -> Found:
    found = Found()
    for first, final in stretches:
        _add(found, _search(output, search, first, final), search)
        if found.late_at is not None:
            break
    return found


def _stretches(output: Output, line: int) -> Iterator[tuple[int, int]]:
    """First and last part of what can be searched by itself: whole lines, or one line of many parts."""
    number = part_of(output, line)
    while number < len(output.parts):
        final = last_piece(output, number)
        yield number, final
        number = final + 1


def _search(output: Output, search: Search, first: int, final: int) -> Found:
    if search.late():
        return Found(late_at=max(search.first, output.parts[first].line))
    if final > first:
        return _in_long_line(output, search, first, final)
    data = output.data(first)
    # So that `$` stands before either line end.
    lines = data.replace(b"\r\n", b"\n") if output.parts[first].returns else data
    return _in_lines(lines, output.parts[first].line, search)


def _in_lines(data: bytes, line: int, search: Search) -> Found:
    """Search a part of whole lines."""
    found = Found()
    place = 0
    while line < search.first and place < len(data):
        place = data.find(b"\n", place) + 1 or len(data)
        line += 1
    counted = place
    for begin, end in _windows(data, place, search.pattern):
        if search.late():
            found.late_at = line + data.count(b"\n", counted, begin)
            break
        place = begin
        while place < end and (match := search.pattern.search(data, place, end)) is not None:
            # An empty match after the last line end is in no line of this stretch.
            if match.start() == end and data.endswith(b"\n", 0, end):
                break
            start = data.rfind(b"\n", 0, match.start()) + 1
            stop = data.find(b"\n", match.start())
            stop = len(data) if stop < 0 else stop
            found.count += 1
            if len(found.hits) < search.limit:
                line += data.count(b"\n", counted, start)
                counted = start
                columns = _columns(data, match, start, stop, search) if stop - start > search.width else ()
                found.hits.append(Hit(line, columns))
            place = stop + 1
    return found


def _windows(data: bytes, begin: int, pattern: Pattern) -> Iterator[tuple[int, int]]:
    """Stretches that end at line ends, small ones for a pattern that may be slow."""
    size = PART_BYTES if pattern.programsize <= SMALL_STEPS else SMALL_STRETCH
    while begin < len(data):
        end = len(data)
        if end - begin > size:
            end = data.rfind(b"\n", begin, begin + size) + 1 or data.find(b"\n", begin + size) + 1 or end
        yield begin, end
        begin = end


def _columns(data: bytes, match: Match, start: int, stop: int, search: Search) -> tuple[int, ...]:
    """The characters of a long line at which it matches, the first few."""
    found: list[int] = []
    more: Match | None = match
    while more is not None and len(found) <= MORE_COLUMNS:
        found.append(1 + len(data[start : more.start()].decode(errors="replace")))
        onwards = max(more.end(), more.start() + 1)
        more = search.pattern.search(data, onwards, stop) if onwards < stop else None
    return tuple(found)


def _in_long_line(output: Output, search: Search, first: int, final: int) -> Found:
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
    return _long(line, columns)


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


def _long(line: int, columns: list[int], *, late_at: int | None = None) -> Found:
    hits = [Hit(line, tuple(columns))] if columns else []
    return Found(len(hits), hits, late_at)
