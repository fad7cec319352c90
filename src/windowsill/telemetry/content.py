"""What was said, for those who ask for it: left out by default, and never with the secrets in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from windowsill.messages import Block, Document, Image, Message, Reasoning, Text, ToolResult, ToolUse
from windowsill.telemetry.faults import harmless
from windowsill.telemetry.names import EVENT, SCOPE

SWITCH: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The variable with which OpenTelemetry's instrumentations are told to record what was said."""

ON_SPANS: Final = frozenset({"true", "span_only", "span_and_event"})
ON_EVENTS: Final = frozenset({"event_only", "span_and_event"})

LOGS: Final = "opentelemetry._logs"


def on_spans() -> bool:
    """Whether spans are to carry what was said."""
    return os.environ.get(SWITCH, "").strip().lower() in ON_SPANS


def on_events() -> bool:
    """Whether events are to carry what was said."""
    return os.environ.get(SWITCH, "").strip().lower() in ON_EVENTS


def cleaned(text: str) -> str:
    """Text without the secrets in it."""
    from windowsill.redaction import redacted  # noqa: PLC0415 - only where something is told

    return redacted(text)


def told_messages(messages: Iterable[Message], *, finish: str | None = None) -> list[dict[str, Any]]:
    """Messages in the form that the conventions have for them; `finish` is why the model stopped."""
    more = {} if finish is None else {"finish_reason": finish}
    return [
        {
            "role": "tool" if message.results and len(message.results) == len(message.blocks) else message.role,
            "parts": told_parts(message.blocks),
            **more,
        }
        for message in messages
    ]


def told_parts(blocks: Iterable[Block]) -> list[dict[str, Any]]:
    """The blocks of a message as parts."""
    return [_part(block) for block in blocks]


def _part(block: Block) -> dict[str, Any]:
    match block:
        case Text():
            return {"type": "text", "content": cleaned(block.text)}
        case Reasoning():
            return {"type": "reasoning", "content": cleaned(block.text)}
        case ToolUse():
            return {"type": "tool_call", "id": block.id, "name": block.name, "arguments": told_value(block.input)}
        case ToolResult():
            response = "\n".join(_words(part) for part in block.content)
            return {"type": "tool_call_response", "id": block.tool_use_id, "response": cleaned(response)}
        case Image() | Document():
            # A picture is no text that anybody reads in a trace; what it is suffices.
            modality = "image" if isinstance(block, Image) else "document"
            return {"type": "blob", "modality": modality, "mime_type": block.media_type, "content": ""}
        case _:
            return {"type": block.type or "unknown"}


def _words(block: Block) -> str:
    return block.text or "" if isinstance(block, Text | Document) else f"[{type(block).__name__.lower()}]"


def told_value(value: Any) -> Any:
    """A JSON value with the secrets taken out of it, wherever they stand: in texts, names, or because of a name."""
    from windowsill.redaction import usual  # noqa: PLC0415 - only where something is told
    from windowsill.redaction.documents import redacted_value  # noqa: PLC0415 - as above

    return redacted_value(value, usual())


def as_json(value: Any) -> str:
    """A value for a span, whose attributes hold no objects."""
    return msgspec.json.encode(value, enc_hook=str).decode()


def emit(attributes: dict[str, Any]) -> None:
    """Tell what was said as an event, where the application has set up a logger provider."""
    api: Any = sys.modules.get(LOGS)
    if api is None:
        return
    with harmless:
        api.get_logger(SCOPE).emit(api.LogRecord(event_name=EVENT, attributes=attributes))
