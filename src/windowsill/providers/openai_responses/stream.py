"""Puts an OpenAI Responses answer together: its last event holds all of it, the items before it count if it is cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from windowsill.errors import FormatError
from windowsill.messages import Usage
from windowsill.providers import sse
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
    joined,
    lenient,
    loose,
    settle,
)
from windowsill.providers.openai_responses.items import read_reply
from windowsill.providers.wire import any_decoder, encode


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


class _Delta(msgspec.Struct, gc=False):
    """What nearly every event is."""

    type: str
    delta: str
    output_index: int
    content_index: int = 0
    summary_index: int = 0


class _Item(msgspec.Struct, gc=False):
    item: dict[str, msgspec.Raw]
    output_index: int


class _Part(msgspec.Struct, gc=False):
    part: dict[str, Any]
    output_index: int
    content_index: int = 0
    summary_index: int = 0


class _Details(msgspec.Struct, gc=False):
    reason: str | None = None
    code: str | None = None
    message: str | None = None
    type: str | None = None


class _Status(msgspec.Struct, gc=False):
    status: str | None = None
    incomplete_details: _Details | None = None
    error: _Details | None = None
    usage: msgspec.Raw = msgspec.Raw(b"null")
    output: list[msgspec.Raw] = []


class _Response(msgspec.Struct, gc=False):
    response: dict[str, msgspec.Raw]


class _Error(msgspec.Struct, gc=False):
    code: str | None = None
    message: str | None = None
    error: _Details | None = None


_delta = msgspec.json.Decoder(_Delta)
_item = msgspec.json.Decoder(_Item)
_part = msgspec.json.Decoder(_Part)
_response = msgspec.json.Decoder(_Response)
_status = msgspec.json.Decoder(_Status)
_error = msgspec.json.Decoder(_Error)

Spoken = type[TextDelta] | type[ReasoningDelta] | type[CallDelta]

GROWING: dict[str, tuple[str, str, Spoken | None]] = {
    "response.output_text.delta": ("content", "text", TextDelta),
    "response.refusal.delta": ("content", "refusal", None),
    "response.reasoning_text.delta": ("content", "text", ReasoningDelta),
    "response.reasoning_summary_text.delta": ("summary", "text", ReasoningDelta),
    "response.function_call_arguments.delta": ("", "arguments", CallDelta),
    "response.custom_tool_call_input.delta": ("", "input", CallDelta),
    "response.mcp_call_arguments.delta": ("", "arguments", None),
    "response.code_interpreter_call_code.delta": ("", "code", None),
}
"""For each delta: the list of the item whose part grows (none: the item itself), the field, and what is heard."""

REPEATED = frozenset(
    {
        "response.output_text.done",
        "response.refusal.done",
        "response.reasoning_text.done",
        "response.reasoning_summary_text.done",
        "response.function_call_arguments.done",
        "response.custom_tool_call_input.done",
    }
)
"""Events that only say again what their deltas said."""

CALLS = frozenset({"function_call", "custom_tool_call"})

NOTHING = {"type": "message", "role": "assistant", "content": []}
"""The item of an answer that was cut before its first."""


class ResponsesAssembly:
    """The state of one answer."""

    def __init__(self) -> None:
        self.finished = False
        self.failure: Failed | None = None
        self._response: dict[str, msgspec.Raw] = {}
        self._items: dict[int, OpenItem] = {}
        self._growing: dict[tuple[str, int, int, int], tuple[list[str], Spoken]] = {}
        self._handlers: dict[str, Callable[[sse.Event, list[Event]], bool]] = {
            "response.created": self._begin,
            "response.queued": self._begin,
            "response.in_progress": self._begin,
            "response.output_item.added": self._start_item,
            "response.output_item.done": self._end_item,
            "response.content_part.added": self._take_part,
            "response.content_part.done": self._take_part,
            "response.reasoning_summary_part.added": self._take_part,
            "response.reasoning_summary_part.done": self._take_part,
            "response.completed": self._end,
            "response.incomplete": self._end,
            "response.failed": self._end,
            "error": self._fail,
        }

    def take(self, arrived: list[sse.Event]) -> list[Event]:
        """Take more events; what they mean to a listener."""
        out: list[Event] = []
        read = _delta.decode
        for event in arrived:
            try:
                wire = read(event.data)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                self._take_other(event, out)
                continue
            place = (wire.type, wire.output_index, wire.content_index, wire.summary_index)
            known = self._growing.get(place)
            if known is not None:
                pieces, heard = known
                pieces.append(wire.delta)
                out.append(heard(wire.delta, wire.output_index))
            elif not self._grow(wire, event, out):
                self._take_other(event, out)
        return out

    def body(self) -> bytes:
        """The response, as far as it arrived."""
        said: Any = lenient(_status, encode(self._response))
        if said is not None and said.output:
            return encode(self._response)
        items: list[Any] = [self._items[index].settle() for index in sorted(self._items)]
        return encode({**self._response, "output": items if items or self.finished else [NOTHING]})

    def _grow(self, wire: _Delta, event: sse.Event, out: list[Event]) -> bool:
        where = GROWING.get(wire.type)
        item = self._items.get(wire.output_index)
        if where is None or item is None:
            return False
        inside, field, heard = where
        index = wire.summary_index if inside == "summary" else wire.content_index
        pieces = item.pieces(inside, index, field)
        pieces.append(wire.delta)
        if heard is None:
            out.append(Raw(event.event, event.data))
        else:
            out.append(heard(wire.delta, wire.output_index))
            self._growing[wire.type, wire.output_index, wire.content_index, wire.summary_index] = (pieces, heard)
        return True

    def _take_other(self, event: sse.Event, out: list[Event]) -> None:
        # Items and parts may be replaced now, so what was known to grow is looked up anew.
        self._growing.clear()
        value = loose(event.data)
        kind = "" if value is None else str(value.get("type", event.event))
        if kind in REPEATED or not event.data:
            return
        handler = self._handlers.get(kind, self._grow_loose if kind in GROWING else _pass)
        if value is None or not handler(event, out):
            self._give_up(Failed("an event that cannot be read", MALFORMED, event.data), out)

    def _grow_loose(self, event: sse.Event, out: list[Event]) -> bool:
        """A delta with half a character, which only the lenient reader takes."""
        try:
            wire = msgspec.convert(loose(event.data), _Delta)
        except msgspec.ValidationError:
            return False
        return self._grow(wire, event, out)

    def _begin(self, event: sse.Event, _: list[Event]) -> bool:
        wire = lenient(_response, event.data)
        if wire is not None:
            self._response = wire.response
        return wire is not None

    def _start_item(self, event: sse.Event, out: list[Event]) -> bool:
        wire = lenient(_item, event.data)
        if wire is None:
            return False
        item = self._items[wire.output_index] = OpenItem(wire.item)
        if item.said("type") in CALLS:
            out.append(CallStarted(item.said("call_id"), item.said("name"), wire.output_index))
        elif item.said("type") not in {"message", "reasoning"}:
            out.append(Raw(event.event, event.data))
        return True

    def _end_item(self, event: sse.Event, _: list[Event]) -> bool:
        wire = lenient(_item, event.data)
        if wire is not None:
            self._items[wire.output_index] = OpenItem(wire.item, whole=True)
        return wire is not None

    def _take_part(self, event: sse.Event, _: list[Event]) -> bool:
        wire = lenient(_part, event.data)
        item = None if wire is None else self._items.get(wire.output_index)
        if wire is None or item is None:
            return False
        inside = "summary" if b"reasoning_summary_part" in event.data else "content"
        item.put(inside, wire.summary_index if inside == "summary" else wire.content_index, wire.part)
        return True

    def _end(self, event: sse.Event, out: list[Event]) -> bool:
        wire = lenient(_response, event.data)
        status = None if wire is None else lenient(_status, encode(wire.response))
        if wire is None or status is None:
            return False
        self._response = wire.response
        self._use(status.usage, out)
        if status.status == "failed":
            self._give_up(_failed(status.error, event.data), out)
            return True
        self.finished = True
        details = status.incomplete_details
        out.append(Finished(details.reason if details is not None and details.reason else status.status))
        return True

    def _use(self, usage: msgspec.Raw, out: list[Event]) -> None:
        try:
            seen = read_reply(encode({"output": [NOTHING], "usage": usage})).usage
        except FormatError:
            return
        if seen is not None and seen != Usage():
            out.append(UsageSeen(seen))

    def _fail(self, event: sse.Event, out: list[Event]) -> bool:
        wire = lenient(_error, event.data) or _Error()
        self._give_up(_failed(wire.error or _Details(code=wire.code, message=wire.message), event.data), out)
        return True

    def _give_up(self, failure: Failed, out: list[Event]) -> None:
        self.failure = self.failure or failure
        out.append(failure)


def _failed(error: _Details | None, data: bytes) -> Failed:
    known = error or _Details()
    return Failed(known.message or "an error", known.code or known.type or "error", data)


def _pass(event: sse.Event, out: list[Event]) -> bool:
    out.append(Raw(event.event, event.data))
    return True
