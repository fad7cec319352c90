"""Tells which provider's format a request, a message or a reply is in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from windowsill.errors import FormatError
from windowsill.formats import gemini, responses
from windowsill.formats.wire import any_decoder, decode, fields_decoder, items_decoder, text_decoder

AMBIGUOUS = "openai"
"""A plain conversation (roles and text) is the same in both; more programs write OpenAI's."""

_OPENAI_ROLES = frozenset({"tool", "developer", "function", "system"})
_OPENAI_FIELDS = frozenset({"tool_calls", "function_call", "tool_call_id", "refusal", "reasoning_content", "audio"})
_OPENAI_PARTS = frozenset({"image_url", "input_audio", "file", "refusal"})
_ANTHROPIC_BLOCKS = frozenset(
    {
        "tool_use",
        "tool_result",
        "thinking",
        "redacted_thinking",
        "image",
        "document",
        "server_tool_use",
        "search_result",
    }
)
_ANTHROPIC_BODY = frozenset({"system", "anthropic_version", "stop_sequences", "thinking", "top_k"})
_OPENAI_BODY = frozenset(
    {"max_completion_tokens", "response_format", "functions", "stream_options", "reasoning_effort", "n", "seed", "stop"}
)
_REMEDY = "pass format='anthropic', 'openai', 'responses' or 'gemini'"

TELLING = 50
"""How many items of a list are looked at to tell its kind: the first call, picture or signature decides."""


def detect(value: Any, default: str = AMBIGUOUS) -> str:
    """The format of a decoded request body, message list, message or reply; `default` where it could be any."""
    if gemini.detects(value):
        return "gemini"
    if responses.detects(value):
        return "responses"
    if isinstance(value, list):
        if all(isinstance(each, dict) and "role" in each for each in value):
            return _first(map(_of_message, value)) or default
        raise FormatError("a list of something else than messages", remedy=_REMEDY)
    if not isinstance(value, dict):
        raise FormatError(f"a {type(value).__name__} is no request", remedy="pass a request body or a message list")
    if "choices" in value or isinstance(value.get("message"), dict):
        return "openai"
    if "messages" in value:
        fields = {**value, "messages": ()}
        messages = value["messages"]
        listed = messages if isinstance(messages, list) else []
        return _of_body(fields) or _first(map(_of_message, listed)) or _of_model(value.get("model")) or default
    if value.get("type") == "message":
        return "anthropic"
    if "role" in value:
        return _of_message(value) or default
    raise FormatError("neither a request, a message nor a reply", remedy=_REMEDY)


def detect_body(body: bytes) -> str:
    """The format of a request body or message list as bytes; decodes no more of it than is needed to tell."""
    if body.lstrip()[:1] == b"[":
        items = decode(items_decoder, body)
        # One look at the first few tells a list of contents or items from one of messages.
        found = _of_list([any_decoder.decode(each) for each in items[:TELLING]])
        if found is not None:
            return found
        return _first(_of_message(any_decoder.decode(each)) for each in decode(items_decoder, body)) or AMBIGUOUS
    fields = decode(fields_decoder, body)
    messages = fields.get("messages")
    if messages is None:
        return detect(decode(any_decoder, body))
    hints = dict.fromkeys(fields) | {
        key: decode(any_decoder, fields[key], key) for key in ("tools", "format") if key in fields
    }
    found = _of_body(hints)
    if found is None:
        found = _first(_of_message(any_decoder.decode(each)) for each in decode(items_decoder, messages, "messages"))
    if found is None and "model" in fields:
        found = _of_model(decode(text_decoder, fields["model"], "model"))
    return found or AMBIGUOUS


def _of_list(items: list[Any]) -> str | None:
    if gemini.detects(items):
        return "gemini"
    return "responses" if responses.detects(items) else None


def _first(found: Iterable[str | None]) -> str | None:
    return next((each for each in found if each is not None), None)


def _of_body(fields: dict[str, Any]) -> str | None:
    if fields.get("format") in {"anthropic", "gemini", "openai", "responses"}:
        return str(fields["format"])
    for tool in fields.get("tools") or ():
        if isinstance(tool, dict):
            return (
                "openai" if tool.get("type") in {"function", "custom"} and "input_schema" not in tool else "anthropic"
            )
    if not _ANTHROPIC_BODY.isdisjoint(fields):
        return "anthropic"
    return "openai" if not _OPENAI_BODY.isdisjoint(fields) else None


def _of_model(model: Any) -> str | None:
    return "anthropic" if isinstance(model, str) and "claude" in model else None


def _of_message(message: Any) -> str | None:
    if not isinstance(message, dict):
        return None
    content = message.get("content")
    if isinstance(content, list):
        kinds = {str(block.get("type")) for block in content if isinstance(block, dict)}
        if not kinds.isdisjoint(_ANTHROPIC_BLOCKS):
            return "anthropic"
        if not kinds.isdisjoint(_OPENAI_PARTS):
            return "openai"
    if message.get("role") in _OPENAI_ROLES or not _OPENAI_FIELDS.isdisjoint(message):
        return "openai"
    return None
