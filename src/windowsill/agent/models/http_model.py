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
from windowsill.agent.models.base import (
    Answer,
    Delta,
    Model,
    ModelRequest,
    delta_of,
    emit_answer,
    read_answer,
)
from windowsill.errors import FormatError, InputError
from windowsill.extras import require
from windowsill.models import find_known
from windowsill.providers import streams
from windowsill.providers.faults import ModelError, from_report, reported_error
from windowsill.providers.http import BrokenOffError, Endpoint, HttpClient, Post, RetryPolicy, endpoint
from windowsill.providers.request_fields import complete_body
from windowsill.providers.streams import MALFORMED, Event, Failed

if TYPE_CHECKING:
    import httpx2


RETRY = RetryPolicy(timeout=600.0, patience=1_800.0, longest_wait=60.0)
"""Models may think for minutes: an answer may take as long as the providers' own clients wait. Limits are counted by
the minute, so a pause of that length is worth it; longer ones are left to the caller."""

LARGEST = 64 * 1024 * 1024
"""Bytes of an answer as it comes: the longest there are, each word in an event of its own, stay well below."""


class StreamListener:
    """Follows one answer as it comes; an error that the provider reports on the way is raised when it is closed."""

    def __init__(self, format: str, listen: Callable[[Delta], None], hide_keys: Callable[[str], str]) -> None:
        self._format = format
        self._listen = listen
        self._hide_keys = hide_keys
        self._stream = streams.stream(format)
        self._opening: bytes | None = b""
        self._pieces: list[bytes] | None = None
        self._error: ModelError | None = None

    @property
    def whole(self) -> bytes | None:
        """The answer, where it is not a stream but came in one piece."""
        return None if self._pieces is None else b"".join(self._pieces)

    def take(self, piece: bytes) -> bool:
        """Take more bytes, torn anywhere; return true when an error makes the rest of no interest."""
        if self._opening is not None:
            piece = self._opening + piece
            self._opening = None if piece.strip() else piece
            if piece.lstrip()[:1] == b"{" and not providers.get(self._format).spec.json_stream:
                # No event begins so.
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

    def answer(self, fault: ModelError) -> Answer:
        """Return the answer as far as it came; raise the fault where that has neither text nor calls."""
        partial, body = self._stream.partial, self._stream.body()
        if partial and (self._pieces is not None or not self._is_readable(body)):
            raise fault from None
        read_answer(body, self._format, self._hide_keys)
        return Answer(body=body, partial=partial)

    def _is_readable(self, body: bytes) -> bool:
        """Tell whether an answer has text or a call; reasoning alone, without its end, is of no use to anybody."""
        try:
            messages = read_answer(body, self._format, self._hide_keys)
        except ModelError:
            return False
        return any(message.text.strip() or any(call.name for call in message.calls) for message in messages)

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
        policy: RetryPolicy = RETRY,
        largest: int = LARGEST,
        environment: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        random: Callable[[], float] = chance.random,
    ) -> None:
        """Find the endpoint; its key comes from the provider's usual variables in `environment` where none is given.

        `format` tells dialects of OpenAI's chat apart where the model's name does not. `policy` limits time and
        retries, `largest` the bytes of an answer.
        """
        self._endpoint = endpoint(spec, environment=environment, base_url=base_url, key=key)
        self.name = self._endpoint.model
        self.format = _format(self._endpoint, format)
        self.stream = stream
        self.limit_field = self._endpoint.limit_field
        self._largest = largest
        require("http", "calling a model", "httpx2")
        self._http = HttpClient(policy, clock=clock, sleep=sleep, random=random)
        self._open: ContextVar[OpenClient | None] = ContextVar("open", default=None)

    def __repr__(self) -> str:
        return f"<model {self._endpoint.name()}>"

    async def ask(self, request: ModelRequest, listen: Callable[[Delta], None]) -> Answer:
        """Return the answer; retry what may pass unless something of an answer has come."""
        listener = StreamListener(self.format, listen, self._endpoint.hide_keys)
        fault = ModelError("timeout", "the model gave no answer in time", remedy="raise patience=")
        try:
            with anyio.move_on_after(self._http.policy.patience):
                body = await self._send(self._post(request), listener)
                if body is not None:
                    emit_answer(body, self.format, listen, self._endpoint.hide_keys)
                    return Answer(body=body)
                what = "the stream ended without an answer"
                fault = ModelError("malformed", what, remedy="check the address; try again", passing=True)
        except BrokenOffError as broken:
            fault = broken
        listener.close()
        return listener.answer(fault)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Keep one connection for all requests inside, instead of one for each."""
        async with AsyncExitStack() as stack:
            token = self._open.set(OpenClient(stack))
            try:
                yield
            finally:
                self._open.reset(token)

    async def _send(self, post: Post, listener: StreamListener) -> bytes | None:
        """Return an answer that comes in one piece; give a stream to the listener."""
        async with AsyncExitStack() as stack:
            client = await self._client(stack)
            if not self.stream:
                return await self._http.send(client, post, limit=self._largest)
            await self._http.stream(client, post, listener.take, limit=self._largest)
        # Some servers answer in one piece whatever they are asked for.
        return listener.whole

    async def _client(self, stack: AsyncExitStack) -> httpx2.AsyncClient:
        """Return the client of the run around this request, or one for this request alone."""
        run = self._open.get()
        if run is not None and run.client is not None:
            return run.client
        made = self._http.client(own_machine=self._endpoint.on_this_machine)
        client = await (stack if run is None else run.stack).enter_async_context(made)
        if run is not None:
            run.client = client
        return client

    def _post(self, request: ModelRequest) -> Post:
        body, composed_for = request.payload.body(self.format), request.payload.model
        model = self.name or providers.model_of(body) or (composed_for.name if composed_for is not None else "")
        if not model:
            raise ModelError("refused", "nobody says which model is to answer", remedy="name one: provider:model")
        sent = complete_body(
            body,
            self.format,
            model=model,
            max_output=request.max_output,
            limit_field=self.limit_field,
            stream=self.stream,
        )
        headers = {**self._endpoint.headers(), **request.payload.headers}
        return Post(self._endpoint.address(model, stream=self.stream), headers, sent, self._endpoint.hide_keys)


def _format(at: Endpoint, stated: str) -> str:
    """Return the format of an endpoint: of OpenAI's chat there are dialects, which the model's name tells."""
    own = at.provider.name
    if stated:
        name = providers.get(stated).name
        if name != own and not {name, own} <= set(providers.DIALECTS):
            raise InputError(
                f"{at.provider.name} does not speak {name!r}", remedy=f"leave the format out, or give {own!r}"
            )
        return name
    known = find_known(at.model) if own in providers.DIALECTS else None
    return own if known is None else providers.dialect(known)
