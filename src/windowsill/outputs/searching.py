"""Find the lines of an output that a pattern matches, part by part, on several cores and never for too long."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, nullcontext
from threading import Lock

from windowsill.outputs.expression import Match
from windowsill.outputs.found import MORE_COLUMNS, Found, Hit, Search
from windowsill.outputs.long_lines import SMALL_STEPS, SMALL_STRETCH, in_long_line
from windowsill.outputs.output import Output, last_piece, part_of
from windowsill.outputs.patterns import Pattern

COUNTED = 100_000
"""Matching lines after which counting ends: nobody reads so many, and a pattern that common tells nothing more."""

WINDOW = 256 * 1024
"""How much is searched between two looks at the clock, and at how much was counted."""

LONG_TEXT = 64 * 1024
"""Bytes above which a line is not carried along: it is read again, and only where it is shown."""

ROW = 3
"""Bytes that showing a line takes besides its text: a digit, a colon and a line end."""

MOST_WORKERS = 4
"""Threads of one search: past a few, they wait for the store."""

FEW_PARTS = 4
"""Outputs of so few parts are searched faster than threads start."""


CROWDED = 64
"""Matches of one window from which on threads take turns: passing the interpreter around would cost more than that."""


class Progress:
    """What the threads of one search know of each other."""

    def __init__(self, limit: int) -> None:
        self.wanted = limit
        """How many lines are still to be told, at most: parts before this one may tell them all."""
        self.crowded = False
        self.turn = Lock()


def find(output: Output, search: Search) -> Found:
    """The matching lines: the first `limit` of them, and how many there are, up to `COUNTED`."""
    found = Found()
    progress = Progress(search.limit)
    with closing(_results(output, search, progress)) as results:
        for result in results:
            found.count += result.count
            found.hits += result.hits[: progress.wanted]
            progress.wanted = search.limit - len(found.hits)
            found.late_at = result.late_at
            found.unsure = result.unsure if found.unsure is None else found.unsure
            found.more = found.count > COUNTED
            if found.more or found.late_at is not None:
                break
    return found


def _results(output: Output, search: Search, progress: Progress) -> Generator[Found, None, None]:
    """What was found in each stretch, in order."""
    stretches = _stretches(output, search.first)
    workers = min(MOST_WORKERS, os.cpu_count() or 1)
    if workers == 1 or len(output.parts) <= FEW_PARTS:
        for first, final in stretches:
            yield _search(output, search, progress, first, final)
        return
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[Found]] = deque()
        try:
            for first, final in stretches:
                waiting.append(pool.submit(_search, output, search, progress, first, final))
                # Twice as many as work: none waits for the next stretch, and few are in memory.
                if len(waiting) >= 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _stretches(output: Output, line: int) -> Iterator[tuple[int, int]]:
    """First and last part of what can be searched by itself: whole lines, or one line of many parts."""
    number = part_of(output, line)
    while number < len(output.parts):
        final = last_piece(output, number)
        yield number, final
        number = final + 1


def _search(output: Output, search: Search, progress: Progress, first: int, final: int) -> Found:
    if search.late():
        return Found(late_at=max(search.first, output.parts[first].line))
    if final > first:
        return in_long_line(output, search, first, final)
    data = output.data(first)
    # So that `$` stands before either line end.
    lines = data.replace(b"\r\n", b"\n") if output.parts[first].returns else data
    return _in_lines(lines, output.parts[first].line, search, progress)


def _in_lines(data: bytes, line: int, search: Search, progress: Progress) -> Found:
    """Search a part of whole lines."""
    found = Found()
    place = 0
    while line < search.first and place < len(data):
        place = data.find(b"\n", place) + 1 or len(data)
        line += 1
    counted, room = place, search.room
    for begin, end in _windows(data, place, search.pattern):
        if found.count > COUNTED:
            break
        if search.late():
            found.late_at = line + data.count(b"\n", counted, begin)
            break
        place = begin
        while place < end and len(found.hits) < progress.wanted and room > 0:
            match = search.pattern.search(data, place, end)
            # An empty match after the last line end is in no line of this stretch.
            if match is None or (match.start() == end and data.endswith(b"\n", 0, end)):
                place = end
                break
            start = data.rfind(b"\n", 0, match.start()) + 1
            stop = data.find(b"\n", match.start())
            stop = len(data) if stop < 0 else stop
            line += data.count(b"\n", counted, start)
            counted = start
            found.hits.append(_hit(data, line, match, (start, stop), search))
            found.count += 1
            room -= min(stop - start, search.width) + ROW
            place = stop + 1
        if place < end:
            with progress.turn if progress.crowded else nullcontext():
                more = search.pattern.matching_lines(data, place, end)
            progress.crowded = more > CROWDED
            found.count += more
    return found


def _windows(data: bytes, begin: int, pattern: Pattern) -> Iterator[tuple[int, int]]:
    """Stretches that end at line ends, small ones for a pattern that may be slow."""
    size = WINDOW if pattern.programsize <= SMALL_STEPS else SMALL_STRETCH
    while begin < len(data):
        end = len(data)
        if end - begin > size:
            end = data.rfind(b"\n", begin, begin + size) + 1 or data.find(b"\n", begin + size) + 1 or end
        yield begin, end
        begin = end


def _hit(data: bytes, line: int, match: Match, borders: tuple[int, int], search: Search) -> Hit:
    start, stop = borders
    columns = _columns(data, match, start, stop, search) if stop - start > search.width else ()
    return Hit(line, columns, data[start:stop] if stop - start <= LONG_TEXT else None)


def _columns(data: bytes, match: Match, start: int, stop: int, search: Search) -> tuple[int, ...]:
    """The characters of a long line at which it matches, the first few."""
    found: list[int] = []
    more: Match | None = match
    while more is not None and len(found) <= MORE_COLUMNS:
        found.append(1 + len(data[start : more.start()].decode(errors="replace")))
        onwards = max(more.end(), more.start() + 1)
        more = search.pattern.search(data, onwards, stop) if onwards < stop else None
    return tuple(found)
