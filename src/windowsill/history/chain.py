"""A fingerprint of a conversation's content, so that the same prefix is recognised wherever it comes from.

Unlike the journal's hashes it leaves out ids, times and cache markers: two clients that send the same words in the same
order get the same chain, whatever white space or key order their JSON has.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from windowsill.messages import Block, Document, Image, Message, Reasoning, Text, ToolResult, ToolUse

START = b""
"""The chain before any message."""


def chain(before: bytes, message: Message) -> bytes:
    """The fingerprint of everything up to and including `message`."""
    content = msgspec.msgpack.encode([message.role, [_content(block) for block in message.blocks]])
    return hashlib.blake2b(before + content, digest_size=16).digest()


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
                value.pop("cache_control", None)
            return ["unknown", block.type, value]


def _plain(text: str) -> Any:
    """JSON text as a value, keys in order, so that its spelling does not count."""
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
