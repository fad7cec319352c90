"""JSON values out of bytes that may be torn anywhere: one after another, or as the items of a list."""

from __future__ import annotations

import re

from windowsill.errors import FormatError

_INSIDE = re.compile(rb'["\\]')
_WORDS = re.compile(rb'(?:[^"{}\[\]]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+', re.DOTALL)
"""Everything up to the next bracket or the text that is torn; it never goes back over what it read."""


class Values:
    """Takes bytes as they come and gives the objects that are whole, as bytes.

    A list around them is left out, as is what stands between them. The bytes of an object are held until it ends, and
    each is looked at once.
    """

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._held: list[bytes] = []
        self._size = 0
        self._depth = 0
        """How many brackets are open, those of an object that has begun."""
        self._in_text = False
        self._escaped = False

    @property
    def begun(self) -> bool:
        """Whether an object has begun that did not end yet."""
        return self._depth > 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The objects that end in this chunk."""
        found: list[bytes] = []
        start = 0
        place = self._skip(chunk, 0) if self._in_text else 0
        while place < len(chunk):
            passed = _WORDS.match(chunk, place)
            place = place if passed is None else passed.end()
            sign = chunk[place : place + 1]
            place += 1
            if sign == b'"':
                self._in_text = True
                place = self._skip(chunk, place)
            elif sign in {b"{", b"["}:
                if self._depth or sign == b"{":
                    start = start if self._depth else place - 1
                    self._depth += 1
            elif sign and self._depth:
                self._depth -= 1
                if not self._depth:
                    found.append(b"".join((*self._held, chunk[start:place])))
                    self._held.clear()
                    self._size = 0
        if self._depth:
            self._held.append(chunk[start:])
            self._size += len(chunk) - start
            if self._size > self._limit and not found:
                raise FormatError(
                    f"an event of more than {self._limit} bytes",
                    where="stream",
                    remedy="check that this is an event stream, or raise the limit",
                )
        return found

    def close(self) -> bytes:
        """What began and did not end."""
        rest = b"".join(self._held)
        self._held.clear()
        self._size = self._depth = 0
        return rest

    def _skip(self, chunk: bytes, place: int) -> int:
        """The place after the text that is open, or the end of the chunk."""
        if self._escaped and chunk:
            self._escaped = False
            place += 1
        while (mark := _INSIDE.search(chunk, place)) is not None:
            place = mark.end()
            if mark.group() == b'"':
                self._in_text = False
                return place
            place += 1
            if place > len(chunk):
                self._escaped = True
        return len(chunk)
