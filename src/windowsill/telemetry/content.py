"""Message content on spans and events: left out by default, and never with the secrets in it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from windowsill.messages import Block, Document, Image, Message, Reasoning, Text, ToolResult, ToolUse
from windowsill.telemetry.names import EVENT, SCOPE

SWITCH: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The variable with which OpenTelemetry's instrumentations are asked to record content."""


def on_spans() -> bool:
    """Tell whether spans are to carry content."""
    return os.environ.get(SWITCH, "").strip().lower() in ("true", "span_only", "span_and_event")


def on_events() -> bool:
    """Tell whether events are to carry content."""
    return os.environ.get(SWITCH, "").strip().lower() in ("event_only", "span_and_event")


def without_secrets(value: Any) -> Any:
    """Return a text or a JSON value without the secrets in it: in texts, in names, or under the name of a secret."""
    from windowsill.secrets.documents import redact_value  # noqa: PLC0415 - only loaded where content is recorded

    return redact_value(value)


def messages_as_parts(messages: Iterable[Message], *, finish: str | None = None) -> list[dict[str, Any]]:
    """Return messages in the form of the conventions; `finish` is why the model stopped."""
    more = {} if finish is None else {"finish_reason": finish}
    return [
        {
            "role": "tool" if message.results and len(message.results) == len(message.blocks) else message.role,
            "parts": parts_of(message.blocks),
            **more,
        }
        for message in messages
    ]


def parts_of(blocks: Iterable[Block]) -> list[dict[str, Any]]:
    """Return the blocks of a message as parts, without secrets."""
    return [_part(block) for block in blocks]


def _part(block: Block) -> dict[str, Any]:
    match block:
        case Text():
            return {"type": "text", "content": without_secrets(block.text)}
        case Reasoning():
            return {"type": "reasoning", "content": without_secrets(block.text)}
        case ToolUse():
            return {"type": "tool_call", "id": block.id, "name": block.name, "arguments": without_secrets(block.input)}
        case ToolResult():
            texts = (
                part.text or "" if isinstance(part, Text | Document) else f"[{type(part).__name__.lower()}]"
                for part in block.content
            )
            response = "\n".join(texts)
            return {"type": "tool_call_response", "id": block.tool_use_id, "response": without_secrets(response)}
        case Image() | Document():
            # Nobody looks at a picture in a trace: its type suffices.
            modality = "image" if isinstance(block, Image) else "document"
            return {"type": "blob", "modality": modality, "mime_type": block.media_type, "content": ""}
        case _:
            return {"type": block.type or "unknown"}


def as_json(value: Any) -> str:
    """Return a value as text: the attributes of a span hold no objects."""
    return msgspec.json.encode(value, enc_hook=str).decode()


def emit(attributes: dict[str, Any]) -> None:
    """Emit content as an event of the application's logger provider."""
    # The API of events is not stable yet, and only those who ask for events load it.
    from opentelemetry import _logs  # noqa: PLC0415

    _logs.get_logger(SCOPE).emit(_logs.LogRecord(event_name=EVENT, attributes=attributes))
