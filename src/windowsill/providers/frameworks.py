"""Reads the message objects of agent frameworks: LangChain, pydantic-ai, the OpenAI Agents SDK, strands.

They are known by their fields; none of these packages is imported. A message that a provider's model wrote goes back
to its provider's own form where the object says enough, so that signatures stay valid.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from windowsill.errors import FormatError
from windowsill.messages import (
    Block,
    Document,
    Image,
    Message,
    Reasoning,
    Role,
    Text,
    ToolResult,
    ToolUse,
    Unknown,
    Usage,
    text_message,
)
from windowsill.providers.anthropic.messages import Anthropic
from windowsill.providers.base import usage_of
from windowsill.providers.wire import encode, escape_halves

CLAUDE = Anthropic()

KNOWN = "objects of the anthropic, openai and google-genai packages, of LangChain, pydantic-ai and the Agents SDK"
"""Kinds of objects that are messages here, for an error."""

_LANGCHAIN_ROLES = {"human": "user", "ai": "assistant", "developer": "system"} | {
    role: role for role in ("system", "tool", "function")
}
"""By type of a message; pieces of a stream have `MessageChunk` behind it."""

_CLAUDE_BLOCKS = frozenset({"tool_use", "thinking", "redacted_thinking", "server_tool_use"})
"""Blocks of an answer by which it is Anthropic's."""


_CONVERSE = frozenset(
    {"text", "toolUse", "toolResult", "reasoningContent", "image", "document", "video", "cachePoint", "guardContent"}
)
"""Blocks of Bedrock Converse, each named by the one field it has."""

_ITEMS = ("to_input_items", "to_input_list", "to_input_item")
"""Methods by which the Agents SDK gives what may be sent again."""


class Converted(msgspec.Struct, frozen=True):
    """The messages of an object, each as a neutral message or in a provider's form, and what the call used."""

    messages: list[Any]
    usage: Any = None
    """Read already, or as it came."""
    model: str | None = None


def is_framework(value: Any) -> bool:
    """Tell whether it is a message object of a framework."""
    if isinstance(value, dict):
        return ("output" in value or isinstance(value.get("content"), list)) and _is_converse(_answer(value))
    if isinstance(value, str | Message):
        return False
    return _is_langchain(value) or _is_pydantic_ai(value) or any(hasattr(value, name) for name in _ITEMS)


def convert(value: Any) -> Converted | None:
    """Convert a message object of a framework; `None` when it is none."""
    if not is_framework(value):
        return None
    if isinstance(value, dict):
        message = _answer(value)
        content = [_converse_block(block) for block in message["content"]]
        used = value.get("usage") if message is not value else None
        spoken = {"role": message["role"], "content": [each for each in content if each is not None]}
        return Converted([spoken], used or None)
    if _is_langchain(value):
        return _langchain(value)
    if _is_pydantic_ai(value):
        return _request(value) if value.kind == "request" else _response(value)
    # The Agents SDK: a response, an item or the result of a run, in the form of a request.
    items = next(getattr(value, name)() for name in _ITEMS if hasattr(value, name))
    return Converted(items if isinstance(items, list) else [items], _usage(getattr(value, "usage", None)))


# LangChain


def _is_langchain(value: Any) -> bool:
    return isinstance(getattr(value, "additional_kwargs", None), dict) and isinstance(getattr(value, "type", None), str)


def _langchain(value: Any) -> Converted:
    role = _LANGCHAIN_ROLES.get(value.type.removesuffix("MessageChunk").lower()) or getattr(value, "role", None)
    if role is None:
        name = type(value).__name__
        raise FormatError(f"a {name} says nothing", remedy="leave it out: the history of a session is never rewritten")
    content = value.content
    if not isinstance(content, str):
        content = [{"type": "text", "text": str(part)} if isinstance(part, str) else dict(part) for part in content]
    metadata = getattr(value, "response_metadata", None) or {}
    model = metadata.get("model_name") or metadata.get("model")
    usage = getattr(value, "usage_metadata", None)
    if role == "tool":
        failed = getattr(value, "status", "") == "error"
        return Converted([_result(value.tool_call_id, _blocks(content), failed=failed)])
    if role == "function":
        return Converted([{"role": role, "name": value.name, "content": content}])
    if role != "assistant":
        return Converted([_spoken(role, content)])
    calls = list(getattr(value, "tool_calls", None) or ())
    if isinstance(content, list) and any(part.get("type") in _CLAUDE_BLOCKS for part in content):
        message = {"role": role, "content": _claude_blocks(content, calls)}
    else:
        message = _chat_message(content, calls, value.additional_kwargs, getattr(value, "invalid_tool_calls", None))
    return Converted([message], _usage(usage), model if isinstance(model, str) else None)


def _spoken(role: str, content: Any) -> Any:
    """Return a message of the user or the system; pictures in LangChain's own form become neutral ones."""
    own = isinstance(content, list) and any(_langchain_picture(part) for part in content)
    if not own or role not in {"user", "system"}:
        return {"role": role, "content": content}
    speaker: Role = "user" if role == "user" else "system"
    return Message(role=speaker, blocks=_blocks(content))


def _langchain_picture(part: dict[str, Any]) -> Image | None:
    if part.get("type") != "image" or "source" in part:
        return None
    media, url = part.get("mime_type") or part.get("media_type"), part.get("url")
    return Image(media_type=media, data=None if url else part.get("base64") or part.get("data"), url=url)


def _blocks(content: Any) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(text=content),)
    return tuple(_block(part) for part in content)


def _block(part: dict[str, Any]) -> Block:
    kind = str(part.get("type"))
    if kind == "text":
        return Text(text=str(part.get("text", "")))
    if (picture := _langchain_picture(part)) is not None:
        return picture
    if kind == "image_url":
        address = part.get("image_url")
        return Image(url=address.get("url") if isinstance(address, dict) else address)
    return Unknown(type=kind, raw=encode(part))


def _claude_blocks(content: list[dict[str, Any]], calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the blocks of an answer of Claude's; a stream leaves the input of a call to the list beside them."""
    inputs = {call["id"]: call["args"] for call in calls}
    found = []
    for part in content:
        block = {key: each for key, each in part.items() if key not in {"index", "partial_json"}}
        if block.get("type") == "tool_use" and block.get("id") in inputs:
            block["input"] = inputs.pop(block["id"])
        if block.get("type") != "input_json_delta":
            found.append(block)
    left = [call for call in calls if call["id"] in inputs]
    return found + [
        {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["args"]} for call in left
    ]


def _chat_message(content: Any, calls: list[dict[str, Any]], beside: dict[str, Any], broken: Any) -> dict[str, Any]:
    """Return an answer as a chat of OpenAI's has it, its arguments as the model wrote them where they are at hand."""
    written = {each.get("id"): each for each in beside.get("tool_calls") or () if isinstance(each, dict)}
    made = [
        written.get(call.get("id"))
        or {
            "id": call.get("id") or "",
            "type": "function",
            "function": {"name": call.get("name") or "", "arguments": _arguments(call.get("args"))},
        }
        for call in (*calls, *(broken or ()))
    ]
    if isinstance(content, list):
        own = frozenset({"text", "refusal"})
        content = [part for part in content if part.get("type") in own] or None
    kept = {key: beside[key] for key in ("reasoning_content", "refusal", "audio") if beside.get(key)}
    return {
        "role": "assistant",
        "content": content or (None if made else ""),
        **kept,
        **({"tool_calls": made} if made else {}),
    }


# pydantic-ai


def _is_pydantic_ai(value: Any) -> bool:
    return getattr(value, "kind", None) in {"request", "response"} and isinstance(
        getattr(value, "parts", None), Sequence
    )


def _request(value: Any) -> Converted:
    """Convert a request; its `instructions` are a system prompt of the moment and no part of the history."""
    messages: list[Any] = []
    results: list[Block] = []
    for part in value.parts:
        kind, content = part.part_kind, part.content
        if kind == "tool-return" or (kind == "retry-prompt" and part.tool_name):
            failed = kind == "retry-prompt" or getattr(part, "outcome", "success") != "success"
            message = _result(part.tool_call_id, (Text(text=_words(content)),), failed=failed, name=part.tool_name)
            if not results:
                messages.append(None)
            results += message.blocks
        elif kind == "system-prompt":
            messages.append(text_message("system", escape_halves(content)))
        elif isinstance(content, str):
            messages.append(text_message("user", escape_halves(content)))
        else:
            messages.append(Message(role="user", blocks=tuple(_said(content))))
    together = Message(role="user", blocks=tuple(results))
    return Converted([together if each is None else each for each in messages])


def _said(content: Any) -> Iterator[Block]:
    for each in content if isinstance(content, list | tuple) else [content]:
        kind = getattr(each, "kind", "")
        if isinstance(each, str):
            yield Text(text=escape_halves(each))
        elif kind == "binary":
            data = base64.b64encode(each.data).decode()
            picture = each.media_type.startswith("image/")
            yield (Image if picture else Document)(media_type=each.media_type, data=data)
        elif kind == "image-url":
            yield Image(url=each.url)
        elif isinstance(url := getattr(each, "url", None), str):
            yield Document(url=url)
        else:
            yield Text(text=_words(each))


def _response(value: Any) -> Converted:
    blocks: list[Block] = []
    for part in value.parts:
        match part.part_kind:
            case "text":
                blocks.append(Text(text=part.content))
            case "thinking":
                blocks.append(Reasoning(text=part.content, signature=part.signature))
            case "tool-call":
                arguments = _arguments(part.args)
                blocks.append(ToolUse(id=part.tool_call_id, name=part.tool_name, arguments=arguments))
            case kind:
                blocks.append(Unknown(type=kind, raw=encode(part)))
    message: Any = Message(role="assistant", blocks=tuple(blocks))
    signed = any(isinstance(block, Reasoning) and block.signature for block in blocks)
    known = not any(isinstance(block, Unknown) for block in blocks)
    if signed and known and getattr(value, "provider_name", None) == CLAUDE.name:
        (message,) = CLAUDE.render_message(msgspec.structs.replace(message, format=CLAUDE.name))
    return Converted([message], _usage(getattr(value, "usage", None)), getattr(value, "model_name", None))


# Bedrock Converse, which strands writes too


def _answer(value: dict[str, Any]) -> dict[str, Any]:
    """Return the message of a whole response; any other dictionary as it is."""
    output = value.get("output")
    message = output.get("message") if isinstance(output, dict) else None
    return message if isinstance(message, dict) else value


def _is_converse(value: dict[str, Any]) -> bool:
    content = value.get("content")
    return (
        "role" in value
        and isinstance(content, list)
        and bool(content)
        and all(isinstance(block, dict) and "type" not in block for block in content)
        and any(not _CONVERSE.isdisjoint(block) for block in content)
    )


def _converse_block(block: dict[str, Any]) -> dict[str, Any] | None:  # noqa: PLR0911 - one for each kind of block
    """Return a block as Anthropic has it; a cache point is of the request, not of the conversation."""
    match block:
        case {"text": str(text)}:
            return {"type": "text", "text": text}
        case {"json": value}:
            return {"type": "text", "text": encode(value).decode()}
        case {"toolUse": {"toolUseId": id, "name": name, **rest}}:
            return {"type": "tool_use", "id": id, "name": name, "input": rest.get("input") or {}}
        case {"toolResult": {"toolUseId": id, "content": content, **rest}}:
            inner = [each for part in content if (each := _converse_block(part)) is not None]
            failed = {"is_error": True} if rest.get("status") == "error" else {}
            return {"type": "tool_result", "tool_use_id": id, "content": inner, **failed}
        case {"reasoningContent": {"reasoningText": {"text": text, **rest}}}:
            return {"type": "thinking", "thinking": text, "signature": rest.get("signature") or ""}
        case {"reasoningContent": {"redactedContent": data}}:
            return {"type": "redacted_thinking", "data": _base64(data)}
        case {"image": {"format": kind, "source": {"bytes": data}}}:
            source = {"type": "base64", "media_type": f"image/{kind}", "data": _base64(data)}
            return {"type": "image", "source": source}
        case {"document": {"format": "pdf", "source": {"bytes": data}, **rest}}:
            source = {"type": "base64", "media_type": "application/pdf", "data": _base64(data)}
            return {"type": "document", "source": source, "title": rest.get("name")}
        case {"cachePoint": _}:
            return None
    plain = {key: each for key, each in block.items() if not isinstance(each, bytes)}
    return {"type": "text", "text": encode(plain).decode()}


def _base64(data: Any) -> str:
    return base64.b64encode(data).decode() if isinstance(data, bytes) else str(data)


# All of them


def _result(id: str, content: tuple[Block, ...], *, failed: bool, name: str | None = None) -> Message:
    return Message(role="user", blocks=(ToolResult(tool_use_id=id, content=content, is_error=failed, name=name),))


def _words(value: Any) -> str:
    return escape_halves(value) if isinstance(value, str) else encode(value).decode()


def _arguments(value: Any) -> str:
    return "{}" if value is None or value == "" else _words(value)


def _usage(usage: Any) -> Usage | None:
    """Read a usage whose input counts what the cache read and wrote."""
    fields = usage if isinstance(usage, dict) else getattr(usage, "__dict__", None) or {}
    if not (fields.get("input_tokens") or fields.get("output_tokens")):
        return None
    details = fields.get("input_token_details") or fields.get("input_tokens_details") or {}
    inner = details if isinstance(details, dict) else getattr(details, "__dict__", {})
    read = inner.get("cache_read") or inner.get("cached_tokens") or fields.get("cache_read_tokens")
    written = inner.get("cache_creation") or fields.get("cache_write_tokens")
    return usage_of(fields.get("input_tokens"), fields.get("output_tokens"), read=read, written=written)
