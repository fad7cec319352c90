"""One request of a log, and the response to it, however the log wraps them: bodies, pairs, text, HAR entries."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import msgspec

from windowsill.errors import FormatError
from windowsill.formats import streaming
from windowsill.formats.transcripts.lines import whole
from windowsill.formats.transcripts.times import timestamp
from windowsill.formats.wire import Fields, any_decoder, decode, encode, fields_decoder, items_decoder

BODIES = ("request", "body", "request_body", "params", "postData", "text")
"""Under which a log keeps the body of a request, the outermost first,"""
RESPONSES = ("response", "response_body", "completion")
"""and the response to it,"""
INSIDE = ("body", "content", "text")
"""and under which a response keeps its own body, where it stands with its headers."""
TIMES = ("startedDateTime", "timestamp", "time", "created_at", "created")

DEEPEST = 4
"""How many wrappings are looked into: a HAR entry has three."""

UNDER = ("messages", "input")
"""The fields that hold a conversation: of chats and Anthropic, and of OpenAI's Responses."""


class Exchange(msgspec.Struct, kw_only=True):
    """A request, and what is known of its response."""

    fields: Fields
    under: str
    messages: list[bytes]
    at: float | None = None
    answer: tuple[bytes, ...] = ()
    usage: Any = None
    id: str | None = None
    """The provider's id for the response,"""
    model: str | None = None
    """and the model that gave it, else the one that was asked."""
    follows: str | None = None
    """The response this request goes on from, where the provider keeps the conversation."""


def wraps_request(line: Mapping[str, object]) -> bool:
    """Whether an object holds a request somewhere inside."""
    return any(_holds(line.get(key), DEEPEST) for key in BODIES)


def _holds(value: object, depth: int) -> bool:
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        value = _decoded(value.encode(errors="replace"))
    if not isinstance(value, dict) or not depth:
        return False
    return is_body(value) or any(_holds(value.get(key), depth - 1) for key in BODIES)


def is_body(value: Mapping[str, object]) -> bool:
    """Whether an object is the body of a request; what only has a text as its input may be for embeddings."""
    given = value.get("input")
    items = isinstance(given, list) and all(isinstance(each, dict) for each in given)
    return isinstance(value.get("messages"), list) or (
        "model" in value and ((items and bool(given)) or (isinstance(given, str) and "instructions" in value))
    )


def exchange(fields: Fields) -> Exchange | None:
    """The request in a line of a log; `None` when there is none. Raises `FormatError` when it is broken."""
    body = _body(fields, DEEPEST)
    under = next((key for key in UNDER if body is not None and key in body), None)
    if body is None or under is None:
        return None
    messages = _messages(body[under])
    if not messages:
        return None
    follows = _value(body.pop("previous_response_id", None))
    found = Exchange(
        fields=body,
        under=under,
        messages=messages,
        at=next((at for key in TIMES if (at := timestamp(_value(fields.get(key)))) is not None), None),
        model=_text(_value(body.get("model"))),
        follows=_text(follows),
    )
    if body is not fields:
        _take_response(found, fields)
    return found


def _body(fields: Fields, depth: int) -> Fields | None:
    """The innermost object that has a conversation."""
    if any(key in fields for key in UNDER):
        return fields
    for key in BODIES if depth else ():
        value = _value(fields.get(key))
        if isinstance(value, str) and value.lstrip()[:1] == "{":
            inner = _body(decode(fields_decoder, whole(value.encode())), depth - 1)
        elif isinstance(value, dict):
            inner = _body(decode(fields_decoder, fields[key]), depth - 1)
        else:
            continue
        if inner is not None:
            return inner
    return None


def _messages(raw: msgspec.Raw) -> list[bytes]:
    if isinstance(_value(raw), str):
        return [b'{"role":"user","content":' + bytes(raw) + b"}"]
    return [bytes(each) for each in decode(items_decoder, raw)]


def _take_response(found: Exchange, fields: Fields) -> None:
    """Note the answer as the next request would hold it, and what it used."""
    for key in RESPONSES:
        response = _response(_value(fields.get(key)), found.under, DEEPEST)
        choices, output = response.get("choices"), response.get("output")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if isinstance(choice, dict) and _says(choice.get("message")):
            found.answer = (encode(choice["message"]),)
        elif response.get("role") == "assistant" and response.get("content"):
            found.answer = (encode({"role": "assistant", "content": response["content"]}),)
        elif isinstance(output, list) and found.under == "input":
            found.answer = tuple(encode(item) for item in output if isinstance(item, dict))
        elif not isinstance(response.get("usage"), dict):
            continue
        found.usage = response.get("usage")
        found.id = _text(response.get("id"))
        found.model = _text(response.get("model")) or found.model
        return


def _says(message: Any) -> bool:
    """Whether it is a message with anything in it: a stream that broke off at once leaves an empty one."""
    return isinstance(message, dict) and any(value for key, value in message.items() if key != "role")


def _response(value: Any, under: str, depth: int) -> Mapping[str, Any]:
    """The body of a response: an object, text that is one, or the events of a stream put together."""
    if isinstance(value, str):
        return _of_text(value, under)
    if not isinstance(value, dict) or not depth:
        return {}
    if "usage" in value or "choices" in value or "output" in value or "role" in value:
        return value
    if value.get("encoding") == "base64" and isinstance(value.get("text"), str):
        return _of_text(_unpacked(value["text"]), under)
    inner = next((value[key] for key in INSIDE if isinstance(value.get(key), dict | str)), None)
    return value if inner is None else _response(inner, under, depth - 1)


def _of_text(text: str, under: str) -> Mapping[str, Any]:
    data = whole(text.encode(errors="replace").strip())
    if data.startswith((b"data:", b"event:", b":")):
        format = "responses" if under == "input" else "anthropic" if b"message_start" in data else "openai"
        arriving = streaming.stream(format)
        arriving.feed(data + b"\n\n")
        arriving.close()
        data = arriving.body()
    value = _decoded(data)
    return value if isinstance(value, dict) else {}


def _unpacked(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode(errors="replace")
    except (binascii.Error, ValueError):
        return ""


def _decoded(data: bytes) -> Any:
    try:
        return decode(any_decoder, data)
    except FormatError:
        return None


def _value(raw: msgspec.Raw | None) -> Any:
    return None if raw is None else decode(any_decoder, raw)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
