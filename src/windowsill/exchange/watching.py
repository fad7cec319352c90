"""The span of one model call: begun when its request is sent, ended when its answer is whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from windowsill import formats, telemetry
from windowsill.errors import WindowsillError
from windowsill.exchange.routes import Route
from windowsill.formats import streaming
from windowsill.messages import Reply, Request
from windowsill.session import Session
from windowsill.session.resuming import Resumed
from windowsill.telemetry import ModelCall, names
from windowsill.telemetry.metrics import harmless
from windowsill.writers.metering import meter

_SETTINGS = {
    "max_tokens": names.REQUEST_MAX_TOKENS,
    "temperature": names.REQUEST_TEMPERATURE,
    "top_p": names.REQUEST_TOP_P,
    "top_k": names.REQUEST_TOP_K,
}
"""Settings of a request that the conventions have a name for."""

BROKEN_OFF = "error"
"""The reason that is told for an answer that did not end by itself."""


class Watching:
    """What is told of one call. While nobody listens it does nothing."""

    def __init__(self) -> None:
        self._call: ModelCall | None = None
        self._model: str | None = None
        self._format = ""
        self._meters = False

    def begin(
        self,
        session: Session,
        route: Route,
        read: Request | None,
        resumed: Resumed | None,
        where: tuple[str, int | None],
    ) -> ModelCall:
        """The span, to be entered around what is sent."""
        model = route.model or (read.model if read is not None else None)
        format = read.format if read is not None else route.format
        self._call = call = telemetry.model_call(
            model,
            provider=format,
            session=session.id,
            operation=formats.get(format).spec.operation,
            compacted=resumed is not None and resumed.payload.compacted,
            stream=route.streamed or (read is not None and bytes(read.rest.get("stream", b"")) == b"true"),
            server=where[0] or None,
            port=where[1],
        )
        if not call.live:
            return call
        # What a session does not record is counted here.
        self._meters = resumed is None
        self._model, self._format = model, format
        with harmless():
            call.set(**_settings(read.rest if read is not None else {}))
            if call.wants_content and resumed is not None:
                sent = formats.read_request(resumed.payload.body(), format=format)
                call.asked(sent.messages, sent.system)
        return call

    def again(self, resumed: Resumed) -> None:
        """A smaller request is sent in place of one that was too long."""
        if self._call is not None and resumed.payload.compacted:
            self._call.set(compacted=True)

    def streams(self) -> None:
        """The answer is streamed: the call goes on until it is whole."""
        if self._call is not None:
            self._call.keep()

    def hears(self) -> None:
        """A piece of a streamed answer has come."""
        if self._call is not None:
            self._call.heard()

    def answered(self, status: int, body: bytes, *, success: bool) -> None:
        """A whole answer has come."""
        call = self._call
        if call is None or not call.live:
            return
        with harmless():
            if success:
                self._tell(call, _reply(self._format, body), formats.response_id(body))
            else:
                call.fail(str(status))
        call.end()

    def streamed(self, stream: streaming.Stream | None) -> None:
        """A stream has ended, or nobody reads on; without a stream it could not be read."""
        call = self._call
        if call is None or not call.live:
            return
        with harmless():
            if stream is not None:
                self._tell_stream(call, stream, stream.body())
        call.end()

    def _tell_stream(self, call: ModelCall, stream: streaming.Stream, body: bytes) -> None:
        if stream.failure is not None:
            call.fail(stream.failure.kind)
        reply = _reply(self._format, body)
        if reply is not None and stream.partial:
            reply = msgspec.structs.replace(reply, stop_reason=BROKEN_OFF)
        self._tell(call, reply, formats.response_id(body))

    def _tell(self, call: ModelCall, reply: Reply | None, id: str | None) -> None:
        if reply is None:
            return
        messages = (reply.message, *reply.more)
        call.answered(reply.usage, model=reply.model, id=id, finish=reply.stop_reason, messages=messages)
        if self._meters:
            meter(reply.usage, self._model or "", self._format)


def _reply(format: str, body: bytes) -> Reply | None:
    try:
        return formats.get(format).read_reply(body)
    except WindowsillError:
        return None


def _settings(fields: Mapping[str, msgspec.Raw]) -> dict[str, Any]:
    """Return what a request states about the answer, under the conventions' names."""
    try:
        stated = {name: msgspec.json.decode(raw) for name, raw in formats.settings_of(fields).items()}
    except (msgspec.DecodeError, WindowsillError):
        return {}
    return {_SETTINGS[name]: value for name, value in stated.items() if isinstance(value, int | float)}
