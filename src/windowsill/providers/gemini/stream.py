"""Put a Gemini response together out of its stream: the first candidate.

`streamGenerateContent` writes its answer in two ways: events when asked with `alt=sse`, else one JSON list.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from windowsill.history.repair import numbered_id
from windowsill.messages import Reply, Usage
from windowsill.providers import sse
from windowsill.providers.base import Format
from windowsill.providers.streams import (
    CUT,
    CallDelta,
    CallStarted,
    Failed,
    Parser,
    Pieces,
    ReasoningDelta,
    Stream,
    TextDelta,
    UsageSeen,
    grow,
    loose,
    raw_fields,
    settle,
    text_of,
)
from windowsill.providers.wire import BOM, UNREADABLE, decode, encode, fields_decoder, items_decoder

PLAIN = frozenset({"text", "thought"})
"""Text of these fields alone goes on in the next part of its kind. A part with a signature stands for itself: Google
asks not to join it with another."""

IN_PIECES = frozenset({"partialArgs", "willContinue"})
"""Fields of a call that say how it arrives; the call that has arrived has none of them."""

KNOWN = frozenset({"candidates", "usageMetadata", "promptFeedback"})
"""Fields that only a chunk of the response has, and no other event."""

COLLECTED = "logprobsResult"
"""The field that each chunk has for its own text; all others that come again replace what was there."""

NONE = b"[]"

MAX_PLACES = 100_000
"""A list grows by the items that come; a place far behind them is no place a model wrote."""

_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d+)\]|\[(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\]""", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class _Part(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    text: str
    thought: bool = False


class _Content(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    parts: tuple[_Part]
    role: Any = UNSET


class _Candidate(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    content: _Content
    index: Any = UNSET


class _Counts(msgspec.Struct, gc=False):
    """The usage so far, in which every chunk differs."""


class _Chunk(msgspec.Struct, forbid_unknown_fields=True, rename="camel", gc=False):
    candidates: tuple[_Candidate]
    usage_metadata: _Counts | UnsetType = UNSET
    model_version: Any = UNSET
    response_id: Any = UNSET
    create_time: Any = UNSET


_chunk = msgspec.json.Decoder(_Chunk)


class GeminiStream(Stream):
    """The state of one answer."""

    def __init__(self, format: Format, *, limit: int = sse.MAX_EVENT_BYTES) -> None:
        super().__init__(format, limit=limit)
        self._response: dict[str, Any] = {}
        self._candidate: dict[str, Any] = {}
        self._content: dict[str, Any] = {}
        self._parts: list[Any] = []
        self._text: Pieces | None = None
        """The text that goes on when more of its kind comes; `_thought` says whether it is a thought."""
        self._thought = False
        self._blank: Any = None
        """A part of empty text, which is an answer only alone."""
        self._call: dict[str, Any] | None = None
        """The call whose arguments still come."""
        self._names: Counter[str] = Counter()
        self._usage: Usage | None = None
        self._stop_reason: str | None = None

    @staticmethod
    def _new_parser(limit: int) -> Parser:
        return GeminiParser(limit=limit)

    def body(self) -> bytes:
        """Return the response, as far as it arrived."""
        self._keep_usage()
        response = settle(self._response)
        if "candidates" in response:
            candidate = settle(self._candidate)
            if "content" in candidate:
                candidate["content"] = settle(self._content)
            if "parts" in self._content:
                parts = self._parts or ([] if self._blank is None else [self._blank])
                settled = [each if isinstance(each, msgspec.Raw) else settle(each) for each in parts]
                candidate["content"]["parts"] = settled
            response["candidates"] = [candidate] if candidate else []
        return encode(response)

    def _read_reply(self, body: bytes) -> Reply:
        """Read the response; where no candidate came, because of a block or an error, it is an empty message."""
        fields = decode(fields_decoder, body)
        if bytes(fields.get("candidates", NONE)) == NONE:
            body = encode({**fields, "candidates": [{}]})
        return super()._read_reply(body)

    @staticmethod
    def _cut(data: bytes) -> tuple[_Chunk, str]:
        wire = _chunk.decode(data)
        (part,) = wire.candidates[0].content.parts
        text, part.text = part.text, CUT
        return wire, text

    def _keep_usage(self) -> None:
        """Keep the usage of the last chunk that was taken for its text alone."""
        if self._last:
            usage = loose(self._last).get("usageMetadata")
            _replace(self._response, {"usageMetadata": usage} if usage is not None else {}, apart="")
            self._last = b""

    def _take(self, value: Any, event: sse.Event) -> bool:
        # An error may come as a list of one.
        values = value if isinstance(value, list) else [value]
        if not values or not all(isinstance(each, dict) for each in values):
            return False
        for each in values:
            self._take_chunk(each, event)
        return True

    def _take_chunk(self, value: dict[str, Any], event: sse.Event) -> None:
        if error := value.get("error"):
            self._fail_by(error, event, "status", "code")
        if KNOWN.isdisjoint(value):
            if not error:
                self._pass_on(event)
            return
        self._keep_usage()
        _replace(self._response, value, apart="candidates", without="error")
        feedback = value.get("promptFeedback")
        if isinstance(feedback, dict) and (reason := feedback.get("blockReason")):
            self._fail(Failed(f"the prompt was blocked: {reason}", str(reason), event.data))
        candidates = value.get("candidates")
        for place, candidate in enumerate(candidates if isinstance(candidates, list) else ()):
            if isinstance(candidate, dict) and not candidate.get("index"):
                self._take_candidate(candidate, place, event)
            else:
                self._pass_on(event)
        self._use(value.get("usageMetadata"))

    def _take_candidate(self, candidate: dict[str, Any], place: int, event: sse.Event) -> None:
        if isinstance(logprobs := candidate.get(COLLECTED), dict):
            grow(self._candidate.setdefault(COLLECTED, {}), logprobs)
        _replace(self._candidate, candidate, apart="content", without=COLLECTED)
        content = candidate.get("content")
        if isinstance(content, dict):
            _replace(self._content, content, apart="parts")
            parts = content.get("parts")
            if isinstance(parts, list):
                self._take_parts(parts, place, event)
        reason = candidate.get("finishReason")
        if isinstance(reason, str) and reason and reason != self._stop_reason:
            self._stop_reason = reason
            self._finish(reason)

    def _take_parts(self, parts: list[Any], place: int, event: sse.Event) -> None:
        raws: list[msgspec.Raw] | None = None
        heard = True
        for number, part in enumerate(parts):
            if _is_plain_text(part):
                self._take_text(part, event)
                continue
            if raws is None:
                raws = _raw_parts(event.data, place)
            heard &= self._take_part(part, raws[number] if number < len(raws) else None)
        if not heard:
            self._pass_on(event)

    def _take_text(self, part: dict[str, Any], event: sse.Event) -> None:
        self._call = None
        text, thought = part["text"], bool(part.get("thought"))
        if not text:
            self._blank = self._blank or part
            return
        if self._text is None or self._thought is not thought:
            self._text, self._thought = Pieces(), thought
            self._parts.append({**part, "text": self._text})
        self._text.append(text)
        self._emit_text(text, thought=thought)
        self._expect(event, self._text, ReasoningDelta if thought else TextDelta, len(self._parts) - 1)

    def _emit_text(self, text: str, *, thought: bool) -> None:
        place = len(self._parts) - 1
        self._emit(ReasoningDelta(text, place) if thought else TextDelta(text, place))

    def _take_part(self, part: Any, raw: msgspec.Raw | None) -> bool:
        """Take a part that is not plain text, with its bytes where they are whole; false when no event tells of it."""
        value = part if isinstance(part, dict) else {}
        text, call = value.get("text"), value.get("functionCall")
        if isinstance(call, dict):
            return self._take_call(value, call, raw)
        self._call = None
        self._add_part(part, raw)
        if not isinstance(text, str):
            return False
        if text:
            self._emit_text(text, thought=bool(value.get("thought")))
        return value.keys() <= PLAIN | {"thoughtSignature"}

    def _add_part(self, part: Any, raw: msgspec.Raw | None) -> None:
        self._text = None
        self._parts.append(part if raw is None else msgspec.Raw(bytes(raw)))

    def _take_call(self, part: dict[str, Any], call: dict[str, Any], raw: msgspec.Raw | None) -> bool:
        if self._call is None and not call:
            # The end of a call that came in pieces, said once more.
            return True
        if self._call is None or call.get("name"):
            in_pieces = not IN_PIECES.isdisjoint(call)
            self._add_part({**part, "functionCall": dict(call)} if in_pieces else part, None if in_pieces else raw)
            place, name = len(self._parts) - 1, text_of(call.get("name"))
            id = text_of(call.get("id")) or numbered_id(name, self._names[name])
            self._names[name] += 1
            self._emit(CallStarted(id, name, place))
            if not in_pieces:
                self._emit(CallDelta(_arguments(raw, call), place))
                return PLAIN.union({"functionCall", "thoughtSignature"}).issuperset(part)
            self._call = self._parts[place]
        assert self._call is not None
        known = self._grow_call(self._call, part, call)
        if not call.get("willContinue"):
            arguments = settle(self._call["functionCall"].get("args", {}))
            self._emit(CallDelta(encode(arguments).decode(), len(self._parts) - 1))
            self._call = None
        return known

    @staticmethod
    def _grow_call(into: dict[str, Any], part: dict[str, Any], call: dict[str, Any]) -> bool:
        """Add what arrived to the call that goes on; return false for a piece that has no place in it."""
        inner = into["functionCall"]
        into.update({key: value for key, value in part.items() if key != "functionCall"})
        inner.update({key: value for key, value in call.items() if key not in IN_PIECES})
        for key in IN_PIECES:
            inner.pop(key, None)
        args, pieces = inner.setdefault("args", {}), call.get("partialArgs")
        known = True
        for piece in pieces if isinstance(pieces, list) else ():
            known &= isinstance(piece, dict) and isinstance(args, dict) and _put_argument(args, piece)
        return known

    def _use(self, usage: Any) -> None:
        """Emit the usage at the beginning and the end; what runs along with more text is only kept."""
        if not isinstance(usage, dict) or (self._usage is not None and not self.finished):
            return
        seen = self._usage_of(usage)
        if seen is not None and seen != self._usage:
            self._usage = seen
            self._emit(UsageSeen(seen))


def _replace(into: dict[str, Any], fields: dict[str, Any], *, apart: str, without: str = "") -> None:
    """Put newer fields in the place of older ones; objects are merged, null says nothing, `apart` only has its place.

    The place is that of the first time, so that the whole has the order of its first chunk.
    """
    for key, value in fields.items():
        old = into.get(key)
        if key == apart:
            into.setdefault(key, None)
        elif key == without:
            continue
        elif isinstance(old, dict) and isinstance(value, dict) and key != "usageMetadata":
            into[key] = {**old, **value}
        elif value is not None or key not in into:
            into[key] = value


def _is_plain_text(part: Any) -> bool:
    return (
        isinstance(part, dict)
        and isinstance(part.get("text"), str)
        and PLAIN.issuperset(part)
        and isinstance(part.get("thought", False), bool)
    )


def _raw_parts(data: bytes, place: int) -> list[msgspec.Raw]:
    """Return the bytes of a candidate's parts; nothing where they cannot be had, such as with half a character."""
    try:
        candidate = items_decoder.decode(fields_decoder.decode(data)["candidates"])[place]
        return items_decoder.decode(fields_decoder.decode(fields_decoder.decode(candidate)["content"])["parts"])
    except (*UNREADABLE, KeyError, IndexError):
        return []


def _arguments(raw: msgspec.Raw | None, call: dict[str, Any]) -> str:
    """Return the arguments of a call as they came."""
    fields = None if raw is None else raw_fields(raw, "functionCall")
    found = encode(settle(call.get("args"))) if fields is None else bytes(fields.get("args", b"{}"))
    return "{}" if found == b"null" else found.decode()


# Arguments that come one by one, each under its path (`$.files[0].name`)


def _put_argument(args: dict[str, Any], piece: dict[str, Any]) -> bool:
    """Put one more value, or more of a text, to its place; return false when its place cannot be told."""
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
    old, text = _get(target, path[-1]), piece.get("stringValue")
    if isinstance(text, str) and isinstance(old, Pieces):
        old.append(text)
        return True
    if isinstance(text, str):
        return _set(target, path[-1], Pieces([text]))
    for kind in ("nullValue", "numberValue", "boolValue"):
        if kind in piece:
            return _set(target, path[-1], None if kind == "nullValue" else piece[kind])
    # A text that is empty comes without a value.
    return isinstance(old, Pieces) or _set(target, path[-1], Pieces())


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


# Bytes


_JSON = frozenset({b"{", b"["})
_QUOTE = re.compile(rb'["\\]')
_WORDS = re.compile(rb'(?:[^"{}\[\]]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+', re.DOTALL)
"""Everything up to the next bracket or the text that is torn; it never goes back over what it read."""


class GeminiParser:
    """Takes bytes as they come, in either way, and gives the events that are whole; the first character tells which."""

    def __init__(self, *, limit: int = sse.MAX_EVENT_BYTES) -> None:
        self._limit = limit
        self._opening = b""
        self._parser: Parser | None = None

    def feed(self, chunk: bytes) -> list[sse.Event]:
        """Return the events that end in this chunk."""
        if self._parser is None:
            self._opening = chunk = self._opening + chunk
            start = chunk.removeprefix(BOM).lstrip()
            if not start or BOM.startswith(chunk):
                return []
            self._parser = (JsonParser if start[:1] in _JSON else EventParser)(limit=self._limit)
        return self._parser.feed(chunk)

    def close(self) -> list[sse.Event]:
        """Return what lacks nothing but its end, or was torn: the stream tells them apart."""
        return [] if self._parser is None else self._parser.close()


class EventParser(sse.Parser):
    """Parses server-sent events, between which an error may stand as plain JSON over several lines."""

    def __init__(self, *, limit: int) -> None:
        super().__init__(limit=limit)
        self._json = JsonParser(limit=limit)
        self._bare: list[sse.Event] = []

    def feed(self, chunk: bytes) -> list[sse.Event]:
        """Return the events that end in this chunk, and the error."""
        found = super().feed(chunk)
        return self._with_bare(found) if self._bare else found

    def close(self) -> list[sse.Event]:
        """Return what lacks nothing but its end."""
        return self._with_bare(super().close())

    def _with_bare(self, found: list[sse.Event]) -> list[sse.Event]:
        bare, self._bare = self._bare, []
        return found + bare

    def _field(self, line: bytes) -> None:
        if line.lstrip()[:1] in _JSON or self._json.begun:
            self._bare += self._json.feed(line + b"\n")
            self._plain = not self._json.begun
        else:
            super()._field(line)


class JsonParser:
    """Parses objects out of bytes that may be torn anywhere: one after another, or as the items of a list.

    A list around them is left out, as is what stands between them. The bytes of an object are held until it ends, and
    each is looked at once.
    """

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._held: list[bytes] = []
        self._size = 0
        self._depth = 0
        """The brackets that are open, those of an object that has begun."""
        self._in_text = False
        self._escaped = False

    @property
    def begun(self) -> bool:
        """True while an object has begun and did not end."""
        return self._depth > 0

    def feed(self, chunk: bytes) -> list[sse.Event]:
        """Return the objects that end in this chunk."""
        found: list[sse.Event] = []
        start = 0
        place = self._skip_text(chunk, 0) if self._in_text else 0
        while place < len(chunk):
            passed = _WORDS.match(chunk, place)
            place = place if passed is None else passed.end()
            sign = chunk[place : place + 1]
            place += 1
            if sign == b'"':
                self._in_text = True
                place = self._skip_text(chunk, place)
            elif sign in _JSON:
                if self._depth or sign == b"{":
                    start = start if self._depth else place - 1
                    self._depth += 1
            elif sign and self._depth:
                self._depth -= 1
                if not self._depth:
                    found.append(sse.Event("", b"".join((*self._held, chunk[start:place]))))
                    self._held.clear()
                    self._size = 0
        if self._depth:
            self._held.append(chunk[start:])
            self._size += len(chunk) - start
            if self._size > self._limit and not found:
                raise sse.too_large(self._limit)
        return found

    def close(self) -> list[sse.Event]:
        """Return what began and did not end."""
        rest = b"".join(self._held)
        self._held.clear()
        self._size = self._depth = 0
        return [sse.Event("", rest)] if rest else []

    def _skip_text(self, chunk: bytes, place: int) -> int:
        """Return the place after the text that is open, or the end of the chunk."""
        if self._escaped and chunk:
            self._escaped = False
            place += 1
        while (mark := _QUOTE.search(chunk, place)) is not None:
            place = mark.end()
            if mark.group() == b'"':
                self._in_text = False
                return place
            place += 1
            if place > len(chunk):
                self._escaped = True
        return len(chunk)
