"""A model over the network: a provider's own endpoint, or any that speaks as one does."""

from __future__ import annotations

import os
import random as chance
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import anyio

from windowsill import providers
from windowsill.agent.models.base import Answer, Asked, Delta, Model
from windowsill.agent.models.bodies import complete_body, delta_of, deltas, has_content, read_answer
from windowsill.errors import FormatError, InputError, UnknownModelError
from windowsill.extras import require
from windowsill.models import find
from windowsill.providers import stream as streaming
from windowsill.providers.endpoints import Endpoint, endpoint
from windowsill.providers.faults import ModelError, from_report, reported_error
from windowsill.providers.http import BrokenOffError, HttpClient, Post, RetryPolicy
from windowsill.providers.stream import MALFORMED, Event, Failed

if TYPE_CHECKING:
    import httpx2


RETRY = RetryPolicy(timeout=600.0, patience=1_800.0, longest_wait=60.0)
"""Models may think for minutes: an answer may take as long as the providers' own clients wait. Limits are counted by
the minute, so a pause of that length is worth it; longer ones are left to the caller."""

LARGEST = 64 * 1024 * 1024
"""Bytes of an answer as it comes: the longest there are, each word in an event of its own, stay well below."""


class StreamListener:
    """One answer as it comes; an error that the provider reports on the way is raised when it is closed."""

    def __init__(self, format: str, listen: Callable[[Delta], None], hide_keys: Callable[[str], str]) -> None:
        self._format = format
        self._listen = listen
        self._hide_keys = hide_keys
        self._stream = streaming.stream(format)
        self._opening: bytes | None = b""
        self._pieces: list[bytes] | None = None
        self._error: ModelError | None = None

    @property
    def whole(self) -> bytes | None:
        """The answer, where it is no stream but came in one piece."""
        return None if self._pieces is None else b"".join(self._pieces)

    @property
    def partial(self) -> bool:
        """Whether the end has not come."""
        return self._stream.partial

    def take(self, piece: bytes) -> bool:
        """Take more bytes, torn anywhere; return true when an error makes the rest of no interest."""
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
        return self._error is not None

    def close(self) -> None:
        """End the answer; raise the error that the provider reported in it."""
        if self._pieces is None and self._error is None:
            self._feed(self._stream.close)
        if self._error is not None:
            raise self._error

    def tell(self, body: bytes) -> None:
        """Let the listener hear an answer that came in one piece; `ModelError` when it is none."""
        for delta in deltas(read_answer(body, self._format, self._hide_keys)):
            self._listen(delta)

    def body(self) -> bytes:
        """The answer as far as it came; `ModelError` when it cannot be read."""
        body = self._stream.body()
        read_answer(body, self._format, self._hide_keys)
        return body

    @property
    def has_content(self) -> bool:
        """Whether words or calls came; part of an answer in one piece is not to be read."""
        try:
            return self._pieces is None and has_content(read_answer(self._stream.body(), self._format, self._hide_keys))
        except ModelError:
            return False

    def _feed(self, feed: Callable[[], list[Event]]) -> None:
        try:
            events = feed()
        except FormatError as error:
            self._error = ModelError("malformed", self._hide_keys(error.what), remedy="check the address")
            return
        for event in events:
            if isinstance(event, Failed) and event.kind != MALFORMED:
                found = reported_error(event.data, self._hide_keys)
                self._error = found or from_report(event.what, event.kind, self._hide_keys)
                return
            if (delta := delta_of(event)) is not None:
                self._listen(delta)


class OpenClient:
    """A client that is made when it is first needed and closed with its run."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self.stack = stack
        self.client: httpx2.AsyncClient | None = None


class HttpModel(Model):
    """Asks the model that `provider:model` or `provider:model@http://address` names."""

    def __init__(
        self,
        spec: str,
        *,
        key: str = "",
        base_url: str = "",
        format: str = "",
        stream: bool = True,
        manners: RetryPolicy = RETRY,
        largest: int = LARGEST,
        environment: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        random: Callable[[], float] = chance.random,
    ) -> None:
        """`format` tells dialects of OpenAI's chat apart where the model's name does not.

        Keys come from the provider's usual variables in `environment`. `manners` says how long and how often it is
        asked, and `largest` how many bytes an answer may have.
        """
        self._where = endpoint(spec, environment=environment, base_url=base_url, key=key)
        self.name = self._where.model
        self.format = _format(self._where, format)
        self.stream = stream
        self.limit_field = self._where.limit_field
        self._largest = largest
        self._clock = clock
        require("http", "calling a model", "httpx2")
        self._caller = HttpClient(manners, clock=clock, sleep=sleep, random=random)
        self._kept: ContextVar[OpenClient | None] = ContextVar("kept", default=None)

    def __repr__(self) -> str:
        return f"<model {self._where.name()}>"

    async def ask(self, asked: Asked, listen: Callable[[Delta], None]) -> Answer:
        """The answer; what fails in passing is asked again unless something of an answer has come."""
        began = self._clock()
        hearing = StreamListener(self.format, listen, self._where.hide_keys)
        try:
            with anyio.move_on_after(self._caller.manners.patience):
                body = await self._send(self._post(asked), hearing)
                return self._answer(body, hearing, began)
            fault = BrokenOffError("timeout", "the model gave no answer in time", remedy="raise patience=")
        except BrokenOffError as broken:
            fault = broken
        return self._broken(fault, hearing, began)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Keep one connection for all that is asked inside, instead of one for each."""
        async with AsyncExitStack() as stack:
            token = self._kept.set(OpenClient(stack))
            try:
                yield
            finally:
                self._kept.reset(token)

    async def _client(self, stack: AsyncExitStack) -> httpx2.AsyncClient:
        """The client of the run that this is asked in, or one for this question alone."""
        kept = self._kept.get()
        if kept is not None and kept.client is not None:
            return kept.client
        made = self._caller.client(own_machine=self._where.on_this_machine)
        client = await (stack if kept is None else kept.stack).enter_async_context(made)
        if kept is not None:
            kept.client = client
        return client

    async def _send(self, post: Post, hearing: StreamListener) -> bytes | None:
        """The answer where it comes in one piece; a stream is heard on the way."""
        async with AsyncExitStack() as stack:
            client = await self._client(stack)
            if not self.stream:
                return await self._caller.send(client, post, limit=self._largest)
            await self._caller.stream(client, post, hearing.take, limit=self._largest)
        hearing.close()
        # Some servers answer in one piece whatever they are asked for.
        return hearing.whole

    def _post(self, asked: Asked) -> Post:
        body = asked.payload.body(self.format)
        model = (
            self.name
            or providers.model_of(body)
            or (asked.payload.model.name if asked.payload.model is not None else "")
        )
        if not model:
            raise ModelError("refused", "nobody says which model is to answer", remedy="name one: provider:model")
        sent = complete_body(
            body,
            self.format,
            model=model,
            max_output=asked.max_output,
            limit_field=self.limit_field,
            stream=self.stream,
        )
        headers = {**self._where.headers(), **asked.payload.headers}
        return Post(self._where.address(model, stream=self.stream), headers, sent, self._where.hide_keys)

    def _answer(self, body: bytes | None, hearing: StreamListener, began: float) -> Answer:
        if body is not None:
            hearing.tell(body)
            return Answer(body=body, seconds=self._clock() - began)
        if hearing.partial and not hearing.has_content:
            what = "the stream ended without an answer"
            raise ModelError("malformed", what, remedy="check the address; try again", passing=True)
        return Answer(body=hearing.body(), partial=hearing.partial, seconds=self._clock() - began)

    def _broken(self, fault: BrokenOffError, hearing: StreamListener, began: float) -> Answer:
        """What came before it broke off, if that says anything."""
        hearing.close()
        if hearing.partial and not hearing.has_content:
            raise fault from None
        return Answer(body=hearing.body(), partial=hearing.partial, seconds=self._clock() - began)


def _format(where: Endpoint, stated: str) -> str:
    """The format of this endpoint: of OpenAI's chat there are dialects, which the model's name tells."""
    own = where.provider.name
    if stated:
        name = providers.get(stated).name
        if name != own and not {name, own} <= set(providers.DIALECTS):
            raise InputError(
                f"{where.provider.name} does not speak {name!r}", remedy=f"leave the format out, or give {own!r}"
            )
        return name
    if own not in providers.DIALECTS:
        return own
    try:
        return providers.dialect(find(where.model))
    except UnknownModelError:
        return own
