"""Models without a network for tests of agents: one that plays a script, and one that disturbs another."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias, get_args

from anyio.lowlevel import checkpoint

from windowsill import providers
from windowsill.agent.models.base import (
    Answer,
    Delta,
    Model,
    ModelRequest,
    decoded_request,
    emit_answer,
    read_answer,
    render_reply,
)
from windowsill.errors import InputError, SettingError
from windowsill.messages import Block, Message, Text, ToolUse, Usage, text_length
from windowsill.providers.faults import ModelError, from_exception, hide_keys
from windowsill.providers.wire import encode
from windowsill.testing.protocols.base import Call
from windowsill.text import type_name

CHARACTERS = 4
"""Of a token, give or take: the usage of an answer that nobody counted."""


def _answer(
    item: Any, asked: ModelRequest, model: Model, request: dict[str, Any], number: int, *, whole: bool = True
) -> Answer:
    """Make the answer that says an item of a script, with the usage that such a call would report.

    Calls without an id get one that is the same for the same request, and for no other.
    """
    prefix = f"call_{hashlib.blake2b(encode([number, request]), digest_size=6).hexdigest()}"
    message = Message(role="assistant", blocks=tuple(_blocks(item if isinstance(item, list) else [item], prefix)))
    usage = Usage(input=asked.payload.tokens, output=max(1, text_length(message.blocks) // CHARACTERS))
    body = render_reply(message, model.format, model=model.name, usage=usage, whole=whole)
    return Answer(body=body, partial=not whole)


def _blocks(parts: Iterable[Any], prefix: str) -> Iterator[Block]:
    for place, part in enumerate(parts):
        id = f"{prefix}_{place}"
        match part:
            case str():
                yield Text(text=part)
            case Call():
                yield ToolUse(id=part.id or id, name=part.name, arguments=encode(part.input).decode())
            case (str(name), dict(given)):
                yield ToolUse(id=id, name=name, arguments=encode(given).decode())
            case (str(name), str(arguments)):
                yield ToolUse(id=id, name=name, arguments=arguments)
            case _:
                raise InputError(
                    f"a script cannot say {type_name(part)}",
                    remedy="give text, a Call, (name, arguments), a list of these, an error or a function",
                )


class Scripted(Model):
    """Gives each of `answers` once, in any wire format, with a usage.

    An answer is text, a `Call` or `(name, arguments)`, a list of these in one answer, an `Answer` of the engine's seam,
    an error to be raised, or a function of the decoded request that gives any of these. `then` is what it says when
    they are used up; without it that is an error. `requests` are the requests it saw.
    """

    def __init__(self, answers: Iterable[Any], format: str = "openai", *, name: str = "", then: Any = None) -> None:
        self.name = name
        self.format = providers.get(format).name
        self.requests: list[dict[str, Any]] = []
        self._answers = list(answers)
        self._then = then

    def __repr__(self) -> str:
        return f"<model scripted: {len(self.requests)} of {len(self._answers)} answers given>"

    @property
    def left(self) -> int:
        """The number of answers that have not been given."""
        return max(0, len(self._answers) - len(self.requests))

    async def ask(self, asked: ModelRequest, listen: Callable[[Delta], None]) -> Answer:
        """Give the next answer."""
        await checkpoint()
        request = decoded_request(asked, self.format, self.name)
        self.requests.append(request)
        item = self._item(request)
        if not isinstance(item, Answer):
            item = _answer(item, asked, self, request, len(self.requests))
        emit_answer(item.body, self.format, listen, hide_keys)
        return item

    def _item(self, request: dict[str, Any]) -> Any:
        number = len(self.requests)
        item = self._answers[number - 1] if number <= len(self._answers) else self._then
        if item is None:
            raise InputError(
                f"the script has {len(self._answers)} answers and is asked for number {number}",
                remedy="give it more, or say with then= what comes after them",
            )
        while callable(item):
            try:
                item = item(request)
            except Exception as error:  # noqa: BLE001 whatever it raises is what the script says
                item = error
        if isinstance(item, Exception):
            raise from_exception(item, "the script") from None
        if isinstance(item, BaseException):
            raise item
        return item


Kind: TypeAlias = Literal[
    "ok", "overflow", "server", "rate-limited", "partial", "malformed-arguments", "unknown-tool", "repeat"
]

KINDS: tuple[Kind, ...] = tuple(kind for kind in get_args(Kind) if kind != "ok")
"""All disturbances."""

TORN = '{"path": "src/'
"""Arguments that are not JSON; formats that take nothing but objects have them as text inside of one."""

UNKNOWN = "no_such_tool"

WORDS = "I was about to look at the"

PAUSE = 0.01
"""Seconds that a rate limit asks for: a test that keeps to it is not slow."""


class Chaos(Model):
    """Lets `inner` answer, or something goes wrong in its place; what `inner` has to say is never lost.

    `schedule` says what happens, call by call. After it, with a `seed`, one call in `1 / share` is disturbed, by one of
    `kinds`; without a seed `then` happens from there on. `window` is what an overflow names as the limit. `did` tells
    what happened.
    """

    def __init__(
        self,
        seed: int | None = None,
        inner: Model | None = None,
        *,
        schedule: Sequence[Kind] = (),
        then: Kind = "ok",
        share: float = 0.5,
        kinds: Sequence[Kind] = KINDS,
        window: int | None = None,
    ) -> None:
        self._inner: Model = inner if inner is not None else Scripted((), then="ok")
        self.name = self._inner.name
        self.format = self._inner.format
        self.did: list[Kind] = []
        for kind in (*schedule, then, *kinds):
            if kind not in get_args(Kind):
                raise SettingError("kind", kind, f"one of {', '.join(get_args(Kind))}")
        if not 0 <= share <= 1:
            raise SettingError("share", share, "a number from 0 to 1")
        self._schedule, self._then, self._share, self._kinds = tuple(schedule), then, share, tuple(kinds)
        self._chance = None if seed is None else random.Random(seed)  # noqa: S311 the same for the same seed
        self._window = window
        self._last: list[tuple[str, str]] = []
        """The last calls of the inner model, to be repeated."""

    def __repr__(self) -> str:
        return f"<model chaos around {self._inner!r}>"

    async def ask(self, asked: ModelRequest, listen: Callable[[Delta], None]) -> Answer:
        """Give the answer of the inner model, or a disturbance."""
        kind = self._next()
        self.did.append(kind)
        if kind == "ok":
            answer = await self._inner.ask(asked, listen)
            messages = read_answer(answer.body, self.format, hide_keys)
            self._last = [(call.name, call.arguments) for each in messages for call in each.calls] or self._last
            return answer
        await checkpoint()
        if kind in {"overflow", "server", "rate-limited"}:
            raise self._error(kind, asked)
        request = decoded_request(asked, self.format, self.name)
        item = self._item(kind, request)
        answer = _answer(item, asked, self, request, len(self.did), whole=kind != "partial")
        emit_answer(answer.body, self.format, listen, hide_keys)
        return answer

    def _next(self) -> Kind:
        number = len(self.did)
        if number < len(self._schedule):
            return self._schedule[number]
        if self._chance is None:
            return self._then
        disturbed = self._chance.random() < self._share
        return self._chance.choice(self._kinds) if disturbed and self._kinds else "ok"

    def _error(self, kind: Kind, asked: ModelRequest) -> ModelError:
        match kind:
            case "overflow":
                message = "Your input exceeds the context window of this model. Please adjust your input and try again."
                if self._window is not None:
                    tokens = max(asked.payload.tokens, self._window + 1)
                    message = f"prompt is too long: {tokens} tokens > {self._window} maximum"
                return ModelError("overflow", f"400: {message}", provider_message=message)
            case "rate-limited":
                return ModelError("rate-limited", "429: slow down", provider_message="slow down", retry_after=PAUSE)
            case _:
                return ModelError("server", "500: something broke", provider_message="something broke")

    def _item(self, kind: Kind, request: dict[str, Any]) -> Any:
        """Return what is said in the place of an answer."""
        tools = [tool.name for tool in providers.read_request(encode(request), format=self.format).tools]
        calls = self._last or [(name, "{}") for name in tools[:1]]
        name = calls[0][0] if calls else UNKNOWN
        match kind:
            case "malformed-arguments":
                return (name, TORN)
            case "unknown-tool":
                return (UNKNOWN, {})
            case "repeat":
                return list(calls) or WORDS
            case _:
                # A stream may break off within its words, or within a call.
                torn = self._chance is not None and bool(calls) and self._chance.random() < self._share
                return [WORDS, (name, TORN)] if torn else WORDS
