"""Puts an Anthropic message together out of its stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from windowsill.errors import FormatError
from windowsill.messages import Usage
from windowsill.providers import events, sse
from windowsill.providers.anthropic.messages import read_reply
from windowsill.providers.events import (
    MALFORMED,
    CallDelta,
    CallStarted,
    Event,
    Failed,
    Finished,
    Raw,
    ReasoningDelta,
    TextDelta,
    UsageSeen,
    lenient,
    loose,
)
from windowsill.providers.wire import any_decoder, encode, fields_decoder


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
        self._fields.update(events.settle(fields))

    def _grow(self, fields: dict[str, Any]) -> None:
        for key in fields:
            if key not in self._more and key in self._fields:
                raw = self._fields[key]
                self._more[key] = any_decoder.decode(raw) if isinstance(raw, msgspec.Raw) else raw
        events.grow(self._more, fields)

    def settle(self, *, whole: bool) -> dict[str, Any]:
        """The block in its native form, the fields in the order they began in."""
        fields = {**self._fields, **events.settle(self._more)}
        if self.text:
            fields["text"] = events.joined([self.said("text"), *self.text])
        if self.thinking:
            fields["thinking"] = events.joined([self.said("thinking"), *self.thinking])
        if self.json:
            fields["input"] = _input(events.joined(self.json), fields.get("input", {}))
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


class _TextDelta(msgspec.Struct, tag="text_delta", forbid_unknown_fields=True, gc=False):
    text: str


class _JsonDelta(msgspec.Struct, tag="input_json_delta", forbid_unknown_fields=True, gc=False):
    partial_json: str


class _ThinkingDelta(msgspec.Struct, tag="thinking_delta", forbid_unknown_fields=True, gc=False):
    thinking: str


class _BlockDelta(msgspec.Struct, tag="content_block_delta", forbid_unknown_fields=True, gc=False):
    """What nearly every event is; all others, and those with a field more, take the longer way."""

    index: int
    delta: _TextDelta | _JsonDelta | _ThinkingDelta


class _AnyDelta(msgspec.Struct, gc=False):
    index: int
    delta: dict[str, Any]


class _MessageStart(msgspec.Struct, gc=False):
    message: dict[str, msgspec.Raw]


class _BlockStart(msgspec.Struct, gc=False):
    index: int
    content_block: dict[str, msgspec.Raw]


class _MessageDelta(msgspec.Struct, gc=False):
    delta: dict[str, msgspec.Raw] | None = None
    usage: dict[str, msgspec.Raw] | None = None
    type: str = ""


class _Content(msgspec.Struct, gc=False):
    content: list[dict[str, msgspec.Raw]] | None = None
    usage: dict[str, msgspec.Raw] | None = None


class _Problem(msgspec.Struct, gc=False):
    type: str = ""
    message: str = ""


class _Error(msgspec.Struct, gc=False):
    error: _Problem = msgspec.field(default_factory=_Problem)


_block_delta = msgspec.json.Decoder(_BlockDelta)
_message_start = msgspec.json.Decoder(_MessageStart)
_block_start = msgspec.json.Decoder(_BlockStart)
_message_delta = msgspec.json.Decoder(_MessageDelta)
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_content = msgspec.json.Decoder(_Content)
_error = msgspec.json.Decoder(_Error)
_maybe_text = msgspec.json.Decoder(str | None)

NULL = b"null"

PLAIN = frozenset({"text_delta", "input_json_delta", "thinking_delta", "signature_delta"})
"""Deltas of a type and one text, of which nothing is left to say."""


class AnthropicAssembly:
    """The state of one answer."""

    def __init__(self) -> None:
        self.finished = False
        self.failure: Failed | None = None
        self._message: dict[str, msgspec.Raw] = {}
        self._usage: dict[str, msgspec.Raw] = {}
        self._blocks: dict[int, OpenBlock] = {}
        self._handlers: dict[str, Callable[[sse.Event, list[Event]], bool]] = {
            "message_start": self._start_message,
            "content_block_start": self._start_block,
            "content_block_delta": self._grow_block,
            "message_delta": self._end_message,
            "message_stop": self._finish,
            "error": self._fail,
            "content_block_stop": _nothing,
            "ping": _nothing,
        }

    def take(self, arrived: list[sse.Event]) -> list[Event]:
        """Take more events; what they mean to a listener."""
        out: list[Event] = []
        blocks = self._blocks
        read = _block_delta.decode
        for event in arrived:
            try:
                wire = read(event.data)
                block = blocks[wire.index]
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError):
                self._take_other(event, out)
                continue
            delta = wire.delta
            if type(delta) is _TextDelta:
                block.text.append(delta.text)
                out.append(TextDelta(delta.text, wire.index))
            elif type(delta) is _JsonDelta:
                block.json.append(delta.partial_json)
                out.append(CallDelta(delta.partial_json, wire.index))
            elif type(delta) is _ThinkingDelta:
                block.thinking.append(delta.thinking)
                out.append(ReasoningDelta(delta.thinking, wire.index))
        return out

    def body(self) -> bytes:
        """The response, as far as it arrived."""
        content = [self._blocks[index].settle(whole=self.finished) for index in sorted(self._blocks)]
        began: dict[str, Any] = self._message or {"type": "message", "role": "assistant"}
        return encode({**began, "content": content, "usage": self._usage or None})

    def _take_other(self, event: sse.Event, out: list[Event]) -> None:
        if not event.data:
            return
        value = loose(event.data)
        kind = None if value is None else value.get("type", event.event)
        handler = self._handlers.get(kind) if isinstance(kind, str) else None
        if value is not None and handler is None:
            out.append(Raw(event.event, event.data))
        elif handler is None or not handler(event, out):
            self._give_up(Failed("an event that cannot be read", MALFORMED, event.data), out)

    def _give_up(self, failure: Failed, out: list[Event]) -> None:
        self.failure = self.failure or failure
        out.append(failure)

    def _start_message(self, event: sse.Event, out: list[Event]) -> bool:
        wire = lenient(_message_start, event.data)
        content = None if wire is None else lenient(_content, encode(wire.message))
        if wire is None or content is None:
            return False
        self._message = wire.message
        self._blocks.update({index: OpenBlock(fields) for index, fields in enumerate(content.content or ())})
        self._use(content.usage, out)
        return True

    def _start_block(self, event: sse.Event, out: list[Event]) -> bool:
        wire = lenient(_block_start, event.data)
        if wire is None:
            return False
        block = self._blocks[wire.index] = OpenBlock(wire.content_block)
        kind, index = block.said("type"), wire.index
        if kind == "text":
            if text := block.said("text"):
                out.append(TextDelta(text, index))
        elif kind == "thinking":
            if text := block.said("thinking"):
                out.append(ReasoningDelta(text, index))
        elif kind == "tool_use":
            out.append(CallStarted(block.said("id"), block.said("name"), index))
        else:
            out.append(Raw(event.event, event.data))
        return True

    def _grow_block(self, event: sse.Event, out: list[Event]) -> bool:
        try:
            wire = msgspec.convert(loose(event.data), _AnyDelta)
        except msgspec.ValidationError:
            return False
        block = self._blocks.get(wire.index)
        if block is None:
            return False
        index, delta = wire.index, wire.delta
        match delta:
            case {"type": "text_delta", "text": str(text)}:
                block.text.append(text)
                out.append(TextDelta(text, index))
            case {"type": "input_json_delta", "partial_json": str(text)}:
                block.json.append(text)
                out.append(CallDelta(text, index))
            case {"type": "thinking_delta", "thinking": str(text)}:
                block.thinking.append(text)
                out.append(ReasoningDelta(text, index))
            case {"type": str()}:
                block.take(delta)
            case _:
                return False
        # What a known delta says beside its text is of the moment and no part of the block; a listener may want it.
        if delta["type"] not in PLAIN or len(delta) > len(("type", "text")):
            out.append(Raw(event.event, event.data))
        return True

    def _end_message(self, event: sse.Event, out: list[Event]) -> bool:
        wire, fields = lenient(_message_delta, event.data), lenient(_fields, event.data)
        if wire is None or fields is None:
            return False
        # What stands beside the delta, such as what was done to the context, is said of the whole message.
        self._message.update({key: raw for key, raw in fields.items() if key not in _MessageDelta.__struct_fields__})
        self._message.update(wire.delta or {})
        self._use(wire.usage, out)
        return True

    def _use(self, usage: dict[str, msgspec.Raw] | None, out: list[Event]) -> None:
        """Totals that replace those before; what is null says nothing new."""
        if usage is None:
            return
        news = {key: raw for key, raw in usage.items() if bytes(raw) != NULL or key not in self._usage}
        together = {**self._usage, **news}
        try:
            seen = read_reply(encode({"content": [], "usage": together})).usage
        except FormatError:
            return
        self._usage = together
        out.append(UsageSeen(seen or Usage()))

    def _finish(self, _: sse.Event, out: list[Event]) -> bool:
        self.finished = True
        out.append(Finished(lenient(_maybe_text, bytes(self._message.get("stop_reason", NULL)))))
        return True

    def _fail(self, event: sse.Event, out: list[Event]) -> bool:
        error = (lenient(_error, event.data) or _Error()).error
        self._give_up(Failed(error.message or "an error", error.type or "error", event.data), out)
        return True


def _nothing(_event: sse.Event, _out: list[Event]) -> bool:
    return True
