"""Search an output and show what matches as `grep -n` does: `12:match`, `11-context`, `--` between groups.

An output is searched part by part, so that its size does not matter to memory, and with RE2, so that no pattern takes
more than linear time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from windowsill.errors import InputError
from windowsill.outputs.parts import Line, Output, line_from, lines, skip_lines, stretch
from windowsill.outputs.read import WIDEST, check_from_one, check_offset
from windowsill.outputs.show import Limits, byte_size, cut_line
from windowsill.regex import Match, Pattern, PatternError, compile_lines, steps_of
from windowsill.text import count_of

SECONDS = 10.0
"""The most seconds for one answer: a model waits, and can go on from where the search stopped."""

MOST_CONTEXT = 100
"""Lines of context on one side; reading at the line shows more."""

COUNTED = 100_000
"""Matching lines after which counting ends: nobody reads so many."""

MORE_COLUMNS = 10
"""Further matches of one long line whose places are listed."""

MOST_CHARACTERS = 1_000
"""Longer than any pattern one would write for a log, short enough that compiling it takes no time."""

MOST_STEPS = 2_000
"""The largest compiled pattern: matching takes time in proportion to it when it cannot run as an automaton."""

SMALL_STEPS = 200
"""Patterns up to this size run as automata; a larger one may fall back to a simulation, 1,000 times slower."""

WINDOW, SMALL_WINDOW = 256 * 1024, 32 * 1024
"""Bytes searched between two looks at the clock, by a small pattern and by a large one."""

OVERLAP = 64 * 1024
"""The longest match that is surely found in a line which is longer than a part."""

LONG_TEXT = 64 * 1024
"""Bytes above which a hit does not hold its line: the line is read again, only where it is shown."""

LONG_WORD = 8
"""Bytes from which `bytes.find` skips so many that it is faster than RE2, which looks at each place of the first byte,
where that byte is common."""

_ROW = 3
"""Bytes that showing a line takes besides its text: a digit, a colon and a line end."""
_LEAD = 4
"""The share of a cut line that is shown before the match: a quarter."""
_PLACES_ROOM = 200
"""Bytes that the places of the matches in a long line take."""
_NOTE_ROOM = 420
"""Bytes kept free for the notes at the end of an answer."""

_ANY_HINT = "write it in RE2 syntax, escape special characters with a backslash, or search with fixed=true"
_HINTS = (
    (
        re.compile(r"\(\?(?:[=!>]|<[=!])"),
        "lookahead, lookbehind and atomic groups are not supported: match more, and pick from what is found",
    ),
    (
        re.compile(r"invalid escape sequence: \\[1-9kg]"),
        "backreferences and this escape are not supported: search for one of the parts",
    ),
    (re.compile(r"repetition size"), "a repetition goes up to 1,000, and nested ones are multiplied"),
    (re.compile(r"too large"), "shorten it, or use smaller repetitions"),
    (re.compile(r"surrogate"), "leave out what UTF-8 cannot hold"),
)
_SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}]")
_COMMON = re.compile(r"[a-z0-9 ]")
_NOT_BY_LINE = re.compile(r"\(\?[A-Za-z]*-[A-Za-z]*m")
_QUOTED_OR_ESCAPED = re.compile(r"\\Q.*?(?:\\E|\Z)|\\(.)", re.DOTALL)
_LINE_ENDS = {"A": "^", "z": "$", "Z": "$"}
_UNBOUNDED = re.compile(r"[*+]|\{\d+,\}")
"""Repetitions without a bound. Quoted ones count too, which only makes the search more careful."""


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """A pattern to search for, and how to show the matches."""

    pattern: str
    before: int = 0
    after: int = 0
    ignore_case: bool = False
    fixed: bool = False
    limit: int = 100
    offset: int = 1
    """The line to begin at."""


class Hit(msgspec.Struct, frozen=True):
    """A line that matches; for a long line also the columns of the matches."""

    line: int
    columns: tuple[int, ...] = ()
    text: bytes | None = None
    """The line itself, unless it is so long that only some of it should be read."""


def grep(output: Output, query: Query, limits: Limits, timer: Callable[[], float], seconds: float = SECONDS) -> str:
    """Return the matching lines with their numbers and context, then how many there are and how to go on."""
    check_from_one("offset", query.offset)
    check_from_one("limit", query.limit)
    for name, value in (("before", query.before), ("after", query.after)):
        if not 0 <= value <= MOST_CONTEXT:
            raise InputError(f"{name} is {value} lines", remedy=f"give 0 to {MOST_CONTEXT}; reading shows more")
    check_offset(output, query.offset)
    end = timer() + seconds
    search = Search(output, query, limits, lambda: timer() >= end)
    search.run()
    rows, visible = _rows(output, search.hits, query, limits)
    return "\n".join((*rows, *_notes(search, visible)))


class LinePattern:
    """A pattern that a model wrote, matched line by line; `InputError` with a hint when it cannot be used."""

    def __init__(self, query: Query) -> None:
        source = query.pattern
        self._check(source, fixed=query.fixed)
        text = re.escape(source) if query.fixed else _QUOTED_OR_ESCAPED.sub(_by_line, source)
        try:
            self._pattern = compile_lines(f"(?m){text}", ignore_case=query.ignore_case)
            self._to_line_end: Pattern = compile_lines(f"(?m)(?:{text}).*", ignore_case=query.ignore_case)
        except PatternError as error:
            reason = str(error).replace("(?m)", "", 1)
            hint = next((hint for sign, hint in _HINTS if sign.search(reason)), _ANY_HINT)
            raise _refusal(source, reason, hint) from None
        steps = steps_of(self._pattern)
        if steps > MOST_STEPS:
            raise _refusal(source, "it is too large once compiled", "shorten it, or use smaller repetitions")
        small = steps <= SMALL_STEPS
        self.window = WINDOW if small else SMALL_WINDOW
        self.surely_found = OVERLAP if small else SMALL_WINDOW // 2
        """The longest match, in bytes, that is never missed in a line which is longer than a part."""
        # Without a loop each step is taken once, for at most one byte.
        bounded = query.fixed or not _UNBOUNDED.search(source)
        self.may_miss = not bounded or steps > self.surely_found
        plain = not query.ignore_case and (query.fixed or not _SPECIAL.search(source))
        literal = source.encode()
        self._skipped_to = literal if plain and len(literal) >= LONG_WORD and _COMMON.match(source) else None
        # What matches nothing finds the end of a line once more: one after a letter, after a sign, of an empty line.
        ends = ((b"a\n", 1), (b"-\n", 1), (b"\n", 0))
        self._matches_nothing = any(self.search(line, end, end) is not None for line, end in ends)
        # No text makes this one look back, unlike what a model might write, and it counts three times faster.
        self._literal_lines = re.compile(re.escape(literal) + rb"[^\n]*") if plain else None

    def _check(self, source: str, *, fixed: bool) -> None:
        if not source:
            raise _refusal(source, "it is empty", "give some text to search for")
        if len(source) > MOST_CHARACTERS:
            raise _refusal(source[:40], f"it has {len(source):,} characters", f"give at most {MOST_CHARACTERS:,}")
        if "\n" in source:
            raise _refusal(source, "it spans lines", "lines are searched one by one: search for one of its lines")
        if _NOT_BY_LINE.search(source) and not fixed:
            raise _refusal(source, "it turns (?m) off", "lines are searched one by one: leave that flag out")

    def search(self, data: bytes, start: int, stop: int) -> Match | None:
        """Return the first match between two places; anchors see what is around them."""
        if self._skipped_to is not None:
            start = data.find(self._skipped_to, start, stop)
        return self._pattern.search(data, start, stop) if start >= 0 else None

    def count(self, data: bytes, start: int, stop: int) -> int:
        """Count the matching lines between the beginning of a line and the end of one."""
        if self._literal_lines is not None:
            return len(self._literal_lines.findall(data, start, stop))
        matches = self._to_line_end.finditer(data, start, stop)
        if not self._matches_nothing and data[start:stop].isascii():
            return sum(1 for _ in matches)
        # Here a line can be found more than once: a dot matches no byte that is not text.
        count, line_end = 0, start - 1
        for match in matches:
            if match.start() > line_end:
                count += 1
                line_end = data.find(b"\n", match.end(), stop)
                if line_end < 0:
                    break
        return count


def _by_line(found: re.Match[str]) -> str:
    """Turn the ends of the text into ends of the line: an output is searched in parts, whose ends mean nothing."""
    if found[1] is None:
        # Closed where the pattern left it open, so that more can follow.
        return found[0] if found[0].endswith(r"\E") else found[0] + r"\E"
    return _LINE_ENDS.get(found[1], found[0])


def _refusal(pattern: str, reason: str, hint: str) -> InputError:
    return InputError(f"the pattern {pattern!r} cannot be used: {reason}", remedy=hint, pattern=pattern)


class Search:
    """One search through an output: the first `limit` hits, the number of matching lines, and where time was over."""

    def __init__(self, output: Output, query: Query, limits: Limits, is_late: Callable[[], bool]) -> None:
        self.output = output
        self.query = query
        self.pattern = LinePattern(query)
        self.hits: list[Hit] = []
        self.count = 0
        self.late_at: int | None = None
        """The line from which time did not suffice; `None` when it did."""
        self.unsure: int | None = None
        """The first line so long that a very long match in it may have been missed."""
        self._width = limits.line
        self._room = limits.bytes
        self._is_late = is_late

    def run(self) -> None:
        """Search from the query's offset until the end, until time is over, or until enough lines were counted."""
        parts = self.output.parts
        number = self.output.part_of(self.query.offset)
        while number < len(parts) and self.late_at is None and self.count <= COUNTED:
            final = self.output.last_piece(number)
            if final > number:
                self._search_long_line(number, final)
            else:
                self._search_lines(number)
            number = final + 1

    def _search_lines(self, number: int) -> None:
        """Search a part of whole lines."""
        part, data = self.output.parts[number], self.output.data(number)
        if part.returns:
            # So that `$` stands before either line end.
            data = data.replace(b"\r\n", b"\n")
        line = max(part.line, self.query.offset)
        numbered = begin = skip_lines(data, 0, line - part.line)
        while begin < len(data) and self.count <= COUNTED:
            if self._is_late():
                self.late_at = line + data.count(b"\n", numbered, begin)
                return
            end = len(data)
            if end - begin > self.pattern.window:
                reach = begin + self.pattern.window
                end = data.rfind(b"\n", begin, reach) + 1 or data.find(b"\n", reach) + 1 or end
            # The last line end is left out: behind it stands no line of this window.
            place, stop = begin, end - data.endswith(b"\n", begin, end)
            while place <= stop and len(self.hits) < self.query.limit and self._room > 0:
                match = self.pattern.search(data, place, stop)
                if match is None:
                    place = stop + 1
                    break
                start = data.rfind(b"\n", 0, match.start()) + 1
                after = data.find(b"\n", match.start())
                after = len(data) if after < 0 else after
                line += data.count(b"\n", numbered, start)
                numbered = start
                self._add(data, line, match, start, after)
                place = after + 1
            if place <= stop:
                self.count += self.pattern.count(data, place, stop)
            begin = end

    def _add(self, data: bytes, line: int, match: Match, start: int, stop: int) -> None:
        columns: list[int] = []
        found: Match | None = match if stop - start > self._width else None
        while found is not None and len(columns) <= MORE_COLUMNS:
            columns.append(1 + len(data[start : found.start()].decode(errors="replace")))
            onwards = max(found.end(), found.start() + 1)
            found = self.pattern.search(data, onwards, stop) if onwards < stop else None
        self.hits.append(Hit(line, tuple(columns), data[start:stop] if stop - start <= LONG_TEXT else None))
        self.count += 1
        self._room -= min(stop - start, self._width) + _ROW

    def _search_long_line(self, first: int, final: int) -> None:
        """Search a line of many parts, each together with the end of the one before."""
        line = self.output.parts[first].line
        columns: list[int] = []
        data, column, done = b"", 1, 0
        for number in range(first, final + 1):
            data += self.output.data(number)
            if number == final:
                data = data.removesuffix(b"\n").removesuffix(b"\r")
            # Neither the beginning of what was carried over nor the end of a part that goes on is an end of the line:
            # one byte beyond each stays outside the search, which looks at it only to know that.
            end = len(data) - (number < final)
            reached = self._search_stretches(data, max(done, column > 1), end, column, columns)
            if reached is None:
                # The next line, not this one again: who goes on there must get further.
                self.late_at = line + 1
            if reached is None or len(columns) > MORE_COLUMNS:
                break
            keep = _tail_start(data)
            column += len(data[:keep].decode(errors="replace"))
            done = max(0, reached - keep)
            data = data[keep:]
        if columns:
            self.count += 1
            if len(self.hits) < self.query.limit:
                self.hits.append(Hit(line, tuple(columns)))
        elif self.late_at is None and self.pattern.may_miss and self.unsure is None:
            self.unsure = line

    def _search_stretches(self, data: bytes, begin: int, end: int, column: int, columns: list[int]) -> int | None:
        """Add the columns at which a piece of a line matches; return up to where it is done, or `None` when late.

        The stretches of a large pattern are small, and reach back into the one before by half.
        """
        size = end - begin if self.pattern.window == WINDOW else SMALL_WINDOW
        done = begin
        while not self._is_late():
            stop = min(end, begin + size)
            done = max(done, begin)
            while len(columns) <= MORE_COLUMNS and done <= stop:
                match = self.pattern.search(data, done, stop)
                if match is None:
                    break
                columns.append(column + len(data[: match.start()].decode(errors="replace")))
                done = max(match.end(), match.start() + 1)
            if stop == end or len(columns) > MORE_COLUMNS:
                return done
            begin += size // 2
        return None


def _tail_start(data: bytes) -> int:
    """Return where the tail to carry over begins: at the first byte of a character."""
    start = max(0, len(data) - OVERLAP)
    while 0 < start < len(data) and 0x80 <= data[start] < 0xC0:  # noqa: PLR2004 - UTF-8's continuation bytes
        start -= 1
    return start


def _rows(output: Output, hits: Sequence[Hit], query: Query, limits: Limits) -> tuple[list[str], int]:
    """Return the lines to show, within the limits, and how many of the hits are among them."""
    rows: list[str] = []
    room = limits.bytes - _NOTE_ROOM
    visible = 0
    for group in _groups(hits, query):
        if rows and (query.before or query.after):
            rows.append("--")
            room -= len("--\n")
        for row, matches in _group_rows(output, group, query, limits):
            room -= byte_size(row) + 1
            if room < 0:
                return (rows, visible) if visible else ([_narrow_row(output, hits[0], limits)], 1)
            rows.append(row)
            visible += matches
    return rows, visible


def _groups(hits: Sequence[Hit], query: Query) -> Iterator[list[Hit]]:
    """Yield the hits that are shown together: those whose context touches."""
    group: list[Hit] = []
    for hit in hits:
        if group and (hit.line - query.before > group[-1].line + query.after + 1 or not (query.before or query.after)):
            yield group
            group = []
        group.append(hit)
    if group:
        yield group


def _group_rows(output: Output, group: Sequence[Hit], query: Query, limits: Limits) -> Iterator[tuple[str, bool]]:
    """Yield each line to show, and whether it matches."""
    hit = group[0]
    if hit.text is not None and not (query.before or query.after):
        yield _matching_row(output, hit, line_from(hit.line, hit.text, 1, limits.line), limits.line), True
        return
    matching = {hit.line: hit for hit in group}
    first, last = max(1, group[0].line - query.before), min(output.lines, group[-1].line + query.after)
    for line in lines(output, first, last, width=limits.line):
        if line.number in matching:
            yield _matching_row(output, matching[line.number], line, limits.line), True
        else:
            yield f"{line.number}-{_text(line)}", False


def _narrow_row(output: Output, hit: Hit, limits: Limits) -> str:
    """Return a matching line without its context, and narrow: for where not even it and its context fit."""
    width = min(limits.line, (limits.bytes - _NOTE_ROOM - _PLACES_ROOM) // WIDEST)
    return _matching_row(output, hit, stretch(output, hit.line, 1, width), width)


def _matching_row(output: Output, hit: Hit, line: Line, width: int) -> str:
    if not hit.columns or line.length <= width:
        return f"{hit.line}:{_text(line)}"
    first, *others = hit.columns
    column = max(1, first - width // _LEAD)
    if hit.text is None:
        part = stretch(output, hit.line, column, width)
    else:
        part = line_from(hit.line, hit.text, column, width)
    lead, trail = "..." if part.column > 1 else "", "..." if part.left else ""
    also = ", then " + ", ".join(map(str, others[: MORE_COLUMNS - 1])) if others else ""
    further = " and further" if len(hit.columns) > MORE_COLUMNS else ""
    places = f"{line.length:,} characters; matches at column {first}{also}{further}"
    return f"{hit.line}:{lead}{part.text}{trail} [{places}]"


def _text(line: Line) -> str:
    return line.text + (cut_line(line.left) if line.left else "")


def _notes(search: Search, visible: int) -> Iterator[str]:
    offset, total = search.query.offset, search.output.lines
    since = f" from line {offset:,} on" if offset > 1 else ""
    if search.count > visible:
        all_of_them = f"more than {COUNTED:,}" if search.count > COUNTED else f"{search.count:,}"
        reached = search.hits[visible - 1].line + 1
        yield f"[{visible:,} of {all_of_them} matching lines{since}; offset={reached} goes on]"
    elif search.count:
        yield f"[{count_of(search.count, 'matching line')}{since}]"
    elif search.late_at is None:
        yield f"[no line matches{since}, of {count_of(total, 'line')}]"
    if search.late_at is not None:
        on = f"; offset={search.late_at} goes on" if search.late_at <= total else ""
        yield f"[time is over, not everything was searched{on}]"
    if search.output.is_binary:
        yield "[the output is binary: searched byte by byte, shown as far as it is text]"
    if search.unsure is not None:
        most = search.pattern.surely_found // 1024
        yield f"[line {search.unsure:,} is very long: a match of more than {most} KiB in it may be missed]"
