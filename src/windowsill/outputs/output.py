"""A whole tool output, wherever it stands: its parts, and how to find a line among them."""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeAlias

import msgspec

from windowsill.messages import Block
from windowsill.outputs.cutting import PART_BYTES, Cut, Cutter

Data: TypeAlias = bytes

BINARY_HEAD = 8 * 1024
"""Where a NUL tells that an output is not text, as grep and git see it."""


class Part(msgspec.Struct, frozen=True, array_like=True):
    """A stretch of an output: whole lines, or a piece of one very long line."""

    line: int
    """The number of its first line, from 1."""
    column: int
    """The character of that line it begins at, from 1; above 1 it continues the line of the part before."""
    offset: int
    size: int
    check: int
    """CRC-32 of its bytes."""
    returns: bool
    """Whether it holds a carriage return, so that a search need not ask."""


def part_from(cut: Cut) -> Part:
    """What is known of a part once it is cut."""
    return Part(cut.line, cut.column, cut.offset, len(cut.data), zlib.crc32(cut.data), b"\r" in cut.data)


class Output(Protocol):
    """One tool output, whole. Parts are read one at a time, so that none has to fit in memory with the others."""

    @property
    def id(self) -> str:
        """Its ref."""

    @property
    def bytes(self) -> int:
        """Its size."""

    @property
    def lines(self) -> int:
        """Its lines; a last one without a line end counts."""

    @property
    def blocks(self) -> tuple[Block, ...]:
        """What it consists of when it came inside a message, images and documents whole."""

    @property
    def parts(self) -> Sequence[Part]:
        """Its parts, in order."""

    def data(self, number: int) -> Data:
        """The bytes of a part; `DamagedError` when they are not what was written."""


class Held:
    """An output that is in memory anyway, as the message it came in was read."""

    def __init__(
        self, id: str, pieces: Iterable[bytes], blocks: tuple[Block, ...] = (), *, part_bytes: int = PART_BYTES
    ) -> None:
        cutter = Cutter(part_bytes)
        cuts = [cut for piece in pieces for cut in cutter.take(piece)]
        cuts += cutter.rest()
        self.id = id
        self.bytes = cutter.size
        self.lines = cutter.lines
        self.blocks = blocks
        self.parts = tuple(part_from(cut) for cut in cuts)
        self._data = [cut.data for cut in cuts]

    def data(self, number: int) -> bytes:
        """The bytes of a part."""
        return self._data[number]


def chunks(output: Output, from_line: int = 1) -> Iterator[tuple[int, bytes]]:
    """The output from the part that holds a line, as `(number of the first line, bytes)`."""
    for number in range(part_of(output, from_line), len(output.parts)):
        yield output.parts[number].line, output.data(number)


def part_of(output: Output, line: int, column: int = 1) -> int:
    """The number of the part that holds a character of a line; one past the end reads as the last."""
    parts = output.parts
    place = bisect_left(parts, (line, column + 1), key=lambda part: (part.line, part.column))
    return max(0, place - 1)


def last_piece(output: Output, number: int) -> int:
    """The last part of the very long line that a part begins; the part itself when it holds whole lines."""
    parts = output.parts
    line = parts[number].line
    return max(number, bisect_left(parts, line + 1, key=lambda part: part.line) - 1)


def is_binary(output: Output) -> bool:
    """Whether the output does not look like text."""
    return bool(output.parts) and b"\0" in output.data(0)[:BINARY_HEAD]
