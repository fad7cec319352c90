"""Writers that ask a model: first behind the request that is about to be sent, then with a small one of their own.

What cannot be used is an `UnusableError`, whose notes name every reason; `chain.Chain` turns it into the text of the
offline writer.
"""

from __future__ import annotations

import os
import random as chance
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
import msgspec

from windowsill import formats, telemetry
from windowsill.errors import InputError, UnknownModelError
from windowsill.history.folds import Brief
from windowsill.messages import Usage
from windowsill.models import find
from windowsill.models.names import key as spelled
from windowsill.writers import Material, ModelWriter, Shared, Written, asking, prompts
from windowsill.writers.asker import SEPARATE, UNKNOWN_WINDOW, Asker, Book, instruction_for, limit_of
from windowsill.writers.calling import Caller, Manners, Post
from windowsill.writers.endpoints import PROVIDERS, Endpoint, endpoint
from windowsill.writers.errors import FaultKind, UnusableError
from windowsill.writers.faults import ModelError
from windowsill.writers.function import Function, FunctionWriter
from windowsill.writers.judging import Said, judge, said
from windowsill.writers.metering import meter

if TYPE_CHECKING:
    import httpx2

SHARED = "shared prefix"
"""The stage in which the model reads what it is about to be sent anyway."""

HOPELESS: frozenset[FaultKind] = frozenset({"no-key", "unreachable", "rate-limited"})
"""A second request to the same place would fare no better."""


MOST_WINDOWS = 2
"""How often a request of its own is fitted: to the window we know, and to the one the provider names. Who then names
another one would name others without end."""


class EndpointWriter(Asker):
    """Asks a model over the network."""

    def __init__(
        self, where: Endpoint, *, caller: Caller, elsewhere: Callable[[str], Endpoint], window: int | None = None
    ) -> None:
        super().__init__(caller, window)
        self.name = where.name()
        self._where = where
        self._elsewhere = elsewhere

    async def _write(self, brief: Brief, material: Material, book: Book) -> Written:
        try:
            where = self._place(brief, material)
            where.headers()
            opened = self._caller.client(own_machine=where.on_this_machine)
        except (ModelError, UnusableError) as error:
            fault = UnusableError.of(error) if isinstance(error, ModelError) else error
            book.fault("", fault)
            raise book.unusable(fault.kind, fault.what, fault.remedy) from None
        async with opened as client:
            ask = partial(self._ask, client, where, brief, material, book)
            limit = limit_of(brief, material)
            shared = material.shared
            if shared is not None and _shares(where, shared):
                try:
                    body = asking.behind(shared, _behind(brief, material, limit), endpoint=where, limit=limit)
                    return await ask(SHARED, body, shared.format)
                except UnusableError as fault:
                    book.fault(SHARED, fault)
                    if fault.kind in HOPELESS:
                        raise book.unusable(fault.kind, fault.what, fault.remedy) from None
            return await self._alone(ask, where, brief, material, book)

    async def _alone(
        self,
        ask: Callable[[str, bytes, str], Awaitable[Written]],
        where: Endpoint,
        brief: Brief,
        material: Material,
        book: Book,
    ) -> Written:
        """The separate request; once more, smaller, when the provider says that its window is."""
        window, tries = self._window or _window(where.model), MOST_WINDOWS
        while True:
            tries -= 1
            limit = _spared(limit_of(brief, material), where, window)
            try:
                prompt = self._separate(brief, material, window=window, limit=limit)
                body = asking.apart(prompt, prompts.apart(), endpoint=where, model=where.model, limit=limit)
                return await ask(SEPARATE, body, where.provider.name)
            except UnusableError as fault:
                book.fault(SEPARATE, fault)
                named = fault.window
                if fault.kind != "too-long" or named is None or named >= window or not tries:
                    raise book.unusable(fault.kind, fault.what, fault.remedy) from None
                window = named

    async def _ask(
        self,
        client: httpx2.AsyncClient,
        where: Endpoint,
        brief: Brief,
        material: Material,
        book: Book,
        stage: str,
        body: bytes,
        format: str,
    ) -> Written:
        post = Post(where.address(where.model), where.headers(), body, where.hide_keys)
        answer = await self._answer(client, where, post, format)
        book.charge(answer.usage)
        judged = judge(answer.text, brief, material, tags=stage == SHARED)
        return book.written(stage, judged, where.name())

    async def _answer(self, client: httpx2.AsyncClient, where: Endpoint, post: Post, format: str) -> Said:
        """What the model said; whoever measures hears of what was paid for, of use or not."""
        provider, at = where.provider.name, urlsplit(post.url)
        used: Usage | None = None
        with telemetry.model_call(where.model, provider=provider, server=at.hostname, port=at.port) as call:
            try:
                answer = said(format, await self._caller.send(client, post))
                used = answer.usage
            except ModelError as error:
                raise UnusableError.of(error) from None
            except UnusableError as fault:
                used = fault.usage
                raise
            finally:
                call.answered(used)
                meter(used, where.model, provider)
        return answer

    def _place(self, brief: Brief, material: Material) -> Endpoint:
        """Where to ask, with the model that is to write: the brief's, the writer's own, or the conversation's."""
        where = self._where
        if brief.model and brief.model.partition(":")[0] in PROVIDERS:
            where = self._elsewhere(brief.model)
        elif brief.model:
            where = msgspec.structs.replace(where, model=brief.model)
        shared = material.shared
        if not where.model and shared is not None and asking.speaks(where, shared.format):
            where = msgspec.structs.replace(where, model=formats.model_of(shared.body))
        if not where.model:
            raise UnusableError("no-model", "nobody says which model is to write", remedy="name one: provider:model")
        return where


def writer(
    source: str | Function,
    *,
    name: str = "",
    key: str = "",
    base_url: str = "",
    window: int | None = None,
    manners: Manners | None = None,
    environment: Mapping[str, str] = os.environ,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    random: Callable[[], float] = chance.random,
) -> ModelWriter:
    """A writer that asks a model, such as `"anthropic:claude-haiku-4-5"`, `"openai:qwen3@http://127.0.0.1:8080/v1"`.

    Or a function: `async def answer(prompt: str) -> str`. A provider without a model asks the conversation's own. Keys
    come from the provider's usual variables in `environment`. `name` is for a function; `window` for a model that is
    not in the table.
    """
    caller = Caller(manners or Manners(), clock=clock, sleep=sleep, random=random)
    if isinstance(source, str):
        where = endpoint(source, environment=environment, base_url=base_url, key=key)

        def elsewhere(spec: str) -> Endpoint:
            return endpoint(spec, environment=environment)

        return EndpointWriter(where, caller=caller, elsewhere=elsewhere, window=window)
    if not callable(source):
        raise InputError(
            "a writer is neither a text nor a function", remedy='give "provider:model" or an async function'
        )
    return FunctionWriter(source, caller=caller, name=name, window=window)


def _shares(where: Endpoint, shared: Shared) -> bool:
    """Whether the request that is about to be sent goes to the same model: only then has its cache anything to give.

    Gemini's bodies do not name it; it is taken to be the same.
    """
    model = formats.model_of(shared.body)
    return asking.speaks(where, shared.format) and (not model or spelled(model) == spelled(where.model))


def _spared(limit: int, where: Endpoint, window: int) -> int:
    """The limit as it is sent: with thoughts where they count, and never so large that nothing can be read."""
    thoughts = min(asking.THOUGHTS, window // 8) if where.provider.counts_thoughts else 0
    return min(limit, window // 4) + thoughts


def _window(model: str) -> int:
    try:
        return find(model).max_input
    except UnknownModelError:
        return UNKNOWN_WINDOW


def _behind(brief: Brief, material: Material, limit: int) -> str:
    return f"{prompts.at_the_end(material.messages)}\n\n{instruction_for(brief, material, limit)}"
