"""Cut a stream of bytes into parts at its line ends, so that reading at a line needs no counting from the start."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

PART_BYTES = 2 * 1024 * 1024
"""How large a part may be: finding and opening it in the store weighs little against reading it, which takes 1 ms; it
still fits a core's own cache while it is checked and searched."""

_SLICE = 256 * 1024
"""How much text is encoded at once."""

_CONTINUES = range(0x80, 0xC0)
"""The bytes of a UTF-8 sequence after its first."""

_LONGEST_TAIL = 3
_RETURN = ord("\r")


class Cut(msgspec.Struct, frozen=True):
    """One part: whole lines, or a piece of one line that is longer than a part may be."""

    line: int
    """The number of its first line, from 1."""
    column: int
    """The character of that line it begins at, from 1; above 1 it continues the line of the part before."""
    offset: int
    data: bytes


class Cutter:
    """Takes bytes as they come and gives parts; the parts depend on the content alone, not on how it arrived."""

    def __init__(self, size: int = PART_BYTES) -> None:
        self._size = size
        self._held = bytearray()
        self._inside = False
        self._line, self._column, self._offset = 1, 1, 0
        self._ended = True

    @property
    def lines(self) -> int:
        """The lines cut off so far; a last one without a line end counts."""
        return self._line - (1 if self._ended else 0)

    @property
    def size(self) -> int:
        """The bytes cut off so far."""
        return self._offset

    def take(self, piece: bytes) -> Iterator[Cut]:
        """The parts that are complete with this piece."""
        view = memoryview(piece)
        for start in range(0, len(view), self._size):
            self._held += view[start : start + self._size]
            # More than a part, so that the byte after a cut is always known.
            while len(self._held) > self._size:
                yield self._cut(self._end())

    def rest(self) -> Iterator[Cut]:
        """What is left at the end of the stream."""
        while self._held:
            # An unfinished giant line ends here or at its line end; whole lines after it are a part of their own.
            end = self._held.find(b"\n") + 1 if self._inside else 0
            yield self._cut(end or len(self._held))

    def _end(self) -> int:
        """Where the next part ends, once there are enough bytes for one."""
        find = self._held.find if self._inside else self._held.rfind
        return find(b"\n", 0, self._size) + 1 or self._inner_end()

    def _inner_end(self) -> int:
        """Where to cut inside a line: not within a character, nor within its line end."""
        end = self._size
        for back in range(_LONGEST_TAIL + 1):
            if self._held[end - back] not in _CONTINUES:
                end -= back
                break
        return end - 1 if self._held[end - 1] == _RETURN else end

    def _cut(self, end: int) -> Cut:
        data = bytes(self._held[:end])
        del self._held[:end]
        made = Cut(self._line, self._column, self._offset, data)
        self._offset += end
        self._line += data.count(b"\n")
        self._ended = data.endswith(b"\n")
        self._inside = not self._ended
        self._column = 1 if self._ended else self._column + len(data.decode(errors="replace"))
        return made


def encoded(text: str) -> Iterator[bytes]:
    """Text as bytes, some at a time; half a surrogate pair, which UTF-8 cannot hold, is replaced."""
    for start in range(0, len(text), _SLICE):
        piece = text[start : start + _SLICE]
        try:
            yield piece.encode()
        except UnicodeEncodeError:
            yield piece.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
