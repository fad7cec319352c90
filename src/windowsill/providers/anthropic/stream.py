"""Put an Anthropic message together out of its stream."""

from __future__ import annotations

from typing import Any

import msgspec

from windowsill.providers import sse
from windowsill.providers.base import Format
from windowsill.providers.streams import (
    CUT,
    CallDelta,
    CallStarted,
    Growing,
    Pieces,
    ReasoningDelta,
    Stream,
    TextDelta,
    UsageSeen,
    joined,
    lenient,
    raw_fields,
    settle,
)
from windowsill.providers.wire import UNREADABLE, Fields, encode, fields_decoder

NULL = b"null"

DELTAS: dict[str, tuple[str, type[TextDelta] | type[CallDelta] | type[ReasoningDelta]]] = {
    "text_delta": ("text", TextDelta),
    "input_json_delta": ("partial_json", CallDelta),
    "thinking_delta": ("thinking", ReasoningDelta),
}
"""For each delta of text: its field, and the event of it."""

PLAIN = frozenset({*DELTAS, "signature_delta"})
"""Deltas of a type and one text, of which nothing is left to say."""


class _Text(msgspec.Struct, tag_field="type", tag="text_delta", forbid_unknown_fields=True, gc=False):
    text: str


class _Json(msgspec.Struct, tag_field="type", tag="input_json_delta", forbid_unknown_fields=True, gc=False):
    text: str = msgspec.field(name="partial_json")


class _Thought(msgspec.Struct, tag_field="type", tag="thinking_delta", forbid_unknown_fields=True, gc=False):
    text: str = msgspec.field(name="thinking")


class _Delta(msgspec.Struct, tag_field="type", tag="content_block_delta", forbid_unknown_fields=True, gc=False):
    index: int
    delta: _Text | _Json | _Thought


class _Content(msgspec.Struct, gc=False):
    content: list[Fields] | None = None
    usage: Fields | None = None


class _MessageDelta(msgspec.Struct, gc=False):
    delta: Fields | None = None
    usage: Fields | None = None
    type: str = ""


_delta = msgspec.json.Decoder(_Delta)
_content = msgspec.json.Decoder(_Content)
_message_delta = msgspec.json.Decoder(_MessageDelta)
_maybe_text = msgspec.json.Decoder(str | None)


class OpenBlock(Growing):
    """A block while it arrives."""

    def __init__(self, fields: Fields) -> None:
        super().__init__(fields)
        self._json = Pieces()

    def add(self, delta: dict[str, Any]) -> Any:
        """Add a delta; return the text that grew. One of a kind not known adds its fields, so that nothing is lost."""
        match delta:
            case {"type": "text_delta", "text": str(text)}:
                return self.lengthen("text", text)
            case {"type": "input_json_delta", "partial_json": str(text)}:
                self._json.append(text)
                return self._json
            case {"type": "thinking_delta", "thinking": str(text)}:
                return self.lengthen("thinking", text)
            case {"type": "signature_delta", "signature": signature}:
                self.fields["signature"] = settle(signature)
            case {"type": "compaction_delta"}:
                self.fields.update(settle({key: value for key, value in delta.items() if key != "type"}))
            case {"type": "citations_delta", "citation": citation}:
                self.grow({"citations": [citation]})
            case _:
                self.grow({key: value for key, value in delta.items() if key != "type"})
        return None

    def settle(self, *, whole: bool) -> dict[str, Any]:
        """Return the block in its native form."""
        fields = self.settled()
        if self._json:
            fields["input"] = _input(joined(self._json), fields.get("input", {}))
        if not whole and fields.get("signature") is not None and not self.first("signature"):
            # Reasoning cut off before its signature; an empty one would be refused, none at all can be mended.
            del fields["signature"]
        return fields


def _input(text: str, begun: Any) -> Any:
    """Return the arguments as the model wrote them; those cut off in the middle are kept as text."""
    if not text.strip():
        return begun
    raw = text.encode()
    try:
        fields_decoder.decode(raw)
    except UNREADABLE:
        return {"_text": text}
    return msgspec.Raw(raw)


class AnthropicStream(Stream):
    """The state of one answer."""

    def __init__(self, format: Format, *, limit: int = sse.MAX_EVENT_BYTES) -> None:
        super().__init__(format, limit=limit)
        self._message: Fields = {}
        self._usage: Fields = {}
        self._blocks: dict[int, OpenBlock] = {}

    def body(self) -> bytes:
        """Return the response, as far as it arrived."""
        content = [self._blocks[index].settle(whole=self.finished) for index in sorted(self._blocks)]
        began: dict[str, Any] = self._message or {"type": "message", "role": "assistant"}
        return encode({**began, "content": content, "usage": self._usage or None})

    @staticmethod
    def _cut(data: bytes) -> tuple[_Delta, str]:
        wire = _delta.decode(data)
        text, wire.delta.text = wire.delta.text, CUT
        return wire, text

    def _take(self, value: Any, event: sse.Event) -> bool:
        if not isinstance(value, dict):
            return False
        match value.get("type", event.event):
            case "content_block_delta":
                return self._grow_block(value, event)
            case "content_block_start":
                return self._start_block(value.get("index"), event)
            case "message_start":
                return self._start_message(event)
            case "message_delta":
                return self._end_message(event)
            case "message_stop":
                self._finish(lenient(_maybe_text, self._message.get("stop_reason", NULL)))
            case "error":
                self._fail_by(value.get("error"), event, "type")
            case "content_block_stop" | "ping":
                pass
            case _:
                self._pass_on(event)
        return True

    def _start_message(self, event: sse.Event) -> bool:
        message = raw_fields(event.data, "message")
        found = None if message is None else lenient(_content, encode(message))
        if message is None or found is None:
            return False
        self._message = message
        self._blocks.update({index: OpenBlock(fields) for index, fields in enumerate(found.content or ())})
        self._use(found.usage)
        return True

    def _start_block(self, index: Any, event: sse.Event) -> bool:
        fields = raw_fields(event.data, "content_block")
        if fields is None or not isinstance(index, int):
            return False
        block = self._blocks[index] = OpenBlock(fields)
        match block.first("type"):
            case "text":
                if text := block.first("text"):
                    self._emit(TextDelta(text, index))
            case "thinking":
                if text := block.first("thinking"):
                    self._emit(ReasoningDelta(text, index))
            case "tool_use":
                self._emit(CallStarted(block.first("id"), block.first("name"), index))
            case _:
                self._pass_on(event)
        return True

    def _grow_block(self, value: dict[str, Any], event: sse.Event) -> bool:
        index, delta = value.get("index"), value.get("delta")
        block = self._blocks.get(index) if isinstance(index, int) else None
        kind = delta.get("type") if isinstance(delta, dict) else None
        if block is None or not isinstance(index, int) or not isinstance(delta, dict) or not isinstance(kind, str):
            return False
        pieces = block.add(delta)
        field, heard = DELTAS.get(kind, ("", TextDelta))
        if isinstance(text := delta.get(field), str):
            self._emit(heard(text, index))
            self._expect(event, pieces, heard, index)
        # What a known delta says beside its text is of the moment and no part of the block; a listener may want it.
        if kind not in PLAIN or len(delta) > len(("type", "text")):
            self._pass_on(event)
        return True

    def _end_message(self, event: sse.Event) -> bool:
        wire, fields = lenient(_message_delta, event.data), raw_fields(event.data)
        if wire is None or fields is None:
            return False
        # What stands beside the delta, such as what was done to the context, is said of the whole message.
        self._message.update({key: raw for key, raw in fields.items() if key not in _MessageDelta.__struct_fields__})
        self._message.update(wire.delta or {})
        self._use(wire.usage)
        return True

    def _use(self, usage: Fields | None) -> None:
        """Take totals that replace those before; a null says nothing new."""
        if usage is None:
            return
        news = {key: raw for key, raw in usage.items() if bytes(raw) != NULL or key not in self._usage}
        together = {**self._usage, **news}
        seen = self._usage_of(together)
        if seen is not None:
            self._usage = together
            self._emit(UsageSeen(seen))
