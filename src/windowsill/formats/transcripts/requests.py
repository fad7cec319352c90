"""Logs of requests to OpenAI or Anthropic, one on each line: bodies, or bodies with the response and a time.

A request that continues one before it is the same conversation: an agent sends everything again with each call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from windowsill.errors import FormatError
from windowsill.formats.transcripts.lines import decoded
from windowsill.formats.transcripts.times import timestamp
from windowsill.formats.transcripts.transcript import Line, Notes, Reader, Recorded
from windowsill.formats.wire import any_decoder, decode, encode, fields_decoder, items_decoder

AGENT = "requests"

BODIES = ("request", "body", "request_body", "params")
"""Under which a log keeps the body of a request,"""
RESPONSES = ("response", "response_body", "completion")
"""and the response to it."""
TIMES = ("timestamp", "time", "created_at", "created")

RECORDED = frozenset({"id", "format", "times", "usage"})
"""Fields of recorded sessions: a body with one of these is a session as it stands."""


def _knows(line: Mapping[str, object]) -> bool:
    if isinstance(line.get("messages"), list):
        return "model" in line and RECORDED.isdisjoint(line)
    return any(isinstance(_inner(line.get(key)).get("messages"), list) for key in BODIES)


def _inner(value: object) -> Mapping[str, object]:
    """The body itself, where the log has it with its headers."""
    if not isinstance(value, dict):
        return {}
    body = value.get("body")
    return body if isinstance(body, dict) else value


class _Call(msgspec.Struct, kw_only=True):
    """One request of the log."""

    fields: dict[str, msgspec.Raw]
    messages: list[bytes]
    at: float | None
    answer: bytes | None
    usage: bytes | None
    answered_at: float | None


class _Talk:
    """A conversation: its last request so far, and what is known of each message."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.call: _Call | None = None
        self.times: dict[int, float | None] = {}
        self.usage: dict[int, bytes | None] = {}

    def go_on(self, call: _Call) -> None:
        """One more request."""
        count = len(call.messages)
        for index in range(count):
            self.times.setdefault(index, call.at)
        if call.answer is not None:
            self.times[count] = call.answered_at
            self.usage[count] = call.usage
        self.call = call

    def recorded(self, name: str) -> Recorded | None:
        """The last request with its answer."""
        if self.call is None:
            return None
        messages = [*self.call.messages, *([self.call.answer] if self.call.answer is not None else [])]
        return Recorded(
            id=f"{name}:{self.line}",
            format=None,
            messages=tuple(messages),
            times=tuple(self.times.get(index) for index in range(len(messages))),
            usage=tuple(self.usage.get(index) for index in range(len(messages))),
            fields=self.call.fields,
        )


def _read(lines: Iterable[Line], name: str, notes: Notes) -> Sequence[Recorded]:
    talks: dict[int, _Talk] = {}
    ends: dict[bytes, _Talk] = {}
    for line in lines:
        call = _call(line, notes)
        if call is None:
            continue
        prefixes = list(_prefixes(call.messages))
        # The longest request that this one continues; the same request again is a conversation of its own.
        end = next((each for each in reversed(prefixes[:-1]) if each in ends), None)
        talk = ends.pop(end) if end is not None else talks.setdefault(line.number, _Talk(line.number))
        talk.go_on(call)
        ends[prefixes[-1]] = talk
    return [found for talk in talks.values() if (found := talk.recorded(name)) is not None]


def _prefixes(messages: Iterable[bytes]) -> Iterator[bytes]:
    """For each message a digest of everything up to it; cache marks, which move, are left out."""
    digest = hashlib.blake2b(digest_size=16)
    for message in messages:
        digest.update(encode(_unmarked(any_decoder.decode(message))) + b"\n")
        yield digest.digest()


def _unmarked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unmarked(each) for each in value]
    if isinstance(value, dict):
        return {key: _unmarked(value[key]) for key in sorted(value) if key != "cache_control"}
    return value


def _call(line: Line, notes: Notes) -> _Call | None:
    fields = decoded(line, fields_decoder, notes)
    if fields is None:
        return None
    try:
        body = _body(fields)
        messages = None if body is None else [bytes(each) for each in decode(items_decoder, body["messages"])]
    except FormatError as error:
        notes.trouble(line.number, error.what)
        return None
    if body is None or not messages:
        notes.trouble(line.number, "no request with messages")
        return None
    at = next((found for key in TIMES if (found := timestamp(_value(fields.get(key)))) is not None), None)
    answer, usage = _answer(fields) if "messages" not in fields else (None, None)
    # The log has one time for both: the answer is not known to be later than the request.
    return _Call(fields=body, messages=messages, at=at, answer=answer, usage=usage, answered_at=at)


def _body(fields: dict[str, msgspec.Raw]) -> dict[str, msgspec.Raw] | None:
    if "messages" in fields:
        return fields
    for key in BODIES:
        if key in fields and isinstance(_value(fields[key]), dict):
            inner = _body(decode(fields_decoder, fields[key]))
            if inner is not None:
                return inner
    return None


def _answer(fields: dict[str, msgspec.Raw]) -> tuple[bytes | None, bytes | None]:
    """The message of a response, as a request would hold it, and what was used."""
    for key in RESPONSES:
        response = _inner(_value(fields.get(key)))
        choices = response.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        usage = response.get("usage")
        told = None if not isinstance(usage, dict) else encode(usage)
        if isinstance(choice, dict) and isinstance(choice.get("message"), dict):
            return encode(choice["message"]), told
        if response.get("role") == "assistant" and "content" in response:
            return encode({"role": "assistant", "content": response["content"]}), told
    return None, None


def _value(raw: msgspec.Raw | None) -> Any:
    return None if raw is None else any_decoder.decode(raw)


READER = Reader(agent=AGENT, knows=_knows, read=_read)
