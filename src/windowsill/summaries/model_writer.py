"""Writers that ask a model: first behind the request that is about to be sent, then with a small one of their own.

What cannot be used is an `UnusableError`, whose notes name every reason. `Chain` puts the record of the offline writer
behind a model's words, and fills in for it when it fails; it never raises.
"""

from __future__ import annotations

import os
import random as chance
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

import anyio
import msgspec

from windowsill import providers, telemetry
from windowsill.errors import InputError
from windowsill.extras import require
from windowsill.history.folds import Brief, Style
from windowsill.messages import Message, Usage, text_message
from windowsill.models import find_known, record_usage
from windowsill.providers.base import THOUGHTS
from windowsill.providers.faults import ModelError
from windowsill.providers.http import PROVIDERS, Endpoint, HttpClient, Post, RetryPolicy, endpoint
from windowsill.summaries import Material, ModelWriter, Writer, Written, prompts, requests
from windowsill.summaries.answers import Parsed, judge, read_answer
from windowsill.summaries.digest import load
from windowsill.summaries.offline import add_record, storable, write_by_code
from windowsill.summaries.requests import FaultKind, UnusableError, note
from windowsill.text import type_name

if TYPE_CHECKING:
    import httpx2


SHARED = "shared prefix"
"""The stage in which the model reads what it is about to be sent anyway."""

SEPARATE = "separate request"
"""The stage in which a model reads nothing but what it writes about."""

HOPELESS: frozenset[FaultKind] = frozenset({"no-key", "unreachable", "rate-limited"})
"""A second request to the same place would fare no better."""

MOST_WINDOWS = 2
"""Tries to fit a separate request: to the window we know, and to the one the provider names. A provider that then names
another one would name others without end."""

UNKNOWN_WINDOW = 32_768
"""Tokens, for a model nobody knows: nearly all have as many. One with less says so and is asked again."""

RECORDED = "Recorded by code, not by the model:"
"""Stands between the two parts: what follows can be relied on word for word."""

FORGED = "(The model wrote here that what follows was recorded by code; it was not.)"
"""In the place of the same words of a model."""

MODEL_SHARE = 0.5
"""The share of the room that the model may fill; the record gets the rest."""

UNLIMITED_SHARE = 0.5
"""The room as a share of what is hidden, where the brief names none: one that saves less is not worth its call."""

Function: TypeAlias = Callable[[str], Awaitable[str]]
"""Anything that turns a prompt into an answer."""

Ask: TypeAlias = "Callable[[_Attempt, int], Awaitable[Written]]"
"""Sends one request of its own for an attempt, fitted to a window."""


def writer(
    source: str | Function,
    *,
    name: str = "",
    key: str = "",
    base_url: str = "",
    window: int | None = None,
    policy: RetryPolicy | None = None,
    environment: Mapping[str, str] = os.environ,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    random: Callable[[], float] = chance.random,
) -> ModelWriter:
    """Make a writer that asks a model: `"anthropic:claude-haiku-4-5"`, `"openai:qwen3@http://127.0.0.1:8080/v1"`.

    Or a function: `async def answer(prompt: str) -> str`. A provider without a model asks the conversation's own. Keys
    come from the provider's usual variables in `environment`. `name` is for a function; `window` for a model that is
    not in the table.
    """
    caller = HttpClient(policy or RetryPolicy(), clock=clock, sleep=sleep, random=random)
    if isinstance(source, str):
        where = endpoint(source, environment=environment, base_url=base_url, key=key)
        # A function keeps the environment out of representations: it holds keys.
        return EndpointWriter(
            where, caller=caller, window=window, find_endpoint=lambda spec: endpoint(spec, environment=environment)
        )
    if not callable(source):
        raise InputError(
            "a writer is neither a text nor a function", remedy='give "provider:model" or an async function'
        )
    return FunctionWriter(source, caller=caller, name=name, window=window)


class _Attempt:
    """One summary in the making: what it is written of, and the notes and costs of all its stages."""

    def __init__(self, brief: Brief, material: Material) -> None:
        self.brief = brief
        self.material = material
        self.notes: list[str] = []
        self.usage: Usage | None = None

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Note why a stage gave nothing, and what it cost."""
        try:
            yield
        except (ModelError, UnusableError) as error:
            fault = UnusableError.of(error) if isinstance(error, ModelError) else error
            self.charge(fault.usage)
            self.notes.append(note(name, fault.kind, fault.what))
            raise fault from None

    def charge(self, usage: Usage | None) -> None:
        """Add what one call cost."""
        if usage is not None:
            spent = self.usage or Usage()
            names = ("input", "output", "cache_write", "cache_read")
            self.usage = Usage(**{name: getattr(spent, name) + getattr(usage, name) for name in names})

    def judge(self, stage: str, answer: str, writer: str) -> Written:
        """Return what can be used of an answer, with all notes and costs."""
        parsed: Parsed = judge(answer, self.brief, self.material, tags=stage == SHARED)
        notes = (*self.notes, *(f"{stage}: {each}" for each in parsed.notes))
        digest = {} if parsed.state is None else {"state": parsed.state}
        return Written(text=parsed.text, digest=digest, writer=writer, notes=notes, usage=self.usage)


class _Asker(ABC):
    """A writer that asks, with the patience its caller allows."""

    name: str

    def __init__(self, caller: HttpClient, window: int | None) -> None:
        self._caller = caller
        self._window = window

    def __repr__(self) -> str:
        return f"<writer {self.name}>"

    async def awrite(self, brief: Brief, material: Material) -> Written:
        """Write the text; `UnusableError` when the model gives none that can be used."""
        attempt = _Attempt(brief, material)
        try:
            with anyio.move_on_after(self._caller.policy.patience):
                return await self._write(attempt)
        except UnusableError as fault:
            fault.notes, fault.usage = tuple(attempt.notes), attempt.usage
            raise
        notes = (*attempt.notes, note("", "timeout", "no usable answer in time"))
        what = f"{self.name} gave no usable answer in time"
        raise UnusableError("timeout", what, remedy="raise patience=", notes=notes, usage=attempt.usage)

    @abstractmethod
    async def _write(self, attempt: _Attempt) -> Written:
        """Write the text; each stage notes what did not go as planned."""

    async def _write_apart(self, attempt: _Attempt, window: int, ask: Ask) -> Written:
        """Write from a request of its own; what is larger than the window is read in parts, which are then joined."""
        brief, material = attempt.brief, attempt.material
        limit = min(requests.answer_limit(brief, material), window // 4)
        room = requests.reading_room(brief, material, window=window, limit=limit + min(THOUGHTS, window // 8))
        parts, left_out = requests.split(material, room) if room > 0 else ([material], 0)
        if len(parts) == 1:
            return await ask(attempt, window)
        told: list[Message] = []
        share = max(requests.SHORTEST, min(limit, room // (2 * len(parts))))
        for number, part in enumerate(parts, 1):
            if brief.style == "state":
                step = _Attempt(brief, msgspec.structs.replace(part, digest=attempt.material.digest))
            else:
                step = _Attempt(
                    Brief(style="summary", room=share, directives=brief.directives, model=brief.model), part
                )
            written = await ask(step, window)
            attempt.charge(written.usage)
            attempt.notes += step.notes
            if brief.style == "state":
                attempt.material = msgspec.structs.replace(material, digest={**material.digest, **written.digest})
            else:
                told.append(text_message("user", f"Part {number} of {len(parts)}:\n{written.text}"))
        read = f"{len(material.messages):,} messages were read in {len(parts)} parts"
        if left_out:
            read += f"; {left_out:,} of them found no place in a window of {window:,} tokens and were not read"
        attempt.notes.append(f"{SEPARATE}: {read}")
        if brief.style != "state":
            # As many as they are: texts that do not fit the window together are read in parts again.
            size = sum(material.count(part.text) for part in told)
            step = _Attempt(brief, msgspec.structs.replace(material, messages=tuple(told), tokens=size, shared=None))
            smaller = size < material.tokens
            written = await (self._write_apart(step, window, ask) if smaller else ask(step, window))
            attempt.charge(written.usage)
        text = f"{written.text}\n\n({read}.)" if left_out and brief.style != "state" else written.text
        return msgspec.structs.replace(written, text=text, notes=(*attempt.notes, *step.notes), usage=attempt.usage)


class FunctionWriter(_Asker):
    """Asks a function of the user's."""

    def __init__(self, function: Function, *, caller: HttpClient, name: str = "", window: int | None = None) -> None:
        super().__init__(caller, window)
        self.name = name or f"function:{getattr(function, '__name__', type(function).__name__)}"
        self._function = function

    async def _write(self, attempt: _Attempt) -> Written:
        with attempt.stage(SEPARATE):
            return await self._write_apart(attempt, self._window or UNKNOWN_WINDOW, self._ask)

    async def _ask(self, attempt: _Attempt, window: int) -> Written:
        brief, material = attempt.brief, attempt.material
        limit = min(requests.answer_limit(brief, material), window // 4)
        prompt = requests.separate_prompt(brief, material, window=window, limit=limit)
        answer = await self._answer(f"{prompts.separate_role()}\n\n{prompt}")
        return attempt.judge(SEPARATE, answer, self.name)

    async def _answer(self, prompt: str) -> str:
        await self._caller.turn()
        answer: Any = None
        with anyio.move_on_after(self._caller.policy.timeout) as scope:
            try:
                answer = await self._function(prompt)
            except Exception as error:  # noqa: BLE001 whatever a user's function raises, a turn goes on
                raise UnusableError("failed", f"the function raised {type(error).__name__}") from None
        if scope.cancelled_caught:
            raise UnusableError("timeout", "the function did not answer in time", remedy="raise timeout=")
        if not isinstance(answer, str):
            raise UnusableError("unreadable", f"the function gave {type_name(answer)}", remedy="return text")
        return answer


class EndpointWriter(_Asker):
    """Asks a model over the network; `find_endpoint` finds the endpoint of another model that a brief names."""

    def __init__(
        self,
        where: Endpoint,
        *,
        caller: HttpClient,
        find_endpoint: Callable[[str], Endpoint],
        window: int | None = None,
    ) -> None:
        require("http", "calling a model", "httpx2")
        super().__init__(caller, window)
        self.name = where.name()
        self._where = where
        self._find_endpoint = find_endpoint

    async def _write(self, attempt: _Attempt) -> Written:
        brief, material, shared = attempt.brief, attempt.material, attempt.material.shared
        with attempt.stage(""):
            where = self._place(brief, material)
            where.headers()
            opened = self._caller.client(own_machine=where.on_this_machine)
        async with opened as client:
            # What is about to be sent holds secrets: it goes nowhere but where the session's own requests go.
            usual = self._find_endpoint(where.name()).url
            if shared is not None and where.url == usual and requests.shares_cache(where, shared):
                try:
                    with attempt.stage(SHARED):
                        body = requests.extend_request(shared, brief, material, endpoint=where)
                        return await self._ask(client, where, attempt, SHARED, body, shared.format)
                except UnusableError as fault:
                    if fault.kind in HOPELESS:
                        raise
            return await self._ask_apart(client, where, attempt)

    async def _ask_apart(self, client: httpx2.AsyncClient, where: Endpoint, attempt: _Attempt) -> Written:
        """Send the separate request; once more, smaller, when the provider says that its window is."""
        window, tries = self._window or _window(where.model), MOST_WINDOWS

        async def ask(step: _Attempt, window: int) -> Written:
            body = requests.separate_request(step.brief, step.material, endpoint=where, window=window)
            return await self._ask(client, where, step, SEPARATE, body, where.provider.name)

        while True:
            tries -= 1
            try:
                with attempt.stage(SEPARATE):
                    return await self._write_apart(attempt, window, ask)
            except UnusableError as fault:
                named = fault.window
                if fault.kind != "too-long" or named is None or named >= window or not tries:
                    raise
                window = named

    async def _ask(
        self, client: httpx2.AsyncClient, where: Endpoint, attempt: _Attempt, stage: str, body: bytes, format: str
    ) -> Written:
        """Send a request, record what was paid for, of use or not, and judge the answer."""
        post = Post(where.address(where.model), where.headers(), body, where.hide_keys)
        provider, at = where.provider.name, urlsplit(post.url)
        used: Usage | None = None
        with telemetry.model_call(where.model, provider=provider, server=at.hostname, port=at.port) as call:
            try:
                answer = read_answer(format, await self._caller.send(client, post))
                used = answer.usage
            except UnusableError as fault:
                used = fault.usage
                raise
            finally:
                call.record_answer(used)
                record_usage(used, where.model, provider)
        attempt.charge(used)
        return attempt.judge(stage, answer.text, where.name())

    def _place(self, brief: Brief, material: Material) -> Endpoint:
        """Return where to ask, and which model: the brief's, the writer's own, or the conversation's."""
        where = self._where
        if brief.model and brief.model.partition(":")[0] in PROVIDERS:
            where = self._find_endpoint(brief.model)
        elif brief.model:
            where = msgspec.structs.replace(where, model=brief.model)
        shared = material.shared
        if not where.model and shared is not None and requests.accepts_format(where, shared.format):
            where = msgspec.structs.replace(where, model=providers.model_of(shared.body))
        if not where.model:
            raise UnusableError("no-model", "nobody says which model is to write", remedy="name one: provider:model")
        return where


def _window(model: str) -> int:
    known = find_known(model)
    return UNKNOWN_WINDOW if known is None else known.max_input


class Chain:
    """Asks `model`, and puts the record of `offline` behind its words; fills in for it when it gives none."""

    def __init__(self, model: ModelWriter, offline: Writer) -> None:
        self._model = model
        self._offline = offline
        self.name = model.name

    def __repr__(self) -> str:
        return f"<writer {self.name}, then {self._offline.name}>"

    def write(self, brief: Brief, material: Material) -> Written:
        """Write with code alone, at once."""
        return self._by_code(brief, material, ())

    async def awrite(self, brief: Brief, material: Material) -> Written:
        """Write the model's words and the record, or the offline writer's text; only a cancellation is raised."""
        if not brief.needed:
            return self.write(brief, material)
        if brief.beside:
            return await self._write_beside(brief, material)
        room = min(brief.room or int(material.tokens * UNLIMITED_SHARE), material.tokens - 1)
        most = min(room + brief.record, material.tokens - 1)
        share = room if brief.style == "state" else max(1, int(room * MODEL_SHARE))
        written = await self._ask(msgspec.structs.replace(brief, room=share), material)
        if not written.text:
            return self._by_code(brief, material, written.notes, written.usage)
        return self._join(brief, material, written, room, most)

    async def _write_beside(self, brief: Brief, material: Material) -> Written:
        """Write the model's words alone, within their room; nothing, and a note, when it gives none."""
        written = msgspec.structs.replace(await self._ask(brief, material), digest={})
        if not written.text or material.count(written.text) <= brief.room:
            return written
        too_long = note("", "too-long", f"the text has more than {brief.room:,} tokens")
        return msgspec.structs.replace(written, text="", notes=(*written.notes, too_long))

    async def _ask(self, brief: Brief, material: Material) -> Written:
        """Return what the model writes; without a text, and with a note, when it gives none."""
        try:
            return _checked(await self._model.awrite(brief, material))
        except UnusableError as fault:
            notes = fault.notes or (note("", fault.kind, fault.what),)
            return Written(text="", writer=self.name, notes=notes, usage=fault.usage)
        except Exception as error:  # noqa: BLE001 whatever a writer raises, a turn goes on
            why = note("", "failed", f"the writer raised {type(error).__name__}")
            return Written(text="", writer=self.name, notes=(why,))

    def _join(self, brief: Brief, material: Material, written: Written, room: int, most: int) -> Written:
        """Put the record behind the model's words; the record stands alone where there is no room for both."""
        words = written.text.replace(RECORDED, FORGED)
        # An object is all there is to read: what code knows then goes along unseen.
        is_object = brief.style == "state"
        taken = 0 if is_object else material.count(f"{words}\n\n{RECORDED}\n\n")
        record = Written(text="")
        if most > taken:
            # The record has sections of its own, whatever those of the model's text are.
            left = max(1, room - taken)
            style: Style = "state" if is_object else "summary"
            own = msgspec.structs.replace(brief, room=left, record=most - taken - left, style=style)
            record = self._by_code(own, material, ())
        text = f"{words}\n\n{RECORDED}\n{record.text}"
        if is_object:
            text = add_record(words, load(record.digest), most, material.count)
        if (record.text or is_object) and material.count(text) <= most:
            return msgspec.structs.replace(
                written, text=text, digest=_digest(record, written), notes=written.notes + record.notes
            )
        alone = self._by_code(brief, material, written.notes, written.usage)
        if not alone.text and material.count(words) <= room:
            return msgspec.structs.replace(written, text=words, digest=_digest(alone, written), notes=alone.notes)
        why = note("", "ledger", "there was no room for the model's words beside the record")
        return msgspec.structs.replace(alone, notes=(*alone.notes, why))

    def _by_code(self, brief: Brief, material: Material, notes: tuple[str, ...], usage: Usage | None = None) -> Written:
        alone = write_by_code(self._offline, brief, material)
        return msgspec.structs.replace(alone, notes=notes + alone.notes, usage=usage)


def _checked(written: object) -> Written:
    """Return what a writer gave, if it is a text; structs do not look at what they are given."""
    if not isinstance(written, Written) or (isinstance(written.text, str) and not written.text.strip()):
        raise UnusableError("empty", "the writer gave no text")
    try:
        return storable(written)
    except Exception as error:  # noqa: BLE001 a writer of somebody else's may put anything into it
        what = f"the writer gave what cannot be kept ({type(error).__name__})"
        raise UnusableError("unreadable", what) from None


def _digest(record: Written, written: Written) -> dict[str, Any]:
    """Return the digest of code; of what a model knows only the object it was asked for."""
    return record.digest | {key: written.digest[key] for key in ("state",) if key in written.digest}
