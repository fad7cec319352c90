"""Puts a block that only its own provider understands into words, for another one: what was asked, found and said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from windowsill.formats.wire import any_decoder

SAID = frozenset({"refusal", "transcript"})
"""Fields that are all a block has to say; nothing needs to be put before them."""

NAMES = ("server_name", "server_label", "mcp_server_name", "name", "tool_name")
"""Fields that say which tool it was."""

ASKED = (
    "input",
    "arguments",
    "action",
    "actions",
    "operation",
    "queries",
    "query",
    "code",
    "commands",
    "revised_prompt",
)
"""Fields that say what was asked of it."""

TOLD = frozenset(
    {
        "content",
        "error",
        "error_code",
        "error_message",
        "file_id",
        "filename",
        "logs",
        "message",
        "output",
        "reason",
        "source",
        "stderr",
        "stdout",
        "summary",
        "text",
        "title",
        "tool_name",
        "url",
    }
)
"""Fields whose text was for reading. What is not here may be encrypted, or the bytes of a picture."""

OPAQUE = frozenset({"cache_control", "caller", "citations", "citation", "annotations", "logprobs", *ASKED})
"""Fields that hold more fields, none of them worth telling, or told elsewhere."""


def words(type: str, raw: bytes) -> str:
    """What a block says; empty when nothing of it can be told."""
    try:
        fields = any_decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return ""
    if isinstance(fields, str):
        return fields
    if not isinstance(fields, dict):
        return ""
    for key in SAID:
        if isinstance(said := fields.get(key), str) and said:
            return said
    named = [each for key in NAMES if isinstance(each := fields.get(key), str)]
    asked = [_inline(fields[key]) for key in ASKED if fields.get(key)]
    lines = list(_told({key: each for key, each in fields.items() if key not in NAMES}))
    if not (named or asked or lines):
        return ""
    return "\n".join([f"({' '.join([type, *named, *asked])})", *lines])


def _inline(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _told(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _told(each)
    if not isinstance(value, dict):
        return
    if value.get("type") == "text" and isinstance(data := value.get("data"), str):
        yield data  # a document that came as its text
    for key, each in value.items():
        if key in OPAQUE:
            continue
        if isinstance(each, dict | list):
            yield from _told(each)
        elif key in TOLD and isinstance(each, str) and each.strip():
            yield each
