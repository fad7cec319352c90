"""Tells this format from the others."""

from __future__ import annotations

from typing import Any

from windowsill.formats.responses.items import SAID_BY_PROGRAM, SAID_BY_PROVIDER

_OWN_PARTS = frozenset({"input_text", "input_image", "input_file", "output_text"})


def detects(value: Any) -> bool:
    """Whether a decoded body, item list, item or reply is clearly of this format."""
    if isinstance(value, list):
        return any(detects(each) for each in value if isinstance(each, dict))
    if not isinstance(value, dict) or "messages" in value or "choices" in value:
        return False
    kind = value.get("type")
    if kind is None:
        return _is_body(value) or _is_reply(value) or _has_own_parts(value)
    if kind == "message":
        # Anthropic's response is of this type too: it is never the user's, and its content is never plain text.
        said = value.get("role") not in {"assistant", None} or isinstance(value.get("content"), str)
        return said or _has_own_parts(value)
    known = kind in SAID_BY_PROGRAM or kind in SAID_BY_PROVIDER
    return known or (isinstance(kind, str) and "role" not in value and kind.endswith(("_call", "_call_output")))


def _is_body(value: dict[str, Any]) -> bool:
    return isinstance(value.get("input"), str | list)


def _is_reply(value: dict[str, Any]) -> bool:
    return value.get("object") == "response" or isinstance(value.get("output"), list)


def _has_own_parts(value: dict[str, Any]) -> bool:
    content = value.get("content")
    parts = content if isinstance(content, list) else []
    return any(isinstance(part, dict) and part.get("type") in _OWN_PARTS for part in parts)
