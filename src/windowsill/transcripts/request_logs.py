"""Logs of requests to OpenAI or Anthropic, one per line; and plain messages, one per line.

A line of a log is a request body, or an object with the body under `request`, `body` or `params` and, where known, the
response body under `response` and a `timestamp`. A request that continues one before it is the same conversation: an
agent sends everything again with each call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from windowsill.errors import FormatError
from windowsill.providers.wire import Fields, any_decoder, decode, encode, fields_decoder, items_decoder
from windowsill.transcripts.base import (
    Charge,
    Line,
    Notes,
    Reader,
    RecordedSession,
    charge,
    decode_line,
    decode_objects,
    text_or_none,
    timestamp,
)

BODIES = ("request", "body", "params")

RECORDED = frozenset({"id", "format", "times", "usage"})
"""Fields of a recorded session that are not part of the request; no provider has fields of these names."""

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
CONTENT = frozenset({"content", "tool_calls", "function_call"})
"""Fields of which a message has at least one."""


def _messages_field(body: object) -> str | None:
    """Return the field of a request body that holds the messages; lists of texts may be for embeddings."""
    fields = body if isinstance(body, dict) else {}
    for field in ("messages", "input"):
        items = fields.get(field)
        if isinstance(items, list) and items and all(isinstance(each, dict) for each in items):
            return field
    return None


def _knows(line: Mapping[str, object]) -> bool:
    if _messages_field(line):
        return "model" in line and RECORDED.isdisjoint(line)
    return any(_messages_field(line.get(key)) for key in BODIES)


class _Conversation:
    """A conversation as its last request shows it, and what is known of each message."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.under = ""
        self.fields: Fields = {}
        self.messages: list[bytes] = []
        self.times: list[float | None] = []
        self.charges: list[Charge] = []

    def take(self, fields: Fields, under: str, messages: list[bytes], at: float | None, response: Any) -> None:
        """Add one more request and its response. The log has one time for both."""
        self.fields, self.under = fields, under
        self.messages = list(messages)
        if isinstance(response, dict):
            model = text_or_none(response.get("model")) or text_or_none(decode(any_decoder, fields["model"]))
            id = text_or_none(response.get("id"))
            paid = charge(response.get("usage"), model=model, message=len(messages), key=id)
            self.charges += [paid] if paid is not None else []
            self.messages += _answer(response)
        del self.times[len(messages) :]
        self.times += [at] * (len(self.messages) - len(self.times))

    def session(self, name: str) -> RecordedSession:
        return RecordedSession(
            id=f"{name}:{self.line}",
            format="responses" if self.under == "input" else None,
            messages=tuple(self.messages),
            times=tuple(self.times),
            charges=tuple(self.charges),
            fields=self.fields,
            under=self.under,
        )


def _answer(response: Mapping[str, Any]) -> list[bytes]:
    """Return the answer as the next request would hold it."""
    choices, output = response.get("choices"), response.get("output")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if isinstance(message, dict) and any(value for key, value in message.items() if key != "role"):
        return [encode(message)]
    if response.get("role") == "assistant" and response.get("content"):
        return [encode({"role": "assistant", "content": response["content"]})]
    return [encode(item) for item in output if isinstance(item, dict)] if isinstance(output, list) else []


def _read(lines: Iterable[Line], name: str, notes: Notes) -> Sequence[RecordedSession]:
    conversations: list[_Conversation] = []
    waiting: dict[bytes, list[_Conversation]] = {}
    """For each request a digest of its messages, and the conversations that it is the last of."""
    for line in lines:
        fields = decode_line(line, fields_decoder, notes)
        if fields is None:
            continue
        try:
            values = {key: decode(any_decoder, raw) for key, raw in fields.items()}
            wrapper = next((key for key in BODIES if _messages_field(values.get(key))), None)
            body = fields if wrapper is None else decode(fields_decoder, fields[wrapper])
            under = _messages_field(values if wrapper is None else values[wrapper])
            messages = [bytes(each) for each in decode(items_decoder, body[under])] if under else []
            prefixes = list(_prefixes(messages))
        except FormatError as error:
            notes.trouble(line.number, error.what)
            continue
        except RecursionError:
            notes.trouble(line.number, "nested too deeply")
            continue
        if under is None:
            notes.trouble(line.number, "no request with messages")
            continue
        # The longest request that this one continues; the same request again is another conversation.
        before = next((found for end in reversed(prefixes[:-1]) if (found := waiting.get(end))), None)
        if before is None:
            before = [_Conversation(line.number)]
            conversations += before
        conversation = before.pop()
        response = values.get("response") if wrapper is not None else None
        conversation.take(body, under, messages, timestamp(values.get("timestamp")), response)
        waiting.setdefault(prefixes[-1], []).append(conversation)
    return [conversation.session(name) for conversation in conversations]


def _prefixes(messages: Iterable[bytes]) -> Iterator[bytes]:
    """Make a digest of everything up to each message."""
    digest = hashlib.blake2b(digest_size=16)
    for message in messages:
        value = _without_marks(decode(any_decoder, message))
        if isinstance(value.get("content"), str):
            # Clients turn text into a block to mark it for the cache, and back.
            value["content"] = [{"text": value["content"], "type": "text"}]
        digest.update(encode(value) + b"\n")
        yield digest.digest()


def _without_marks(value: Any) -> Any:
    """Drop cache marks, which move, and sort the keys."""
    if isinstance(value, list):
        return [_without_marks(each) for each in value]
    if isinstance(value, dict):
        return {key: _without_marks(value[key]) for key in sorted(value) if key != "cache_control"}
    return value


def _is_message(line: Mapping[str, object]) -> bool:
    return line.get("role") in ROLES and not CONTENT.isdisjoint(line)


def _read_messages(lines: Iterable[Line], name: str, notes: Notes) -> Sequence[RecordedSession]:
    messages: list[bytes] = []
    times: list[float | None] = []
    for line, value in decode_objects(lines, notes):
        if _is_message(value):
            messages.append(line.raw)
            times.append(timestamp(value.get("timestamp")))
        else:
            notes.trouble(line.number, "not a message: it has no role, or no content")
    return [RecordedSession(id=name, format=None, messages=tuple(messages), times=tuple(times), named=False)]


READER = Reader(agent="requests", knows=_knows, read=_read)
MESSAGES_READER = Reader(agent="messages", knows=_is_message, read=_read_messages)
