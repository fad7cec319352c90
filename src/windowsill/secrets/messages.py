"""Messages without secrets, for those who read them in another place: writers of summaries, and exports.

The journal keeps what was said, and what is visible is never altered: these are copies.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from windowsill.messages import Block, Document, Image, Message, Reasoning, Text, ToolResult, ToolUse, Unknown
from windowsill.secrets import usual
from windowsill.secrets.documents import redacted_json, redacted_text, redacted_value

Same = TypeVar("Same", bound=Message | Block)


def told(message: Message) -> Message:
    """The message as a writer may read it: its words without secrets, without the bytes it came as where it changed."""
    blocks = tuple(_block(block, whole=False) for block in message.blocks)
    if all(new is old for new, old in zip(blocks, message.blocks, strict=True)):
        return message
    return msgspec.structs.replace(message, blocks=blocks, raw=None)


def stored(message: Message) -> Message:
    """The message with everything that belongs to it, metadata and the bytes it came as included."""
    changes: dict[str, Any] = {
        "blocks": tuple(_block(block, whole=True) for block in message.blocks),
        "metadata": redacted_value(message.metadata, usual()),
        "raw": redacted_json(message.raw, usual()) if message.raw is not None else None,
    }
    return _changed(message, changes)


def _block(block: Block, *, whole: bool) -> Block:
    changes: dict[str, Any] = {}
    match block:
        case Text() | Reasoning():
            changes["text"] = redacted_text(block.text, usual())
        case ToolUse():
            changes["arguments"] = redacted_text(block.arguments, usual())
        case ToolResult():
            changes["content"] = tuple(_block(inner, whole=whole) for inner in block.content)
        case Image():
            changes["url"] = block.url and usual().redacted(block.url)
        case Document():
            changes |= {name: _text(getattr(block, name)) for name in ("url", "text", "title")}
        case Unknown():
            changes["raw"] = block.raw and redacted_json(block.raw, usual())
    if block.raw is not None and "raw" not in changes:
        if whole:
            changes["raw"] = redacted_json(block.raw, usual())
        elif any(new != getattr(block, name) for name, new in changes.items()):
            changes["raw"] = None
    return _changed(block, changes)


def _text(text: str | None) -> str | None:
    return text and redacted_text(text, usual())


def _changed(old: Same, changes: dict[str, Any]) -> Same:
    """The same object where nothing changed."""
    new = {name: value for name, value in changes.items() if value != getattr(old, name)}
    return msgspec.structs.replace(old, **new) if new else old
