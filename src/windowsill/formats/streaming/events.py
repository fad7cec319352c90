"""What a listener hears while an answer arrives. The answer itself is put together by the stream."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from windowsill.messages import Usage


class TextDelta(msgspec.Struct, frozen=True, gc=False):
    """More words; `index` is the block they belong to, where the format counts blocks."""

    text: str
    index: int = 0


class ReasoningDelta(msgspec.Struct, frozen=True, gc=False):
    """More reasoning."""

    text: str
    index: int = 0


class CallStarted(msgspec.Struct, frozen=True, gc=False):
    """The model begins to call a tool; the arguments follow."""

    id: str
    name: str
    index: int = 0


class CallDelta(msgspec.Struct, frozen=True, gc=False):
    """More of a call's arguments: a piece of JSON text, cut anywhere."""

    arguments: str
    index: int = 0


class UsageSeen(msgspec.Struct, frozen=True, gc=False):
    """What the call used so far. It may come several times, also after `Finished`; the last one counts."""

    usage: Usage


class Finished(msgspec.Struct, frozen=True, gc=False):
    """The answer is whole."""

    stop_reason: str | None = None


class Failed(msgspec.Struct, frozen=True, gc=False):
    """The provider reported an error, or sent what cannot be read (`kind` is then `malformed`)."""

    what: str
    kind: str = ""
    data: bytes = b""


class Raw(msgspec.Struct, frozen=True, gc=False):
    """An event, or a part of one, that this version does not know, as it came."""

    event: str
    data: bytes


Event: TypeAlias = TextDelta | ReasoningDelta | CallStarted | CallDelta | UsageSeen | Finished | Failed | Raw

MALFORMED = "malformed"
"""The kind of a failure that is not the provider's word but ours."""
