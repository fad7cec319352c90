"""Renders OpenAI Chat Completions: what did not change as it came, the rest built anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from windowsill.formats.foreign import FAILED, data_url, image_url, in_words, result_text, safe_name
from windowsill.formats.openai.read import DIALECTS, NAME, REASONING_FIELDS
from windowsill.formats.wire import decode, encode, fields_decoder, join_body, text_decoder
from windowsill.history.repair import notes
from windowsill.history.repair.sorting import is_media
from windowsill.messages import Block, Document, Image, Message, Reasoning, Text, Tool, ToolResult, ToolUse, Unknown

BESIDE = frozenset({"refusal", "audio"})
"""Kinds that stand beside the content, as fields of the message."""

REPLACED = frozenset({"role", "content", "tool_calls", "tool_call_id", "function_call"})
"""Fields that are written from the blocks."""


def render_message(message: Message) -> list[bytes]:
    """The message as OpenAI takes it: reasoning of a dialect stays behind, as unknown fields are refused."""
    if message.format != NAME and message.format in DIALECTS and message.role == "assistant":
        message = without_reasoning(message)
    return render_chat(message)


def without_reasoning(message: Message) -> Message:
    """The message without what the model thought; the same object when it holds nothing of it."""
    kept = tuple(block for block in message.blocks if not isinstance(block, Reasoning))
    if len(kept) == len(message.blocks) and not (message.raw is not None and _has_field(message.raw)):
        return message
    return msgspec.structs.replace(message, blocks=kept, edited=True)


def _has_field(raw: bytes) -> bool:
    """Whether a field for reasoning is there, be it empty."""
    return b'"reasoning' in raw and not decode(fields_decoder, raw).keys().isdisjoint(REASONING_FIELDS)


def render_chat(message: Message) -> list[bytes]:
    """The message as all dialects write it: results as one message each, then the rest."""
    native = message.format in DIALECTS
    if native and message.raw is not None and not message.edited:
        return [message.raw]
    template = decode(fields_decoder, message.raw) if native and message.raw is not None else {}
    role = decode(text_decoder, template["role"]) if "role" in template else message.role
    if message.role == "assistant":
        return [_assistant(message.blocks, template, native=native)]
    if message.role == "system":
        around = _around(template, "developer" if role == "developer" else "system")
        return [encode({**around, "content": _content(_words(message.blocks), native=native)})]
    return list(_user(message.blocks, template, role, native=native))


def _around(template: Mapping[str, Raw], role: str) -> dict[str, Any]:
    """The fields of the message that came, without what the blocks say, and without a null for what is not there."""
    return {"role": role, **{key: value for key, value in template.items() if key not in REPLACED}}


def _user(blocks: Sequence[Block], template: Mapping[str, Raw], role: str, *, native: bool) -> Iterator[bytes]:
    is_result = role in {"tool", "function"}
    rest: list[Block] = []
    for block in blocks:
        if not isinstance(block, ToolResult):
            rest.append(block)
            continue
        around = _around(template if is_result else {}, "tool")
        yield encode({**around, "tool_call_id": block.tool_use_id, "content": _result(block, native=native)})
        if media := [each for each in block.content if is_media(each)]:
            rest += [Text(text=notes.hoisted(block.tool_use_id)), *media]
    if rest or not blocks:
        content = _content(rest or [Text(text=notes.EMPTY)], native=native)
        yield encode({**_around({} if is_result else template, "user"), "content": content})


def _result(block: ToolResult, *, native: bool) -> Any:
    """Text only: what else a tool returned follows in a message of its own."""
    text = [each for each in block.content if isinstance(each, Text)]
    if native and not block.is_error and text and len(text) == len(block.content) and all(each.raw for each in text):
        return [Raw(each.raw) for each in text if each.raw is not None]
    kept = tuple(each for each in block.content if not is_media(each))
    words = result_text(ToolResult(tool_use_id=block.tool_use_id, content=kept), flagged=False)
    return FAILED + words if block.is_error else words


def _assistant(blocks: Sequence[Block], template: Mapping[str, Raw], *, native: bool) -> bytes:
    around = _around(template, "assistant")
    if not any(isinstance(block, Reasoning) for block in blocks):
        around = {key: value for key, value in around.items() if key not in REASONING_FIELDS}
    beside = {block.type for block in blocks if isinstance(block, Unknown) and _is_beside(block, native=native)}
    for kind in BESIDE - beside:
        around.pop(kind, None)
    calls = [_call(block, native=native) for block in blocks if isinstance(block, ToolUse)]
    if calls:
        around["tool_calls"] = calls
    words = [
        each
        for each in _words(blocks, thoughts=native)
        if not (isinstance(each, Unknown) and _is_beside(each, native=native))
    ]
    if not words and not calls and not beside:
        words = [Text(text=notes.EMPTY)]
    return encode({"role": "assistant", "content": _content(words, native=native) if words else None, **around})


def _is_beside(block: Unknown, *, native: bool) -> bool:
    """Whether a block is a field of the message rather than a part of its content."""
    if not native or block.raw is None:
        return False
    return block.type == "audio" or (block.type == "refusal" and block.raw[:1] == b'"')


def _words(blocks: Iterable[Block], *, thoughts: bool = False) -> list[Block]:
    """What the system and the assistant may say: text and parts of its own kind; pictures and files as words."""
    found: list[Block] = []
    for block in blocks:
        is_thought = thoughts and isinstance(block, Reasoning) and block.raw is not None
        if isinstance(block, Text | Unknown) or is_thought:
            found.append(block)
        elif not isinstance(block, Reasoning | ToolUse):
            found.append(Text(text=in_words(block)))
    return found


def _call(block: ToolUse, *, native: bool) -> Raw:
    if native and block.raw is not None:
        return Raw(block.raw)
    function = {"name": safe_name(block.name), "arguments": block.arguments}
    return Raw(encode({"id": block.id, "type": "function", "function": function}))


def _content(blocks: Sequence[Block], *, native: bool) -> Any:
    """Plain text where that says it all, else parts."""
    if not blocks:
        return ""
    only = blocks[0]
    if len(blocks) == 1 and isinstance(only, Text) and (only.raw is None or not native):
        return only.text
    return [_part(block, native=native) for block in blocks]


def _part(block: Block, *, native: bool) -> Any:
    if native and block.raw is not None and block.raw[:1] == b"{":
        return Raw(block.raw)
    if isinstance(block, Image) and (url := image_url(block)) is not None:
        detail = {"detail": block.detail} if block.detail else {}
        return {"type": "image_url", "image_url": {"url": url, **detail}}
    if isinstance(block, Document) and block.data is not None:
        file = {"filename": block.title or "document", "file_data": data_url(block.media_type, block.data)}
        return {"type": "file", "file": file}
    return {"type": "text", "text": block.text if isinstance(block, Text) else in_words(block)}


def render_system(systems: Sequence[Message]) -> bytes | None:
    """One system message."""
    if len(systems) == 1:
        return render_message(systems[0])[0]
    text = "\n\n".join(words for system in systems if (words := _system_text(system)))
    return encode({"role": "system", "content": text}) if text else None


def _system_text(system: Message) -> str:
    return "\n".join(in_words(block) for block in system.blocks)


def render_tool(tool: Tool) -> bytes:
    """A tool definition."""
    if tool.format in DIALECTS and tool.raw is not None:
        return tool.raw
    function: dict[str, Any] = {"name": safe_name(tool.name)}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = {"type": "object", **tool.schema}
    return encode({"type": "function", "function": function})


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
    return join_body(fields, messages if system is None else [system, *messages])
