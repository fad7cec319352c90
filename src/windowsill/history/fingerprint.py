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


def chain(before: bytes, message: Message) -> bytes:
    """The fingerprint of everything up to and including `message`."""
    content = msgspec.msgpack.encode([message.role, [_content(block) for block in message.blocks]])
    return hashlib.blake2b(before + content, digest_size=16).digest()


def follow(before: bytes, role: str, pieces: Sequence[bytes]) -> bytes:
    """Return the fingerprint of a conversation, as its client may send it again, after a message of these pieces.

    A client gives an answer back without its reasoning, with its words joined, or in more or fewer messages than it
    came in: that is the same conversation. A leading system prompt is not part of it: programs put the time of
    day there.
    """
    if role == "system" and before == START:
        return before
    for piece in pieces:
        before = hashlib.blake2b(before + piece, digest_size=16).digest()
    return before


def gist(pieces: Sequence[bytes]) -> bytes:
    """The fingerprint of a message by itself; empty when it says nothing."""
    return hashlib.blake2b(b"".join(pieces), digest_size=16).digest() if pieces else b""


def said(message: Message) -> tuple[bytes, ...]:
    """What a message says, a fingerprint for each piece: its words, then whatever else it holds."""
    words = "".join(block.text for block in message.blocks if isinstance(block, Text)).strip()
    pieces: list[list[Any]] = [["text", words]] if words else []
    for block in message.blocks:
        match block:
            case Text() | Reasoning():
                pass
            case ToolUse():
                pieces.append(["call", _given(block.id), block.name, _plain(block.arguments)])
            case ToolResult():
                content = [_content(inner) for inner in block.content]
                pieces.append(["result", _given(block.tool_use_id), block.is_error, content])
            case _:
                pieces.append(_content(block))
    return tuple(
        hashlib.blake2b(msgspec.msgpack.encode([message.role, piece]), digest_size=16).digest() for piece in pieces
    )


def _given(id: str) -> str:
    """The id of a call, unless it was made up here for a call without one."""
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
