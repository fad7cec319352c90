"""Makes answers in any wire format out of what a test writes down: words, calls, several of both."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from windowsill.engine.models.base import Answer, Asked, Delta
from windowsill.engine.models.bodies import deltas, read_answer, render_reply
from windowsill.errors import InputError
from windowsill.formats.wire import encode
from windowsill.messages import Block, Message, Text, ToolUse, Usage, text_length
from windowsill.testing.answers import Call
from windowsill.writers.faults import hide_keys

CHARACTERS = 4
"""Of a token, give or take: the usage of an answer that nobody counted."""


def message_of(item: Any, mark: str) -> Message:
    """What an item of a script says; calls without an id get one that begins with `mark`."""
    parts = item if isinstance(item, list) else [item]
    return Message(role="assistant", blocks=tuple(_blocks(parts, mark)))


def mark_of(request: dict[str, Any], number: int) -> str:
    """The beginning of ids for the calls of one answer: the same for the same request, and for no other."""
    return f"call_{hashlib.blake2b(encode([number, request]), digest_size=6).hexdigest()}"


def answer_of(message: Message, asked: Asked, format: str, *, name: str = "", partial: bool = False) -> Answer:
    """The answer with this message, and with the usage that such a call would report."""
    output = max(1, text_length(message.blocks) // CHARACTERS)
    usage = Usage(input=asked.payload.tokens, output=output)
    return Answer(body=render_reply(message, format, model=name, usage=usage, whole=not partial), partial=partial)


def told(answer: Answer, format: str, listen: Callable[[Delta], None]) -> Answer:
    """The same answer, after a listener heard it."""
    for delta in deltas(read_answer(answer.body, format, hide_keys)):
        listen(delta)
    return answer


def _blocks(parts: Iterable[Any], mark: str) -> Iterator[Block]:
    for place, part in enumerate(parts):
        id = f"{mark}_{place}"
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
                    f"a script cannot say a {type(part).__name__}",
                    remedy="give text, a Call, (name, arguments), a list of these, an error or a function",
                )
