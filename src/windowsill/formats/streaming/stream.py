"""A provider's answer while it arrives: bytes in, events out, and at any time the message so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from windowsill.errors import FormatError
from windowsill.formats.streaming import sse
from windowsill.formats.streaming.events import MALFORMED, Event, Failed
from windowsill.formats.wire import any_decoder
from windowsill.messages import Reply

DONE = b"[DONE]"
"""What OpenAI, and who speaks like it, sends as the last event; it is no JSON."""

PARTIAL = "partial"
"""The key in the metadata of a message that did not arrive whole."""


class Assembly(Protocol):
    """Puts an answer of one format together out of its events. It never raises for what a server sends."""

    finished: bool
    failure: Failed | None

    def take(self, arrived: list[sse.Event]) -> list[Event]:
        """Take more events; what they mean to a listener."""

    def body(self) -> bytes:
        """The response as the call without streaming would have given it, as far as it arrived."""


class Parser(Protocol):
    """Takes the bytes apart. It gives each event once, when it is whole."""

    def feed(self, chunk: bytes) -> list[sse.Event]:
        """The events that end in this chunk."""

    def close(self) -> list[sse.Event]:
        """What is left when nothing more comes."""


class Stream:
    """One answer. Feed it what the provider sends; it does no input or output of its own."""

    def __init__(self, parser: Parser, assembly: Assembly, read_reply: Callable[[bytes], Reply]) -> None:
        self._parser = parser
        self._assembly = assembly
        self._read_reply = read_reply

    @property
    def partial(self) -> bool:
        """True as long as something is missing: the end has not come, or an event could not be read."""
        failure = self._assembly.failure
        return not self._assembly.finished or (failure is not None and failure.kind == MALFORMED)

    @property
    def failure(self) -> Failed | None:
        """The first error in the stream."""
        return self._assembly.failure

    def feed(self, chunk: bytes) -> list[Event]:
        """Take bytes as they came, torn anywhere; what is new in them."""
        return self._assembly.take(self._parser.feed(chunk))

    def close(self) -> list[Event]:
        """Say that nothing more comes. An event that only lacks its end is read; one torn in the middle is left out."""
        return self._assembly.take([event for event in self._parser.close() if _is_whole(event.data)])

    def body(self) -> bytes:
        """The response as JSON, as the call without streaming would have given it, as far as it arrived."""
        return self._assembly.body()

    def reply(self, *, partial_ok: bool = True) -> Reply:
        """The message as the call without streaming would have given it, with usage, model and stop reason.

        The messages of an answer that is not whole carry `PARTIAL` in their metadata.
        """
        if not self.partial:
            return self._read_reply(self.body())
        if not partial_ok:
            why = self.failure.what if self.failure is not None else "its last event did not come"
            raise FormatError(f"the answer is not whole: {why}", where="stream", remedy="send the request again")
        reply = self._read_reply(self.body())
        message, *more = [
            msgspec.structs.replace(each, metadata={PARTIAL: True}) for each in (reply.message, *reply.more)
        ]
        return msgspec.structs.replace(reply, message=message, more=tuple(more))


def _is_whole(data: bytes) -> bool:
    if data == DONE:
        return True
    try:
        any_decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
