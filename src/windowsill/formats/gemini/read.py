"""Reads Gemini's `generateContent`: each content and part keeps the exact bytes it came as.

The Python SDK is freer than the API: text for a content, one content for a list. That is read too, and goes out as the
API takes it.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from windowsill.errors import FormatError
from windowsill.formats.gemini.linking import linked
from windowsill.formats.gemini.parts import read_parts
from windowsill.formats.gemini.spelling import camel
from windowsill.formats.gemini.tools import NAME, read_tool, read_tools
from windowsill.formats.wire import (
    UNREADABLE,
    Fields,
    decode,
    encode,
    fields_decoder,
    items_decoder,
    read_each,
    read_items,
    take_out,
    text_decoder,
)
from windowsill.messages import Message, Reply, Request, Role, Usage

__all__ = ["NAME", "read_body", "read_message", "read_reply", "read_system", "read_tool"]

NULL = b"null"

ROLES: dict[str, Role] = {"user": "user", "model": "assistant", "function": "user"}


class _Content(msgspec.Struct, gc=False):
    role: str | None = None
    parts: list[Raw] | None = None


_content = msgspec.json.Decoder(_Content)
_count = msgspec.json.Decoder(int)


def read_message(raw: bytes, where: str) -> Message:
    """One content; text alone is the user's."""
    if raw.lstrip()[:1] == b'"':
        raw = b'{"role":"user","parts":[' + _text_part(raw) + b"]}"
    try:
        wire = _content.decode(raw)
    except UNREADABLE:
        wire = decode(_content, raw, where)
    role = ROLES.get(wire.role or "user")
    if role is None:
        raise FormatError(
            f"no such role as {wire.role!r} in Gemini's format",
            where=f"{where}.role".removeprefix("."),
            remedy="use user or model; instructions stand in `systemInstruction`; name the format if it is another one",
        )
    if wire.parts is None and (wire.role is None or "content" in decode(fields_decoder, raw, where)):
        raise FormatError(
            "a content without parts", where=where, remedy="give it `parts`; name the format if it is another one"
        )
    return Message(role=role, blocks=read_parts(wire.parts or (), role, where), format=NAME, raw=raw)


def _text_part(raw: bytes | Raw) -> bytes:
    return b'{"text":' + bytes(raw) + b"}"


def read_body(body: bytes) -> Request:
    """A request body or a list of contents. `model` is taken from it, but stands in the address of a request."""
    if body.lstrip()[:1] == b"[":
        return Request(format=NAME, messages=linked(read_each(body, "", read_message)), bare=True)
    fields, items = take_out(body, "contents")
    known = {key: name for name in fields for key in camel({name: b""})}
    if items is not None:
        messages = read_items(items, "contents", read_message)
    elif "contents" in known:
        contents = bytes(fields.pop("contents"))
        messages = (
            read_each(contents, "contents", read_message)
            if contents[:1] == b"["
            else (read_message(contents, "contents"),)
        )
    else:
        raise FormatError("a request body without contents", remedy="pass a body with `contents`, or the list itself")
    system = _taken(fields, known.get("systemInstruction"))
    model = _taken(fields, "model")
    if bytes(fields.get("tools", NULL)) == NULL:
        fields.pop("tools", None)
    return Request(
        format=NAME,
        messages=linked(messages),
        system=None if system is None else _system(bytes(system)),
        # How they stood in their entries is kept among the other fields, for a request that goes out as it came.
        tools=read_tools(fields["tools"], "tools") if "tools" in fields else (),
        model=None if model is None else decode(text_decoder, model, "model").removeprefix("models/"),
        rest=fields,
    )


def _taken(fields: Fields, key: str | None) -> Raw | None:
    value = fields.pop(key, None) if key is not None else None
    return None if value is None or bytes(value) == NULL else value


def read_system(value: Any) -> Message:
    """A system prompt: text, parts, or a content."""
    return value if isinstance(value, Message) else _system(encode(value, "systemInstruction"))


def _system(raw: bytes) -> Message:
    where = "systemInstruction"
    start = raw.lstrip()[:1]
    if start == b'"':
        raw = b'{"parts":[' + _text_part(raw) + b"]}"
    elif start == b"[":
        items = [bytes(item) for item in decode(items_decoder, raw, where)]
        raw = b'{"parts":[' + b",".join(_text_part(item) if item[:1] == b'"' else item for item in items) + b"]}"
    elif "parts" not in decode(fields_decoder, raw, where):
        raw = b'{"parts":[' + raw + b"]}"
    parts = decode(_content, raw, where).parts or ()
    return Message(role="system", blocks=read_parts(parts, "system", where), format=NAME, raw=raw)


def read_reply(body: bytes) -> Reply:
    """A response: its first candidate. One that was cut short may hold no parts at all."""
    fields = camel(decode(fields_decoder, body))
    candidates = decode(items_decoder, fields["candidates"], "candidates") if "candidates" in fields else []
    if not candidates:
        raise FormatError(
            "a response without a candidate",
            where="candidates",
            remedy="check promptFeedback for why it was blocked before adding it",
        )
    candidate = camel(decode(fields_decoder, candidates[0], "candidates[0]"))
    usage, model, reason = (fields.get("usageMetadata"), fields.get("modelVersion"), candidate.get("finishReason"))
    return Reply(
        message=read_message(_spoken(candidate.get("content")), "candidates[0].content"),
        usage=None if usage is None else _read_usage(camel(decode(fields_decoder, usage, "usageMetadata"))),
        model=None if model is None else decode(text_decoder, model, "modelVersion"),
        stop_reason=None if reason is None else decode(text_decoder, reason, "candidates[0].finishReason"),
    )


def _spoken(content: Raw | None) -> bytes:
    """The content under the model's role, which a response may leave out and a request may not."""
    raw = b"{}" if content is None else bytes(content)
    fields = camel(decode(fields_decoder, raw, "candidates[0].content"))
    if "role" in fields and "parts" in fields:
        return raw
    return encode({"role": "model", "parts": [], **fields})


def _read_usage(fields: Fields) -> Usage:
    def count(key: str) -> int:
        return decode(_count, fields[key], f"usageMetadata.{key}") if key in fields else 0

    cached = count("cachedContentTokenCount")
    return Usage(
        input=max(count("promptTokenCount") - cached, 0) + count("toolUsePromptTokenCount"),
        output=count("candidatesTokenCount") + count("thoughtsTokenCount"),
        cache_read=cached,
    )
