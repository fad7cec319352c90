"""The local server itself: strict and programmable."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Lock, Thread
from types import TracebackType
from typing import Any, ClassVar, TypeAlias

import msgspec

from windowsill import providers
from windowsill.errors import WindowsillError
from windowsill.messages import Message, Request, Unknown, Usage, json_value
from windowsill.providers import Problem
from windowsill.testing.protocols.anthropic import AnthropicMessages
from windowsill.testing.protocols.base import BAD_REQUEST, Answer, Outcome, Protocol, RefusedError, Route
from windowsill.testing.protocols.gemini import Gemini
from windowsill.testing.protocols.openai import OpenAIChat, OpenAIResponses
from windowsill.testing.provider_rules import (
    Accounting,
    Managed,
    Past,
    Place,
    Signer,
    blocks,
    instructions,
    manage,
    opening,
    since,
)

NOT_FOUND = 404
CACHE_MINIMUM = 1_024
LARGEST_BODY = 64 * 1024 * 1024

KEY = b"windowsill"
"""Signs reasoning where a test gives no key: the same words are signed alike in every run."""

SECRETS = ("auth", "key", "token", "secret", "cookie")
"""A header whose name holds one of these words may say who asks: it is never kept."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One request as the server saw it."""

    format: str
    body: dict[str, Any]
    raw: bytes
    status: int
    problems: tuple[Problem, ...] = ()
    tokens: int = 0
    """Its tokens when they were compared with the window: after clearing, before a compaction."""
    cached: int = 0
    path: str = ""
    """Without the query, which may hold a key."""
    headers: dict[str, str] = {}
    """Names in lower case; none that say who asks."""
    model: str = ""
    cleared: int = 0
    """The number of tool results that the server cleared because the request asked for it."""
    compacted: bool = False


def public(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that may be kept."""
    named = {name.lower(): value for name, value in headers.items()}
    return {name: value for name, value in named.items() if not any(word in name for word in SECRETS)}


Body: TypeAlias = dict[str, Any] | Iterator[bytes]
"""The body of an answer, or the events of a stream."""


class Listener(ThreadingHTTPServer):
    """Listens on loopback, a thread for each connection."""

    daemon_threads = True

    def __init__(self, owner: Server) -> None:
        super().__init__(("127.0.0.1", 0), type("Handler", (_Handler,), {"owner": owner}))

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing when a client hung up: that is often what a test is about."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    owner: ClassVar[Server]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    """Headers and body are written one after the other: without this every answer waits for the client's receipt."""

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(min(size, LARGEST_BODY))
        status, answer = self.owner.answer(self.path.partition("?")[0], raw, public(dict(self.headers.items())))
        if isinstance(answer, dict):
            self._send(status, answer)
        else:
            self._stream(answer)

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


class Server:
    """A strict provider on loopback. Use it as a context manager and point a client at `url`.

    `respond` is the model: it gets the decoded request and says an `Answer`; without it the model says "ok".
    `summarise` writes the text of a compaction, where a request asks for one. With `binds_reasoning` reasoning may
    only come back behind the conversation it was written after, under the same system prompt and tools.
    """

    def __init__(
        self,
        respond: Callable[[dict[str, Any]], Answer] | None = None,
        *,
        summarise: Callable[[dict[str, Any]], str] | None = None,
        window: int = 200_000,
        cache_minimum: int = CACHE_MINIMUM,
        delay: float = 0.0,
        binds_reasoning: bool = False,
        key: bytes = KEY,
    ) -> None:
        self.respond = respond or (lambda _: Answer(text="ok"))
        self.summarise = summarise or (lambda _: "A summary of the conversation so far.")
        self.window = window
        self.delay = delay
        """Seconds before each answer."""
        self.seen: list[Seen] = []
        """Every request, in the order it came."""
        self.break_off_after: int | None = None
        """Breaks a streamed answer off after so many events."""
        self.accounting = Accounting(cache_minimum)
        self.signer = Signer(key, binds=binds_reasoning)
        self._protocols = (AnthropicMessages(), OpenAIChat(), OpenAIResponses(self.signer), Gemini())
        self._failures: list[tuple[int, str]] = []
        self._numbers = count(1)
        self._lock = Lock()
        self._http: Listener | None = None

    @property
    def url(self) -> str:
        """The address: the base URL for Anthropic's and Google's clients; OpenAI's wants `/v1` behind it."""
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
            self._failures += [(status, message)] * times

    def __enter__(self) -> Server:
        self._http = Listener(self)
        Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()
            self._http = None

    def answer(self, path: str, raw: bytes, headers: Mapping[str, str] | None = None) -> tuple[int, Body]:
        """Answer a request as its provider would: return the status, and a body or a stream of events."""
        time.sleep(self.delay)
        found = next(((each, route) for each in self._protocols if (route := each.route(path)) is not None), None)
        if found is None:
            return NOT_FOUND, {"error": {"message": f"there is nothing at {path}", "type": "not_found_error"}}
        protocol, route = found
        notes: dict[str, Any] = {"format": protocol.name, "body": {}, "path": path, "headers": dict(headers or {})}
        status = 200
        try:
            answer = self._serve(protocol, route, raw, notes)
        except RefusedError as refused:
            status, notes["problems"] = refused.status, refused.problems
            answer = protocol.error(refused)
        with self._lock:
            self.seen.append(Seen(raw=raw, status=status, **notes))
        return status, answer

    def _serve(self, protocol: Protocol, route: Route, raw: bytes, notes: dict[str, Any]) -> Body:
        """Answer a request that is sound; `notes` are filled as far as it gets."""
        with self._lock:
            failure = self._failures.pop(0) if self._failures else None
        try:
            body = msgspec.convert(json_value(raw), dict[str, Any])
            model = route.model or str(body.get("model", "unknown"))
            format = protocol.format(model)
            notes.update(body=body, model=model, format=format)
            whole = protocol.complete(body)
            request = providers.read_request(whole, format=format)
        except RefusedError:
            raise
        except (msgspec.DecodeError, WindowsillError) as error:
            raise RefusedError(str(error)) from None
        if failure is not None:
            raise RefusedError(failure[1], status=failure[0])
        protocol.check(whole, notes["headers"])
        # Only an answer has a length to be limited.
        limit = {protocol.spec.limit_field(): 1} if route.task == "count" and protocol.spec.default_limit else {}
        problems = tuple(providers.get(format).validate({**limit, **whole, "model": model}))
        if problems:
            raise RefusedError(f"{problems[0].where}: {problems[0].what}", problems=problems)
        start = opening(request, protocol.closes)
        past = self._follow(protocol, request, start)
        managed = manage(since(request, start), protocol.edits(whole), self.accounting.count)
        notes.update(tokens=managed.tokens, cleared=sum(uses for uses, _ in managed.cleared))
        if route.task == "count":
            return protocol.count_reply(managed)
        if managed.tokens > self.window:
            raise protocol.overflow(managed.tokens, self.window)
        outcome = self._respond(protocol, route, model, body, managed, past)
        notes.update(cached=outcome.usage.cache_read, compacted=outcome.compaction is not None)
        if route.task == "compact":
            return protocol.compact_reply(outcome)
        streamed = route.task == "stream" or bool(body.get("stream"))
        return protocol.stream(outcome) if streamed else protocol.reply(outcome)

    def _follow(self, protocol: Protocol, request: Request, start: Place) -> bytes:
        """Digest what stands before the answer; refuse reasoning on the way that is not as it was."""
        past = Past(instructions(request))
        for place, role, block in blocks(request, start):
            past.take(role, block)
            proof = protocol.proof(block, past.thoughts) if role == "assistant" else None
            if proof is not None:
                verdict = self.signer.check(protocol.name, proof.signature, proof.text, past.before)
                if verdict != "good":
                    raise protocol.bad_proof(place, block, verdict)
        return past.coming

    def _respond(
        self, protocol: Protocol, route: Route, model: str, body: dict[str, Any], managed: Managed, past: bytes
    ) -> Outcome:
        """Ask the model, behind a compaction where one is due."""
        number = next(self._numbers)
        compaction, read, request = None, Usage(), managed.request
        if managed.compacting is not None or route.task == "compact":
            summary = self.summarise(body)
            compaction = protocol.compaction(summary, number)
            read = self.accounting.bill(request, self.accounting.words(summary))
            block = Unknown(type="compaction", raw=msgspec.json.encode(compaction))
            request = msgspec.structs.replace(request, messages=(Message(role="assistant", blocks=(block,)),))
            past = instructions(managed.request)
        silent = route.task == "compact" or (managed.compacting is not None and managed.compacting.pause)
        answer = Answer() if silent else self.respond(body).with_ids(number)
        thoughts = self.accounting.words(answer.reasoning)
        text = answer.text + "".join(str(call.input) for call in answer.calls)
        output = thoughts + self.accounting.words(text)
        return Outcome(
            answer=answer,
            usage=Usage() if silent else self.accounting.bill(request, output),
            model=model,
            number=number,
            body=body,
            managed=managed,
            signature=self.signer.sign(protocol.name, answer.reasoning, past) if answer.reasoning else "",
            reasoning_tokens=thoughts,
            compaction=compaction,
            compaction_usage=read,
        )
