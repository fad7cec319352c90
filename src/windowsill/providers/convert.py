"""Carries blocks from one provider to another: pictures, ids and names, and text for what cannot cross."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from windowsill.history import repair_rules
from windowsill.messages import Block, Document, Image, Message, Reasoning, Text, ToolResult, ToolUse, Unknown
from windowsill.providers.wire import UNREADABLE, any_decoder, fields_decoder

_DATA_URL = re.compile(r"data:([\w.+/-]*)(?:;[\w=.+-]+)*;base64,", re.ASCII)

FAILED = "[error] "
"""Stands before a failed result where the format has no flag for it."""


def split_data_url(url: str | None) -> tuple[str | None, str] | None:
    """Return media type and base64 of a data URL; `None` when it is another address."""
    found = _DATA_URL.match(url) if url else None
    return (found.group(1) or None, url[found.end() :]) if url and found else None


def read_image(url: str | None, *, detail: str | None = None, raw: bytes | None = None) -> Image:
    """Return the picture that an address holds, or that is found there."""
    inline = split_data_url(url)
    if inline is None:
        return Image(url=url, detail=detail, raw=raw)
    return Image(media_type=inline[0], data=inline[1], detail=detail, raw=raw)


def data_url(media_type: str | None, data: str) -> str:
    """Return a picture or file as an address that holds it."""
    return f"data:{media_type or 'application/octet-stream'};base64,{data}"


def image_url(image: Image) -> str | None:
    """Return an address for a picture; `None` when only its own provider could find it."""
    if image.data is not None:
        return data_url(image.media_type, image.data)
    return image.url if is_web(image.url) else None


def is_web(url: str | None) -> bool:
    """Tell whether everybody can find it under this address."""
    return url is not None and url.startswith(("http://", "https://"))


def arguments_object(call: ToolUse) -> Any:
    """Return the arguments of a call for a provider that takes nothing but an object."""
    raw = call.arguments.encode()
    try:
        fields_decoder.decode(raw)
    except UNREADABLE:
        return {"_text": call.arguments}
    return msgspec.Raw(raw)


def in_words(block: Block) -> str:
    """Return text for a block that a provider cannot take; never empty."""
    if isinstance(block, Unknown) and block.raw is not None and (text := words(block.type, block.raw)):
        return text
    return repair_rules.describe(block) or repair_rules.EMPTY


def all_in_words(blocks: Iterable[Block]) -> str:
    """Return the text of several blocks, one after the other."""
    return "\n".join(block.text if isinstance(block, Text) else in_words(block) for block in blocks)


def result_text(result: ToolResult) -> str:
    """Return the text of a result, with a mark before a failed one."""
    return (FAILED if result.is_error else "") + all_in_words(result.content)


# A block that only its own provider understands, as text for another: what was asked, found and said.

SAID = frozenset({"refusal", "transcript"})
"""Fields that are all a block has to say; nothing needs to be put before them."""

NAMES = ("server_name", "server_label", "mcp_server_name", "name", "tool_name")
"""Fields that say which tool it was."""

# fmt: off
ASKED = (
    "input", "arguments", "action", "actions", "operation", "queries", "query", "code", "commands", "revised_prompt",
)
# fmt: on
"""Fields that say what was asked of it."""

# fmt: off
READABLE = frozenset({
    "content", "error", "error_code", "error_message", "file_id", "filename", "logs", "message", "output", "reason",
    "source", "stderr", "stdout", "summary", "text", "title", "tool_name", "url",
})
# fmt: on
"""Fields whose text was for reading. What is not here may be encrypted, or the bytes of a picture."""

OPAQUE = frozenset({"cache_control", "caller", "citations", "citation", "annotations", "logprobs", *ASKED})
"""Fields that hold more fields, none of them worth telling, or told elsewhere."""


def message_text(message: Message) -> str:
    """Return what a message says, calls and results in words; reasoning is left out."""
    return "\n".join(text for block in message.blocks if (text := _block_text(block)))


def _block_text(block: Block) -> str:
    match block:
        case Text():
            return block.text
        case ToolUse():
            return f"[calls {block.name}: {block.arguments}]"
        case ToolResult():
            inner = "\n".join(text for each in block.content if (text := _block_text(each)))
            return f"[result{' (an error)' if block.is_error else ''} of {block.name or block.tool_use_id}]\n{inner}"
        case Image():
            return f"[a picture: {block.url}]" if is_web(block.url) else "[a picture]"
        case Document():
            return f"[a document{f': {block.title}' if block.title else ''}]\n{block.text or ''}".rstrip()
        case Unknown():
            return words(block.type, block.raw) if block.raw is not None else ""
        case Reasoning():
            return ""


def words(type: str, raw: bytes) -> str:
    """Return the text of a block of a kind that is not known; empty when nothing of it can be told."""
    try:
        fields = any_decoder.decode(raw)
    except UNREADABLE:
        return ""
    if isinstance(fields, str):
        return fields
    if not isinstance(fields, dict):
        return ""
    for key in SAID:
        if isinstance(said := fields.get(key), str) and said:
            return said
    named = [each for key in NAMES if isinstance(each := fields.get(key), str)]
    asked = [
        value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for key in ASKED
        if (value := fields.get(key))
    ]
    lines = list(_readable({key: each for key, each in fields.items() if key not in NAMES}))
    if not (named or asked or lines):
        return ""
    return "\n".join([f"({' '.join([type, *named, *asked])})", *lines])


def _readable(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _readable(each)
    if not isinstance(value, dict):
        return
    if value.get("type") == "text" and isinstance(data := value.get("data"), str):
        yield data  # a document that came as its text
    for key, each in value.items():
        if key in OPAQUE:
            continue
        if isinstance(each, dict | list):
            yield from _readable(each)
        elif key in READABLE and isinstance(each, str) and each.strip():
            yield each
