"""Puts an OpenAI Chat Completions message together out of its stream: the first choice."""

from __future__ import annotations

from typing import Any

import msgspec

from windowsill.errors import FormatError
from windowsill.messages import Usage
from windowsill.providers import sse
from windowsill.providers.events import (
    DONE,
    MALFORMED,
    CallDelta,
    CallStarted,
    Event,
    Failed,
    Finished,
    Pieces,
    Raw,
    ReasoningDelta,
    TextDelta,
    UsageSeen,
    grow,
    joined,
    loose,
    settle,
)
from windowsill.providers.openai_chat.messages import read_reply
from windowsill.providers.wire import encode


class OpenCall:
    """One call: its fields so far, and its arguments."""

    __slots__ = ("arguments", "fields", "id", "place")

    def __init__(self, fields: dict[str, Any], place: int) -> None:
        self.place = place
        self.id = _text(fields.get("id"))
        self.fields: dict[str, Any] = {"id": self.id, "type": fields.get("type") or "function"}
        grow(self.fields, {key: value for key, value in fields.items() if key not in {"index", "id", "type"}})
        asked = self.asked
        asked.setdefault("name", Pieces())
        said = asked.setdefault("input" if "custom" in self.fields else "arguments", Pieces())
        self.arguments: Pieces | None = said if isinstance(said, Pieces) else None

    @property
    def asked(self) -> dict[str, Any]:
        """The part with name and arguments."""
        key = "custom" if isinstance(self.fields.get("custom"), dict) else "function"
        if not isinstance(self.fields.get(key), dict):
            self.fields[key] = {}
        part: dict[str, Any] = self.fields[key]
        return part

    @property
    def name(self) -> str:
        """What is called."""
        name = self.asked["name"]
        return joined(name) if isinstance(name, Pieces) else ""


class Calls:
    """All calls of a message, in the order in which they began."""

    def __init__(self) -> None:
        self.known: dict[int, OpenCall] = {}
        self._all: list[OpenCall] = []

    def __bool__(self) -> bool:
        return bool(self._all)

    def settle(self) -> list[Any]:
        """The calls in their native form."""
        return [settle(call.fields) for call in self._all]

    def take(self, piece: dict[str, Any], out: list[Event]) -> None:
        """One more piece: the first has id and name, the others more of the arguments."""
        id = _text(piece.get("id"))
        call = self._meant(piece.get("index"), id)
        if call is None:
            call = OpenCall(piece, len(self._all))
            self._all.append(call)
            index = piece.get("index")
            self.known[index if isinstance(index, int) else call.place] = call
            out.append(CallStarted(call.id, call.name, call.place))
        else:
            _continue(call, piece, id)
        if text := _arguments(piece):
            out.append(CallDelta(text, call.place))

    def _meant(self, index: Any, id: str) -> OpenCall | None:
        """The call a piece belongs to. Some servers give no index, or the same to all: another id is another call."""
        call = self.known.get(index) if isinstance(index, int) else next(reversed(self._all), None)
        return None if call is not None and id and call.id and id != call.id else call


def _continue(call: OpenCall, piece: dict[str, Any], id: str) -> None:
    # Some servers repeat id and name with every piece, or send them empty.
    news = {key: value for key, value in piece.items() if value and key not in {"index", "id"}}
    for key in ("function", "custom"):
        part = news.get(key)
        if isinstance(part, dict) and part.get("name") == call.name:
            news[key] = {name: value for name, value in part.items() if name != "name"}
    if id and not call.id:
        call.id = call.fields["id"] = id
    grow(call.fields, news)


def _arguments(piece: dict[str, Any]) -> str:
    for key, field in (("function", "arguments"), ("custom", "input")):
        part = piece.get(key)
        if isinstance(part, dict) and isinstance(part.get(field), str):
            return str(part[field])
    return ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


class _Function(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    arguments: str
    name: None = None


class _Call(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    index: int
    function: _Function
    type: str | None = None
    id: None = None


class _Delta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    content: str | None = None
    tool_calls: tuple[_Call] | None = None
    reasoning_content: str | None = None
    role: str | None = None
    refusal: None = None


class _Choice(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    delta: _Delta
    index: int = 0
    finish_reason: None = None
    logprobs: None = None


class _Chunk(msgspec.Struct, gc=False):
    """What nearly every event is: more of one thing. All others take the longer way."""

    choices: tuple[_Choice]
    usage: None = None
    error: None = None


_chunk = msgspec.json.Decoder(_Chunk)

SPOKEN = frozenset({"role", "content", "reasoning_content", "reasoning", "tool_calls", "function_call"})
"""Fields of a delta that a listener hears of by their own events."""

APART = frozenset({"choices", "usage", "error", "obfuscation"})
"""Fields of a chunk that are not fields of the response, or not as they are."""


class OpenAIAssembly:
    """The state of one answer."""

    def __init__(self) -> None:
        self.finished = False
        self.failure: Failed | None = None
        self._response: dict[str, Any] = {}
        self._choice: dict[str, Any] = {}
        self._message: dict[str, Any] = {"role": "assistant", "content": None}
        self._content: Pieces | None = None
        self._reasoning: Pieces | None = None
        self._calls = Calls()
        self._stop_reason: str | None = None
        self._usage: Any = None

    def take(self, arrived: list[sse.Event]) -> list[Event]:
        """Take more events; what they mean to a listener."""
        out: list[Event] = []
        read = _chunk.decode
        for event in arrived:
            try:
                wire = read(event.data)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                self._take_other(event, out)
                continue
            choice = wire.choices[0]
            delta = choice.delta
            text = delta.content
            if text and self._content is not None and not (choice.index or delta.tool_calls or delta.reasoning_content):
                self._content.append(text)
                out.append(TextDelta(text))
            elif choice.index or text or not self._take_delta(delta, out):
                self._take_other(event, out)
        return out

    def body(self) -> bytes:
        """The response, as far as it arrived."""
        message = settle(self._message)
        if self._calls:
            message["tool_calls"] = self._calls.settle()
        choice = {"index": 0, "message": message, **settle(self._choice), "finish_reason": self._stop_reason}
        response = {**settle(self._response), "object": "chat.completion", "choices": [choice], "usage": self._usage}
        return encode(response)

    def _take_delta(self, delta: _Delta, out: list[Event]) -> bool:
        """More of a call or of reasoning that has begun; false when it is something else."""
        calls, thought = delta.tool_calls, delta.reasoning_content
        if calls:
            call = self._calls.known.get(calls[0].index)
            if call is None or call.arguments is None or thought:
                return False
            call.arguments.append(calls[0].function.arguments)
            out.append(CallDelta(calls[0].function.arguments, call.place))
        elif thought:
            if self._reasoning is None:
                return False
            self._reasoning.append(thought)
            out.append(ReasoningDelta(thought))
        else:
            return False
        return True

    def _take_other(self, event: sse.Event, out: list[Event]) -> None:
        if event.data == DONE:
            if not self.finished:
                self._finish(out)
            return
        if not event.data:
            return
        value = loose(event.data)
        if value is None:
            self._fail(Failed("an event that cannot be read", MALFORMED, event.data), out)
            return
        if error := value.get("error"):
            self._fail(_failed(error, event.data), out)
        choices = value.get("choices")
        if not isinstance(choices, list):
            if not error:
                out.append(Raw(event.event, event.data))
            return
        self._response.update(
            {
                key: each
                for key, each in value.items()
                if key not in APART and (each is not None or key not in self._response)
            }
        )
        for choice in choices:
            if isinstance(choice, dict) and not choice.get("index"):
                self._take_choice(choice, event, out)
            else:
                out.append(Raw(event.event, event.data))
        self._use(value.get("usage"), out)

    def _take_choice(self, choice: dict[str, Any], event: sse.Event, out: list[Event]) -> None:
        found = choice.get("delta")
        delta: dict[str, Any] = found if isinstance(found, dict) else {}
        self._hear(delta, event, out)
        # An empty role says nothing; calls and what was asked for by name keep their own state.
        grow(
            self._message, {key: each for key, each in delta.items() if key != "tool_calls" and (key, each) != ROLELESS}
        )
        content, reasoning = self._message["content"], self._message.get("reasoning_content")
        self._content = content if isinstance(content, Pieces) else None
        self._reasoning = reasoning if isinstance(reasoning, Pieces) else None
        calls = delta.get("tool_calls")
        if "tool_calls" in delta:
            self._message.setdefault("tool_calls", [] if isinstance(calls, list) else None)
        for piece in calls if isinstance(calls, list) else ():
            if isinstance(piece, dict):
                self._calls.take(piece, out)
        grow(
            self._choice, {key: each for key, each in choice.items() if key not in {"index", "delta", "finish_reason"}}
        )
        reason = choice.get("finish_reason")
        if reason and isinstance(reason, str) and not self.finished:
            self._stop_reason = reason
            self._finish(out)

    def _hear(self, delta: dict[str, Any], event: sse.Event, out: list[Event]) -> None:
        text, asked = delta.get("content"), delta.get("function_call")
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if thought and isinstance(thought, str):
            out.append(ReasoningDelta(thought))
        if text and isinstance(text, str):
            out.append(TextDelta(text))
        if isinstance(asked, dict):
            if isinstance(name := asked.get("name"), str):
                out.append(CallStarted(name, name))
            if isinstance(arguments := asked.get("arguments"), str) and arguments:
                out.append(CallDelta(arguments))
        unheard = (text and not isinstance(text, str)) or any(delta[key] for key in delta.keys() - SPOKEN)
        if unheard:
            out.append(Raw(event.event, event.data))

    def _use(self, usage: Any, out: list[Event]) -> None:
        if not isinstance(usage, dict):
            return
        message = {"role": "assistant"}
        try:
            seen = read_reply(encode({"choices": [{"message": message}], "usage": usage})).usage
        except FormatError:
            return
        self._usage = usage
        out.append(UsageSeen(seen or Usage()))

    def _finish(self, out: list[Event]) -> None:
        self.finished = True
        out.append(Finished(self._stop_reason))

    def _fail(self, failure: Failed, out: list[Event]) -> None:
        self.failure = self.failure or failure
        out.append(failure)


ROLELESS = ("role", "")


def _failed(error: Any, data: bytes) -> Failed:
    if not isinstance(error, dict):
        return Failed(str(error), "error", data)
    kind = error.get("type") or error.get("code") or "error"
    return Failed(str(error.get("message") or "an error"), str(kind), data)
