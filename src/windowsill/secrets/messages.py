"""Take secrets out of messages for those who read them in another place: writers of summaries, and exports.

These are copies: neither the journal nor what the model sees is altered.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from windowsill.messages import Block, Document, Image, Message, Reasoning, Text, ToolResult, ToolUse, Unknown
from windowsill.secrets import default_redactor
from windowsill.secrets.documents import redact_json, redact_text, redact_value

Same = TypeVar("Same", bound=Message | Block)


def redact_for_reading(message: Message) -> Message:
    """Return the message as a writer may read it: without secrets; where one was found, without its original bytes."""
    blocks = tuple(_block(block, whole=False) for block in message.blocks)
    if all(new is old for new, old in zip(blocks, message.blocks, strict=True)):
        return message
    return msgspec.structs.replace(message, blocks=blocks, raw=None)


def redact_for_export(message: Message) -> Message:
    """Return the message without secrets in anything that belongs to it, metadata and the bytes it came as included."""
    changes: dict[str, Any] = {
        "blocks": tuple(_block(block, whole=True) for block in message.blocks),
        "metadata": redact_value(message.metadata),
        "raw": redact_json(message.raw) if message.raw is not None else None,
    }
    return _changed(message, changes)


def _block(block: Block, *, whole: bool) -> Block:
    changes: dict[str, Any] = {}
    match block:
        case Text() | Reasoning():
            changes["text"] = redact_text(block.text)
        case ToolUse():
            changes["arguments"] = redact_text(block.arguments)
        case ToolResult():
            changes["content"] = tuple(_block(inner, whole=whole) for inner in block.content)
        case Image():
            changes["url"] = block.url and default_redactor().redact(block.url)
        case Document():
            changes |= {name: _text(getattr(block, name)) for name in ("url", "text", "title")}
        case Unknown():
            changes["raw"] = block.raw and redact_json(block.raw)
    if block.raw is not None and "raw" not in changes:
        if whole:
            changes["raw"] = redact_json(block.raw)
        elif any(new != getattr(block, name) for name, new in changes.items()):
            changes["raw"] = None
    return _changed(block, changes)


def _text(text: str | None) -> str | None:
    return text and redact_text(text)


def _changed(old: Same, changes: dict[str, Any]) -> Same:
    """Replace what changed; the same object where nothing did."""
    new = {name: value for name, value in changes.items() if value != getattr(old, name)}
    return msgspec.structs.replace(old, **new) if new else old
