"""Renders Anthropic Messages: what did not change as it came, the rest built anew."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from windowsill.formats.anthropic.read import NAME
from windowsill.formats.foreign import in_words, is_web, safe_name
from windowsill.formats.wire import decode, encode, fields_decoder, join_body
from windowsill.history.repair import notes
from windowsill.history.repair.pairing import safe_id
from windowsill.messages import Block, Document, Image, Message, Reasoning, Text, Tool, ToolResult, ToolUse

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
        text = notes.as_system("\n".join(in_words(block) for block in message.blocks))
        return [encode({"role": "user", "content": text})]
    blocks = list(_blocks(message.blocks, native=native))
    content = b"[" + b",".join(blocks or [_text(notes.EMPTY)]) + b"]"
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
            rendered = _block(block, native=native)
            if rendered is not None:
                yield rendered


def _block(block: Block, *, native: bool) -> bytes | None:
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
