"""Fingerprints of a conversation's content, so that the same prefix is recognised wherever it comes from.

Unlike the journal's hashes they leave out ids, times and cache markers: two clients that send the same words in the
same order get the same fingerprint, whatever white space or key order their JSON has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from windowsill.history.repair.mend import numbered_name
from windowsill.messages import Block, Document, Image, Message, Reasoning, Text, ToolResult, ToolUse

START = b""
"""The fingerprint before any message."""


def extend_exactly(before: bytes, message: Message) -> bytes:
    """Return the fingerprint of everything up to and including `message`, ids and reasoning included."""
    content = msgspec.msgpack.encode([message.role, [_content(block) for block in message.blocks]])
    return hashlib.blake2b(before + content, digest_size=16).digest()


def extend(before: bytes, role: str, parts: Sequence[bytes]) -> bytes:
    """Return the fingerprint of a conversation, as its client may send it again, after a message of these parts.

    A client gives an answer back without its reasoning, with its words joined, or in more or fewer messages than it
    came in: that is the same conversation. A leading system prompt is not part of it: programs put the time of
    day there.
    """
    if role == "system" and before == START:
        return before
    for part in parts:
        before = hashlib.blake2b(before + part, digest_size=16).digest()
    return before


def of_message(parts: Sequence[bytes]) -> bytes:
    """Return the fingerprint of a message by itself from its pieces; empty when it has none."""
    return hashlib.blake2b(b"".join(parts), digest_size=16).digest() if parts else b""


def pieces(message: Message) -> tuple[bytes, ...]:
    """Return a fingerprint of each piece of a message: its words, then whatever else it holds."""
    words = "".join(block.text for block in message.blocks if isinstance(block, Text)).strip()
    found: list[list[Any]] = [["text", words]] if words else []
    for block in message.blocks:
        match block:
            case Text() | Reasoning():
                pass
            case ToolUse():
                found.append(["call", _given(block.id), block.name, _plain(block.arguments)])
            case ToolResult():
                content = [_content(inner) for inner in block.content]
                found.append(["result", _given(block.tool_use_id), block.is_error, content])
            case _:
                found.append(_content(block))
    return tuple(
        hashlib.blake2b(msgspec.msgpack.encode([message.role, each]), digest_size=16).digest() for each in found
    )


def _given(id: str) -> str:
    """Return the id of a call, unless it was made up here for a call without one."""
    return "" if numbered_name(id) is not None else id


def _content(block: Block) -> list[Any]:
    match block:
        case Text():
            return ["text", block.text]
        case ToolUse():
            return ["call", block.id, block.name, _plain(block.arguments)]
        case ToolResult():
            return ["result", block.tool_use_id, block.is_error, [_content(inner) for inner in block.content]]
        case Reasoning():
            return ["reasoning", block.text, block.signature, block.data]
        case Image():
            return ["image", block.media_type, block.data, block.url]
        case Document():
            return ["document", block.media_type, block.data, block.url, block.text, block.title]
        case _:
            value = _plain((block.raw or b"").decode())
            if isinstance(value, dict):
                # An SDK gives back the fields that were absent as nulls.
                value = {key: each for key, each in value.items() if each is not None and key != "cache_control"}
            return ["unknown", block.type, value]


def _plain(text: str) -> Any:
    """Decode JSON text, keys in order, so that its spelling does not count."""
    try:
        return _ordered(msgspec.json.decode(text.encode()))
    except (msgspec.DecodeError, RecursionError):
        return text


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    return value
