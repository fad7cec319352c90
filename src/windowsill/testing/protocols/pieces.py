"""What all streams are made of: pieces, events and lines of data."""

from __future__ import annotations

from typing import Any

import msgspec

PIECE = 12
"""Characters of a streamed piece: short enough that everything comes in several."""


def pieces(text: str) -> list[str]:
    """A text as it is streamed."""
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]


def event(name: str, value: dict[str, Any]) -> bytes:
    """An event with its name."""
    return b"event: " + name.encode() + b"\n" + data(value)


def data(value: dict[str, Any]) -> bytes:
    """An event without a name."""
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


def is_kind(raw: bytes | None, kind: str) -> bool:
    """Whether a block that came as these bytes is of this type."""
    if raw is None or kind.encode() not in raw:
        return False
    value = msgspec.json.decode(raw)
    return isinstance(value, dict) and value.get("type") == kind
