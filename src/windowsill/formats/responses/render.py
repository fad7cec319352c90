"""Renders OpenAI Responses: what did not change as it came, the rest built anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from msgspec import Raw

from windowsill.formats.foreign import in_words, safe_name
from windowsill.formats.responses.items import CALLS, KNOWN_PARTS, OUTPUTS
from windowsill.formats.responses.parts import build_parts, text_or_parts
from windowsill.formats.responses.read import NAME
from windowsill.formats.responses.tooling import build_call, build_output
from windowsill.formats.wire import decode, encode, fields_decoder, join_body, text_decoder
from windowsill.history.repair import notes
from windowsill.messages import Block, Message, Reasoning, Text, Tool, ToolResult, ToolUse, Unknown

ID_PATTERN = r"[\s\S]{1,64}"
"""Any text, but no longer than this."""

Template = Mapping[str, Raw]


def render_message(message: Message) -> list[bytes]:
    """The message as items: its words, its calls and its results one each, in order."""
    native = message.format == NAME
    own = native and message.raw is not None and message.raw[:1] == b"{"
    if own and not message.edited and message.raw is not None:
        return [message.raw]
    template = decode(fields_decoder, message.raw) if own and message.raw is not None else {}
    items = list(_items(message, template, native=native))
    return items or [encode({"role": message.role, "content": notes.EMPTY})]


def _items(message: Message, template: Template, *, native: bool) -> Iterator[bytes]:
    kind = _text(template, "type") or ("message" if "role" in template else "")
    is_message = kind == "message"
    around = template if is_message else {}

    def stands_alone(block: Block) -> bool:
        if isinstance(block, Unknown):
            # A part of a message and an item may be of the same unknown kind: where it stood tells them apart.
            return native and not is_message and block.type not in KNOWN_PARTS
        return isinstance(block, Reasoning | ToolUse | ToolResult)

    for single, blocks in groupby(message.blocks, stands_alone):
        if not single:
            yield _message(message, list(blocks), around, native=native)
            around = {}
            continue
        for block in blocks:
            if isinstance(block, ToolUse):
                yield encode(build_call(block, template if kind in CALLS else {}, native=native))
            elif isinstance(block, ToolResult):
                yield encode(build_output(block, template if kind in OUTPUTS else {}, native=native))
            elif native and block.raw is not None:
                yield block.raw


def _text(template: Template, field: str) -> str:
    return decode(text_decoder, template[field]) if field in template else ""


def _message(message: Message, blocks: Sequence[Block], template: Template, *, native: bool) -> bytes:
    fields: dict[str, Any] = {"role": message.role, **template}
    if message.role != "assistant":
        return encode({**fields, "content": text_or_parts(blocks, native=native)})
    if "id" in template:
        return encode({**fields, "content": build_parts(blocks, native=native, spoken=True)})
    # Parts of the assistant belong to an item with the provider's id: without one its words are plain text.
    return encode({**fields, "content": _words(blocks)})


def _words(blocks: Iterable[Block]) -> str:
    return "\n".join(block.text if isinstance(block, Text) else in_words(block) for block in blocks)


def render_system(systems: Sequence[Message]) -> bytes | None:
    """The value of `instructions`."""
    if len(systems) == 1:
        raw = systems[0].raw
        if systems[0].format == NAME and not systems[0].edited and raw is not None and raw[:1] == b'"':
            return raw
    text = "\n\n".join(words for system in systems if (words := _words(system.blocks)))
    return encode(text) if text else None


def render_tool(tool: Tool) -> bytes:
    """A tool definition. Another format's schema was not written for the strict rules, which are the default here."""
    if tool.format == NAME and tool.raw is not None:
        return tool.raw
    fields: dict[str, Any] = {"type": "function", "name": safe_name(tool.name)}
    if tool.description:
        fields["description"] = tool.description
    return encode({**fields, "parameters": {"type": "object", **tool.schema}, "strict": False})


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
    if system is not None:
        fields["instructions"] = system
    for key, value in rest.items():
        # The other formats' name for the same limit.
        fields["max_output_tokens" if key == "max_tokens" else key] = value
    if tools:
        fields["tools"] = b"[" + b",".join(tools) + b"]"
    return join_body(fields, messages, under=b"input")
