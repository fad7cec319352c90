"""One call of a client, without input or output: its request in, the one to send instead out, its answer recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from windowsill import providers, telemetry
from windowsill.clients.routes import Route
from windowsill.errors import BudgetError, FormatError, NotFoundError, UnknownModelError, WindowsillError, log
from windowsill.messages import Message, Reply, Request
from windowsill.models import record_usage, wants_reasoning
from windowsill.models.overflow import is_overflow
from windowsill.providers import streaming
from windowsill.session import Session
from windowsill.session.client_history import PREVIOUS, RESPONSE, THREAD, Resumed
from windowsill.telemetry import ModelCall, names
from windowsill.telemetry.metrics import harmless

_SETTINGS = {
    "max_tokens": names.REQUEST_MAX_TOKENS,
    "temperature": names.REQUEST_TEMPERATURE,
    "top_p": names.REQUEST_TOP_P,
    "top_k": names.REQUEST_TOP_K,
}
"""Settings of a request that the conventions have a name for."""

BROKEN_OFF = "error"
"""The reason that is told for an answer that did not end by itself."""


class CallSpan:
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
            operation=providers.get(format).spec.operation,
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
                sent = providers.read_request(resumed.payload.body(), format=format)
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
                self._tell(call, _reply(self._format, body), providers.response_id(body))
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
        self._tell(call, reply, providers.response_id(body))

    def _tell(self, call: ModelCall, reply: Reply | None, id: str | None) -> None:
        if reply is None:
            return
        messages = (reply.message, *reply.more)
        call.answered(reply.usage, model=reply.model, id=id, finish=reply.stop_reason, messages=messages)
        if self._meters:
            record_usage(reply.usage, self._model or "", self._format)


def _reply(format: str, body: bytes) -> Reply | None:
    try:
        return providers.get(format).read_reply(body)
    except WindowsillError:
        return None


def _settings(fields: Mapping[str, msgspec.Raw]) -> dict[str, Any]:
    """Return what a request states about the answer, under the conventions' names."""
    try:
        stated = {name: msgspec.json.decode(raw) for name, raw in providers.settings_of(fields).items()}
    except (msgspec.DecodeError, WindowsillError):
        return {}
    return {_SETTINGS[name]: value for name, value in stated.items() if isinstance(value, int | float)}


OVERFLOW_STATUSES = (400, 413, 422)
"""What providers answer to a request that is too long."""

SUCCESS = range(200, 300)

OURS = (BudgetError, UnknownModelError)
"""What only the user can mend: it is said, rather than sending what the provider would refuse or misread."""


class Exchange:
    """One call. `request` first, then `retry`, `answer` or `recorder` with what the provider said."""

    def __init__(self, session: Session, route: Route, body: bytes, *, resends: bool | None = None) -> None:
        self._session = session
        self._route = route
        self._body = body
        self._resends = resends
        self._read: Request | None = None
        self._resumed: Resumed | None = None
        self._tried_again = False
        self.watching = CallSpan()

    def request(self) -> bytes:
        """The body to send. What cannot be taken in goes through as it came, if it can be answered without a past."""
        try:
            self._read = self._understood()
        except FormatError as error:
            # The provider says better than we do what is wrong with a request that nobody can read.
            log.warning("a request was passed on as it came: %s", error)
            return self._body
        if "conversation" in self._read.rest:
            log.warning("a request was passed on as it came: its history is a conversation at the provider")
            return self._body
        try:
            return self._compose()
        except OURS:
            raise
        except NotFoundError:
            if PREVIOUS not in self._read.rest:
                raise
            log.warning("a request was passed on as it came: its history is at the provider, not in the session")
        except (WindowsillError, OSError) as error:
            if self._needs_the_past():
                raise
            log.warning("a request was passed on as it came, and was not recorded: %s", error)
        self._resumed = None
        return self._body

    def call(self, server: str = "", port: int | None = None) -> ModelCall:
        """The span of the call, for a `with` around what is sent; a streamed answer keeps it until it ends."""
        return self.watching.begin(self._session, self._route, self._read, self._resumed, (server, port))

    @property
    def headers(self) -> dict[str, str]:
        """Headers that the composed request needs; of one that lists values, those are added to the client's own."""
        return self._resumed.payload.headers if self._resumed is not None else {}

    def retry(self, status: int, body: bytes) -> bytes | None:
        """A smaller request, once, when the provider says that the last one did not fit; else `None`."""
        told = body.decode(errors="replace")
        if status not in OVERFLOW_STATUSES or not is_overflow(told) or self._resumed is None:
            return None
        sent = self._resumed.payload.tokens
        try:
            self._session.overflowed(told, sent=self._resumed.sent)
            if self._tried_again:
                return None
            self._tried_again = True
            smaller = self._compose()
            self.watching.again(self._resumed)
        except (WindowsillError, OSError) as error:
            # The caller gets the provider's word for it, not ours.
            log.warning("a request that was too long was not made smaller: %s", error)
            return None
        return smaller if self._resumed.payload.tokens < sent else None

    def answer(self, status: int, body: bytes) -> None:
        """Record the answer of a call that was not streamed."""
        self.watching.answered(status, body, success=status in SUCCESS)
        if status in SUCCESS and self._resumed is not None:
            self._record(body, {})

    def streams(self, status: int, content_type: str) -> bool:
        """Whether the answer comes as a stream: because it says so, or because one was asked for."""
        asked = self._route.streamed or (
            self._read is not None and bytes(self._read.rest.get("stream", b"")) == b"true"
        )
        return status in SUCCESS and (asked or content_type.lower().startswith("text/event-stream"))

    def recorder(self) -> Recorder:
        """Listens to a streamed answer."""
        self.watching.streams()
        return Recorder(self, streaming.stream(self._format))

    def _understood(self) -> Request:
        read = providers.read_request(self._body, format=self._route.format)
        if read.format == "openai" and wants_reasoning(read.model or ""):
            return providers.read_request(self._body, format="deepseek")
        return read

    @property
    def _format(self) -> str:
        return self._read.format if self._read is not None else self._route.format

    def _compose(self) -> bytes:
        assert self._read is not None
        self._resumed = self._session.client_history.resume(self._read, model=self._route.model, resends=self._resends)
        return self._resumed.payload.body()

    def _needs_the_past(self) -> bool:
        """Whether a request means nothing to the model without what the session holds."""
        assert self._read is not None
        if self._resends is not None:
            return not self._resends
        answers = any(message.role == "assistant" for message in self._read.messages)
        return not answers and bool(self._session.items())

    def _record(self, body: bytes, metadata: dict[str, Any]) -> None:
        """Add an answer. A failure is told, not raised: it must not cost the caller the answer itself."""
        assert self._resumed is not None
        try:
            if self._format == "responses" or (self._read is not None and THREAD in self._read.rest):
                # Requests may refer to a response by its id alone.
                metadata = {**metadata, RESPONSE: providers.response_id(body)}
            self._session.add(
                body, format=self._format, after=self._resumed.last, metadata=metadata, sent=self._resumed.sent
            )
        except (WindowsillError, OSError) as error:
            log.warning("an answer was not recorded: %s", error)

    def streamed(self, stream: streaming.Stream) -> None:
        """Record a streamed answer, as far as it came."""
        if self._resumed is None:
            return
        try:
            if stream.failure is not None and is_overflow(stream.failure.what):
                self._session.overflowed(stream.failure.what, sent=self._resumed.sent)
            reply = stream.reply()
        except (WindowsillError, OSError) as error:
            log.warning("a streamed answer was not recorded: %s", error)
            return
        if not stream.partial or _says_something((reply.message, *reply.more)):
            self._record(stream.body(), {streaming.PARTIAL: True} if stream.partial else {})


class Recorder:
    """Listens to a streamed answer and records it when it ends, however it ends.

    Nothing it hears can disturb the caller: what it cannot read it passes over, and says so.
    """

    def __init__(self, exchange: Exchange, stream: streaming.Stream) -> None:
        self._exchange = exchange
        self._stream: streaming.Stream | None = stream
        self._whole: list[bytes] | None = None
        self._begun = self._closed = False

    def feed(self, chunk: bytes) -> None:
        """Take bytes as they pass by."""
        self._exchange.watching.hears()
        if not self._begun and chunk.strip():
            self._begun = True
            # Some servers answer in one piece where a stream was asked for.
            self._whole = [] if chunk.lstrip()[:1] == b"{" else None
        if self._whole is not None:
            self._whole.append(chunk)
        elif self._stream is not None:
            try:
                self._stream.feed(chunk)
            except WindowsillError as error:
                log.warning("a streamed answer was not recorded: %s", error)
                self._stream = None

    def close(self) -> None:
        """The stream has ended, or nobody reads on. Closing twice is fine."""
        if self._closed:
            return
        self._closed = True
        if self._whole is not None:
            self._exchange.answer(SUCCESS.start, b"".join(self._whole))
        elif self._stream is not None:
            try:
                self._stream.close()
            except WindowsillError as error:
                log.warning("a streamed answer was not recorded: %s", error)
                self._exchange.watching.streamed(None)
                return
            self._exchange.watching.streamed(self._stream)
            self._exchange.streamed(self._stream)
        else:
            self._exchange.watching.streamed(None)


def _says_something(messages: tuple[Message, ...]) -> bool:
    return any(message.blocks for message in messages)
