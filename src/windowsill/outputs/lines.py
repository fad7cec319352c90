"""The lines of an output, one at a time and never more of a long one than is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeAlias

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


Split: TypeAlias = Callable[[int], list[bytes]]
"""The lines of a part, without their ends."""


def splitting(output: Output) -> Split:
    """Splits parts into lines; the last one stays at hand, for who asks for lines here and there but in order."""
    return lru_cache(maxsize=1)(lambda number: output.data(number).removesuffix(b"\n").split(b"\n"))


def lines(output: Output, first: int, last: int, *, width: int, split: Split | None = None) -> Iterator[Line]:
    """Lines `first` to `last`, each at most `width` characters from its beginning."""
    split = split or splitting(output)
    number = part_of(output, first)
    while number < len(output.parts) and output.parts[number].line <= last:
        part = output.parts[number]
        final = last_piece(output, number)
        if final > number:
            yield stretch(output, part.line, 1, width)
        else:
            held = split(number)
            for place in range(max(0, first - part.line), min(len(held), last - part.line + 1)):
                yield line_from(part.line + place, held[place], 1, width)
        number = final + 1


def stretch(output: Output, number: int, column: int, width: int) -> Line:
    """One line from a column on, at most `width` characters of it."""
    begin = part_of(output, number)
    part = output.parts[begin]
    final = last_piece(output, begin)
    if final == begin:
        return line_from(number, splitting(output)(begin)[number - part.line], column, width)
    text, place = "", part_of(output, number, column)
    start = output.parts[place].column
    while place <= final and start + len(text) < column + width:
        text += _shown(output.data(place).removesuffix(b"\n"))
        place += 1
    length = output.parts[final].column - 1 + len(_shown(_without_end(output.data(final))))
    skipped = column - start
    return Line(number, text[skipped : skipped + width][: max(0, length - column + 1)], column, length)


def line_from(number: int, data: bytes, column: int, width: int) -> Line:
    """A line from a column on, given its bytes."""
    text = _shown(data.removesuffix(b"\r"))
    return Line(number, text[column - 1 : column - 1 + width], column, len(text))


def _without_end(data: bytes) -> bytes:
    return data.removesuffix(b"\n").removesuffix(b"\r")


def _shown(data: bytes) -> str:
    """Bytes as text; what is not text is shown as replacement characters, one for each NUL."""
    return data.decode(errors="replace").replace("\0", "\ufffd")
