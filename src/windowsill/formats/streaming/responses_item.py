"""An item of an OpenAI Responses answer while it arrives."""

from __future__ import annotations

from typing import Any

import msgspec

from windowsill.formats.streaming.pieces import joined, settle
from windowsill.formats.wire import any_decoder


class OpenItem:
    """The item as it began, its parts, and the text added to them; `whole` when it came once more at its end."""

    def __init__(self, fields: dict[str, msgspec.Raw], *, whole: bool = False) -> None:
        self._fields = fields
        self._whole = whole
        self._parts: dict[tuple[str, int], dict[str, Any]] = {}
        self._grown: dict[tuple[str, int, str], list[str]] = {}

    def said(self, field: str) -> str:
        """The text this field began with."""
        value = any_decoder.decode(self._fields.get(field, b"null"))
        return value if isinstance(value, str) else ""

    def put(self, inside: str, index: int, part: dict[str, Any]) -> None:
        """A part begins, or comes whole at its end, which then counts for all that was added to it."""
        self._parts[inside, index] = settle(part)
        for key in [key for key in self._grown if key[:2] == (inside, index)]:
            del self._grown[key]

    def pieces(self, inside: str, index: int, field: str) -> list[str]:
        """Where more text goes, of a part or of the item itself when it is inside nothing."""
        return self._grown.setdefault((inside, index, field), [])

    def settle(self) -> dict[str, Any]:
        """The item in its native form; one that was cut says so by its status."""
        if self._whole:
            return self._fields
        fields = {key: any_decoder.decode(raw) for key, raw in self._fields.items()}
        parts = {key: dict(part) for key, part in self._parts.items()}
        for (inside, index, field), pieces in self._grown.items():
            target = parts.setdefault((inside, index), _empty(inside, field, fields)) if inside else fields
            began = target.get(field)
            target[field] = joined([began if isinstance(began, str) else "", *pieces])
        for inside, index in sorted(parts):
            listed = fields.get(inside)
            fields[inside] = [*(listed if isinstance(listed, list) else []), parts[inside, index]]
        if "status" in fields:
            fields["status"] = "incomplete"
        return fields


def _empty(inside: str, field: str, item: dict[str, Any]) -> dict[str, Any]:
    """A part that was never announced."""
    if inside == "summary":
        return {"type": "summary_text"}
    if field == "refusal":
        return {"type": "refusal"}
    return {"type": "reasoning_text" if item.get("type") == "reasoning" else "output_text"}
