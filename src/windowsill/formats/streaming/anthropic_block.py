"""A block of an Anthropic message while it arrives."""

from __future__ import annotations

from typing import Any

import msgspec

from windowsill.formats.streaming import pieces
from windowsill.formats.wire import any_decoder, fields_decoder


class OpenBlock:
    """The block as it began, and what was added to it."""

    __slots__ = ("_fields", "_more", "json", "text", "thinking")

    def __init__(self, fields: dict[str, msgspec.Raw]) -> None:
        self._fields: dict[str, Any] = fields
        self._more: dict[str, Any] = {}
        self.text: list[str] = []
        self.thinking: list[str] = []
        self.json: list[str] = []

    def said(self, field: str) -> str:
        """The text this field began with."""
        raw = self._fields.get(field)
        value = any_decoder.decode(raw) if isinstance(raw, msgspec.Raw) else raw
        return value if isinstance(value, str) else ""

    def take(self, delta: dict[str, Any]) -> None:
        """A delta other than text. One of a kind not known adds its fields, so that nothing is lost."""
        fields = {key: value for key, value in delta.items() if key != "type"}
        match delta:
            case {"type": "signature_delta", "signature": signature}:
                self._replace({"signature": signature})
            case {"type": "compaction_delta"}:
                self._replace(fields)
            case {"type": "citations_delta", "citation": citation}:
                self._grow({"citations": [citation]})
            case _:
                self._grow(fields)

    def _replace(self, fields: dict[str, Any]) -> None:
        self._fields.update(pieces.settle(fields))

    def _grow(self, fields: dict[str, Any]) -> None:
        for key in fields:
            if key not in self._more and key in self._fields:
                raw = self._fields[key]
                self._more[key] = any_decoder.decode(raw) if isinstance(raw, msgspec.Raw) else raw
        pieces.grow(self._more, fields)

    def settle(self, *, whole: bool) -> dict[str, Any]:
        """The block in its native form, the fields in the order they began in."""
        fields = {**self._fields, **pieces.settle(self._more)}
        if self.text:
            fields["text"] = pieces.joined([self.said("text"), *self.text])
        if self.thinking:
            fields["thinking"] = pieces.joined([self.said("thinking"), *self.thinking])
        if self.json:
            fields["input"] = _input(pieces.joined(self.json), fields.get("input", {}))
        if not whole and fields.get("signature") is not None and not self.said("signature"):
            # Reasoning cut off before its signature; an empty one would be refused, none at all can be mended.
            del fields["signature"]
        return fields


def _input(text: str, begun: Any) -> Any:
    """The arguments as the model wrote them; those cut off in the middle are kept as text."""
    if not text.strip():
        return begun
    raw = text.encode()
    try:
        fields_decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return {"_text": text}
    return msgspec.Raw(raw)
