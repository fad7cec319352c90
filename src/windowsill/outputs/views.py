"""What of an output is shown in the context: cut lines, a beginning, or head and tail. Pure text in, pure text out.

A view is never longer than what it shows, and a view of a view is the view itself.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator

import msgspec

from windowsill.errors import InputError
from windowsill.outputs.limits import Limits
from windowsill.outputs.wording import cut_line, omitted, read_cut, read_on

_MOST_JOINED = 32
"""How far to look back for the beginning of a character that is made of several."""

_JOINERS = frozenset("\u200d\ufe0e\ufe0f")
_LOW_SURROGATES = range(0xDC00, 0xE000)
_LEAST_OMITTED = 2
"""One omitted line would be replaced by one note: nothing is gained, and the view of a view would lose a line."""


class Shown(msgspec.Struct, frozen=True):
    """A view: its text, how many lines of the output it shows, and how many of these are cut."""

    text: str
    lines: int
    cut: int = 0


class Row(msgspec.Struct, frozen=True):
    """A line on its way into a view: as much of it as may be shown, its whole length, and how it ends."""

    text: str
    length: int
    end: str = "\n"


def shown(text: str, limits: Limits, *, ref: str | None = None) -> Shown | None:
    """The beginning of an output, long lines cut, or `None` when it can be shown as it is."""
    size = weight(text)
    if size <= limits.bytes and all(len(row.text) <= limits.line for row in rows_of(text)):
        return None
    for notes in (True, False):
        view = beginning(rows_of(text), count_lines(text), limits, ref=ref, notes=notes)
        # A note that makes up for what was cut is left out; each cut line still says so itself.
        if weight(view.text) < size:
            return view
    return None


def middle(text: str, head: int = 50, tail: int = 50, *, ref: str | None = None) -> Shown | None:
    """The first and last lines of an output with a note between them, or `None` when that saves nothing."""
    check_head_and_tail(head, tail)
    rows = [row.text + row.end for row in rows_of(text)]
    left = len(rows) - head - tail
    if left < _LEAST_OMITTED:
        return None
    first, last = rows[:head], rows[len(rows) - tail :]
    end = "\r\n" if first and first[-1].endswith("\r\n") else "\n"
    note = omitted(ref, head + 1, head + left) + (end if last else "")
    reduced = "".join((*first, note, *last))
    return Shown(reduced, head + tail) if weight(reduced) < weight(text) else None


def beginning(rows: Iterable[Row], total: int, limits: Limits, *, ref: str | None, notes: bool = True) -> Shown:
    """As many lines as the limits allow, each cut to its length, and a last line that says how to read on."""
    # The longest note there could be: the view has to fit whichever it ends with.
    room = limits.bytes - max(len(read_on(ref, total, total + 1)), len(read_cut(ref, total, total, limits.line))) - 2
    pieces: list[str] = []
    cuts: list[tuple[int, int]] = []
    for number, row in enumerate(rows, 1):
        keep = _kept(row, limits.line)
        if weight(_cut(row, keep)) > room and not pieces:
            keep = _kept(row, fitting(row.text, room - len(row.end)))
        piece = _cut(row, keep) + row.end
        if weight(piece) > room:
            break
        if keep < row.length:
            cuts.append((number, keep + 1))
        pieces.append(piece)
        room -= weight(pieces[-1])
    note = ""
    if len(pieces) < total:
        note = read_on(ref, len(pieces) + 1, total)
    elif cuts and notes:
        note = read_cut(ref, len(cuts), *cuts[0])
    joint = "\n" if note and pieces and not pieces[-1].endswith("\n") else ""
    return Shown("".join((*pieces, joint, note)), len(pieces), len(cuts))


def rows_of(text: str) -> Iterator[Row]:
    """The lines of a text; only a line feed, with or without a carriage return before it, ends one."""
    start = 0
    while start < len(text):
        stop = text.find("\n", start)
        stop, after = (len(text), len(text)) if stop < 0 else (stop, stop + 1)
        inner = stop - 1 if after > stop > start and text[stop - 1] == "\r" else stop
        yield Row(text[start:inner], inner - start, text[inner:after])
        start = after


def count_lines(text: str) -> int:
    """How many lines a text has; a last one without a line end counts."""
    return text.count("\n") + (not text.endswith("\n") if text else 0)


def weight(text: str) -> int:
    """The bytes of a text."""
    return len(text.encode(errors="surrogatepass"))


def fitting(text: str, room: int) -> int:
    """How many characters of a text fit into so many bytes."""
    return len(text.encode(errors="surrogatepass")[: max(0, room)].decode(errors="ignore"))


def check_head_and_tail(head: int, tail: int) -> None:
    """Refuse a negative number of lines."""
    if head < 0 or tail < 0:
        raise InputError(f"head is {head} and tail is {tail}", remedy="give 0 or more lines")


def _kept(row: Row, width: int) -> int:
    """How much of a line fits a width together with the note that it was cut; no cut inside a composed character."""
    if row.length <= width:
        return row.length
    keep = max(0, width - len(cut_line(row.length)))
    least = max(0, keep - _MOST_JOINED)
    while least < keep < len(row.text) and _joins(row.text[keep]):
        keep -= 1
    return keep


def _cut(row: Row, keep: int) -> str:
    return row.text if keep == row.length else row.text[:keep] + cut_line(row.length - keep)


def _joins(character: str) -> bool:
    """Whether a character belongs to the one before it."""
    return unicodedata.combining(character) != 0 or character in _JOINERS or ord(character) in _LOW_SURROGATES
