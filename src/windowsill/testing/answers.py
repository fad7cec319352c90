"""What the local server's model says."""

from __future__ import annotations

from typing import Any

import msgspec


class Call(msgspec.Struct, frozen=True):
    """A tool call the model makes; without an id the server gives one."""

    name: str
    input: dict[str, Any] = {}
    id: str = ""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of the model: words, calls, and reasoning where the protocol has a place for it."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    usage: bool = True
    """Whether the answer says what it used."""


def numbered(answer: Answer, number: int) -> Answer:
    """The answer with an id for every call: the same for the same conversation."""
    calls = tuple(
        call if call.id else msgspec.structs.replace(call, id=f"call_{number}_{place}")
        for place, call in enumerate(answer.calls)
    )
    return msgspec.structs.replace(answer, calls=calls)
