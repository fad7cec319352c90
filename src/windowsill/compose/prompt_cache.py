"""Prompt caches: where breakpoints pay, and how much of a request equals the one before."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import msgspec

from windowsill.messages import json_value

MARK = {"type": "ephemeral"}
_MARKED = b'"cache_control":'

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw])


class _Kind(msgspec.Struct):
    type: str | None = None


MOST = 4
"""More breakpoints than these are refused."""

LOOK_BACK = 20
"""A provider looks for an earlier entry at most this many blocks before a breakpoint."""


class Breakpoints(msgspec.Struct, frozen=True, kw_only=True):
    """Decides where breakpoints pay: by the smallest prefix a cache takes, and where the request before ended."""

    minimum: int = 1_024
    system: int = 0
    """Tokens of the system prompt and the tools."""
    head: int = 0
    """Messages at the start that survive the next fold: up to the task."""
    head_blocks: int = 0
    """Blocks of the last of them: what a marker joined to the task says changes with the next fold."""
    previous: int = 0
    """Messages that the request before had in common with this one."""
    passing: int = 0
    """Blocks at the end that the next turn does not have: a breakpoint before them keeps the rest cached."""

    def place(
        self,
        system: bytes | None,
        chunks: list[bytes],
        tools: Sequence[bytes],
        rest: dict[str, msgspec.Raw],
        tokens: Sequence[int],
    ) -> tuple[bytes | None, list[bytes], dict[str, msgspec.Raw]]:
        """Put breakpoints into the parts. Whoever states their own keeps the latest of them: then none are added."""
        fixed = sum(part.count(_MARKED) for part in (system or b"", *tools)) + ("cache_control" in rest)
        if fixed or _MARKED in b"".join(chunks):
            return system, _latest_marks(chunks, MOST - fixed), rest
        chunks = list(chunks)
        if system is not None and self.system >= self.minimum:
            system = _mark_system(system)
        if 0 < self.head < len(chunks) and self.system + sum(tokens[: self.head]) >= self.minimum:
            chunks[self.head - 1] = mark_message(chunks[self.head - 1], self.head_blocks)
        if self.passing and len(chunks) > max(1, self.head):
            count = len(_blocks(_fields(chunks[-1]))) - self.passing
            place = -1 if count > 0 else -2
            chunks[place] = mark_message(chunks[place], max(0, count))
        elif (
            self.head < self.previous < len(chunks)
            and sum(len(_blocks(_fields(chunk))) for chunk in chunks[self.previous :]) > LOOK_BACK
        ):
            chunks[self.previous - 1] = mark_message(chunks[self.previous - 1])
        if self.system + sum(tokens) >= self.minimum:
            # Automatic: the provider moves this one along with the last block, so no message has to change for it.
            rest = {**rest, "cache_control": msgspec.Raw(msgspec.json.encode(MARK))}
        return system, chunks, rest


def _latest_marks(chunks: list[bytes], most: int) -> list[bytes]:
    """Keep the latest marks: a client that moves its mark along has set one in each message."""
    kept = list(chunks)
    for index in range(len(chunks) - 1, -1, -1):
        if marks := chunks[index].count(_MARKED):
            most -= marks
            if most < 0:
                kept[index] = _unmarked(chunks[index])
    return kept


def _unmarked(value: bytes) -> bytes:
    """Take marks off a message or a part of it, but not off what a tool was called with."""
    if value[:1] == b"[":
        return b"[" + b",".join(_unmarked(bytes(each)) for each in _items.decode(value)) + b"]"
    if value[:1] != b"{":
        return value
    fields = {key: each for key, each in _fields(value).items() if key != "cache_control"}
    if "content" in fields:
        fields["content"] = msgspec.Raw(_unmarked(bytes(fields["content"])))
    return msgspec.json.encode(fields)


def _mark_system(system: bytes) -> bytes:
    blocks = _blocks({"content": msgspec.Raw(system)})
    return msgspec.json.encode([*blocks[:-1], _marked(blocks[-1])]) if blocks else system


def mark_message(chunk: bytes, blocks: int = 0) -> bytes:
    """Put a breakpoint on the last block of a message, or on block number `blocks`, if it can carry one."""
    message = _fields(chunk)
    content = _blocks(message)
    place = min(blocks or len(content), len(content)) - 1
    if place < 0 or msgspec.json.decode(content[place], type=_Kind).type in {"thinking", "redacted_thinking"}:
        return chunk
    content[place] = _marked(content[place])
    return msgspec.json.encode({**message, "content": content})


def _marked(block: msgspec.Raw) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode({**_fields(block), "cache_control": MARK}))


def same_start(before: Sequence[bytes], now: Sequence[bytes], known: int = 0) -> int:
    """Count the messages at the start that are the same; `known` of them need no look."""
    last = min(len(before), len(now))
    return next((index for index in range(known, last) if before[index] != now[index]), max(known, last))


def same_blocks(old: bytes, new: bytes) -> float:
    """Return the share of a message that is the same blocks at its start: caches see blocks, not messages."""
    before, now = _fields(old), _fields(new)
    if before.get("role") != now.get("role"):
        return 0.0
    blocks = [bytes(each) for each in _blocks(now)]
    pairs = zip((bytes(each) for each in _blocks(before)), blocks, strict=False)
    # Spaces between the words of JSON make no other block.
    count = sum(1 for _ in itertools.takewhile(lambda pair: json_value(pair[0]) == json_value(pair[1]), pairs))
    return sum(map(len, blocks[:count])) / sum(map(len, blocks)) if blocks else 0.0


def _blocks(message: Mapping[str, msgspec.Raw]) -> list[msgspec.Raw]:
    """Return the blocks of a message as they came: what is marked or compared is never written anew."""
    content = message.get("content", msgspec.Raw(b"null"))
    start = bytes(content)[:1]
    if start == b'"':
        return [msgspec.Raw(b'{"type":"text","text":' + bytes(content) + b"}")]
    return _items.decode(content) if start == b"[" else []
