"""Read an output as file readers show one: numbered lines, within a size, with a note on how to read on."""

from __future__ import annotations

from windowsill.errors import InputError
from windowsill.outputs.parts import Line, Output, lines, stretch
from windowsill.outputs.show import Limits, byte_size, characters_within
from windowsill.text import count_of

EMPTY = "[the output is empty]"
_NOTE_ROOM = 160
"""Bytes kept free for the note at the end of an answer."""

_CUT_ROOM = 80
"""Bytes that the number of a line and the note that it was cut take."""

WIDEST = 4
"""Bytes of the longest UTF-8 character."""


def read(output: Output, offset: int, limit: int, column: int, limits: Limits) -> str:
    """Return lines from `offset` on with their numbers; from a `column` above 1, more of that one line."""
    check_from_one("offset", offset)
    check_from_one("limit", limit)
    check_from_one("column", column)
    if not output.lines:
        return EMPTY
    check_offset(output, offset)
    head = f"[binary output of {output.size:,} bytes, shown as far as it is text]\n" if output.is_binary else ""
    body = _one(output, offset, column, limits) if column > 1 else _many(output, offset, limit, limits)
    return head + body


def _many(output: Output, offset: int, limit: int, limits: Limits) -> str:
    last = min(output.lines, offset + limit - 1)
    room = limits.bytes - _NOTE_ROOM
    rows: list[str] = []
    reached = offset - 1
    for line in lines(output, offset, last, width=limits.line):
        row = _row(line)
        weight = byte_size(row) + 1
        if weight > room and not rows:
            row = _row(_narrow(line, (room - _CUT_ROOM) // WIDEST))
        elif weight > room:
            break
        rows.append(row)
        room -= weight
        reached = line.number
    if reached < output.lines:
        rows.append(f"[lines {offset:,}-{reached:,} of {output.lines:,}; offset={reached + 1} reads on]")
    return "\n".join(rows)


def _one(output: Output, number: int, column: int, limits: Limits) -> str:
    line = stretch(output, number, column, limits.bytes - _NOTE_ROOM)
    if column > line.length:
        raise InputError(
            f"column {column:,} is beyond the end of line {number:,} of {output.id}",
            remedy=f"the line has {count_of(line.length, 'character')}",
            ref=output.id,
        )
    line = _narrow(line, characters_within(line.text, limits.bytes - _NOTE_ROOM))
    last = column - 1 + len(line.text)
    more = f"; offset={number + 1} reads on" if number < output.lines else ""
    more = f"; offset={number}, column={last + 1} reads on" if line.left else more
    return f"{number:>6}\t{line.text}\n[columns {column:,}-{last:,} of {line.length:,} of line {number:,}{more}]"


def _row(line: Line) -> str:
    column = line.column + len(line.text)
    cut = f"... [+{line.left:,} characters; column={column} reads on]" if line.left else ""
    return f"{line.number:>6}\t{line.text}{cut}"


def _narrow(line: Line, width: int) -> Line:
    return Line(line.number, line.text[: max(1, width)], line.column, line.length)


def check_offset(output: Output, offset: int) -> None:
    """Refuse a line that the output does not have."""
    if offset > max(1, output.lines):
        raise InputError(
            f"offset {offset:,} is beyond the end of {output.id}",
            remedy=f"it has {count_of(output.lines, 'line')}",
            ref=output.id,
        )


def check_from_one(name: str, value: int) -> None:
    """Refuse a place or a number that does not count from 1."""
    if value < 1:
        raise InputError(f"{name} is {value}", remedy="give 1 or more: lines and columns count from 1")
