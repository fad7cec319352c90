"""Search an output and show what matches as `grep -n` does: `12:match`, `11-context`, `--` between groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from windowsill.errors import InputError
from windowsill.outputs.found import MORE_COLUMNS, Found, Hit, Search
from windowsill.outputs.limits import Limits
from windowsill.outputs.lines import Cursor, Line, line_from, lines, stretch
from windowsill.outputs.long_lines import surely_found
from windowsill.outputs.output import Output, is_binary
from windowsill.outputs.patterns import compiled
from windowsill.outputs.reading import check_from_one, check_offset, counted
from windowsill.outputs.searching import COUNTED, find

MOST_CONTEXT = 100
"""Lines of context on one side: who needs more reads at the line itself."""

SECONDS = 10.0
"""How long one answer may take: a model waits, and can go on from where the search stopped."""

_LEAD = 4
"""The share of a cut line that is shown before the match: a quarter."""

_PLACES_ROOM = 200
"""Bytes that the places of the matches in a long line take."""

_WIDEST = 4
"""Bytes of the longest UTF-8 character."""

_NOTE_ROOM = 420
"""Bytes kept free for the notes at the end of an answer."""


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """What to search for and how to show it."""

    pattern: str
    before: int = 0
    after: int = 0
    ignore_case: bool = False
    fixed: bool = False
    limit: int = 100
    offset: int = 1
    """The line to begin at."""


def grep(output: Output, query: Query, limits: Limits, timer: Callable[[], float], seconds: float = SECONDS) -> str:
    """The matching lines with their numbers and context, then how many there are and how to go on."""
    _check(query)
    check_offset(output, query.offset)
    pattern = compiled(query.pattern, ignore_case=query.ignore_case, fixed=query.fixed)
    end = timer() + seconds
    search = Search(
        pattern=pattern,
        first=query.offset,
        limit=query.limit,
        width=limits.line,
        room=limits.bytes,
        late=lambda: timer() >= end,
    )
    found = find(output, search)
    rows, shown = _rows(output, found.hits, query, limits)
    notes = _notes(output, found, shown, query)
    if found.unsure is not None:
        most = surely_found(pattern) // 1024
        notes.append(f"[line {found.unsure:,} is very long: a match of more than {most} KiB in it may be missed]")
    return "\n".join((*rows, *notes))


def _check(query: Query) -> None:
    check_from_one("offset", query.offset)
    check_from_one("limit", query.limit)
    for name in ("before", "after"):
        value = getattr(query, name)
        if not 0 <= value <= MOST_CONTEXT:
            raise InputError(f"{name} is {value} lines", remedy=f"give 0 to {MOST_CONTEXT}; reading shows more")


def _rows(output: Output, hits: Sequence[Hit], query: Query, limits: Limits) -> tuple[list[str], int]:
    """The lines to show, within the limits, and how many of the hits are among them."""
    rows: list[str] = []
    room = limits.bytes - _NOTE_ROOM
    shown = 0
    cursor = Cursor(output)
    for group in _groups(hits, query):
        if rows and (query.before or query.after):
            rows.append("--")
            room -= _weight("--")
        for row, matches in _group_rows(output, group, query, limits, cursor):
            room -= _weight(row)
            if room < 0:
                return (rows, shown) if shown else ([_alone(output, hits[0], limits)], 1)
            rows.append(row)
            shown += matches
    return rows, shown


def _weight(row: str) -> int:
    return len(row.encode(errors="replace")) + 1


def _groups(hits: Sequence[Hit], query: Query) -> Iterator[list[Hit]]:
    """Hits whose context touches, as long as they are shown together."""
    group: list[Hit] = []
    for hit in hits:
        if group and (hit.line - query.before > group[-1].line + query.after + 1 or not (query.before or query.after)):
            yield group
            group = []
        group.append(hit)
    if group:
        yield group


def _group_rows(
    output: Output, group: Sequence[Hit], query: Query, limits: Limits, cursor: Cursor
) -> Iterator[tuple[str, bool]]:
    """Each line to show, and whether it matches."""
    hit = group[0]
    if hit.text is not None and not (query.before or query.after):
        yield _matching_row(output, hit, line_from(hit.line, hit.text, 1, limits.line), limits.line), True
        return
    matching = {hit.line: hit for hit in group}
    first, last = max(1, group[0].line - query.before), min(output.lines, group[-1].line + query.after)
    for line in lines(output, first, last, width=limits.line, cursor=cursor):
        if line.number in matching:
            yield _matching_row(output, matching[line.number], line, limits.line), True
        else:
            yield f"{line.number}-{line.text}{_cut_note(line)}", False


def _alone(output: Output, hit: Hit, limits: Limits) -> str:
    """A matching line where not even it and its context fit: without context, and narrow."""
    width = min(limits.line, (limits.bytes - _NOTE_ROOM - _PLACES_ROOM) // _WIDEST)
    return _matching_row(output, hit, stretch(output, hit.line, 1, width), width)


def _matching_row(output: Output, hit: Hit, line: Line, width: int) -> str:
    if not hit.columns or line.length <= width:
        return f"{hit.line}:{line.text}{_cut_note(line)}"
    column = max(1, hit.columns[0] - width // _LEAD)
    part = (
        stretch(output, hit.line, column, width) if hit.text is None else line_from(hit.line, hit.text, column, width)
    )
    lead = "..." if part.column > 1 else ""
    trail = "..." if part.left else ""
    return f"{hit.line}:{lead}{part.text}{trail} [{_places(hit, line.length)}]"


def _places(hit: Hit, length: int) -> str:
    """Where a long line matches: enough to read there."""
    more = ", ".join(str(column) for column in hit.columns[1:MORE_COLUMNS])
    also = f", then {more}" if more else ""
    further = " and further" if len(hit.columns) > MORE_COLUMNS else ""
    return f"{length:,} characters; matches at column {hit.columns[0]}{also}{further}"


def _cut_note(line: Line) -> str:
    return f"... [+{line.left:,} characters]" if line.left else ""


def _notes(output: Output, found: Found, shown: int, query: Query) -> list[str]:
    notes: list[str] = []
    since = f" from line {query.offset:,} on" if query.offset > 1 else ""
    if found.count > shown:
        more = f"more than {COUNTED:,}" if found.more else f"{found.count:,}"
        reached = found.hits[shown - 1].line + 1
        notes.append(f"[{shown:,} of {more} matching lines{since}; offset={reached} goes on]")
    elif found.count:
        notes.append(f"[{counted(found.count, 'matching line')}{since}]")
    elif found.late_at is None:
        notes.append(f"[no line matches{since}, of {counted(output.lines, 'line')}]")
    if found.late_at is not None:
        on = f"; offset={found.late_at} goes on" if found.late_at <= output.lines else ""
        notes.append(f"[time is over, not everything was searched{on}]")
    if is_binary(output):
        notes.append("[the output is binary: searched byte by byte, shown as far as it is text]")
    return notes
