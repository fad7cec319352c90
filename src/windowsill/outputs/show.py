"""Show an output in the context: its beginning with long lines cut, or its head and tail.

A view is never longer than what it shows, and a view of a view is the view itself.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from windowsill.errors import InputError, SettingError
from windowsill.journal.reader import with_refs
from windowsill.messages import READ_TOOL, Block, Document, Image, Message, OutputRef, Text, ToolResult
from windowsill.outputs.parts import Line, Output, lines, ref_at

TRIMMED = "[tool output trimmed"
"""The beginning of a line in the place of an output."""


def trimmed_note(ref: str | None = None, *facts: str) -> str:
    """Return the line for an output that is no longer shown; it has a ref only where its tool is offered."""
    return "; ".join(filter(None, (TRIMMED, f"ref={ref}" if ref else "", *facts))) + "]"


def cut_line(left: int) -> str:
    """Return the end of a line that was cut."""
    return f"... [+{left:,} characters]"


def rest_note(ref: str | None, line: int, last: int) -> str:
    """Return the last line of a view that ends before its output does."""
    what = f"lines {line:,}-{last:,} are not shown" if line < last else f"line {line:,} is not shown"
    return note_for(what, ref, f"offset={line}", "reads on")


def cut_note(ref: str | None, lines: int, line: int, column: int) -> str:
    """Return the last line of a view that shows every line, some of them cut."""
    what = f"{lines:,} lines are cut" if lines > 1 else "1 line is cut"
    return note_for(what, ref, f"offset={line}, column={column}", "reads on")


def omitted_note(ref: str | None, first: int, last: int, more: str = "") -> str:
    """Return the note between the head and the tail of a reduced output."""
    return note_for(f"reduced: {last - first + 1:,} lines omitted{more}", ref, f"offset={first}", "reads them")


def note_for(what: str, ref: str | None, place: str, verb: str) -> str:
    """Return a note that says what is not shown, and with a ref how it is read."""
    return f'[{what}; {READ_TOOL}(ref_id="{ref}", {place}) {verb}]' if ref else f"[{what}]"


def without_ref(text: str, ref: str) -> str:
    """Return a text whose notes no longer say how to read the output on, and whose pointers name no output."""
    name = re.escape(ref)
    shorter = re.sub(rf'; (?:ref={name}(?=[;\]])|{READ_TOOL}\(ref_id="{name}"[^()\n]*\) reads (?:on|them))', "", text)
    return _POINTER.sub(r"\1 were shown before]", shorter)


_POINTER = re.compile(r"^(\[lines \d+-\d+) as in o[\d.]+ lines \d+-\d+\]$", re.MULTILINE)
"""The pointer that `repeated_lines` puts in the place of lines that were shown before."""


def result_text(result: ToolResult) -> str:
    """Return the texts of a result joined by line ends; images and documents are listed in their place."""
    return "\n".join(line for block in result.content if (line := _text(block)) is not None)


def _text(block: Block) -> str | None:
    match block:
        case Text():
            return block.text
        case Image():
            return _label("image", block.media_type, _data_size(block.data), block.url)
        case Document():
            label = _label("document", block.title, block.media_type, _data_size(block.data), block.url)
            # A document of plain text is text like any other: it is read and searched with the rest.
            return label if block.text is None else f"{label}\n{block.text}"
        case _:
            return block.raw.decode(errors="replace") if block.raw else None


def _label(kind: str, *facts: str | None) -> str:
    known = ", ".join(fact for fact in facts if fact)
    return f"[{kind} {known}]" if known else f"[{kind}]"


def _data_size(data: str | None) -> str | None:
    """Return the size of base64 text once decoded."""
    return None if data is None else f"{len(data) * 3 // 4 - data[-2:].count('='):,} bytes"


LEAST_LINE = 200
"""Characters below which a cut line would be little more than a note; the notes themselves are shorter."""

LEAST_BYTES = 1_024
"""Bytes below which an answer would be little more than the note how to read on."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The longest line in characters, and the most bytes of one view or answer."""

    line: int = 2_000
    bytes: int = 50 * 1024

    def __post_init__(self) -> None:
        """Refuse limits that leave no room for content."""
        for name, least in (("line", LEAST_LINE), ("bytes", LEAST_BYTES)):
            value = getattr(self, name)
            if value < least:
                raise SettingError(name, value, f"{least} or more")


_MOST_JOINED = 32
"""Code points of a composed character that are looked back over."""

_JOINERS = frozenset("\u200d\ufe0e\ufe0f")
_LOW_SURROGATES = range(0xDC00, 0xE000)
LEAST_OMITTED = 2
"""One omitted line would be replaced by one note: nothing is gained, and the view of a view would lose a line."""


class Preview(msgspec.Struct, frozen=True):
    """A view: its text, how many lines of the output it shows, and how many of these are cut."""

    text: str
    lines: int
    cut: int = 0


def preview(text: str, limits: Limits, *, ref: str | None = None) -> Preview | None:
    """Return the beginning of an output, long lines cut, or `None` when it can be shown as it is."""
    size = byte_size(text)
    if size <= limits.bytes and all(len(row.text) <= limits.line for row in rows_of(text)):
        return None
    for notes in (True, False):
        view = preview_rows(rows_of(text), count_lines(text), limits, ref=ref, notes=notes)
        # A note that makes up for what was cut is left out; each cut line still says so itself.
        if byte_size(view.text) < size:
            return view
    return None


def head_and_tail(text: str, head: int = 50, tail: int = 50, *, ref: str | None = None) -> Preview | None:
    """Return the first and last lines of an output with a note between them, or `None` when that saves nothing."""
    if head < 0 or tail < 0:
        raise InputError(f"head is {head} and tail is {tail}", remedy="give 0 or more lines")
    rows = [row.text + row.end for row in rows_of(text)]
    left = len(rows) - head - tail
    if left < LEAST_OMITTED:
        return None
    first, last = rows[:head], rows[len(rows) - tail :]
    end = "\r\n" if first and first[-1].endswith("\r\n") else "\n"
    note = omitted_note(ref, head + 1, head + left) + (end if last else "")
    reduced = "".join((*first, note, *last))
    return Preview(reduced, head + tail) if byte_size(reduced) < byte_size(text) else None


def preview_rows(rows: Iterable[Line], total: int, limits: Limits, *, ref: str | None, notes: bool = True) -> Preview:
    """Return as many lines as the limits allow, each cut to its length, and a last line that says how to read on."""
    # The longest note there could be: the view has to fit whichever it ends with.
    room = limits.bytes - max(len(rest_note(ref, total, total + 1)), len(cut_note(ref, total, total, limits.line))) - 2
    pieces: list[str] = []
    cuts: list[tuple[int, int]] = []
    for number, row in enumerate(rows, 1):
        keep = _keep(row, limits.line)
        if byte_size(_cut(row, keep)) > room and not pieces:
            keep = _keep(row, characters_within(row.text, room - len(row.end)))
        piece = _cut(row, keep) + row.end
        if byte_size(piece) > room:
            break
        if keep < row.length:
            cuts.append((number, keep + 1))
        pieces.append(piece)
        room -= byte_size(piece)
    note = ""
    if len(pieces) < total:
        note = rest_note(ref, len(pieces) + 1, total)
    elif cuts and notes:
        note = cut_note(ref, len(cuts), *cuts[0])
    joint = "\n" if note and pieces and not pieces[-1].endswith("\n") else ""
    return Preview("".join((*pieces, joint, note)), len(pieces), len(cuts))


def rows_of(text: str) -> Iterator[Line]:
    """Yield the lines of a text; only a line feed, with or without a carriage return before it, ends one."""
    start = number = 0
    while start < len(text):
        stop = text.find("\n", start)
        stop, after = (len(text), len(text)) if stop < 0 else (stop, stop + 1)
        inner = stop - 1 if after > stop > start and text[stop - 1] == "\r" else stop
        number += 1
        yield Line(number, text[start:inner], 1, inner - start, text[inner:after])
        start = after


def count_lines(text: str) -> int:
    """Return how many lines a text has; a last one without a line end counts."""
    return text.count("\n") + (not text.endswith("\n") if text else 0)


def byte_size(text: str) -> int:
    """Return the bytes of a text."""
    return len(text.encode(errors="surrogatepass"))


def characters_within(text: str, room: int) -> int:
    """Return how many characters of a text fit into so many bytes."""
    return len(text.encode(errors="surrogatepass")[: max(0, room)].decode(errors="ignore"))


def _keep(row: Line, width: int) -> int:
    """Return the characters of a line that fit a width with the note of the cut; a composed character stays whole."""
    if row.length <= width:
        return row.length
    keep = max(0, width - len(cut_line(row.length)))
    least = max(0, keep - _MOST_JOINED)
    while least < keep < len(row.text) and (
        unicodedata.combining(row.text[keep]) or row.text[keep] in _JOINERS or ord(row.text[keep]) in _LOW_SURROGATES
    ):
        keep -= 1
    return keep


def cut_row(row: Line, width: int) -> str:
    """Return a line cut to a width, without its end."""
    return _cut(row, _keep(row, width))


def _cut(row: Line, keep: int) -> str:
    return row.text if keep == row.length else row.text[:keep] + cut_line(row.length - keep)


def preview_output(output: Output, limits: Limits, ref: str | None) -> str:
    """Return the beginning of an output within the limits, of which only that is read; all of it when it fits."""
    rows = list(_within(lines(output, 1, output.lines, width=limits.line), limits.bytes))
    whole = len(rows) == output.lines and all(row.length <= limits.line for row in rows)
    if whole and sum(byte_size(row.text) + 1 for row in rows) <= limits.bytes:
        return "\n".join(row.text for row in rows)
    return preview_rows(rows, output.lines, limits, ref=ref).text


def _within(rows: Iterable[Line], room: int) -> Iterator[Line]:
    """Yield rows until they fill the room; one more, so that a reader sees there is more."""
    for row in rows:
        yield row
        room -= byte_size(row.text) + 1
        if room < 0:
            return


def refer_to_outputs(messages: Sequence[Message], outputs: Mapping[str, OutputRef]) -> list[Message]:
    """Make results refer to these kept outputs, by call id; `InputError` when a call has no result here."""
    answered = {result.tool_use_id for message in messages for result in message.results}
    for call in outputs.keys() - answered:
        raise InputError(
            f"there is no result of call {call!r} in this message", remedy="give outputs by the ids of its results"
        )
    return [
        msgspec.structs.replace(
            message,
            blocks=with_refs(message.blocks, [outputs.get(result.tool_use_id) for result in message.results]),
        )
        for message in messages
    ]


def place_outputs(message: Message, seq: int) -> Message:
    """Make the results of a message say where they are read: the ref, the bytes and the lines of each output."""
    results = message.results
    if not results:
        return message
    refs = []
    for number, result in enumerate(results, 1):
        text = result_text(result)
        here = OutputRef(
            id=ref_at(seq, number, of=len(results)),
            bytes=len(text.encode(errors="replace")),
            lines=count_lines(text),
        )
        refs.append(result.ref or here)
    return msgspec.structs.replace(message, blocks=with_refs(message.blocks, refs))
