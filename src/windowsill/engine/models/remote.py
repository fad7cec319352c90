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
import msgspec

from windowsill import formats
from windowsill.engine.models.body import fitted
from windowsill.engine.models.faults import met
from windowsill.engine.models.hearing import Hearing
from windowsill.engine.models.seam import Answer, Asked, Delta, ModelError
from windowsill.errors import InputError, UnknownModelError
from windowsill.models import find
from windowsill.writers.calling import BrokenOffError, Caller, Manners, Post
from windowsill.writers.endpoints import Endpoint, endpoint
from windowsill.writers.faults import UnusableError

if TYPE_CHECKING:
    import httpx2

MANNERS = Manners(timeout=600.0, patience=1_800.0, longest_wait=60.0)
"""Models may think for minutes: an answer may take as long as the providers' own clients wait. Limits are counted by
the minute, so a pause of that length is worth it; longer ones are left to the caller."""

LARGEST = 64 * 1024 * 1024
"""Bytes of an answer as it comes: the longest there are, each word in an event of its own, stay well below."""


class Kept:
    """A client that is made when it is first needed and closed with its run."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self.stack = stack
        self.client: httpx2.AsyncClient | None = None


class Remote:
    """Asks the model that `provider:model` or `provider:model@http://address` names."""

    def __init__(
        self,
        spec: str,
        *,
        key: str = "",
        base_url: str = "",
        format: str = "",
        stream: bool = True,
        manners: Manners = MANNERS,
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
        self._largest = largest
        self._clock = clock
        self._caller = Caller(manners, clock=clock, sleep=sleep, random=random)
        self._kept: ContextVar[Kept | None] = ContextVar("kept", default=None)

    def __repr__(self) -> str:
        return f"<model {self._where.name()}>"

    @property
    def limit_field(self) -> str:
        """The name under which requests to this address state the limit of an answer."""
        return self._where.limit_field

    async def ask(self, asked: Asked, listen: Callable[[Delta], None]) -> Answer:
        """The answer; what fails in passing is asked again unless something of an answer has come."""
        began = self._clock()
        hearing = Hearing(self.format, listen, self._where.scrubbed)
        try:
            with anyio.move_on_after(self._caller.manners.patience):
                body = await self._send(self._post(asked), hearing)
                return self._answer(body, hearing, began)
            fault = BrokenOffError("timeout", "the model gave no answer in time", remedy="raise patience=")
        except BrokenOffError as broken:
            fault = broken
        except UnusableError as error:
            raise met(error) from None
        return self._broken(fault, hearing, began)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Keep one connection for all that is asked inside, instead of one for each."""
        async with AsyncExitStack() as stack:
            token = self._kept.set(Kept(stack))
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

    async def _send(self, post: Post, hearing: Hearing) -> bytes | None:
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
        model = self.name or _model_of(body) or (asked.payload.model.name if asked.payload.model is not None else "")
        if not model:
            raise ModelError("refused", "nobody says which model is to answer", remedy="name one: provider:model")
        sent = fitted(
            body,
            self.format,
            model=model,
            max_output=asked.max_output,
            limit_field=self._where.limit_field,
            stream=self.stream,
        )
        headers = {**self._where.headers(), **asked.payload.headers}
        return Post(self._where.address(model, stream=self.stream), headers, sent, self._where.scrubbed)

    def _answer(self, body: bytes | None, hearing: Hearing, began: float) -> Answer:
        if body is not None:
            hearing.tell(body)
            return Answer(body=body, seconds=self._clock() - began)
        if hearing.partial and not hearing.says_anything:
            what = "the stream ended without an answer"
            raise ModelError("malformed", what, remedy="check the address; try again", passing=True)
        return Answer(body=hearing.body(), partial=hearing.partial, seconds=self._clock() - began)

    def _broken(self, fault: BrokenOffError, hearing: Hearing, began: float) -> Answer:
        """What came before it broke off, if that says anything."""
        hearing.close()
        if hearing.partial and not hearing.says_anything:
            raise met(fault) from None
        return Answer(body=hearing.body(), partial=hearing.partial, seconds=self._clock() - began)


def _format(where: Endpoint, stated: str) -> str:
    """The format of this endpoint: of OpenAI's chat there are dialects, which the model's name tells."""
    own = where.provider.format
    if stated:
        name = formats.get(stated).name
        if name != own and not {name, own} <= set(formats.DIALECTS):
            raise InputError(
                f"{where.provider.name} does not speak {name!r}", remedy=f"leave the format out, or give {own!r}"
            )
        return name
    if own not in formats.DIALECTS:
        return own
    try:
        return formats.dialect(find(where.model))
    except UnknownModelError:
        return own


def _model_of(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=_Named).model or ""
    except msgspec.DecodeError:
        return ""


class _Named(msgspec.Struct):
    model: str | None = None
