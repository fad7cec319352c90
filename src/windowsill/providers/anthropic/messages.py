"""Reads Anthropic Messages: each message and block keeps the exact bytes it came as."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from windowsill.errors import FormatError
from windowsill.history.repair import rules
from windowsill.history.repair.mend import safe_id
from windowsill.messages import (
    Block,
    Cleared,
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
from windowsill.providers.convert import in_words, is_web, safe_name
from windowsill.providers.wire import (
    UNREADABLE,
    any_decoder,
    decode,
    encode,
    fields_decoder,
    items_decoder,
    join_body,
    read_each,
    read_items,
    take_out,
    text_decoder,
)

NAME = "anthropic"

ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}


class _Message(msgspec.Struct, gc=False):
    role: str
    content: str | list[Raw] | None = None


class _Block(msgspec.Struct, gc=False):
    type: str
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = Raw(b"{}")
    tool_use_id: str | None = None
    content: str | list[Raw] | None = None
    is_error: bool | None = None
    source: Raw = Raw(b"{}")
    title: str | None = None


class _Text(msgspec.Struct, tag_field="type", tag="text", forbid_unknown_fields=True, gc=False):
    text: str
    citations: Raw = Raw(b"null")
    cache_control: Raw = Raw(b"null")


class _ToolUse(msgspec.Struct, tag_field="type", tag="tool_use", forbid_unknown_fields=True, gc=False):
    id: str
    name: str
    input: Raw
    caller: Raw = Raw(b"null")
    cache_control: Raw = Raw(b"null")


class _ToolResult(msgspec.Struct, tag_field="type", tag="tool_result", forbid_unknown_fields=True, gc=False):
    tool_use_id: str
    content: str | list[Raw] = []
    is_error: bool = False
    cache_control: Raw = Raw(b"null")


class _Type(msgspec.Struct, gc=False):
    type: str


class _Source(msgspec.Struct, gc=False):
    type: str = ""
    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    content: str | list[Raw] | None = None


class _Tool(msgspec.Struct, gc=False):
    name: str | None = None
    type: str | None = None
    description: str | None = None
    input_schema: dict[str, Any] | None = None


class _Usage(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class _Applied(msgspec.Struct, gc=False):
    type: str | None = None
    cleared_tool_uses: int = 0
    cleared_input_tokens: int = 0


class _Managed(msgspec.Struct, gc=False):
    applied_edits: list[_Applied] = []


class _Reply(msgspec.Struct, gc=False):
    content: Raw
    role: str = "assistant"
    usage: _Usage | None = None
    model: str | None = None
    stop_reason: str | None = None
    context_management: _Managed | None = None


_message = msgspec.json.Decoder(_Message)
_usual = msgspec.json.Decoder(_Text | _ToolUse | _ToolResult)
"""What nearly every block is; all others, and those with a field more, take the longer way."""
_block = msgspec.json.Decoder(_Block)
_type = msgspec.json.Decoder(_Type)
_source = msgspec.json.Decoder(_Source)
_tool = msgspec.json.Decoder(_Tool)
_reply = msgspec.json.Decoder(_Reply)


def read_message(raw: bytes, where: str) -> Message:
    """One message."""
    try:
        wire = _message.decode(raw)
    except UNREADABLE:
        wire = decode(_message, raw, where)
    role = ROLES.get(wire.role)
    if role is None:
        raise FormatError(
            f"no such role as {wire.role!r} in Anthropic's format",
            where=f"{where}.role".removeprefix("."),
            remedy="use user, assistant or system; name the format if it is another one",
        )
    return Message(role=role, blocks=_contents(wire.content, where), format=NAME, raw=raw)


def _contents(content: str | list[Raw] | None, where: str) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(text=content),)
    if content is None:
        return ()
    return tuple([_read_block(raw, where, index) for index, raw in enumerate(content)])


def _read_block(raw: Raw, where: str, index: int) -> Block:
    own = bytes(raw)
    try:
        wire = _usual.decode(own)
    except UNREADABLE:
        return _read_unusual(raw, own, where, index)
    if type(wire) is _Text:
        return Text(text=wire.text, raw=own)
    if type(wire) is _ToolUse:
        return ToolUse(id=wire.id, name=wire.name, arguments=str(wire.input, "utf-8"), raw=own)
    content = wire.content
    inner = _contents(content, _place(where, index) if type(content) is list else where) if content else ()
    return ToolResult(tool_use_id=wire.tool_use_id, content=inner, is_error=wire.is_error, raw=own)


def _read_unusual(raw: Raw, own: bytes, where: str, index: int) -> Block:
    try:
        wire = _block.decode(raw)
    except UNREADABLE:
        place = _place(where, index)
        kind = decode(_type, raw, place).type
        if kind not in _READERS:
            return Unknown(type=kind, raw=own)
        wire = decode(_block, raw, place)
    reader = _READERS.get(wire.type)
    if reader is None:
        return Unknown(type=wire.type, raw=own)
    return reader(wire, own, where, index)


def _read_text(wire: _Block, raw: bytes, where: str, index: int) -> Block:
    if wire.text is None:
        raise _lacking("text", "text", _place(where, index))
    return Text(text=wire.text, raw=raw)


def _read_tool_use(wire: _Block, raw: bytes, where: str, index: int) -> Block:
    if wire.id is None or wire.name is None:
        raise _lacking("tool_use", "id and name", _place(where, index))
    return ToolUse(id=wire.id, name=wire.name, arguments=str(wire.input, "utf-8"), raw=raw)


def _read_tool_result(wire: _Block, raw: bytes, where: str, index: int) -> Block:
    if wire.tool_use_id is None:
        raise _lacking("tool_result", "tool_use_id", _place(where, index))
    content = (
        _contents(wire.content, _place(where, index) if isinstance(wire.content, list) else where)
        if wire.content
        else ()
    )
    return ToolResult(tool_use_id=wire.tool_use_id, content=content, is_error=bool(wire.is_error), raw=raw)


def _read_thinking(wire: _Block, raw: bytes, where: str, index: int) -> Block:
    if wire.thinking is None:
        raise _lacking("thinking", "thinking", _place(where, index))
    return Reasoning(text=wire.thinking, signature=wire.signature, raw=raw)


def _read_redacted(wire: _Block, raw: bytes, where: str, index: int) -> Block:
    if wire.data is None:
        raise _lacking("redacted_thinking", "data", _place(where, index))
    return Reasoning(data=wire.data, raw=raw)


def _place(where: str, index: int) -> str:
    return f"{where}.content[{index}]".removeprefix(".")


def _lacking(kind: str, needed: str, where: str) -> FormatError:
    return FormatError(f"a {kind} block without {needed}", where=where, remedy=f"give it {needed}, or leave it out")


def _read_media(wire: _Block, raw: bytes, where: str, index: int) -> Block:
    source = decode(_source, wire.source, f"{_place(where, index)}.source")
    url = source.url or source.file_id
    if wire.type == "image":
        return Image(media_type=source.media_type, data=source.data, url=url, raw=raw)
    plain = source.data if source.type == "text" else _inner_text(source.content)
    return Document(
        media_type=source.media_type,
        data=None if plain is not None else source.data,
        url=url,
        text=plain,
        title=wire.title,
        raw=raw,
    )


def _inner_text(content: str | list[Raw] | None) -> str | None:
    """The words of a document that was given as blocks of its own."""
    if isinstance(content, str) or content is None:
        return content
    return "\n".join(words for raw in content if (words := _part_text(raw)))


def _part_text(raw: Raw) -> str:
    value = any_decoder.decode(raw)
    kind = value.get("type") if isinstance(value, dict) else None
    return str(value.get("text") or "") if kind == "text" else f"({kind})"


_READERS: dict[str, Callable[[_Block, bytes, str, int], Block]] = {
    "text": _read_text,
    "tool_use": _read_tool_use,
    "tool_result": _read_tool_result,
    "thinking": _read_thinking,
    "redacted_thinking": _read_redacted,
    "image": _read_media,
    "document": _read_media,
}


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
    system = fields.pop("system", None)
    tools = fields.pop("tools", None)
    model = fields.pop("model", None)
    return Request(
        format=NAME,
        messages=messages,
        system=None if system is None or bytes(system) == b"null" else _system(bytes(system)),
        tools=() if tools is None or bytes(tools) == b"null" else read_each(tools, "tools", read_tool),
        model=None if model is None else decode(text_decoder, model, "model"),
        rest=fields,
    )


def read_system(value: Any) -> Message:
    """A system prompt: text or a list of text blocks."""
    return value if isinstance(value, Message) else _system(encode(value, "system"))


def _system(raw: bytes) -> Message:
    value = decode(any_decoder, raw, "system")
    if isinstance(value, str):
        return Message(role="system", blocks=(Text(text=value),), format=NAME, raw=raw)
    if not isinstance(value, list):
        raise FormatError("neither text nor a list of blocks", where="system", remedy="pass text")
    blocks = [_read_block(item, "system", index) for index, item in enumerate(items_decoder.decode(raw))]
    return Message(role="system", blocks=tuple(blocks), format=NAME, raw=raw)


def read_tool(raw: bytes, where: str) -> Tool:
    """A tool definition; a set of tools that the provider gets elsewhere goes by its type."""
    wire = decode(_tool, raw, where)
    name = wire.name or wire.type
    if name is None:
        raise FormatError("a tool without a name", where=where, remedy="give it a name")
    return Tool(name=name, description=wire.description or "", schema=wire.input_schema or {}, format=NAME, raw=raw)


def read_reply(body: bytes) -> Reply:
    """A response. The message keeps what may be sent again: the role and the content, as it came."""
    wire = decode(_reply, body)
    raw = b'{"role":"assistant","content":' + bytes(wire.content) + b"}"
    return Reply(
        message=read_message(raw, ""),
        usage=None if wire.usage is None else _read_usage(wire.usage),
        model=wire.model,
        stop_reason=wire.stop_reason,
        cleared=None if wire.context_management is None else _read_cleared(wire.context_management),
    )


def _read_cleared(wire: _Managed) -> Cleared | None:
    uses = sum(edit.cleared_tool_uses for edit in wire.applied_edits)
    tokens = sum(edit.cleared_input_tokens for edit in wire.applied_edits if edit.cleared_tool_uses)
    return Cleared(uses, tokens) if uses else None


def _read_usage(wire: _Usage) -> Usage:
    return Usage(
        input=wire.input_tokens or 0,
        output=wire.output_tokens or 0,
        cache_write=wire.cache_creation_input_tokens or 0,
        cache_read=wire.cache_read_input_tokens or 0,
    )


ID_PATTERN = r"[a-zA-Z0-9_-]+"
IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
PDF = "application/pdf"

_id = re.compile(ID_PATTERN)


def render_message(message: Message) -> list[bytes]:
    """The message as Anthropic takes it."""
    native = message.format == NAME
    if native and message.raw is not None and not message.edited:
        return [message.raw]
    if message.role == "system" and not native:
        text = rules.as_system("\n".join(in_words(block) for block in message.blocks))
        return [encode({"role": "user", "content": text})]
    blocks = list(_blocks(message.blocks, native=native))
    content = b"[" + b",".join(blocks or [_text(rules.EMPTY)]) + b"]"
    if native and message.raw is not None:
        fields = decode(fields_decoder, message.raw)
        fields["content"] = Raw(content)
        return [encode(fields)]
    return [b'{"role":' + encode(message.role) + b',"content":' + content + b"}"]


def _blocks(blocks: Iterable[Block], *, native: bool) -> Iterator[bytes]:
    for block in blocks:
        if native and block.raw is not None:
            yield block.raw
        else:
            rendered = _render_block(block, native=native)
            if rendered is not None:
                yield rendered


def _render_block(block: Block, *, native: bool) -> bytes | None:
    if isinstance(block, Text):
        return _text(block.text) if block.text and not block.text.isspace() else None
    if isinstance(block, Reasoning):
        return _reasoning(block) if native else None
    if isinstance(block, ToolResult):
        return _tool_result(block, native=native)
    builder = _BUILDERS.get(type(block))
    return _text(in_words(block)) if builder is None else builder(block)


def _text(text: str) -> bytes:
    return encode({"type": "text", "text": text})


def _tool_use(block: ToolUse) -> bytes:
    return encode({"type": "tool_use", "id": _spelled(block.id), "name": safe_name(block.name), "input": _input(block)})


def _input(block: ToolUse) -> Any:
    raw = block.arguments.encode()
    try:
        fields_decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return {"_text": block.arguments}
    return Raw(raw)


def _tool_result(block: ToolResult, *, native: bool) -> bytes:
    fields: dict[str, Any] = {"type": "tool_result", "tool_use_id": _spelled(block.tool_use_id)}
    if len(block.content) == 1 and isinstance(block.content[0], Text) and block.content[0].raw is None:
        fields["content"] = block.content[0].text
    elif block.content:
        fields["content"] = [Raw(each) for each in _blocks(block.content, native=native)]
    if block.is_error:
        fields["is_error"] = True
    return encode(fields)


def _reasoning(block: Reasoning) -> bytes | None:
    if block.data is not None:
        return encode({"type": "redacted_thinking", "data": block.data})
    if block.signature is not None:
        return encode({"type": "thinking", "thinking": block.text, "signature": block.signature})
    return None


def _image(block: Image) -> bytes:
    if block.data is not None and block.media_type in IMAGE_TYPES:
        return _media("image", {"type": "base64", "media_type": block.media_type, "data": block.data})
    if is_web(block.url):
        return _media("image", {"type": "url", "url": block.url})
    return _text(in_words(block))


def _document(block: Document) -> bytes:
    title = {"title": block.title} if block.title else {}
    if block.text is not None and block.text.strip():
        return _media("document", {"type": "text", "media_type": "text/plain", "data": block.text}, **title)
    if block.data is not None and block.media_type == PDF:
        return _media("document", {"type": "base64", "media_type": PDF, "data": block.data}, **title)
    if is_web(block.url):
        return _media("document", {"type": "url", "url": block.url}, **title)
    return _text(in_words(block))


def _media(type: str, source: dict[str, Any], **more: str) -> bytes:
    return encode({"type": type, "source": source, **more})


_BUILDERS: dict[type, Callable[[Any], bytes]] = {ToolUse: _tool_use, Image: _image, Document: _document}


def _spelled(id: str) -> str:
    return id if _id.fullmatch(id) else safe_id(id)


def render_system(systems: Sequence[Message]) -> bytes | None:
    """The value of `system`."""
    if len(systems) == 1 and _is_system_value(systems[0]):
        return systems[0].raw
    blocks = [rendered for message in systems for rendered in _blocks(_words(message), native=message.format == NAME)]
    return b"[" + b",".join(blocks) + b"]" if blocks else None


def _is_system_value(message: Message) -> bool:
    """Whether its bytes are what stands under `system` (text or a list), rather than a message."""
    raw = message.raw
    return message.format == NAME and not message.edited and raw is not None and raw[:1] in {b'"', b"["}


def _words(message: Message) -> Iterator[Block]:
    for block in message.blocks:
        if isinstance(block, Text):
            if block.text and not block.text.isspace():
                yield block
        else:
            yield Text(text=in_words(block))


def render_tool(tool: Tool) -> bytes:
    """A tool definition."""
    if tool.format == NAME and tool.raw is not None:
        return tool.raw
    fields: dict[str, Any] = {"name": safe_name(tool.name)}
    if tool.description:
        fields["description"] = tool.description
    return encode({**fields, "input_schema": {"type": "object", **tool.schema}})


def render_body(
    *,
    messages: Sequence[bytes],
    system: bytes | None,
    tools: Sequence[bytes],
    model: str | None,
    rest: Mapping[str, Raw],
) -> bytes:
    """A request body, what a prompt cache looks at first standing first."""
    fields: dict[str, bytes | Raw] = {} if model is None else {"model": encode(model)}
    fields.update(rest)
    if tools:
        fields["tools"] = b"[" + b",".join(tools) + b"]"
    if system is not None:
        fields["system"] = system
    return join_body(fields, messages)
