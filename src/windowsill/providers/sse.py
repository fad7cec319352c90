"""Server-sent events out of bytes that may be torn anywhere. No input or output."""

from __future__ import annotations

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
        self._between = False
        """Whether nothing of an event has begun: what comes next is its first byte."""
        self._line: list[bytes] = []
        self._line_size = 0
        self._name = b""
        self._data: list[bytes] = []
        self._data_size = 0
        self._id: str | None = None

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that end in this chunk; raise for one above the limit after those before it."""
        if self._between and CR not in chunk and len(chunk) <= self._limit:
            # Servers send each event by itself: one that is alone and spelled the usual way is soon taken apart.
            line, _, rest = chunk.partition(b"\n")
            name = b""
            if line[:7] == b"event: ":
                name = line[7:]
                line, _, rest = rest.partition(b"\n")
            if rest == b"\n" and line[:6] == b"data: ":
                return [Event(str(name, "utf-8", "replace") if name else "", line[6:], self._id)]
        events = self._lines(chunk)
        self._between = not (self._line or self._data or self._name or self._ended_in_cr or self._opening is not None)
        return events

    def _lines(self, chunk: bytes) -> list[Event]:
        if self._opening is not None:
            chunk = self._without_bom(self._opening + chunk)
        if self._ended_in_cr or CR in chunk:
            chunk = self._with_plain_ends(chunk)
        lines = chunk.split(b"\n")
        rest = lines.pop()
        found: list[Event] = []
        if lines:
            if self._line:
                lines[0] = b"".join((*self._line, lines[0]))
                self._line.clear()
                self._line_size = 0
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
        self._take([b"".join(self._line), b"", b""], found)
        self._line.clear()
        self._line_size = 0
        self._between = False
        return found

    def _take(self, lines: list[bytes], found: list[Event]) -> None:
        data = self._data
        for line in lines:
            if line[:6] == b"data: ":
                data.append(line[6:])
                self._data_size += len(line)
            elif not line:
                if data:
                    if self._data_size > self._limit:
                        # What came before it in the same chunk is given first; the next call then says it.
                        if found:
                            return
                        raise too_large(self._limit)
                    whole = data[0] if len(data) == 1 else b"\n".join(data)
                    found.append(Event(str(self._name, "utf-8", "replace"), whole, self._id))
                    data.clear()
                    self._data_size = 0
                self._name = b""
            elif line[:7] == b"event: ":
                self._name = line[7:]
            else:
                self._field(line)

    def _field(self, line: bytes) -> None:
        """Take a line that is not spelled the usual way; a comment has an empty name, unknown names are left out."""
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._data_size += len(line)
        elif name == b"event":
            self._name = value
        elif name == b"id" and b"\0" not in value:
            self._id = str(value, "utf-8", "replace")

    def _without_bom(self, start: bytes) -> bytes:
        if len(start) < len(BOM) and BOM.startswith(start):
            self._opening = start
            return b""
        self._opening = None
        return start.removeprefix(BOM)

    def _with_plain_ends(self, chunk: bytes) -> bytes:
        """Every end of a line as one line feed; a CR at the end of a chunk ends its line without waiting for its LF."""
        if not chunk:
            return chunk
        if self._ended_in_cr and chunk[:1] == b"\n":
            chunk = chunk[1:]
        self._ended_in_cr = chunk[-1:] == b"\r"
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def too_large(limit: int) -> FormatError:
    """Return the error for an event above the limit."""
    return FormatError(
        f"an event of more than {limit} bytes",
        where="stream",
        remedy="check that this is an event stream, or raise the limit",
    )
