"""Reads whatever a program has at hand: text, messages, SDK objects, whole responses, tool definitions, usage."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from windowsill.errors import FormatError
from windowsill.messages import NEUTRAL, Cleared, Message, Request, Tool, Usage, text_message
from windowsill.providers import frameworks
from windowsill.providers.base import Format
from windowsill.providers.detect import AMBIGUOUS, detect, detect_body, detect_tool, detect_usage
from windowsill.providers.lookup import get, sdk_format
from windowsill.providers.openai_chat import DIALECTS
from windowsill.providers.wire import (
    any_decoder,
    decode,
    encode,
    escape_halves,
    escape_lone,
    items_decoder,
    plain,
    to_bytes,
)
from windowsill.text import type_name

T = TypeVar("T")

_SPEAKERS = ("user", "assistant")

_USAGES = (
    ("inputTokens", "outputTokens", "cacheWriteInputTokens", "cacheReadInputTokens"),  # Bedrock Converse
    ("prompt_eval_count", "eval_count"),  # Ollama's own API
)
"""Names of input, output, cache writes and reads in a usage that no format here has."""

_FIELDS = frozenset(
    {"role", "type", "parts", "messages", "contents", "input", "message", "choices", "candidates", "output"}
)
"""Fields of which a message, a reply or a request has one."""


class Added(msgspec.Struct, frozen=True):
    """Messages to add, with what the provider said it used."""

    messages: list[Message]
    usage: Usage | None = None
    model: str | None = None
    cleared: Cleared | None = None


def read_request(source: bytes | str | Mapping[str, Any] | Sequence[Any], *, format: str | None = None) -> Request:
    """Read a request body or a message list; without a format it is told from the content."""
    if isinstance(source, list | tuple) and any(frameworks.is_framework(each) for each in source):
        messages = read_added(source).messages
        known = next((each.format for each in messages if each.format != NEUTRAL), AMBIGUOUS)
        return Request(format=format or known, messages=tuple(messages), bare=True)
    return _mended(to_bytes(source), lambda body: get(format or detect_body(body)).read_body(body))


def _mended(body: bytes, read: Callable[[bytes], T]) -> T:
    """Read JSON; where it holds halves of surrogate pairs, which a model may write, with these escaped once more."""
    try:
        return read(body)
    except FormatError:
        if (mended := escape_lone(body)) == body:
            raise
    return read(mended)


def read_added(source: Any, *, format: str | None = None, default: str = AMBIGUOUS) -> Added:
    """Read what a program adds to a conversation: a message, a reply with usage, SDK objects, text, a list of these.

    `default` is the format of what could be of any, such as a role with plain text.
    """
    if isinstance(source, Message):
        return Added([_writable(source)])
    if isinstance(source, str):
        return Added([text_message("user", escape_halves(source))])
    if isinstance(source, bytes | bytearray | memoryview):
        return _mended(to_bytes(source), lambda body: _from_bytes(body, format, default))
    if isinstance(source, list | tuple):
        return _together([read_added(each, format=format, default=default) for each in source])
    if type(source) is dict and _is_ambiguous(source):
        return Added([get(format or default).read_message(encode(source), "")])
    if (found := frameworks.convert(source)) is not None:
        added = _together([read_added(each, default=default) for each in found.messages])
        return msgspec.structs.replace(added, usage=found.usage, model=found.model)
    if not isinstance(source, Mapping):
        made_for = sdk_format(type(source))
        if made_for not in DIALECTS:
            format = format or made_for
        elif default not in DIALECTS:
            # One package serves all dialects: which of them it is, the model tells.
            default = AMBIGUOUS
        source = _object(source)
    body = encode(dict(source))
    value = source if _is_plain(source) else decode(any_decoder, body)
    return _read(value, body, get(format or detect(value, default)))


def _writable(message: Message) -> Message:
    """Return a message of the program's own with nothing in it that cannot be stored, such as half characters."""
    if message.raw is not None:
        return message
    try:
        msgspec.json.encode(msgspec.structs.replace(message, metadata={}))
    except (UnicodeEncodeError, TypeError):
        kept = message.metadata
        plain = msgspec.json.decode(encode(msgspec.structs.replace(message, metadata={})), type=Message)
        return msgspec.structs.replace(plain, metadata=kept)
    return message


def _is_ambiguous(source: Any) -> bool:
    """Tell whether a message is roles and words, which is the same in every format: no need to look further."""
    return source.keys() == {"role", "content"} and source["role"] in _SPEAKERS and type(source["content"]) is str


def _is_plain(source: Any) -> bool:
    """Tell whether a message holds no objects of an SDK, so that it can be looked at as it is."""
    content = source.get("content")
    return (
        type(source) is dict
        and "tool_calls" not in source
        and (isinstance(content, str) or (type(content) is list and all(type(each) is dict for each in content)))
    )


def _from_bytes(body: bytes, format: str | None, default: str) -> Added:
    """Read JSON as it came: its own bytes are kept."""
    if body.lstrip()[:1] == b"[":
        return _together([_from_bytes(bytes(each), format, default) for each in decode(items_decoder, body)])
    value = decode(any_decoder, body)
    if not isinstance(value, dict):
        return read_added(value, format=format, default=default)
    return _read(value, body, get(format or detect(value, default)))


def _read(value: dict[str, Any], body: bytes, format: Format) -> Added:
    if "messages" in value or "contents" in value or ("input" in value and "type" not in value):
        request = format.read_body(body)
        return Added(list(request.messages), model=request.model)
    if isinstance(value.get("message"), dict):
        body = b'{"choices":[' + body + b"]}"
    elif not _is_reply(value, format):
        if value.keys().isdisjoint({"role", "type", "parts"}):
            raise FormatError("neither a message nor a reply", remedy="pass a message with `role` and `content`")
        return Added([format.read_message(body, "")])
    reply = format.read_reply(body)
    return Added([reply.message, *reply.more], reply.usage, reply.model, reply.cleared)


def _is_reply(value: dict[str, Any], format: Format) -> bool:
    """Tell whether it is a whole response rather than a message or an item of one."""
    if "choices" in value or "candidates" in value or ("output" in value and "type" not in value):
        return True
    # Where a turn is several items, a message is an item of the response, not the response.
    return value.get("type") == "message" and not format.rules.in_items


def _object(source: Any) -> dict[str, Any]:
    """Return the fields of an object: of an SDK, a program's own model or data class."""
    has_fields = isinstance(source, msgspec.Struct) or hasattr(source, "model_dump") or dataclasses.is_dataclass(source)
    value = plain(source) if has_fields else None
    if not isinstance(value, dict) or value.keys().isdisjoint(_FIELDS):
        remedy = f"pass text, a dictionary with role and content, {frameworks.KNOWN}, or a list of these"
        raise FormatError(f"{type_name(source)} is not a message", remedy=remedy)
    return value


def _together(parts: list[Added]) -> Added:
    return Added(
        [message for part in parts for message in part.messages],
        next((part.usage for part in reversed(parts) if part.usage is not None), None),
        next((part.model for part in reversed(parts) if part.model is not None), None),
    )


def read_tool(source: Any, where: str = "") -> Tool:
    """Read a tool definition in whatever format it is."""
    if isinstance(source, Tool):
        return source
    raw = to_bytes(source)
    value = decode(any_decoder, raw, where)
    if not isinstance(value, dict):
        raise FormatError("a tool definition is an object", where=where, remedy="pass the provider's own definition")
    return get(detect_tool(value)).read_tool(raw, where)


def read_tools(sources: Sequence[Any]) -> tuple[Tool, ...]:
    """Read tool definitions, each in whatever format it is; an entry that holds several gives one for each."""
    found: list[Tool] = []
    for index, source in enumerate(sources):
        tool = read_tool(source, f"tools[{index}]")
        found += (tool,) if tool.raw is None else get(tool.format).split_tool(tool, f"tools[{index}]")
    return tuple(found)


def read_usage(usage: Any) -> Usage:
    """Read what a provider reported, from its own usage object."""
    if isinstance(usage, Usage):
        return usage
    body = encode(usage)
    value = decode(any_decoder, body)
    if not isinstance(value, dict):
        raise FormatError(f"{type_name(usage)} is no usage", where="usage", remedy="pass the usage of the response")
    if isinstance(tokens := value.get("tokens"), dict):
        value, body = tokens, encode(tokens)  # Cohere's, beside the units it bills
    for names in _USAGES:
        if names[0] in value:
            counts = [each if isinstance(each := value.get(name), int) else 0 for name in names]
            return Usage(**dict(zip(Usage.__struct_fields__, counts, strict=False)))
    return get(detect_usage(value)).read_usage(body)
