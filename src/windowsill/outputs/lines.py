"""The lines of an output, one at a time and never more of a long one than is asked for."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from windowsill.outputs.output import Output, last_piece, part_of

_BLOCK = 16 * 1024
"""How much is counted at once on the way to a line, rather than looked for line by line."""


class Line(msgspec.Struct, frozen=True):
    """A line, or the stretch of it that was asked for."""

    number: int
    text: str
    column: int
    """The character its text begins at, from 1."""
    length: int
    """The characters of the whole line."""

    @property
    def left(self) -> int:
        """How many characters follow after its text."""
        return max(0, self.length - (self.column - 1) - len(self.text))


class Cursor:
    """Finds lines of an output; forwards inside a part it goes on from where it is."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._number = -1
        self._data = b""
        self._passed = self._place = 0

    def rows(self, number: int, skip: int, count: int) -> list[bytes]:
        """`count` lines of a part after the first `skip`, as far as it has them, without their line feeds."""
        if number != self._number:
            self._data, self._number = self._output.data(number), number
            self._passed = self._place = 0
        if skip < self._passed:
            self._passed = self._place = 0
        self._place = skip_lines(self._data, self._place, skip - self._passed)
        self._passed = skip
        found = self._data[self._place : skip_lines(self._data, self._place, count)]
        return found.removesuffix(b"\n").split(b"\n") if found else []


def lines(output: Output, first: int, last: int, *, width: int, cursor: Cursor | None = None) -> Iterator[Line]:
    """Lines `first` to `last`, each at most `width` characters from its beginning."""
    cursor = cursor or Cursor(output)
    number = part_of(output, first)
    while number < len(output.parts) and output.parts[number].line <= last:
        part = output.parts[number]
        final = last_piece(output, number)
        if final > number:
            yield stretch(output, part.line, 1, width)
        else:
            skip = max(0, first - part.line)
            for place, row in enumerate(cursor.rows(number, skip, last - part.line - skip + 1), part.line + skip):
                yield line_from(place, row, 1, width)
        number = final + 1


def stretch(output: Output, number: int, column: int, width: int) -> Line:
    """One line from a column on, at most `width` characters of it."""
    begin = part_of(output, number)
    part = output.parts[begin]
    final = last_piece(output, begin)
    if final == begin:
        return line_from(number, Cursor(output).rows(begin, number - part.line, 1)[0], column, width)
    text, place = "", part_of(output, number, column)
    start = output.parts[place].column
    while place <= final and start + len(text) < column + width:
        text += _shown(output.data(place).removesuffix(b"\n"))
        place += 1
    length = output.parts[final].column - 1 + len(_shown(_without_end(output.data(final))))
    skipped = column - start
    return Line(number, text[skipped : skipped + width][: max(0, length - column + 1)], column, length)


def skip_lines(data: bytes, place: int, count: int) -> int:
    """Return where the text after so many line feeds begins; its end when there are fewer."""
    while count and place < len(data):
        found = data.count(b"\n", place, place + _BLOCK)
        if found >= count:
            for _ in range(count):
                place = data.find(b"\n", place) + 1
            return place
        count -= found
        place += _BLOCK
    return min(place, len(data))


def line_from(number: int, data: bytes, column: int, width: int) -> Line:
    """A line from a column on, given its bytes."""
    text = _shown(data.removesuffix(b"\r"))
    return Line(number, text[column - 1 : column - 1 + width], column, len(text))


def _without_end(data: bytes) -> bytes:
    return data.removesuffix(b"\n").removesuffix(b"\r")


def _shown(data: bytes) -> str:
    """Bytes as text; what is not text is shown as replacement characters, one for each NUL."""
    return data.decode(errors="replace").replace("\0", "\ufffd")
