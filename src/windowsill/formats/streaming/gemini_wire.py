"""The two ways `streamGenerateContent` writes its answer: events when asked with `alt=sse`, else one JSON list."""

from __future__ import annotations

from windowsill.formats.streaming import sse
from windowsill.formats.streaming.json_values import Values
from windowsill.formats.wire import BOM

_JSON = frozenset({b"{", b"["})


class Parser:
    """Takes bytes as they come, in either way, and gives the events that are whole; the first character tells which."""

    def __init__(self, *, limit: int = sse.MAX_EVENT_BYTES) -> None:
        self._limit = limit
        self._opening = b""
        self._values: Values | None = None
        self._events: _Events | None = None

    def feed(self, chunk: bytes) -> list[sse.Event]:
        """The events that end in this chunk."""
        if self._events is not None:
            return self._events.feed(chunk)
        if self._values is not None:
            return _as_events(self._values.feed(chunk))
        self._opening += chunk
        start = self._opening.removeprefix(BOM).lstrip()
        if not start or BOM.startswith(self._opening):
            return []
        if start[:1] in _JSON:
            self._values = Values(limit=self._limit)
        else:
            self._events = _Events(limit=self._limit)
        return self.feed(self._opening)

    def close(self) -> list[sse.Event]:
        """What lacks nothing but its end, or was torn: the stream tells them apart."""
        if self._events is not None:
            return self._events.close()
        rest = b"" if self._values is None else self._values.close()
        return _as_events([rest] if rest else [])


class _Events(sse.Parser):
    """Server-sent events, between which an error may stand as plain JSON over several lines."""

    def __init__(self, *, limit: int) -> None:
        super().__init__(limit=limit)
        self._values = Values(limit=limit)
        self._bare: list[bytes] = []

    def feed(self, chunk: bytes) -> list[sse.Event]:
        """The events that end in this chunk, and the error."""
        found = super().feed(chunk)
        if self._bare:
            found += _as_events(self._bare)
            self._bare = []
        return found

    def close(self) -> list[sse.Event]:
        """What lacks nothing but its end."""
        found = super().close() + _as_events(self._bare)
        self._bare = []
        return found

    def _field(self, line: bytes) -> None:
        if line.lstrip()[:1] in _JSON or self._values.begun:
            self._bare += self._values.feed(line + b"\n")
        else:
            super()._field(line)


def _as_events(values: list[bytes]) -> list[sse.Event]:
    return [sse.Event("", value) for value in values]
