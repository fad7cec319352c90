"""Put an OpenAI Chat Completions message together out of its stream: the first choice."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from windowsill.providers import sse
from windowsill.providers.base import Format
from windowsill.providers.streams import (
    CUT,
    CallDelta,
    CallStarted,
    Pieces,
    ReasoningDelta,
    Stream,
    TextDelta,
    UsageSeen,
    grow,
    joined,
    settle,
    text_of,
)
from windowsill.providers.wire import encode

HEARD = frozenset({"role", "content", "reasoning_content", "reasoning", "tool_calls", "function_call"})
"""Fields of a delta that have events of their own."""

APART = frozenset({"choices", "usage", "error", "obfuscation"})
"""Fields of a chunk that are not fields of the response, or not as they are."""


class _Function(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    arguments: str
    name: UnsetType | None = UNSET


class _Call(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    function: _Function
    index: Any = UNSET
    type: Any = UNSET
    id: Any = UNSET


class _Delta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    content: str | UnsetType | None = UNSET
    reasoning_content: str | UnsetType | None = UNSET
    tool_calls: tuple[_Call] | UnsetType | None = UNSET
    role: Any = UNSET
    refusal: UnsetType | None = UNSET


class _Choice(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    delta: _Delta
    index: Any = UNSET
    finish_reason: UnsetType | None = UNSET
    logprobs: UnsetType | None = UNSET


class _Chunk(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    choices: tuple[_Choice]
    id: Any = UNSET
    object: Any = UNSET
    created: Any = UNSET
    model: Any = UNSET
    service_tier: Any = UNSET
    system_fingerprint: Any = UNSET
    provider: Any = UNSET
    usage: UnsetType | None = UNSET
    obfuscation: Any = UNSET


_chunk = msgspec.json.Decoder(_Chunk)


class OpenCall:
    """A call while it arrives: its fields so far."""

    __slots__ = ("fields", "id", "place")

    def __init__(self, fields: dict[str, Any], place: int) -> None:
        self.place = place
        self.id = text_of(fields.get("id"))
        self.fields: dict[str, Any] = {"id": self.id, "type": fields.get("type") or "function"}
        grow(self.fields, {key: value for key, value in fields.items() if key not in {"index", "id", "type"}})
        function = self._function
        function.setdefault("name", Pieces())
        function.setdefault("input" if "custom" in self.fields else "arguments", Pieces())

    @property
    def name(self) -> str:
        """The name of the tool."""
        name = self._function["name"]
        return joined(name) if isinstance(name, Pieces) else ""

    @property
    def arguments(self) -> Any:
        """The arguments so far."""
        return self._function.get("arguments")

    def add(self, piece: dict[str, Any]) -> None:
        """Add one more piece. Some servers repeat id and name with every piece, or send them empty."""
        news = {key: value for key, value in piece.items() if value and key not in {"index", "id"}}
        for key in ("function", "custom"):
            part = news.get(key)
            if isinstance(part, dict) and "name" in part and part["name"] == self.name:
                news[key] = {name: value for name, value in part.items() if name != "name"}
        if not self.id:
            self.id = self.fields["id"] = text_of(piece.get("id"))
        grow(self.fields, news)

    @property
    def _function(self) -> dict[str, Any]:
        """The part with name and arguments."""
        key = "custom" if isinstance(self.fields.get("custom"), dict) else "function"
        if not isinstance(self.fields.get(key), dict):
            self.fields[key] = {}
        part: dict[str, Any] = self.fields[key]
        return part


class OpenAIStream(Stream):
    """The state of one answer."""

    def __init__(self, format: Format, *, limit: int = sse.MAX_EVENT_BYTES) -> None:
        super().__init__(format, limit=limit)
        self._response: dict[str, Any] = {}
        self._choice: dict[str, Any] = {}
        self._message: dict[str, Any] = {"role": "assistant", "content": None}
        self._calls: list[OpenCall] = []
        self._calls_by_index: dict[int, OpenCall] = {}
        self._stop_reason: str | None = None
        self._usage: Any = None

    def body(self) -> bytes:
        """Return the response, as far as it arrived."""
        message = settle(self._message)
        if self._calls:
            message["tool_calls"] = [settle(call.fields) for call in self._calls]
        choice = {"index": 0, "message": message, **settle(self._choice), "finish_reason": self._stop_reason}
        response = {**settle(self._response), "object": "chat.completion", "choices": [choice], "usage": self._usage}
        return encode(response)

    @staticmethod
    def _cut(data: bytes) -> tuple[_Chunk, str]:
        wire = _chunk.decode(data)
        wire.obfuscation = UNSET
        delta = wire.choices[0].delta
        text, thought, calls = delta.content, delta.reasoning_content, delta.tool_calls
        if text and not (thought or calls):
            delta.content = CUT
        elif thought and not (text or calls):
            text, delta.reasoning_content = thought, CUT
        elif calls and not (text or thought):
            text, calls[0].function.arguments = calls[0].function.arguments, CUT
        else:
            text = ""
        return wire, text

    def _take(self, value: Any, event: sse.Event) -> bool:
        if not isinstance(value, dict):
            return False
        if error := value.get("error"):
            self._fail_by(error, event, "type", "code")
        choices = value.get("choices")
        if not isinstance(choices, list):
            return bool(error) or self._pass_on(event)
        for key, each in value.items():
            if key not in APART and (each is not None or key not in self._response):
                self._response[key] = each
        for choice in choices:
            if isinstance(choice, dict) and not choice.get("index"):
                self._take_choice(choice, event)
            else:
                self._pass_on(event)
        groq = value.get("x_groq")
        self._use(value.get("usage") or (groq.get("usage") if isinstance(groq, dict) else None))
        return True

    def _take_done(self) -> None:
        if not self.finished:
            self._finish(self._stop_reason)

    def _take_choice(self, choice: dict[str, Any], event: sse.Event) -> None:
        for key, value in choice.items():
            if key == "delta" and isinstance(value, dict):
                self._take_delta(value, event)
            elif key not in {"index", "delta", "finish_reason"}:
                grow(self._choice, {key: value})
        reason = choice.get("finish_reason")
        if reason and isinstance(reason, str) and not self.finished:
            self._stop_reason = reason
            self._finish(reason)

    def _take_delta(self, delta: dict[str, Any], event: sse.Event) -> None:
        self._hear(delta, event)
        calls = delta.pop("tool_calls", ())
        if delta.get("role") == "":
            # An empty role says nothing.
            del delta["role"]
        grow(self._message, delta)
        if calls != ():
            self._message.setdefault("tool_calls", [] if isinstance(calls, list) else None)
        for piece in calls if isinstance(calls, list) else ():
            if isinstance(piece, dict):
                self._take_call(piece, event)
        if delta.get("content"):
            self._expect(event, self._message["content"], TextDelta)
        elif delta.get("reasoning_content"):
            self._expect(event, self._message["reasoning_content"], ReasoningDelta)

    def _hear(self, delta: dict[str, Any], event: sse.Event) -> None:
        """Emit what a listener hears of a delta, but for its calls."""
        text, function = delta.get("content"), delta.get("function_call")
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if thought and isinstance(thought, str):
            self._emit(ReasoningDelta(thought))
        if text and isinstance(text, str):
            self._emit(TextDelta(text))
        if isinstance(function, dict):
            if isinstance(name := function.get("name"), str):
                self._emit(CallStarted(name, name))
            if arguments := text_of(function.get("arguments")):
                self._emit(CallDelta(arguments))
        if (text and not isinstance(text, str)) or any(delta[key] for key in delta.keys() - HEARD):
            self._pass_on(event)

    def _take_call(self, piece: dict[str, Any], event: sse.Event) -> None:
        """Take a piece of a call: the first has id and name, the others more of the arguments."""
        index, id = piece.get("index"), text_of(piece.get("id"))
        # Some servers give no index, or the same to all: another id is another call.
        call = self._calls_by_index.get(index) if isinstance(index, int) else next(reversed(self._calls), None)
        if call is None or (id and call.id and id != call.id):
            call = OpenCall(piece, len(self._calls))
            self._calls.append(call)
            self._calls_by_index[index if isinstance(index, int) else call.place] = call
            self._emit(CallStarted(call.id, call.name, call.place))
        else:
            call.add(piece)
            self._expect(event, call.arguments, CallDelta, call.place)
        for key, field in (("function", "arguments"), ("custom", "input")):
            part = piece.get(key)
            if isinstance(part, dict) and isinstance(text := part.get(field), str):
                if text:
                    self._emit(CallDelta(text, call.place))
                break

    def _use(self, usage: Any) -> None:
        if not isinstance(usage, dict):
            return
        seen = self._usage_of(usage)
        if seen is not None:
            self._usage = usage
            self._emit(UsageSeen(seen))
