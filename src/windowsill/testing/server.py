"""The local server itself: strict, programmable, on a free port of this machine."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Lock, Thread
from types import TracebackType
from typing import Any, ClassVar

import msgspec

from windowsill import formats
from windowsill.errors import WindowsillError
from windowsill.messages import Usage
from windowsill.testing.accounting import Accounting
from windowsill.testing.answers import Answer, numbered
from windowsill.testing.protocols import DIALECTS, Dialect

BAD_REQUEST, NOT_FOUND = 400, 404
CACHE_MINIMUM = 1_024
LARGEST_BODY = 64 * 1024 * 1024


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One request as the server saw it."""

    format: str
    body: dict[str, Any]
    raw: bytes
    status: int
    problems: tuple[formats.Problem, ...] = ()
    tokens: int = 0
    cached: int = 0


class Failure(msgspec.Struct, frozen=True):
    """An error that the next request gets."""

    status: int
    message: str


class Server:
    """A strict provider on loopback. Use it as a context manager and point a client at `url`.

    `respond` is the model: it gets the decoded request and says an `Answer`; without it the model says "ok".
    """

    def __init__(
        self,
        respond: Callable[[dict[str, Any]], Answer] | None = None,
        *,
        window: int = 200_000,
        cache_minimum: int = CACHE_MINIMUM,
        delay: float = 0.0,
    ) -> None:
        self.respond = respond or (lambda _: Answer(text="ok"))
        self.window = window
        self.delay = delay
        """Seconds before each answer."""
        self.seen: list[Seen] = []
        """Every request, in the order it came."""
        self.break_off_after: int | None = None
        """Breaks a streamed answer off after so many events."""
        self.accounting = Accounting(cache_minimum)
        self._failures: list[Failure] = []
        self._numbers = count(1)
        self._lock = Lock()
        self._http: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        """Where it listens: the base URL for Anthropic's client; OpenAI's wants `/v1` behind it."""
        if self._http is None:
            raise WindowsillError("the server does not run", remedy="use it in a `with` block")
        return f"http://127.0.0.1:{self._http.server_port}"

    @property
    def refused(self) -> list[Seen]:
        """The requests it refused because they break a rule or are too long."""
        return [each for each in self.seen if each.status == BAD_REQUEST]

    def fail(self, status: int = 500, message: str = "something broke", *, times: int = 1) -> None:
        """Let the next requests fail."""
        with self._lock:
            self._failures += [Failure(status, message)] * times

    def __enter__(self) -> Server:
        handler = type("Handler", (_Handler,), {"owner": self})
        self._http = _Http(("127.0.0.1", 0), handler)
        Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()
            self._http = None

    def answer(self, dialect: Dialect, raw: bytes) -> tuple[int, dict[str, Any] | Iterator[bytes]]:
        """Look at a request as the provider would: the status, and a body or a stream of events."""
        time.sleep(self.delay)
        with self._lock:
            failure = self._failures.pop(0) if self._failures else None
        try:
            body: dict[str, Any] = msgspec.json.decode(raw, type=dict[str, Any])
            request = formats.read_request(raw, format=dialect.format)
        except (msgspec.DecodeError, WindowsillError) as error:
            return self._refuse(dialect, {}, raw, BAD_REQUEST, str(error))
        if failure is not None:
            return self._refuse(dialect, body, raw, failure.status, failure.message)
        problems = tuple(formats.validate(body, dialect.format))
        if problems:
            return self._refuse(dialect, body, raw, BAD_REQUEST, f"{problems[0].where}: {problems[0].what}", problems)
        tokens = self.accounting.count(request)
        if tokens > self.window:
            words = dialect.overflow(tokens, self.window)
            return self._refuse(dialect, body, raw, BAD_REQUEST, words, tokens=tokens, overflow=True)
        number = next(self._numbers)
        answer = numbered(self.respond(body), number)
        said = answer.text + answer.reasoning + "".join(str(call.input) for call in answer.calls)
        usage = self.accounting.bill(request, self.accounting.words(said))
        self._note(dialect, body, raw, status=200, tokens=tokens, cached=usage.cache_read)
        model = str(body.get("model", "unknown"))
        return 200, self._told(dialect, answer, usage, model, number, streamed=bool(body.get("stream")))

    def _told(
        self, dialect: Dialect, answer: Answer, usage: Usage, model: str, number: int, *, streamed: bool
    ) -> dict[str, Any] | Iterator[bytes]:
        if not streamed:
            return dialect.reply(answer, usage, model, number)
        return dialect.stream(answer, usage, model, number)

    def _refuse(
        self,
        dialect: Dialect,
        body: dict[str, Any],
        raw: bytes,
        status: int,
        message: str,
        problems: tuple[formats.Problem, ...] = (),
        *,
        tokens: int = 0,
        overflow: bool = False,
    ) -> tuple[int, dict[str, Any]]:
        self._note(dialect, body, raw, status=status, problems=problems, tokens=tokens)
        return status, dialect.error(status, message, overflow=overflow)

    def _note(self, dialect: Dialect, body: dict[str, Any], raw: bytes, *, status: int, **more: Any) -> None:
        with self._lock:
            self.seen.append(Seen(format=dialect.format, body=body, raw=raw, status=status, **more))


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing when a client hung up: that is often what a test is about."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    owner: ClassVar[Server]
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(min(size, LARGEST_BODY))
        dialect = next((each for each in DIALECTS if each.path == self.path.partition("?")[0]), None)
        if dialect is None:
            self._send(NOT_FOUND, {"error": {"message": f"there is nothing at {self.path}", "type": "not_found_error"}})
            return
        status, told = self.owner.answer(dialect, raw)
        if isinstance(told, dict):
            self._send(status, told)
        else:
            self._stream(told)

    def _send(self, status: int, body: dict[str, Any]) -> None:
        data = msgspec.json.encode(body)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Iterator[bytes]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for number, event in enumerate(events):
            if self.owner.break_off_after is not None and number >= self.owner.break_off_after:
                break
            self.wfile.write(event)
            self.wfile.flush()
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: tests read `seen`."""
