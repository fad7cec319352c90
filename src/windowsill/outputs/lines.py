"""The lines of an output, one at a time and never more of a long one than is asked for."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from windowsill.outputs.output import Output, last_piece, part_of


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


def lines(output: Output, first: int, last: int, *, width: int) -> Iterator[Line]:
    """Lines `first` to `last`, each at most `width` characters from its beginning."""
    number = part_of(output, first)
    while number < len(output.parts) and output.parts[number].line <= last:
        part = output.parts[number]
        final = last_piece(output, number)
        if final > number:
            yield stretch(output, part.line, 1, width)
        else:
            held = _split(output.data(number))
            for place in range(max(0, first - part.line), min(len(held), last - part.line + 1)):
                yield _line(part.line + place, held[place], 1, width)
        number = final + 1


def stretch(output: Output, number: int, column: int, width: int) -> Line:
    """One line from a column on, at most `width` characters of it."""
    begin = part_of(output, number)
    part = output.parts[begin]
    final = last_piece(output, begin)
    if final == begin:
        return _line(number, _split(output.data(begin))[number - part.line], column, width)
    text, place = "", part_of(output, number, column)
    start = output.parts[place].column
    while place <= final and start + len(text) < column + width:
        text += _shown(output.data(place).removesuffix(b"\n"))
        place += 1
    length = output.parts[final].column - 1 + len(_shown(_without_end(output.data(final))))
    skipped = column - start
    return Line(number, text[skipped : skipped + width][: max(0, length - column + 1)], column, length)


def _split(data: bytes) -> list[bytes]:
    """The lines of a part without their ends."""
    return data.removesuffix(b"\n").split(b"\n")


def _line(number: int, data: bytes, column: int, width: int) -> Line:
    text = _shown(data.removesuffix(b"\r"))
    return Line(number, text[column - 1 : column - 1 + width], column, len(text))


def _without_end(data: bytes) -> bytes:
    return data.removesuffix(b"\n").removesuffix(b"\r")


def _shown(data: bytes) -> str:
    """Bytes as text; what is not text is shown as replacement characters, one for each NUL."""
    return data.decode(errors="replace").replace("\0", "\ufffd")
