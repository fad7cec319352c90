"""The local server itself: strict and programmable."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from threading import Lock, Thread
from types import TracebackType
from typing import Any

import msgspec

from windowsill import formats
from windowsill.errors import WindowsillError
from windowsill.messages import Message, Request, Unknown, Usage
from windowsill.testing.accounting import Accounting
from windowsill.testing.answers import Answer, numbered
from windowsill.testing.listening import Asked, Listener, Spoken
from windowsill.testing.managing import Managed, Place, blocks, manage, opening, since
from windowsill.testing.protocols import BAD_REQUEST, Dialect, RefusedError, Route, Told, dialects
from windowsill.testing.seen import Seen
from windowsill.testing.signing import Past, Signer, instructions

NOT_FOUND = 404
CACHE_MINIMUM = 1_024
KEY = b"windowsill"
"""Signs reasoning where a test gives no key: the same words are signed alike in every run."""


class Failure(msgspec.Struct, frozen=True):
    """An error that the next request gets."""

    status: int
    message: str


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
        self._dialects = dialects(self.signer)
        self._failures: list[Failure] = []
        self._numbers = count(1)
        self._lock = Lock()
        self._http: Listener | None = None

    @property
    def url(self) -> str:
        """Where it listens: the base URL for Anthropic's and Google's clients; OpenAI's wants `/v1` behind it."""
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

    def answer(self, asked: Asked) -> tuple[int, Spoken]:
        """Look at a request as its provider would: the status, and a body or a stream of events."""
        time.sleep(self.delay)
        for dialect in self._dialects:
            route = dialect.route(asked.path)
            if route is not None:
                return self._look(dialect, route, asked)
        words = f"there is nothing at {asked.path}"
        return NOT_FOUND, {"error": {"message": words, "type": "not_found_error"}}

    def _look(self, dialect: Dialect, route: Route, asked: Asked) -> tuple[int, Spoken]:
        with self._lock:
            failure = self._failures.pop(0) if self._failures else None
        notes: dict[str, Any] = {"format": dialect.name, "body": {}}
        status = 200
        problems: tuple[formats.Problem, ...] = ()
        try:
            spoken = self._serve(dialect, route, asked, failure, notes)
        except RefusedError as refused:
            status, problems = refused.status, refused.problems
            spoken = dialect.error(refused)
        seen = Seen(raw=asked.raw, path=asked.path, headers=asked.headers, status=status, problems=problems, **notes)
        with self._lock:
            self.seen.append(seen)
        return status, spoken

    def _serve(
        self, dialect: Dialect, route: Route, asked: Asked, failure: Failure | None, notes: dict[str, Any]
    ) -> Spoken:
        """What to say to a request that is sound; `notes` are filled as far as it gets."""
        try:
            body: dict[str, Any] = msgspec.json.decode(asked.raw, type=dict[str, Any])
            model = route.model or str(body.get("model", "unknown"))
            format = dialect.format(model)
            notes.update(body=body, model=model, format=format)
            whole = dialect.whole(body)
            request = formats.read_request(whole, format=format)
        except RefusedError:
            raise
        except (msgspec.DecodeError, WindowsillError) as error:
            raise RefusedError(str(error)) from None
        if failure is not None:
            raise RefusedError(failure.message, status=failure.status)
        # Only an answer has a length to be limited.
        limit = {"max_tokens": 1} if route.task == "count" else {}
        problems = tuple(formats.validate({**limit, **whole, "model": model}, format))
        if problems:
            raise RefusedError(f"{problems[0].where}: {problems[0].what}", problems=problems)
        dialect.demand(whole, asked.headers)
        start = opening(request, dialect.closes)
        past = self._follow(dialect, request, start)
        managed = manage(since(request, start), dialect.edits(whole), self.accounting.count)
        notes.update(tokens=managed.tokens, cleared=sum(uses for uses, _ in managed.cleared))
        if route.task == "count":
            return dialect.counted(managed)
        if managed.tokens > self.window:
            raise dialect.overflow(managed.tokens, self.window)
        told = self._tell(dialect, route, model, body, managed, past)
        notes.update(cached=told.usage.cache_read, compacted=told.compaction is not None)
        if route.task == "compact":
            return dialect.compacted(told)
        streamed = route.task == "stream" or bool(body.get("stream"))
        return dialect.stream(told) if streamed else dialect.reply(told)

    def _follow(self, dialect: Dialect, request: Request, start: Place) -> bytes:
        """What stands before the answer; refuses reasoning on the way that is not as it was."""
        past = Past(instructions(request))
        for place, role, block in blocks(request, start):
            past.take(role, block)
            proof = dialect.proof(block, past.thoughts) if role == "assistant" else None
            if proof is not None:
                verdict = self.signer.check(dialect.name, proof.signature, proof.text, past.before)
                if verdict != "good":
                    raise dialect.unproven(place, block, verdict)
        return past.coming

    def _tell(
        self, dialect: Dialect, route: Route, model: str, body: dict[str, Any], managed: Managed, past: bytes
    ) -> Told:
        """The model's answer, behind a compaction where one is due."""
        number = next(self._numbers)
        compaction, read, request = None, Usage(), managed.request
        if managed.compacting is not None or route.task == "compact":
            summary = self.summarise(body)
            compaction = dialect.compaction(summary, number)
            read = self.accounting.bill(request, self.accounting.words(summary))
            block = Unknown(type="compaction", raw=msgspec.json.encode(compaction))
            request = msgspec.structs.replace(request, messages=(Message(role="assistant", blocks=(block,)),))
            past = instructions(managed.request)
        silent = route.task == "compact" or (managed.compacting is not None and managed.compacting.pause)
        answer = Answer() if silent else numbered(self.respond(body), number)
        thoughts = self.accounting.words(answer.reasoning)
        said = answer.text + "".join(str(call.input) for call in answer.calls)
        output = thoughts + self.accounting.words(said)
        return Told(
            answer=answer,
            usage=Usage() if silent else self.accounting.bill(request, output),
            model=model,
            number=number,
            body=body,
            managed=managed,
            signature=self.signer.sign(dialect.name, answer.reasoning, past) if answer.reasoning else "",
            reasoning_tokens=thoughts,
            compaction=compaction,
            compaction_usage=read,
        )
