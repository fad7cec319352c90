"""Server-sent events out of bytes that may be torn anywhere. No input or output."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from windowsill.errors import FormatError
from windowsill.providers.wire import BOM

MAX_EVENT_BYTES = 32 * 1024 * 1024
"""The largest request a provider takes; no answer is larger, so what grows past it is no event stream."""

CR = 13
"""The carriage return as a number, which is found much faster than as bytes."""


class Event(msgspec.Struct, frozen=True, gc=False):
    """One event. `data` stays bytes: it is JSON, and decoded only once."""

    event: str
    data: bytes
    id: str | None = None


class Parser:
    """Takes bytes as they come and gives the events that are whole.

    The bytes of a line are held until it ends, so that no character is ever cut; each is looked at once.
    """

    def __init__(self, *, limit: int = MAX_EVENT_BYTES) -> None:
        self._limit = limit
        self._opening: bytes | None = b""
        self._ended_in_cr = False
        self._line: list[bytes] = []
        self._line_size = 0
        self._name = b""
        self._plain = True
        """A line is what it begins with: none stands inside anything else."""
        self._data: list[bytes] = []
        self._data_size = 0
        self._id: str | None = None

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that end in this chunk; raise for one above the limit after those before it."""
        if self._opening is not None:
            chunk = self._without_bom(self._opening + chunk)
        if chunk and (self._ended_in_cr or CR in chunk):
            # A CR at the end of a chunk ends its line without waiting for its LF.
            chunk = chunk.removeprefix(b"\n") if self._ended_in_cr else chunk
            self._ended_in_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = chunk.split(b"\n")
        rest = lines.pop()
        found: list[Event] = []
        if lines:
            if self._line:
                lines[0] = self._take_line() + lines[0]
            self._take(lines, found)
        if rest:
            self._line.append(rest)
            self._line_size += len(rest)
        if self._data_size + self._line_size > self._limit and not found:
            raise too_large(self._limit)
        return found

    def close(self) -> list[Event]:
        """Return the event that lacks nothing but its blank line: some servers hang up without it."""
        found: list[Event] = []
        self._take([self._take_line(), b"", b""], found)
        return found

    def _take_line(self) -> bytes:
        line = b"".join(self._line)
        self._line.clear()
        self._line_size = 0
        return line

    def _take(self, lines: list[bytes], found: list[Event]) -> None:
        data = self._data
        for line in lines:
            if not line:
                if data:
                    if self._data_size > self._limit:
                        # What came before it in the same chunk is given first; the next call then says it.
                        if found:
                            return
                        raise too_large(self._limit)
                    found.append(Event(_name(self._name), b"\n".join(data), self._id))
                    data.clear()
                    self._data_size = 0
                self._name = b""
            elif self._plain and line.startswith(b"data: "):
                data.append(line[6:])
                self._data_size += len(line)
            elif self._plain and line.startswith(b"event: "):
                self._name = line[7:]
            else:
                self._field(line)

    def _field(self, line: bytes) -> None:
        """Take a field; a comment has an empty name, unknown names are left out."""
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"event":
            self._name = value
        elif name == b"data":
            self._data.append(value)
            self._data_size += len(line)
        elif name == b"id" and b"\0" not in value:
            self._id = str(value, "utf-8", "replace")

    def _without_bom(self, start: bytes) -> bytes:
        if len(start) < len(BOM) and BOM.startswith(start):
            self._opening = start
            return b""
        self._opening = None
        return start.removeprefix(BOM)


@lru_cache(maxsize=64)
def _name(value: bytes) -> str:
    """Return the name of an event, of which a stream has few."""
    return str(value, "utf-8", "replace")


def too_large(limit: int) -> FormatError:
    """Return the error for an event above the limit."""
    return FormatError(
        f"an event of more than {limit} bytes",
        where="stream",
        remedy="check that this is an event stream, or raise the limit",
    )
