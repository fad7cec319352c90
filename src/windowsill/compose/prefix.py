"""How much of a request equals the start of the one before: what a prompt cache can serve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec


def same_start(before: Sequence[bytes], now: Sequence[bytes], known: int = 0) -> int:
    """How many messages at the start are the same; `known` of them need no look."""
    count = known
    for index in range(known, min(len(before), len(now))):
        old, new = before[index], now[index]
        if old is not new and old != new:
            break
        count += 1
    return count


def same_blocks(old: bytes, new: bytes) -> float:
    """The share of a message that is the same blocks at its start: caches see blocks, not messages."""
    before, now = msgspec.json.decode(old), msgspec.json.decode(new)
    if before.get("role") != now.get("role"):
        return 0.0
    blocks = _blocks(now)
    count = 0
    for earlier, later in zip(_blocks(before), blocks, strict=False):
        if earlier != later:
            break
        count += 1
    same = len(msgspec.json.encode(blocks[:count])) if count else 0
    return same / len(msgspec.json.encode(blocks)) if blocks else 0.0


def _blocks(message: dict[str, Any]) -> list[Any]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []
