"""One call of a client, without input or output: its request in, the one to send instead out, its answer recorded."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from windowsill import providers, telemetry
from windowsill.clients.conversations import Conversations
from windowsill.errors import BudgetError, FormatError, NotFoundError, UnknownModelError, WindowsillError, log
from windowsill.messages import RESPONSE, Request, Usage
from windowsill.models import record_usage, wants_reasoning
from windowsill.models.catalog import is_overflow
from windowsill.providers import streams
from windowsill.providers.faults import refuses_reasoning
from windowsill.providers.streams import PARTIAL, Stream
from windowsill.session import Session
from windowsill.session.client_history import PREVIOUS, THREAD, Resumed, client_history, without_system
from windowsill.telemetry import ModelCall, names
from windowsill.telemetry.spans import harmless
from windowsill.user_function import describe

SETTINGS = {
    "max_tokens": names.REQUEST_MAX_TOKENS,
    "temperature": names.REQUEST_TEMPERATURE,
    "top_p": names.REQUEST_TOP_P,
    "top_k": names.REQUEST_TOP_K,
}
"""Settings of a request that the telemetry conventions have a name for."""

BROKEN_OFF = "error"
"""The stop reason that telemetry gets for an answer that did not end by itself."""

OVERFLOW_STATUSES = (400, 413, 422)
"""Statuses that providers answer to a request that is too long."""

SUCCESS = range(200, 300)

MOST_HELD = 1 << 20
"""Bytes of a streamed answer that are kept before they are read: reading event by event would slow the caller down."""

OURS = (BudgetError, UnknownModelError)
"""Errors that only the user can mend: raised, rather than sending what the provider would refuse or misread."""


class Route(msgspec.Struct, frozen=True):
    """A model call: the format of its body, and what the address says about it."""

    format: str
    model: str | None = None
    streamed: bool = False
    """The address alone says that the answer is streamed."""


_ROUTES = [(re.compile(route), spec.name) for spec in providers.specs() for route in spec.routes]


def route(path: str) -> Route | None:
    """Return the model call at this path, or `None` when it is something else (counting, files, batches ...)."""
    path = path.partition("?")[0].rstrip("/")
    for pattern, format in _ROUTES:
        if found := pattern.search(path):
            groups = found.groupdict()
            model = groups.get("model")
            return Route(format, model and model.partition("@")[0], groups.get("stream") is not None)
    return None


class Exchange:
    """One call: `request`, then what the provider says: `retry` and `answer`, or `begin_stream`, `feed` and `close`.

    Nothing in an answer can disturb the caller: what cannot be read or recorded is logged.
    """

    def __init__(self, conversations: Conversations | Session, route: Route, body: bytes) -> None:
        self._conversations = (
            conversations if isinstance(conversations, Conversations) else Conversations(conversations)
        )
        self._session: Session | None = None
        """The session that the request belongs to, once it was taken in."""
        self._route = route
        self._body = body
        self._format = route.format
        self._read: Request | None = None
        self._resumed: Resumed | None = None
        self._retried = self._unreasoned = False
        self._call: ModelCall | None = None
        self._stream: Stream | None = None
        self._held: list[bytes] = []
        """Bytes of a streamed answer that are still to be read."""
        self._held_size = 0
        self._whole = self._heard = self._closed = False
        self.usage: Usage | None = None
        """The tokens of the answer, once it is recorded."""

    # The request

    def request(self, *, verbatim: bool = False) -> bytes:
        """Return the body to send. A request that cannot be taken in goes out as it came, if it needs no past.

        With `verbatim` so does one of which nothing is hidden or mended: then cache marks are those of the client.
        """
        if self._format == "openai" and wants_reasoning(providers.model_of(self._body)):
            self._format = "deepseek"
        try:
            self._read = read = providers.read_request(self._body, format=self._format)
        except FormatError as error:
            # The provider says better than we do what is wrong with a request that nobody can read.
            log.warning("a request was passed on as it came: %s", error)
            return self._body
        if "conversation" in read.rest:
            log.warning("a request was passed on as it came: its history is a conversation at the provider")
            return self._body
        try:
            payload = self._compose(read).payload
            unchanged = verbatim and payload.shows_all(len(without_system(read)[1]))
            return self._body if unchanged else payload.body()
        except OURS:
            raise
        except NotFoundError:
            if PREVIOUS not in read.rest:
                raise
            log.warning("a request was passed on as it came: its history is at the provider, not in the session")
        except Exception as error:
            if not self._conversations.resends:
                raise
            _log("a request was passed on as it came, and was not recorded", error)
        self._resumed = None
        return self._body

    @property
    def session_id(self) -> str:
        """The id of the session that the request was taken into; empty when it was not."""
        return self._session.id if self._session is not None else ""

    @property
    def folds(self) -> int:
        """The number of folds that were made for the request."""
        return len(self._resumed.payload.folds) if self._resumed is not None else 0

    @property
    def headers(self) -> dict[str, str]:
        """Headers that the composed request needs; of one that lists values, those are added to the client's own."""
        return self._resumed.payload.headers if self._resumed is not None else {}

    def _compose(self, read: Request) -> Resumed:
        if self._session is None:
            self._session, self._resumed = self._conversations.resume(read, self._body, self._route.model)
        else:
            history = client_history(self._session)
            self._resumed = history.resume(read, model=self._route.model, resends=self._conversations.resends)
        return self._resumed

    @property
    def _asks_for_stream(self) -> bool:
        read = self._read
        return self._route.streamed or (read is not None and bytes(read.rest.get("stream", b"")) == b"true")

    # The answer

    def retry(self, status: int, body: bytes) -> bytes | None:
        """Return another request, once, when the last was too long or its reasoning was refused; else `None`."""
        text = body.decode(errors="replace")
        read, session, resumed = self._read, self._session, self._resumed
        if status not in OVERFLOW_STATUSES or read is None or session is None or resumed is None:
            return None
        # Whatever fails, the caller gets the provider's word for it, not ours.
        with _logged("a request that was refused was not mended"):
            if refuses_reasoning(text) and not self._unreasoned:
                self._unreasoned = True
                session.composer.drop_reasoning()
                again = self._compose(read).payload.body()
                return again if again != resumed.payload.body() else None
            if is_overflow(text):
                session.composer.overflowed(text, sent=resumed.sent)
                return None if self._retried else self._smaller(read, resumed)
        return None

    def _smaller(self, read: Request, resumed: Resumed) -> bytes | None:
        self._retried = True
        again = self._compose(read).payload
        if self._call is not None and again.compacted:
            self._call.set(compacted=True)
        return again.body() if again.tokens < resumed.payload.tokens else None

    def answer(self, status: int, body: bytes) -> None:
        """Record the answer of a call that was not streamed."""
        if status not in SUCCESS:
            self._end_call(None, failure=str(status))
            return
        self._end_call(body)
        if self._resumed is not None:
            self._record(self._resumed, body, {})

    def streams(self, status: int, content_type: str) -> bool:
        """Tell whether the answer comes as a stream: because it says so, or because one was asked for."""
        return status in SUCCESS and (self._asks_for_stream or content_type.lower().startswith("text/event-stream"))

    def begin_stream(self) -> None:
        """Listen to a streamed answer; the span of the call goes on until it is whole."""
        if self._call is not None:
            self._call.keep_open()
        self._stream = streams.stream(self._format)

    def feed(self, chunk: bytes) -> bytes:
        """Return bytes of a streamed answer as they pass by: they are kept, and read together."""
        if not self._heard and chunk.strip():
            self._heard = True
            if self._call is not None:
                self._call.record_first_chunk()
            # Some servers answer in one piece where a stream was asked for.
            self._whole = chunk.lstrip()[:1] == b"{"
        self._held.append(chunk)
        self._held_size += len(chunk)
        if self._held_size >= MOST_HELD and not self._whole:
            self._read_held()
        return chunk

    def _read_held(self) -> None:
        stream, self._stream = self._stream, None
        held, self._held, self._held_size = b"".join(self._held), [], 0
        if stream is not None:
            with _logged("a streamed answer was not recorded"):
                stream.feed(held)
                self._stream = stream

    def close(self) -> None:
        """Record the stream that has ended, or that nobody reads on, as far as it came. Closing twice is fine."""
        if self._closed:
            return
        self._closed = True
        if self._whole:
            self.answer(SUCCESS.start, b"".join(self._held))
            return
        self._read_held()
        stream, self._stream = self._stream, None
        if stream is not None:
            with _logged("a streamed answer was not recorded"):
                stream.close()
                self._stream = stream
        if self._stream is None:
            self._end_call(None)
            return
        failure = self._stream.failure.kind if self._stream.failure is not None else None
        body = self._stream.body()
        self._end_call(body, failure=failure, partial=self._stream.partial)
        if self._resumed is not None:
            with _logged("a streamed answer was not recorded"):
                self._record_stream(self._resumed, self._stream, body)

    def _record_stream(self, resumed: Resumed, stream: Stream, body: bytes) -> None:
        if self._session is not None and stream.failure is not None and is_overflow(stream.failure.what):
            self._session.composer.overflowed(stream.failure.what, sent=resumed.sent)
        if not stream.partial:
            self._record(resumed, body, {})
            return
        reply = stream.reply()
        if any(message.blocks for message in (reply.message, *reply.more)):
            self._record(resumed, body, {PARTIAL: True})

    def _record(self, resumed: Resumed, body: bytes, metadata: dict[str, Any]) -> None:
        """Add an answer to the session. A failure is logged: it must not cost the caller the answer itself."""
        rest = self._read.rest if self._read is not None else {}
        with _logged("an answer was not recorded"):
            if providers.get(self._format).spec.history_fields or THREAD in rest:
                # Requests may refer to a response by its id alone.
                metadata = {**metadata, RESPONSE: providers.response_id(body)}
            if self._session is not None:
                self._session.add(body, format=self._format, after=resumed.last, metadata=metadata, sent=resumed.sent)
                self.usage = providers.get(self._format).read_reply(body).usage

    # Telemetry

    def call(self, server: str = "", port: int | None = None) -> ModelCall:
        """Begin the span of the call, for a `with` around what is sent; a streamed answer keeps it until it ends."""
        read, resumed = self._read, self._resumed
        self._call = call = telemetry.model_call(
            self._model,
            provider=self._format,
            session=self._session.id if self._session is not None else "",
            operation=providers.get(self._format).spec.operation,
            compacted=resumed is not None and resumed.payload.compacted,
            stream=self._asks_for_stream,
            server=server or None,
            port=port,
        )
        if call.live:
            with harmless():
                call.set(**_settings(read))
                if call.wants_content and resumed is not None:
                    sent = providers.read_request(resumed.payload.body(), format=self._format)
                    call.record_request(sent.messages, sent.system)
        return call

    @property
    def _model(self) -> str | None:
        return self._route.model or (self._read.model if self._read is not None else None)

    def _end_call(self, body: bytes | None, *, failure: str | None = None, partial: bool = False) -> None:
        """End the span, with the answer as far as it can be read."""
        call = self._call
        if call is None or not call.live:
            return
        with harmless():
            if failure is not None:
                call.fail(failure)
            if body is not None:
                self._report(call, body, partial=partial)
        call.end()

    def _report(self, call: ModelCall, body: bytes, *, partial: bool) -> None:
        try:
            reply = providers.get(self._format).read_reply(body)
        except FormatError:
            return
        finish = BROKEN_OFF if partial else reply.stop_reason
        messages = (reply.message, *reply.more)
        id = providers.response_id(body)
        call.record_answer(reply.usage, model=reply.model, id=id, finish=finish, messages=messages)
        if self._resumed is None:
            # What a session does not record is counted here.
            record_usage(reply.usage, self._model or "", self._format)


@contextmanager
def _logged(what: str) -> Iterator[None]:
    """Log whatever fails: neither a full disk nor a mistake of ours may hold back what a provider answered."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - any mistake of ours counts
        _log(what, error)


def _log(what: str, error: Exception) -> None:
    expected = isinstance(error, WindowsillError | OSError)
    log.log(logging.WARNING if expected else logging.ERROR, "%s: %s", what, describe(error), exc_info=not expected)


def _settings(read: Request | None) -> dict[str, Any]:
    """Return what a request states about the answer, under the conventions' names."""
    try:
        settings = providers.settings_of(read.rest) if read is not None else {}
        values = {SETTINGS[name]: msgspec.json.decode(raw) for name, raw in settings.items()}
    except (msgspec.DecodeError, FormatError):
        return {}
    return {name: value for name, value in values.items() if isinstance(value, int | float)}
