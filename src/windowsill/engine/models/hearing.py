"""Follows a streamed answer: bytes in, what a listener hears out, and in the end the body."""

from __future__ import annotations

from collections.abc import Callable

from windowsill.engine.models.faults import failed
from windowsill.engine.models.reading import deltas, heard, read, reported, says_anything
from windowsill.engine.models.seam import Delta, ModelError
from windowsill.errors import FormatError
from windowsill.formats import streaming
from windowsill.formats.streaming import Event, Failed
from windowsill.formats.streaming.events import MALFORMED


class Hearing:
    """One answer as it comes. An error that the provider reports on the way is raised as a `ModelError`."""

    def __init__(self, format: str, listen: Callable[[Delta], None], scrubbed: Callable[[str], str]) -> None:
        self._format = format
        self._listen = listen
        self._scrubbed = scrubbed
        self._stream = streaming.stream(format)
        self._opening: bytes | None = b""
        self._pieces: list[bytes] | None = None

    @property
    def whole(self) -> bytes | None:
        """The answer, where it is no stream but came in one piece."""
        return None if self._pieces is None else b"".join(self._pieces)

    @property
    def partial(self) -> bool:
        """Whether the end has not come."""
        return self._stream.partial

    def take(self, piece: bytes) -> None:
        """More bytes, torn anywhere."""
        if self._opening is not None:
            piece = self._opening + piece
            self._opening = None if piece.strip() else piece
            if self._format != "gemini" and piece.lstrip()[:1] == b"{":
                # No event begins so; Gemini's streams may.
                self._pieces = []
        if self._pieces is not None:
            self._pieces.append(piece)
        elif self._opening is None:
            self._feed(lambda: self._stream.feed(piece))

    def close(self) -> None:
        """Nothing more comes."""
        if self._pieces is None:
            self._feed(self._stream.close)

    def tell(self, body: bytes) -> None:
        """Let the listener hear an answer that came in one piece; `ModelError` when it is none."""
        for delta in deltas(read(body, self._format, self._scrubbed)):
            self._listen(delta)

    def body(self) -> bytes:
        """The answer as far as it came; `ModelError` when it cannot be read."""
        body = self._stream.body()
        read(body, self._format, self._scrubbed)
        return body

    @property
    def says_anything(self) -> bool:
        """Whether words or calls came; part of an answer in one piece is not to be read."""
        try:
            return self._pieces is None and says_anything(read(self._stream.body(), self._format, self._scrubbed))
        except ModelError:
            return False

    def _feed(self, events: Callable[[], list[Event]]) -> None:
        try:
            arrived = events()
        except FormatError as error:
            raise ModelError("malformed", self._scrubbed(error.what), remedy="check the address") from None
        for event in arrived:
            if isinstance(event, Failed) and event.kind != MALFORMED:
                raise reported(event.data, self._scrubbed) or failed(event.what, event.kind, self._scrubbed)
            if (delta := heard(event)) is not None:
                self._listen(delta)
