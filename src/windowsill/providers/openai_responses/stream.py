"""Put an OpenAI Responses answer together: its last event holds all of it, the items before it count if it is cut."""

from __future__ import annotations

from typing import Any

import msgspec

from windowsill.messages import Usage
from windowsill.providers import sse
from windowsill.providers.base import Format
from windowsill.providers.streams import (
    CUT,
    CallDelta,
    CallStarted,
    Growing,
    ReasoningDelta,
    Stream,
    TextDelta,
    UsageSeen,
    grow,
    lenient,
    raw_fields,
    settle,
)
from windowsill.providers.wire import Fields, encode

DELTAS: dict[str, tuple[str, str, type[TextDelta] | type[ReasoningDelta] | type[CallDelta] | None]] = {
    "response.output_text.delta": ("content", "text", TextDelta),
    "response.refusal.delta": ("content", "refusal", None),
    "response.reasoning_text.delta": ("content", "text", ReasoningDelta),
    "response.reasoning_summary_text.delta": ("summary", "text", ReasoningDelta),
    "response.function_call_arguments.delta": ("", "arguments", CallDelta),
    "response.custom_tool_call_input.delta": ("", "input", CallDelta),
    "response.mcp_call_arguments.delta": ("", "arguments", None),
    "response.code_interpreter_call_code.delta": ("", "code", None),
}
"""For each delta: the list of the item whose part grows (none: the item itself), the field, and the event of it."""

REPEATED = frozenset(
    kind.replace(".delta", ".done") for kind, (_, field, heard) in DELTAS.items() if heard or field == "refusal"
)
"""Events that only say again what their deltas said."""

CALLS = frozenset({"function_call", "custom_tool_call"})

NOTHING = {"type": "message", "role": "assistant", "content": []}
"""The item of an answer that was cut before its first."""


class _Delta(msgspec.Struct, gc=False):
    """The fields of a delta of which anything is kept."""

    type: str
    delta: str
    output_index: int
    content_index: int = 0
    summary_index: int = 0


class _Details(msgspec.Struct, gc=False):
    reason: str | None = None


class _Status(msgspec.Struct, gc=False):
    status: str | None = None
    incomplete_details: _Details | None = None
    error: dict[str, Any] | None = None
    usage: msgspec.Raw = msgspec.Raw(b"null")
    output: list[msgspec.Raw] = []


_delta = msgspec.json.Decoder(_Delta)
_status = msgspec.json.Decoder(_Status)


class OpenItem(Growing):
    """An item while it arrives, and its parts; `whole` when it came once more at its end."""

    def __init__(self, fields: Fields, *, whole: bool = False) -> None:
        super().__init__(fields)
        self._whole = whole
        self.parts: dict[tuple[str, int], dict[str, Any]] = {}

    def add(self, inside: str, index: int, field: str, text: str) -> Any:
        """Add text to a part, or to the item itself when it is inside nothing; return what has become of it."""
        if not inside:
            return self.lengthen(field, text)
        part = self.parts.setdefault((inside, index), {"type": self._part_type(inside, field)})
        grow(part, {field: text})
        return part[field]

    def settle(self) -> dict[str, Any]:
        """Return the item in its native form; one that was cut says so by its status."""
        fields = self.settled()
        if self._whole:
            return fields
        for inside in ("content", "summary"):
            parts = [settle(self.parts[key]) for key in sorted(self.parts) if key[0] == inside]
            if parts:
                begun = self._value(inside)
                fields[inside] = [*(begun if isinstance(begun, list) else []), *parts]
        if "status" in fields:
            fields["status"] = "incomplete"
        return fields

    def _part_type(self, inside: str, field: str) -> str:
        """Return the type of a part that was never announced."""
        if inside == "summary":
            return "summary_text"
        if field == "refusal":
            return "refusal"
        return "reasoning_text" if self.first("type") == "reasoning" else "output_text"


class ResponsesStream(Stream):
    """The state of one answer."""

    def __init__(self, format: Format, *, limit: int = sse.MAX_EVENT_BYTES) -> None:
        super().__init__(format, limit=limit)
        self._response: Fields = {}
        self._items: dict[int, OpenItem] = {}

    def body(self) -> bytes:
        """Return the response, as far as it arrived."""
        status = lenient(_status, encode(self._response))
        if status is not None and status.output:
            return encode(self._response)
        items: list[Any] = [self._items[index].settle() for index in sorted(self._items)]
        return encode({**self._response, "output": items if items or self.finished else [NOTHING]})

    @staticmethod
    def _cut(data: bytes) -> tuple[_Delta, str]:
        wire = _delta.decode(data)
        text, wire.delta = wire.delta, CUT
        return wire, text

    def _take(self, value: Any, event: sse.Event) -> bool:
        if not isinstance(value, dict):
            return False
        kind = str(value.get("type", event.event))
        if kind in DELTAS:
            return self._grow(kind, value, event)
        match kind:
            case "response.created" | "response.queued" | "response.in_progress":
                return self._begin(event)
            case "response.output_item.added" | "response.output_item.done":
                return self._put_item(value, event, whole=kind.endswith("done"))
            case "response.content_part.added" | "response.content_part.done":
                return self._put_part("content", value)
            case "response.reasoning_summary_part.added" | "response.reasoning_summary_part.done":
                return self._put_part("summary", value)
            case "response.completed" | "response.incomplete" | "response.failed":
                return self._end(event)
            case "error":
                error = value.get("error") or {key: each for key, each in value.items() if key != "type"}
                self._fail_by(error, event, "code", "type")
            case _ if kind not in REPEATED:
                self._pass_on(event)
        return True

    def _grow(self, kind: str, value: dict[str, Any], event: sse.Event) -> bool:
        inside, field, heard = DELTAS[kind]
        text, index = value.get("delta"), value.get("output_index")
        part = value.get("summary_index" if inside == "summary" else "content_index", 0)
        item = self._items.get(index) if isinstance(index, int) else None
        if item is None or not (isinstance(text, str) and isinstance(index, int) and isinstance(part, int)):
            return False
        pieces = item.add(inside, part, field, text)
        if heard is None:
            return self._pass_on(event)
        self._emit(heard(text, index))
        self._expect(event, pieces, heard, index)
        return True

    def _put_item(self, value: dict[str, Any], event: sse.Event, *, whole: bool) -> bool:
        fields, index = raw_fields(event.data, "item"), value.get("output_index")
        if fields is None or not isinstance(index, int):
            return False
        item = self._items[index] = OpenItem(fields, whole=whole)
        kind = item.first("type")
        if not whole and kind in CALLS:
            self._emit(CallStarted(item.first("call_id"), item.first("name"), index))
        elif not whole and kind not in {"message", "reasoning"}:
            self._pass_on(event)
        return True

    def _put_part(self, inside: str, value: dict[str, Any]) -> bool:
        index, part, place = value.get("output_index"), value.get("part"), value.get(f"{inside}_index", 0)
        item = self._items.get(index) if isinstance(index, int) else None
        if item is None or not isinstance(part, dict) or not isinstance(place, int):
            return False
        # One that comes whole at its end counts for all that was added to it.
        item.parts[inside, place] = part
        return True

    def _begin(self, event: sse.Event) -> bool:
        response = raw_fields(event.data, "response")
        if response is not None:
            self._response = response
        return response is not None

    def _end(self, event: sse.Event) -> bool:
        response = raw_fields(event.data, "response")
        status = None if response is None else lenient(_status, encode(response))
        if response is None or status is None:
            return False
        self._response = response
        seen = self._usage_of(status.usage)
        if seen is not None and seen != Usage():
            self._emit(UsageSeen(seen))
        if status.status == "failed":
            self._fail_by(status.error or {}, event, "code", "type")
            return True
        details = status.incomplete_details
        self._finish(details.reason if details is not None and details.reason else status.status)
        return True
