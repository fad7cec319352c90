"""Reads OpenAI Chat Completions: each message and part keeps the exact bytes it came as.

A `tool` message is a user message with one result; what stands beside the content (a refusal, audio, reasoning) becomes
a block without a place in the content, and stays a field of the message when it is rendered.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from windowsill.errors import FormatError
from windowsill.formats.foreign import split_data_url
from windowsill.formats.wire import UNREADABLE, decode, encode, read_each, read_items, take_out, text_decoder
from windowsill.messages import (
    Block,
    Document,
    Image,
    Message,
    Reasoning,
    Reply,
    Request,
    Role,
    Text,
    Tool,
    ToolResult,
    ToolUse,
    Unknown,
    Usage,
)

NAME = "openai"
DEEPSEEK = "deepseek"
DIALECTS = frozenset({NAME, DEEPSEEK})
"""Formats that write the same messages, but for the reasoning beside them."""

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details")
"""Where servers put what a model thought: DeepSeek, Kimi and GLM; vLLM and Groq; OpenRouter and MiniMax."""

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "user",
    "function": "user",
}

NULL = Raw(b"null")


class _Function(msgspec.Struct, gc=False):
    name: str
    arguments: Raw = Raw(b'"{}"')


class _Message(msgspec.Struct, gc=False):
    role: str
    content: str | list[Raw] | None = None
    tool_calls: list[Raw] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    reasoning_content: str | None = None
    reasoning: Raw = NULL
    reasoning_details: Raw = NULL
    refusal: Raw = NULL
    audio: Raw = NULL
    function_call: _Function | None = None


class _Custom(msgspec.Struct, gc=False):
    name: str
    input: str = ""


class _Call(msgspec.Struct, gc=False):
    id: str
    function: _Function | None = None
    custom: _Custom | None = None


class _ImageUrl(msgspec.Struct, gc=False):
    url: str
    detail: str | None = None


class _File(msgspec.Struct, gc=False):
    file_data: str | None = None
    file_id: str | None = None
    filename: str | None = None


class _Part(msgspec.Struct, gc=False):
    type: str
    text: str | None = None
    image_url: _ImageUrl | None = None
    file: _File | None = None
    thinking: Raw = NULL


class _Type(msgspec.Struct, gc=False):
    type: str


class _Thought(msgspec.Struct, gc=False):
    text: str | None = None
    summary: str | None = None
    signature: str | None = None
    data: str | None = None


class _Definition(msgspec.Struct, gc=False):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class _Tool(msgspec.Struct, gc=False):
    function: _Definition | None = None
    custom: _Definition | None = None
    type: str = ""


class _Details(msgspec.Struct, gc=False):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    prompt_cache_hit_tokens: int | None = None
    """DeepSeek's name for what was read from its cache."""
    cached_tokens: int | None = None
    """Kimi's."""


class _Choice(msgspec.Struct, gc=False):
    message: Raw
    finish_reason: str | None = None


class _Reply(msgspec.Struct, gc=False):
    choices: list[_Choice]
    usage: _Usage | None = None
    model: str | None = None


_message = msgspec.json.Decoder(_Message)
_call = msgspec.json.Decoder(_Call)
_part = msgspec.json.Decoder(_Part)
_type = msgspec.json.Decoder(_Type)
_thoughts = msgspec.json.Decoder(list[_Thought])
_tool = msgspec.json.Decoder(_Tool)
_reply = msgspec.json.Decoder(_Reply)

KNOWN = frozenset({"text", "image_url", "file"})


def read_message(raw: bytes, where: str) -> Message:
    """One message."""
    try:
        wire = _message.decode(raw)
    except UNREADABLE:
        wire = decode(_message, raw, where)
    role = ROLES.get(wire.role)
    if role is None:
        raise FormatError(
            f"no such role as {wire.role!r} in OpenAI's format",
            where=f"{where}.role".removeprefix("."),
            remedy=f"use one of {', '.join(ROLES)}; name the format if it is another one",
        )
    if role == "assistant":
        blocks = _assistant(wire, where)
    elif wire.role in {"tool", "function"}:
        blocks = (_result(wire, where),)
    else:
        blocks = _parts(wire.content, where)
    return Message(role=role, blocks=blocks, format=NAME, raw=raw)


def _assistant(wire: _Message, where: str) -> tuple[Block, ...]:
    blocks: list[Block] = []
    if wire.reasoning_content:
        blocks.append(Reasoning(text=wire.reasoning_content))
    elif (wire.reasoning is not NULL or wire.reasoning_details is not NULL) and (thought := _reasoning(wire)):
        blocks.append(thought)
    # Beside calls, empty text is the same as none.
    if wire.content or not wire.tool_calls:
        blocks.extend(_parts(wire.content, where))
    if wire.refusal is not NULL or wire.audio is not NULL:
        beside = (("refusal", bytes(wire.refusal)), ("audio", bytes(wire.audio)))
        blocks += [Unknown(type=type, raw=raw) for type, raw in beside if raw != b"null"]
    if wire.tool_calls:
        blocks += [_tool_use(call, where, index) for index, call in enumerate(wire.tool_calls)]
    if wire.function_call is not None:
        name = wire.function_call.name
        blocks.append(ToolUse(id=name, name=name, arguments=_arguments(wire.function_call.arguments)))
    return tuple(blocks)


def _reasoning(wire: _Message) -> Reasoning | None:
    """What was thought, under the other names; both may say the same. What is not understood stays in the message."""
    try:
        details = _thoughts.decode(wire.reasoning_details) if wire.reasoning_details is not NULL else []
    except msgspec.DecodeError:
        details = []
    text = "".join(each.text or each.summary or "" for each in details)
    raw = bytes(wire.reasoning)
    if not text and raw[:1] == b'"':
        text = text_decoder.decode(raw)
    signature = next((each.signature for each in details if each.signature), None)
    data = "".join(each.data or "" for each in details) or None
    return Reasoning(text=text, signature=signature, data=data) if text or signature or data else None


def _tool_use(raw: Raw, where: str, index: int) -> ToolUse:
    try:
        wire = _call.decode(raw)
    except UNREADABLE:
        wire = decode(_call, raw, f"{where}.tool_calls[{index}]".removeprefix("."))
    if wire.function is not None:
        arguments = _arguments(wire.function.arguments)
        return ToolUse(id=wire.id, name=wire.function.name, arguments=arguments, raw=bytes(raw))
    if wire.custom is not None:
        return ToolUse(id=wire.id, name=wire.custom.name, arguments=wire.custom.input, raw=bytes(raw))
    raise FormatError(
        "a call of neither a function nor a custom tool",
        where=f"{where}.tool_calls[{index}]".removeprefix("."),
        remedy="give it `function`",
    )


def _arguments(raw: Raw) -> str:
    """The text of the arguments; some servers write the object itself."""
    text = str(raw, "utf-8")
    return text_decoder.decode(raw) if text[:1] == '"' else text


def _result(wire: _Message, where: str) -> ToolResult:
    id = wire.tool_call_id if wire.role == "tool" else wire.name
    if id is None:
        field = "tool_call_id" if wire.role == "tool" else "name"
        raise FormatError(f"a {wire.role} message without {field}", where=where, remedy=f"give it {field}")
    return ToolResult(tool_use_id=id, content=_parts(wire.content, where))


def _parts(content: str | list[Raw] | None, where: str) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(text=content),)
    if content is None:
        return ()
    return tuple([_read_part(raw, where, index) for index, raw in enumerate(content)])


def _read_part(raw: Raw, where: str, index: int) -> Block:
    own = bytes(raw)
    try:
        wire = _part.decode(raw)
    except UNREADABLE:
        place = _place(where, index)
        kind = decode(_type, raw, place).type
        if kind not in KNOWN:
            return Unknown(type=kind, raw=own)
        wire = decode(_part, raw, place)
    if wire.type == "text" and wire.text is not None:
        return Text(text=wire.text, raw=own)
    if wire.type == "image_url" and wire.image_url is not None:
        return _image(wire.image_url, own)
    if wire.type == "file" and wire.file is not None:
        return _document(wire.file, own)
    if wire.type == "thinking" and wire.thinking is not NULL:
        return Reasoning(text=_thinking(wire.thinking), raw=own)
    if wire.type in KNOWN:
        place = _place(where, index)
        raise FormatError(f"a part of type {wire.type} without {wire.type}", where=place, remedy="leave it out")
    return Unknown(type=wire.type, raw=own)


def _thinking(raw: Raw) -> str:
    """The words of Mistral's part of this kind: parts of its own."""
    try:
        return "".join(each.text or "" for each in _thoughts.decode(raw))
    except msgspec.DecodeError:
        return ""


def _place(where: str, index: int) -> str:
    return f"{where}.content[{index}]".removeprefix(".")


def _image(wire: _ImageUrl, raw: bytes) -> Image:
    inline = split_data_url(wire.url)
    if inline is None:
        return Image(url=wire.url, detail=wire.detail, raw=raw)
    return Image(media_type=inline[0], data=inline[1], detail=wire.detail, raw=raw)


def _document(wire: _File, raw: bytes) -> Document:
    inline = split_data_url(wire.file_data) if wire.file_data else None
    media_type, data = inline if inline is not None else (None, wire.file_data)
    return Document(media_type=media_type, data=data, url=wire.file_id, title=wire.filename, raw=raw)


def read_body(body: bytes) -> Request:
    """A request body or a list of messages."""
    if body.lstrip()[:1] == b"[":
        return Request(format=NAME, messages=read_each(body, "", read_message), bare=True)
    fields, items = take_out(body, "messages")
    if items is None and "messages" not in fields:
        raise FormatError("a request body without messages", remedy="pass a body with `messages`, or the list itself")
    if items is None:
        messages = read_each(fields.pop("messages"), "messages", read_message)
    else:
        messages = read_items(items, "messages", read_message)
    tools = fields.pop("tools", None)
    model = fields.pop("model", None)
    return Request(
        format=NAME,
        messages=messages,
        tools=() if tools is None or bytes(tools) == b"null" else read_each(tools, "tools", read_tool),
        model=None if model is None else decode(text_decoder, model, "model"),
        rest=fields,
    )


def read_system(value: Any) -> Message:
    """A system prompt: text, or a list of text parts."""
    if isinstance(value, Message):
        return value
    return read_message(b'{"role":"system","content":' + encode(value, "system") + b"}", "system")


def read_tool(raw: bytes, where: str) -> Tool:
    """A tool definition."""
    wire = decode(_tool, raw, where)
    known = wire.function or wire.custom or _Definition(name=wire.type)
    return Tool(
        name=known.name, description=known.description or "", schema=known.parameters or {}, format=NAME, raw=raw
    )


def read_reply(body: bytes) -> Reply:
    """A response: its first choice."""
    wire = decode(_reply, body)
    if not wire.choices:
        raise FormatError("a response without a choice", where="choices", remedy="check for an error before adding it")
    choice = wire.choices[0]
    return Reply(
        message=read_message(bytes(choice.message), "choices[0].message"),
        usage=None if wire.usage is None else _read_usage(wire.usage),
        model=wire.model,
        stop_reason=choice.finish_reason,
    )


def _read_usage(wire: _Usage) -> Usage:
    details = wire.prompt_tokens_details or _Details()
    read = details.cached_tokens or wire.prompt_cache_hit_tokens or wire.cached_tokens or 0
    write = details.cache_write_tokens or 0
    return Usage(
        input=max((wire.prompt_tokens or 0) - read - write, 0),
        output=wire.completion_tokens or 0,
        cache_write=write,
        cache_read=read,
    )
