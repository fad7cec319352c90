"""Reads OpenAI Responses: one item is one message, and keeps the exact bytes it came as.

What the model did in one turn (reasoning, words, calls) are several items, so several messages of the assistant in a
row. Items of a kind that only the provider understands become one unknown block each.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from windowsill.errors import FormatError
from windowsill.formats.responses.items import FUNCTION, LOCAL_SHELL, OUTPUTS, ROLES, SUFFIX, author
from windowsill.formats.responses.parts import read_parts
from windowsill.formats.responses.tooling import ABSENT, read_call, read_output
from windowsill.formats.wire import (
    UNREADABLE,
    any_decoder,
    decode,
    encode,
    read_each,
    read_items,
    take_out,
    text_decoder,
)
from windowsill.messages import (
    Block,
    Message,
    Reasoning,
    Reply,
    Request,
    Text,
    Tool,
    ToolResult,
    ToolUse,
    Unknown,
    Usage,
)

NAME = "responses"

ELSEWHERE = ("previous_response_id", "conversation", "prompt")
"""Fields that bring what stands before the input, or in its place."""


class Item(msgspec.Struct, gc=False):
    """The fields of all the items that are understood."""

    type: str | None = None
    role: str | None = None
    content: str | list[Raw] | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: Raw = ABSENT
    input: Raw = ABSENT
    action: Raw = ABSENT
    actions: Raw = ABSENT
    operation: Raw = ABSENT
    output: Raw = ABSENT
    status: str | None = None
    summary: list[Raw] | None = None
    encrypted_content: str | None = None


class _Said(msgspec.Struct, tag_field="type", tag="message", forbid_unknown_fields=True, gc=False):
    role: str
    content: str | list[Raw]
    id: str | None = None
    status: str | None = None


class _Asked(msgspec.Struct, tag_field="type", tag=FUNCTION, forbid_unknown_fields=True, gc=False):
    call_id: str
    name: str
    arguments: str
    id: str | None = None
    status: str | None = None


class _Answered(msgspec.Struct, tag_field="type", tag=FUNCTION + SUFFIX, forbid_unknown_fields=True, gc=False):
    call_id: str
    output: str
    id: str | None = None
    status: str | None = None


class _Type(msgspec.Struct, gc=False):
    type: str | None = None
    role: str | None = None


class _Words(msgspec.Struct, gc=False):
    text: str = ""


class _Tool(msgspec.Struct, gc=False):
    type: str
    name: str | None = None
    description: str | None = None
    parameters: dict[str, Any] | None = None


class _Details(msgspec.Struct, gc=False):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _Details | None = None


class _Incomplete(msgspec.Struct, gc=False):
    reason: str | None = None


class _Reply(msgspec.Struct, gc=False):
    output: Raw
    usage: _Usage | None = None
    model: str | None = None
    status: str | None = None
    incomplete_details: _Incomplete | None = None


_usual = msgspec.json.Decoder(_Said | _Asked | _Answered)
"""What nearly every item is; all others, and those with a field more, take the longer way."""
_item = msgspec.json.Decoder(Item)
_type = msgspec.json.Decoder(_Type)
_words = msgspec.json.Decoder(_Words)
_tool = msgspec.json.Decoder(_Tool)
_reply = msgspec.json.Decoder(_Reply)

_UNDERSTOOD = frozenset({"message", "reasoning", *OUTPUTS, *OUTPUTS.values()})


def read_message(raw: bytes, where: str) -> Message:
    """One item."""
    try:
        wire = _usual.decode(raw)
    except UNREADABLE:
        return _read_unusual(raw, where)
    if type(wire) is _Said:
        return _message(wire.role, wire.content, raw, where)
    if type(wire) is _Answered and wire.call_id:
        result = ToolResult(tool_use_id=wire.call_id, content=(Text(text=wire.output),))
        return Message(role="user", blocks=(result,), format=NAME, raw=raw)
    if type(wire) is _Asked and wire.name:
        call = ToolUse(id=wire.call_id, name=wire.name, arguments=wire.arguments)
        return Message(role="assistant", blocks=(call,), format=NAME, raw=raw)
    return _read_unusual(raw, where)


def _read_unusual(raw: bytes, where: str) -> Message:
    try:
        wire = _item.decode(raw)
    except UNREADABLE:
        found = decode(_type, raw, where)
        if found.type is not None and found.type not in _UNDERSTOOD:
            return _unknown(found.type, raw)
        wire = decode(_item, raw, where)
    kind = wire.type
    if kind == "message" or (kind is None and wire.role is not None):
        return _message(wire.role, wire.content, raw, where)
    if kind is None:
        if wire.id is None:
            raise FormatError("neither a message nor an item", where=where, remedy="give it a type, or a role")
        return _unknown("item_reference", raw)
    block = _block(kind, wire, raw, where)
    return _unknown(kind, raw) if block is None else Message(role=author(kind), blocks=(block,), format=NAME, raw=raw)


def _unknown(kind: str, raw: bytes) -> Message:
    return Message(role=author(kind), blocks=(Unknown(type=kind, raw=raw),), format=NAME, raw=raw)


def _message(spoken: str | None, content: str | list[Raw] | None, raw: bytes, where: str) -> Message:
    role = ROLES.get(spoken or "")
    if role is None:
        raise FormatError(
            f"no such role as {spoken!r} in the format of OpenAI's Responses",
            where=f"{where}.role".removeprefix("."),
            remedy=f"use one of {', '.join(ROLES)}; name the format if it is another one",
        )
    return Message(role=role, blocks=read_parts(content, where, "content"), format=NAME, raw=raw)


def _block(kind: str, wire: Item, raw: bytes, where: str) -> Block | None:
    """What an item that is no message says; `None` when only the provider can tell."""
    if kind == "reasoning":
        parts = wire.summary or (wire.content if isinstance(wire.content, list) else [])
        place = f"{where}.summary".removeprefix(".")
        text = "\n\n".join(decode(_words, part, place).text for part in parts)
        return Reasoning(text=text, data=wire.encrypted_content, raw=raw)
    if kind in OUTPUTS:
        call = OUTPUTS[kind]
        # For the local shell the id of the output is that of the call.
        id = wire.call_id or (wire.id if call == LOCAL_SHELL else None)
        return read_output(call, id, wire.output, wire.status, where)
    if kind in _UNDERSTOOD:
        given = (wire.arguments, wire.input, wire.action, wire.actions, wire.operation)
        said = next((each for each in given if each is not ABSENT), ABSENT)
        return read_call(kind, wire.call_id, wire.name, said, where)
    return None


def read_body(body: bytes) -> Request:
    """A request body or a list of items."""
    if body.lstrip()[:1] == b"[":
        return Request(format=NAME, messages=read_each(body, "", read_message), bare=True)
    fields, items = take_out(body, "input")
    if items is None and "input" not in fields and not any(each in fields for each in ELSEWHERE):
        raise FormatError("a request body without input", remedy="pass a body with `input`, or the list of items")
    if items is None:
        messages = _input(bytes(fields.pop("input", Raw(b"null"))))
    else:
        messages = read_items(items, "input", read_message)
    system = bytes(fields.pop("instructions", Raw(b"null")))
    tools = bytes(fields.pop("tools", Raw(b"null")))
    model = bytes(fields.pop("model", Raw(b"null")))
    return Request(
        format=NAME,
        messages=messages,
        system=None if system == b"null" else _system(system),
        tools=() if tools == b"null" else read_each(tools, "tools", read_tool),
        model=None if model == b"null" else decode(text_decoder, model, "model"),
        rest=fields,
    )


def _input(raw: bytes) -> tuple[Message, ...]:
    if raw == b"null":
        return ()
    if raw[:1] == b'"':
        # Plain text is short for one message of the user.
        return (read_message(b'{"role":"user","content":' + raw + b"}", "input"),)
    return read_each(raw, "input", read_message)


def read_system(value: Any) -> Message:
    """A system prompt: text, or a list of parts."""
    return value if isinstance(value, Message) else _system(encode(value, "instructions"))


def _system(raw: bytes) -> Message:
    value = decode(any_decoder, raw, "instructions")
    if isinstance(value, str):
        return Message(role="system", blocks=(Text(text=value),), format=NAME, raw=raw)
    if not isinstance(value, list):
        raise FormatError("neither text nor a list of parts", where="instructions", remedy="pass text")
    return read_message(b'{"role":"system","content":' + raw + b"}", "instructions")


def read_tool(raw: bytes, where: str) -> Tool:
    """A tool definition; what the provider runs itself goes by its type."""
    wire = decode(_tool, raw, where)
    return Tool(
        name=wire.name or wire.type,
        description=wire.description or "",
        schema=wire.parameters or {},
        format=NAME,
        raw=raw,
    )


def read_reply(body: bytes) -> Reply:
    """A response: every item of its output."""
    wire = decode(_reply, body)
    messages = read_each(wire.output, "output", read_message)
    if not messages:
        raise FormatError("a response without output", where="output", remedy="check for an error before adding it")
    details = wire.incomplete_details
    return Reply(
        message=messages[0],
        more=messages[1:],
        usage=None if wire.usage is None else _read_usage(wire.usage),
        model=wire.model,
        stop_reason=details.reason if details is not None and details.reason else wire.status,
    )


def _read_usage(wire: _Usage) -> Usage:
    details = wire.input_tokens_details or _Details()
    read, write = details.cached_tokens or 0, details.cache_write_tokens or 0
    return Usage(
        input=max((wire.input_tokens or 0) - read - write, 0),
        output=wire.output_tokens or 0,
        cache_write=write,
        cache_read=read,
    )
