"""Puts a Gemini response together out of its stream: the first candidate."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import Any

import msgspec

from windowsill.errors import FormatError
from windowsill.history.repair.mend import numbered_id
from windowsill.messages import Reply, Usage
from windowsill.providers import sse
from windowsill.providers.events import (
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
    loose_value,
    settle,
)
from windowsill.providers.gemini import read
from windowsill.providers.wire import BOM, decode, encode, fields_decoder

_INSIDE = re.compile(rb'["\\]')
_WORDS = re.compile(rb'(?:[^"{}\[\]]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+', re.DOTALL)
"""Everything up to the next bracket or the text that is torn; it never goes back over what it read."""


class Values:
    """Takes bytes as they come and gives the objects that are whole, as bytes.

    A list around them is left out, as is what stands between them. The bytes of an object are held until it ends, and
    each is looked at once.
    """

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._held: list[bytes] = []
        self._size = 0
        self._depth = 0
        """How many brackets are open, those of an object that has begun."""
        self._in_text = False
        self._escaped = False

    @property
    def begun(self) -> bool:
        """Whether an object has begun that did not end yet."""
        return self._depth > 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The objects that end in this chunk."""
        found: list[bytes] = []
        start = 0
        place = self._skip(chunk, 0) if self._in_text else 0
        while place < len(chunk):
            passed = _WORDS.match(chunk, place)
            place = place if passed is None else passed.end()
            sign = chunk[place : place + 1]
            place += 1
            if sign == b'"':
                self._in_text = True
                place = self._skip(chunk, place)
            elif sign in {b"{", b"["}:
                if self._depth or sign == b"{":
                    start = start if self._depth else place - 1
                    self._depth += 1
            elif sign and self._depth:
                self._depth -= 1
                if not self._depth:
                    found.append(b"".join((*self._held, chunk[start:place])))
                    self._held.clear()
                    self._size = 0
        if self._depth:
            self._held.append(chunk[start:])
            self._size += len(chunk) - start
            if self._size > self._limit and not found:
                raise FormatError(
                    f"an event of more than {self._limit} bytes",
                    where="stream",
                    remedy="check that this is an event stream, or raise the limit",
                )
        return found

    def close(self) -> bytes:
        """What began and did not end."""
        rest = b"".join(self._held)
        self._held.clear()
        self._size = self._depth = 0
        return rest

    def _skip(self, chunk: bytes, place: int) -> int:
        """The place after the text that is open, or the end of the chunk."""
        if self._escaped and chunk:
            self._escaped = False
            place += 1
        while (mark := _INSIDE.search(chunk, place)) is not None:
            place = mark.end()
            if mark.group() == b'"':
                self._in_text = False
                return place
            place += 1
            if place > len(chunk):
                self._escaped = True
        return len(chunk)


_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d+)\]|\[(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\]""", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)

MAX_PLACES = 100_000
"""A list grows by the items that come; a place far behind them is no place a model wrote."""


def put(args: dict[str, Any], piece: dict[str, Any]) -> bool:
    """Put one more value, or more of a text, to its place; false when it cannot be told where or what that is."""
    path = _path(piece.get("jsonPath"))
    if not path or not isinstance(path[0], str):
        return False
    target: Any = args
    for step, after in pairwise(path):
        inner = _get(target, step)
        if not isinstance(inner, dict if isinstance(after, str) else list) or isinstance(inner, Pieces):
            inner = {} if isinstance(after, str) else []
            if not _set(target, step, inner):
                return False
        target = inner
    return _put_value(target, path[-1], piece)


def _put_value(target: Any, step: str | int, piece: dict[str, Any]) -> bool:
    if isinstance(text := piece.get("stringValue"), str):
        old = _get(target, step)
        if isinstance(old, Pieces):
            old.append(text)
            return True
        return _set(target, step, Pieces([text]))
    if "nullValue" in piece:
        return _set(target, step, None)
    for kind in ("numberValue", "boolValue"):
        if kind in piece:
            return _set(target, step, piece[kind])
    # A text that is empty comes without a value.
    return isinstance(_get(target, step), Pieces) or _set(target, step, Pieces())


def _path(text: Any) -> list[str | int]:
    if not isinstance(text, str) or text[:1] != "$":
        return []
    found: list[str | int] = []
    place = 1
    while place < len(text):
        step = _STEP.match(text, place)
        if step is None:
            return []
        name, number, single, double = step.groups()
        quoted = single if single is not None else double
        found.append(int(number) if number else name if name is not None else _ESCAPE.sub(r"\1", quoted))
        place = step.end()
    return found


def _get(target: Any, step: str | int) -> Any:
    if isinstance(step, str):
        return target.get(step) if isinstance(target, dict) else None
    return target[step] if isinstance(target, list) and step < len(target) else None


def _set(target: Any, step: str | int, value: Any) -> bool:
    if isinstance(step, str) and isinstance(target, dict):
        target[step] = value
        return True
    if isinstance(step, int) and isinstance(target, list) and step < len(target) + MAX_PLACES:
        target.extend([None] * (step + 1 - len(target)))
        target[step] = value
        return True
    return False


PLAIN = frozenset({"text", "thought"})
"""Text of these fields alone goes on in the next part of its kind. A part with a signature stands for itself: Google
asks not to join it with another."""

IN_PIECES = frozenset({"partialArgs", "willContinue"})
"""Fields of a call that say how it arrives; the call that has arrived has none of them."""


class Parts:
    """All parts so far, in order."""

    def __init__(self) -> None:
        self.open: Pieces | None = None
        """The text that goes on when more of its kind comes."""
        self.thought = False
        """Whether that text is a thought."""
        self.place = 0
        """Which part that text is."""
        self._all: list[Any] = []
        self._blank: Any = None
        self._call: dict[str, Any] | None = None
        self._seen: Counter[str] = Counter()

    def take(self, part: Any, raw: msgspec.Raw | None, out: list[Event]) -> bool:
        """One more part, with its bytes where they are whole; false when a listener would hear nothing of it."""
        value = part if isinstance(part, dict) else {}
        text, asked = value.get("text"), value.get("functionCall")
        if isinstance(asked, dict):
            return self._take_call(value, asked, raw, out)
        self._call = None
        if isinstance(text, str) and PLAIN.issuperset(value) and isinstance(value.get("thought", False), bool):
            self._take_text(text, value, out)
            return True
        self._close(part, raw)
        if isinstance(text, str):
            if text:
                out.append(_words(text, len(self._all) - 1, thought=bool(value.get("thought"))))
            return value.keys() <= PLAIN | {"thoughtSignature"}
        return False

    def settle(self) -> list[Any]:
        """The parts in their native form. Empty text alone is an answer; beside other parts it is none."""
        parts = self._all or ([] if self._blank is None else [self._blank])
        return [each if isinstance(each, msgspec.Raw) else settle(each) for each in parts]

    def _close(self, part: Any, raw: msgspec.Raw | None) -> None:
        self.open = None
        self._all.append(part if raw is None else msgspec.Raw(bytes(raw)))

    def _take_text(self, text: str, value: dict[str, Any], out: list[Event]) -> None:
        thought = bool(value.get("thought"))
        if not text:
            self._blank = self._blank or value
            return
        if self.open is None or self.thought is not thought:
            self.open, self.thought, self.place = Pieces(), thought, len(self._all)
            self._all.append({**value, "text": self.open})
        self.open.append(text)
        out.append(_words(text, self.place, thought=thought))

    def _take_call(
        self, part: dict[str, Any], asked: dict[str, Any], raw: msgspec.Raw | None, out: list[Event]
    ) -> bool:
        if self._call is None and not asked:
            # The end of a call that came in pieces, said once more.
            return True
        if self._call is None or asked.get("name"):
            in_pieces = not IN_PIECES.isdisjoint(asked)
            self._close({**part, "functionCall": dict(asked)} if in_pieces else part, None if in_pieces else raw)
            place = len(self._all) - 1
            out.append(CallStarted(self._id(asked), _text(asked.get("name")), place))
            if not in_pieces:
                out.append(CallDelta(_arguments(raw, asked), place))
                return PLAIN.union({"functionCall", "thoughtSignature"}).issuperset(part)
            self._call = self._all[place]
        call = self._call
        if call is None:
            return False
        known = self._grow(call, part, asked)
        if not asked.get("willContinue"):
            self._call = None
            out.append(CallDelta(encode(settle(call["functionCall"].get("args", {}))).decode(), len(self._all) - 1))
        return known

    def _grow(self, call: dict[str, Any], part: dict[str, Any], asked: dict[str, Any]) -> bool:
        """Put what arrived to the call that goes on."""
        inner = call["functionCall"]
        call.update({key: value for key, value in part.items() if key != "functionCall"})
        inner.update({key: value for key, value in asked.items() if key not in IN_PIECES})
        for key in IN_PIECES:
            inner.pop(key, None)
        args = inner.setdefault("args", {})
        pieces = asked.get("partialArgs")
        known = True
        for piece in pieces if isinstance(pieces, list) else ():
            known &= isinstance(piece, dict) and isinstance(args, dict) and put(args, piece)
        return known

    def _id(self, asked: dict[str, Any]) -> str:
        name = _text(asked.get("name"))
        number = self._seen[name]
        self._seen[name] += 1
        return _text(asked.get("id")) or numbered_id(name, number)


def _words(text: str, place: int, *, thought: bool) -> Event:
    return ReasoningDelta(text, place) if thought else TextDelta(text, place)


class _Asked(msgspec.Struct, gc=False):
    args: msgspec.Raw = msgspec.Raw(b"{}")


class _Call(msgspec.Struct, rename="camel", gc=False):
    function_call: _Asked


_call = msgspec.json.Decoder(_Call)


def _arguments(raw: msgspec.Raw | None, asked: dict[str, Any]) -> str:
    """The arguments as they came."""
    found = encode(settle(asked.get("args"))) if raw is None else bytes(_call.decode(raw).function_call.args)
    return "{}" if found == b"null" else found.decode()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


class _Part(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    text: str
    thought: bool = False


class _Content(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    parts: tuple[_Part]
    role: str | None = None


class _Candidate(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    content: _Content
    index: int = 0


class _Counts(msgspec.Struct, rename="camel", gc=False):
    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    cached_content_token_count: int | None = None
    thoughts_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None


class _Chunk(msgspec.Struct, forbid_unknown_fields=True, rename="camel", gc=False):
    """What nearly every event is: more of one text. All others take the longer way."""

    candidates: tuple[_Candidate]
    usage_metadata: _Counts | None = None
    model_version: str | None = None
    response_id: str | None = None
    create_time: str | None = None


class _Spoken(msgspec.Struct, gc=False):
    parts: list[msgspec.Raw] | None = None


class _Said(msgspec.Struct, gc=False):
    content: _Spoken | None = None


class _Whole(msgspec.Struct, gc=False):
    """The places of a chunk whose bytes are kept."""

    candidates: list[_Said] | None = None


_chunk = msgspec.json.Decoder(_Chunk)
_counts = msgspec.json.Decoder(_Counts)
_whole = msgspec.json.Decoder(_Whole)

KNOWN = frozenset({"candidates", "usageMetadata", "promptFeedback"})
"""What tells a chunk of the response from another event."""

COLLECTED = "logprobsResult"
"""What each chunk has for its own words; all else that comes again replaces what was there."""

NONE = b"[]"


class GeminiAssembly:
    """The state of one answer."""

    def __init__(self) -> None:
        self.finished = False
        self.failure: Failed | None = None
        self._response: dict[str, Any] = {}
        self._candidate: dict[str, Any] = {}
        self._content: dict[str, Any] = {}
        self._parts = Parts()
        self._usage: Usage | None = None
        self._running = b""
        """The last chunk of more text: it has the usage so far, which is kept, and told with the end."""
        self._stop_reason: str | None = None

    def take(self, arrived: list[sse.Event]) -> list[Event]:
        """Take more events; what they mean to a listener."""
        out: list[Event] = []
        parts, response = self._parts, self._response
        for event in arrived:
            try:
                wire = _chunk.decode(event.data)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                self._take_other(event, out)
                continue
            candidate = wire.candidates[0]
            part = candidate.content.parts[0]
            text = part.text
            if parts.open is None or parts.thought is not part.thought or candidate.index or not text:
                self._take_other(event, out)
                continue
            parts.open.append(text)
            out.append(ReasoningDelta(text, parts.place) if part.thought else TextDelta(text, parts.place))
            if wire.model_version is not None:
                response["modelVersion"] = wire.model_version
            if wire.response_id is not None:
                response["responseId"] = wire.response_id
            if wire.create_time is not None:
                response["createTime"] = wire.create_time
            if wire.usage_metadata is not None:
                self._running = event.data
        return out

    def body(self) -> bytes:
        """The response, as far as it arrived."""
        self._settle_usage()
        response = settle(self._response)
        if "candidates" in response:
            candidate = settle(self._candidate)
            if "content" in candidate:
                candidate["content"] = settle(self._content)
            if "parts" in self._content:
                candidate["content"]["parts"] = self._parts.settle()
            response["candidates"] = [candidate] if candidate else []
        return encode(response)

    def _take_other(self, event: sse.Event, out: list[Event]) -> None:
        if not event.data:
            return
        value = loose_value(event.data)
        # An error may come as a list of one.
        found = value if isinstance(value, list) else [value]
        if not found or not all(isinstance(each, dict) for each in found):
            self._fail(Failed("an event that cannot be read", MALFORMED, event.data), out)
            return
        for each in found:
            self._take_chunk(each, event, out)

    def _take_chunk(self, value: dict[str, Any], event: sse.Event, out: list[Event]) -> None:
        if error := value.get("error"):
            self._fail(_failed(error, event.data), out)
        if KNOWN.isdisjoint(value):
            if not error:
                out.append(Raw(event.event, event.data))
            return
        self._settle_usage()
        replace(self._response, {key: each for key, each in value.items() if key != "error"}, apart="candidates")
        feedback = value.get("promptFeedback")
        if isinstance(feedback, dict) and (reason := feedback.get("blockReason")):
            self._fail(Failed(f"the prompt was blocked: {reason}", str(reason), event.data), out)
        candidates = value.get("candidates")
        raws = _raws(event.data)
        for place, candidate in enumerate(candidates if isinstance(candidates, list) else ()):
            if isinstance(candidate, dict) and not candidate.get("index"):
                self._take_candidate(candidate, raws[place] if place < len(raws) else [], event, out)
            else:
                out.append(Raw(event.event, event.data))
        if isinstance(usage := value.get("usageMetadata"), dict):
            self._use(encode(settle(usage)), out)

    def _take_candidate(
        self, candidate: dict[str, Any], raws: list[msgspec.Raw], event: sse.Event, out: list[Event]
    ) -> None:
        logprobs = candidate.get(COLLECTED)
        if isinstance(logprobs, dict):
            grow(self._candidate.setdefault(COLLECTED, {}), logprobs)
        replace(self._candidate, {key: each for key, each in candidate.items() if key != COLLECTED}, apart="content")
        content = candidate.get("content")
        if isinstance(content, dict):
            replace(self._content, content, apart="parts")
            self._take_parts(content.get("parts"), raws, event, out)
        reason = candidate.get("finishReason")
        if isinstance(reason, str) and reason and reason != self._stop_reason:
            self._stop_reason = reason
            self.finished = True
            out.append(Finished(reason))

    def _take_parts(self, parts: Any, raws: list[msgspec.Raw], event: sse.Event, out: list[Event]) -> None:
        heard = True
        for place, part in enumerate(parts if isinstance(parts, list) else ()):
            heard &= self._parts.take(part, raws[place] if place < len(raws) else None, out)
        if not heard:
            out.append(Raw(event.event, event.data))

    def _settle_usage(self) -> None:
        if self._running:
            self._response["usageMetadata"] = decode(fields_decoder, self._running)["usageMetadata"]
            self._running = b""

    def _use(self, usage: bytes, out: list[Event]) -> None:
        try:
            counts = _counts.decode(usage)
        except msgspec.DecodeError:
            return
        cached = counts.cached_content_token_count or 0
        seen = Usage(
            input=max((counts.prompt_token_count or 0) - cached, 0) + (counts.tool_use_prompt_token_count or 0),
            output=(counts.candidates_token_count or 0) + (counts.thoughts_token_count or 0),
            cache_read=cached,
        )
        if seen != self._usage:
            self._usage = seen
            out.append(UsageSeen(seen))

    def _fail(self, failure: Failed, out: list[Event]) -> None:
        self.failure = self.failure or failure
        out.append(failure)


def replace(into: dict[str, Any], fields: dict[str, Any], *, apart: str) -> None:
    """Put newer fields in the place of older ones; objects are merged, null says nothing, `apart` only has its place.

    The place is that of the first time, so that the whole has the order of its first chunk.
    """
    for key, value in fields.items():
        old = into.get(key)
        if key == apart:
            into.setdefault(key, None)
        elif isinstance(old, dict) and isinstance(value, dict) and key != "usageMetadata":
            into[key] = {**old, **value}
        elif value is not None or key not in into:
            into[key] = value


def read_reply(body: bytes) -> Reply:
    """The reply; where no candidate came, because of a block or an error, it is an empty message."""
    fields = decode(fields_decoder, body)
    if bytes(fields.get("candidates", NONE)) == NONE:
        return read.read_reply(encode({**fields, "candidates": [{}]}))
    return read.read_reply(body)


def _raws(data: bytes) -> list[list[msgspec.Raw]]:
    """The bytes of the parts of each candidate; nothing where they cannot be had, such as with half a character."""
    try:
        candidates = _whole.decode(data).candidates or []
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []
    return [(each.content and each.content.parts) or [] for each in candidates]


def _failed(error: Any, data: bytes) -> Failed:
    if not isinstance(error, dict):
        return Failed(str(error), "error", data)
    kind = error.get("status") or error.get("code") or "error"
    return Failed(str(error.get("message") or "an error"), str(kind), data)


_JSON = frozenset({b"{", b"["})


class Parser:
    """Takes bytes as they come, in either way, and gives the events that are whole; the first character tells which."""

    def __init__(self, *, limit: int = sse.MAX_EVENT_BYTES) -> None:
        self._limit = limit
        self._opening = b""
        self._values: Values | None = None
        self._events: _Events | None = None

    def feed(self, chunk: bytes) -> list[sse.Event]:
        """The events that end in this chunk."""
        if self._events is not None:
            return self._events.feed(chunk)
        if self._values is not None:
            return _as_events(self._values.feed(chunk))
        self._opening += chunk
        start = self._opening.removeprefix(BOM).lstrip()
        if not start or BOM.startswith(self._opening):
            return []
        if start[:1] in _JSON:
            self._values = Values(limit=self._limit)
        else:
            self._events = _Events(limit=self._limit)
        return self.feed(self._opening)

    def close(self) -> list[sse.Event]:
        """What lacks nothing but its end, or was torn: the stream tells them apart."""
        if self._events is not None:
            return self._events.close()
        rest = b"" if self._values is None else self._values.close()
        return _as_events([rest] if rest else [])


class _Events(sse.Parser):
    """Server-sent events, between which an error may stand as plain JSON over several lines."""

    def __init__(self, *, limit: int) -> None:
        super().__init__(limit=limit)
        self._values = Values(limit=limit)
        self._bare: list[bytes] = []

    def feed(self, chunk: bytes) -> list[sse.Event]:
        """The events that end in this chunk, and the error."""
        found = super().feed(chunk)
        if self._bare:
            found += _as_events(self._bare)
            self._bare = []
        return found

    def close(self) -> list[sse.Event]:
        """What lacks nothing but its end."""
        found = super().close() + _as_events(self._bare)
        self._bare = []
        return found

    def _field(self, line: bytes) -> None:
        if line.lstrip()[:1] in _JSON or self._values.begun:
            self._bare += self._values.feed(line + b"\n")
        else:
            super()._field(line)


def _as_events(values: list[bytes]) -> list[sse.Event]:
    return [sse.Event("", value) for value in values]
