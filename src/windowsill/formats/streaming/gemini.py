"""Puts a Gemini response together out of its stream: the first candidate."""

from __future__ import annotations

from typing import Any

import msgspec

from windowsill.formats.gemini import read
from windowsill.formats.streaming import sse
from windowsill.formats.streaming.events import (
    MALFORMED,
    Event,
    Failed,
    Finished,
    Raw,
    ReasoningDelta,
    TextDelta,
    UsageSeen,
)
from windowsill.formats.streaming.gemini_parts import Parts
from windowsill.formats.streaming.pieces import grow, loose_value, settle
from windowsill.formats.wire import decode, encode, fields_decoder
from windowsill.messages import Reply, Usage


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
