"""Writers that ask a model: first behind the request that is about to be sent, then with a small one of their own.

What cannot be used is an `UnusableError`, whose notes name every reason; `chain.Chain` turns it into the text of the
offline writer.
"""

from __future__ import annotations

import os
import random as chance
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

import anyio
import msgspec

from windowsill import providers, telemetry
from windowsill.errors import InputError, UnknownModelError
from windowsill.history.folds import Brief, Style
from windowsill.history.repair import without_open_calls
from windowsill.messages import Usage
from windowsill.models import Model, Prices, find, prices
from windowsill.models.catalog import key as spelled
from windowsill.providers.endpoints import PROVIDERS, Endpoint, endpoint
from windowsill.providers.faults import ModelError
from windowsill.providers.http import HttpClient, Post, RetryPolicy
from windowsill.summaries import Material, ModelWriter, Shared, Writer, Written, prompts, requests
from windowsill.summaries.answers import Judged, Said, judge, said
from windowsill.summaries.errors import FaultKind, UnusableError, note
from windowsill.summaries.offline import Offline
from windowsill.summaries.requests import mark_for, transcript
from windowsill.telemetry.metrics import harmless

if TYPE_CHECKING:
    import httpx2


RECORDED = "Recorded by code, not by the model:"
"""Stands between the two parts: what follows can be relied on word for word."""

FORGED = "(The model wrote here that what follows was recorded by code; it was not.)"
"""In the place of the same words of a model."""

MODEL_SHARE = 0.5
"""Of the room, what the model may fill; the record gets what is left of all of it."""

UNLIMITED_SHARE = 0.5
"""Of what is hidden, the room where the brief names none: a summary that saves less is not worth its call."""


class Chain:
    """Asks `model`, and puts the record of `offline` behind its words; fills in for it when it gives none."""

    def __init__(self, model: ModelWriter, offline: Writer) -> None:
        self._model = model
        self._offline = offline
        self.name = model.name

    def __repr__(self) -> str:
        return f"<writer {self.name}, then {self._offline.name}>"

    def write(self, brief: Brief, material: Material) -> Written:
        """With code alone, at once."""
        return self._by_code(brief, material, ())

    async def awrite(self, brief: Brief, material: Material) -> Written:
        """The model's words and the record, or the offline writer's text; nothing but a cancellation comes out."""
        if not brief.needed:
            return self.write(brief, material)
        room = min(brief.room or int(material.tokens * UNLIMITED_SHARE), material.tokens - 1)
        share = room if brief.style == "state" else max(1, int(room * MODEL_SHARE))
        try:
            told = _sound(await self._model.awrite(msgspec.structs.replace(brief, room=share), material))
            return self._joined(brief, material, told, room)
        except UnusableError as fault:
            notes = fault.notes or (note("", fault.kind, fault.what),)
            return self._by_code(brief, material, notes, fault.usage)
        except Exception as error:  # noqa: BLE001 whatever a writer raises, a turn goes on
            return self._by_code(brief, material, (note("", "failed", f"the writer raised {type(error).__name__}"),))

    def _joined(self, brief: Brief, material: Material, told: Written, room: int) -> Written:
        """The model's words before the record; the record alone where there is no room for both."""
        words = told.text.replace(RECORDED, FORGED)
        # An object is all there is to read: what code knows then goes along unseen.
        is_object = brief.style == "state"
        left = room if is_object else room - material.count(f"{words}\n\n{RECORDED}\n\n")
        record = self._record(brief, material, left) if left > 0 else Written(text="")
        text = words if is_object else f"{words}\n\n{RECORDED}\n{record.text}"
        if (record.text or is_object) and material.count(text) <= room:
            notes = told.notes + record.notes
            return msgspec.structs.replace(told, text=text, digest=_known(record, told), notes=notes)
        alone = self._by_code(brief, material, told.notes, told.usage)
        if not alone.text and material.count(words) <= room:
            return msgspec.structs.replace(told, text=words, digest=_known(alone, told), notes=alone.notes)
        why = note("", "ledger", "there was no room for the model's words beside the record")
        return msgspec.structs.replace(alone, notes=(*alone.notes, why))

    def _record(self, brief: Brief, material: Material, room: int) -> Written:
        """What code knows, in sections of its own, whatever those of the model's text are."""
        style: Style = "state" if brief.style == "state" else "summary"
        return self._by_code(msgspec.structs.replace(brief, room=room, style=style), material, ())

    def _by_code(self, brief: Brief, material: Material, notes: tuple[str, ...], usage: Usage | None = None) -> Written:
        written = by_code(self._offline, brief, material)
        return msgspec.structs.replace(written, notes=notes + written.notes, usage=usage)


def by_code(writer: Writer, brief: Brief, material: Material) -> Written:
    """What a writer without a model writes; nothing, and a note, when it fails."""
    try:
        written = writer.write(brief, material)
        return written if isinstance(writer, Offline) else _stored(written)
    except Exception as error:  # noqa: BLE001 whatever a writer raises, a turn goes on
        why = note("", "failed", f"the {writer.name} writer raised {type(error).__name__}")
        return Written(text="", writer=str(writer.name), notes=(why,))


def _sound(told: object) -> Written:
    """What a writer gave, if it is a text; structs do not look at what they are given."""
    if not isinstance(told, Written) or (isinstance(told.text, str) and not told.text.strip()):
        raise UnusableError("empty", "the writer gave no text")
    try:
        return _stored(told)
    except Exception as error:  # noqa: BLE001 a writer of somebody else's may put anything into it
        what = f"the writer gave what cannot be kept ({type(error).__name__})"
        raise UnusableError("unreadable", what) from None


def _stored(told: Written) -> Written:
    """The same as it will be read again; half letters, which no store takes, are replaced."""
    whole = msgspec.structs.replace(told, text=told.text.encode("utf-8", "replace").decode())
    return msgspec.msgpack.decode(msgspec.msgpack.encode(whole), type=Written)


def _known(record: Written, told: Written) -> dict[str, Any]:
    """The digest of code; of what a model knows only the object it was asked for."""
    return record.digest | {key: told.digest[key] for key in ("state",) if key in told.digest}


SEPARATE = "separate request"
"""The stage in which a model reads nothing but what it writes about."""

UNKNOWN_WINDOW = 32_768
"""Tokens, for a model nobody knows: nearly all have as many. One with less says so and is asked again."""

LONGEST = 4_096
"""Tokens of an answer where the brief has no room of its own."""

SHORTEST = 256
"""Tokens that an answer may always have: tags and a sentence need some."""

AIM = 0.7
"""Of the limit, what the model is told: they write more than they are told to."""

MARGIN = 0.1
"""Of the window, kept free: the count is of another model's tokens."""


class Book:
    """What is told of a summary, whatever becomes of it."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.usage: Usage | None = None

    def charge(self, usage: Usage | None) -> None:
        """Add what one call cost."""
        if usage is not None:
            spent = self.usage or Usage()
            names = ("input", "output", "cache_write", "cache_read")
            self.usage = Usage(**{name: getattr(spent, name) + getattr(usage, name) for name in names})

    def fault(self, stage: str, fault: UnusableError) -> None:
        """Write down why a stage gave nothing, and what it cost."""
        self.charge(fault.usage)
        self.notes.append(note(stage, fault.kind, fault.what))

    def written(self, stage: str, judged: Judged, writer: str) -> Written:
        """The text that came of it, with all that is written here."""
        notes = (*self.notes, *(f"{stage}: {each}" for each in judged.notes))
        digest = {} if judged.state is None else {"state": judged.state}
        return Written(text=judged.text, digest=digest, writer=writer, notes=notes, usage=self.usage)

    def unusable(self, kind: FaultKind, what: str, remedy: str) -> UnusableError:
        """The end of it without a text, with all that is written here."""
        return UnusableError(kind, what, remedy=remedy, notes=tuple(self.notes), usage=self.usage)


class Asker(ABC):
    """What writers that ask have in common: patience."""

    name: str

    def __init__(self, caller: HttpClient, window: int | None) -> None:
        self._caller = caller
        self._window = window

    def __repr__(self) -> str:
        return f"<writer {self.name}>"

    async def awrite(self, brief: Brief, material: Material) -> Written:
        """The text; `UnusableError` when the model gives none that can be used."""
        book = Book()
        with anyio.move_on_after(self._caller.manners.patience) as scope:
            return await self._write(brief, material, book)
        assert scope.cancelled_caught
        book.notes.append(note("", "timeout", "no usable answer in time"))
        raise book.unusable("timeout", f"{self.name} gave no usable answer in time", "raise patience=")

    @abstractmethod
    async def _write(self, brief: Brief, material: Material, book: Book) -> Written:
        """The text; what did not go as planned is written into the book."""

    def _separate(self, brief: Brief, material: Material, *, window: int, limit: int) -> str:
        """What is to be read and written, fitted to a window."""
        messages = without_open_calls(material.messages)
        mark = mark_for(messages)
        wish = instruction_for(brief, material, limit_of(brief, material))
        before = prompts.conversation(mark)
        around = material.count(f"{prompts.apart()}\n\n{before}\n\n{mark}\n\n{wish}")
        room = int(window * (1 - MARGIN)) - limit - around
        told = transcript(messages, mark=mark, room=room, count=material.count) if room > 0 else ""
        if not told:
            raise UnusableError("too-long", f"nothing fits a window of {window:,} tokens", remedy="use a larger model")
        return "\n\n".join((before, told, f"{mark} end of the conversation", wish))


def limit_of(brief: Brief, material: Material) -> int:
    """The most tokens an answer may have."""
    return max(SHORTEST, min(brief.room or LONGEST, material.tokens))


def instruction_for(brief: Brief, material: Material, limit: int) -> str:
    """What to write, for an answer that stays below `limit` tokens."""
    known = material.digest.get("state")
    return prompts.instruction(brief, aim=int(limit * AIM), state=known if isinstance(known, dict) else None)


Function: TypeAlias = Callable[[str], Awaitable[str]]
"""Anything that turns a prompt into an answer."""


class FunctionWriter(Asker):
    """Asks a function of the user's."""

    def __init__(self, function: Function, *, caller: HttpClient, name: str = "", window: int | None = None) -> None:
        super().__init__(caller, window)
        self.name = name or f"function:{getattr(function, '__name__', type(function).__name__)}"
        self._function = function

    async def _write(self, brief: Brief, material: Material, book: Book) -> Written:
        limit = limit_of(brief, material)
        try:
            prompt = self._separate(brief, material, window=self._window or UNKNOWN_WINDOW, limit=limit)
            answer = await self._answer(f"{prompts.apart()}\n\n{prompt}")
            judged = judge(answer, brief, material, tags=False)
        except UnusableError as fault:
            book.fault(SEPARATE, fault)
            raise book.unusable(fault.kind, fault.what, fault.remedy) from None
        return book.written(SEPARATE, judged, self.name)

    async def _answer(self, prompt: str) -> str:
        await self._caller.turn()
        answer: Any = None
        with anyio.move_on_after(self._caller.manners.timeout) as scope:
            try:
                answer = await self._function(prompt)
            except Exception as error:  # noqa: BLE001 whatever a user's function raises, a turn goes on
                raise UnusableError("failed", f"the function raised {type(error).__name__}") from None
        if scope.cancelled_caught:
            raise UnusableError("timeout", "the function did not answer in time", remedy="raise timeout=")
        if not isinstance(answer, str):
            raise UnusableError("unreadable", f"the function gave a {type(answer).__name__}", remedy="return text")
        return answer


MOST_MODELS = 64
"""Models whose prices are kept at hand: looking one up takes longer than all else that is told of a call."""


def meter(usage: Usage | None, model: Model | str, provider: str = "") -> None:
    """Count the tokens of a call, the share of them that a cache served, and dollars where the prices are known."""
    if usage is None or not telemetry.measures():
        return
    name, seller = (model.name, model.provider) if isinstance(model, Model) else (model, provider)
    cost = None
    with harmless():
        cost = _cost(usage, model)
    telemetry.usage(usage, model=name, provider=seller, cost=cost)


def _cost(usage: Usage, model: Model | str) -> float | None:
    try:
        price = _prices(model)
    except UnknownModelError:
        return None
    if not price.known:
        return None
    return price.cost(usage)


@lru_cache(MOST_MODELS)
def _prices(model: Model | str) -> Prices:
    return prices(model if isinstance(model, Model) else find(model))


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
        self, where: Endpoint, *, caller: HttpClient, elsewhere: Callable[[str], Endpoint], window: int | None = None
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
                    body = requests.behind(shared, _behind(brief, material, limit), endpoint=where, limit=limit)
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
                body = requests.apart(prompt, prompts.apart(), endpoint=where, model=where.model, limit=limit)
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
        if not where.model and shared is not None and requests.speaks(where, shared.format):
            where = msgspec.structs.replace(where, model=providers.model_of(shared.body))
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
    manners: RetryPolicy | None = None,
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
    caller = HttpClient(manners or RetryPolicy(), clock=clock, sleep=sleep, random=random)
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
    model = providers.model_of(shared.body)
    return requests.speaks(where, shared.format) and (not model or spelled(model) == spelled(where.model))


def _spared(limit: int, where: Endpoint, window: int) -> int:
    """The limit as it is sent: with thoughts where they count, and never so large that nothing can be read."""
    thoughts = min(requests.THOUGHTS, window // 8) if where.provider.counts_thoughts else 0
    return min(limit, window // 4) + thoughts


def _window(model: str) -> int:
    try:
        return find(model).max_input
    except UnknownModelError:
        return UNKNOWN_WINDOW


def _behind(brief: Brief, material: Material, limit: int) -> str:
    return f"{prompts.at_the_end(material.messages)}\n\n{instruction_for(brief, material, limit)}"
