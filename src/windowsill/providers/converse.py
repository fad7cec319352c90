"""Writes requests for Amazon Bedrock's Converse, as boto3 takes them, from requests in Anthropic's form.

Bedrock's rules for turns, calls and results are Anthropic's, but it refuses messages of one role in a row; the names
differ, and bytes stand as bytes.
"""

from __future__ import annotations

import base64
import itertools
import re
from collections.abc import Iterator
from typing import Any

from windowsill.providers.wire import encode

NAME = "converse"

_SETTINGS = {
    "max_tokens": "maxTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "stop_sequences": "stopSequences",
}
_NOT_SENT = frozenset(
    {"model", "messages", "system", "tools", "tool_choice", "stream", "metadata", "cache_control", *_SETTINGS}
)
_CACHE_POINT = {"cachePoint": {"type": "default"}}
_CHOICES = {"auto": "auto", "any": "any"}
_NAME = re.compile(r"[^\w\s()\[\]-]+", re.ASCII)
"""Characters that the name of a document may not have."""


def converse_request(request: dict[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of `client.converse`; fields that only the model knows go along as such."""
    written: dict[str, Any] = {"modelId": request["model"]} if "model" in request else {}
    # Unlike Anthropic, Bedrock refuses two messages of one role in a row.
    turns = itertools.groupby(request["messages"], key=lambda message: message["role"])
    written["messages"] = [
        {"role": role, "content": [block for message in turn for block in _blocks(message["content"])]}
        for role, turn in turns
    ]
    if "cache_control" in request and written["messages"]:
        # The provider would put the mark at the end itself.
        written["messages"][-1]["content"].append(_CACHE_POINT)
    if system := list(_blocks(request.get("system") or [])):
        written["system"] = system
    if tools := request.get("tools"):
        choice = request.get("tool_choice") or {}
        kind, name = _CHOICES.get(choice.get("type", "")), choice.get("name")
        chosen = {"toolChoice": {kind: {}} if kind else {"tool": {"name": name}}} if kind or name else {}
        written["toolConfig"] = {"tools": [block for tool in tools for block in _tool(tool)], **chosen}
    if settings := {name: request[field] for field, name in _SETTINGS.items() if field in request}:
        written["inferenceConfig"] = settings
    if rest := {field: value for field, value in request.items() if field not in _NOT_SENT}:
        written["additionalModelRequestFields"] = rest
    return written


def _tool(tool: dict[str, Any]) -> Iterator[dict[str, Any]]:
    described = {"description": tool["description"]} if tool.get("description") else {}
    yield {"toolSpec": {"name": tool["name"], **described, "inputSchema": {"json": tool.get("input_schema") or {}}}}
    if "cache_control" in tool:
        yield _CACHE_POINT


def _blocks(content: str | list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    if isinstance(content, str):
        yield {"text": content}
        return
    for block in content:
        yield _block(block)
        if "cache_control" in block:
            yield _CACHE_POINT


def _block(block: dict[str, Any]) -> dict[str, Any]:  # noqa: PLR0911 - one for each kind of block
    """Return a block by its name; what Converse has no block for is told as text."""
    match block:
        case {"type": "text", "text": text}:
            return {"text": text}
        case {"type": "tool_use", "id": id, "name": name, "input": given}:
            return {"toolUse": {"toolUseId": id, "name": name, "input": given}}
        case {"type": "tool_result", "tool_use_id": id, **rest}:
            inner = list(_blocks(rest.get("content") or "(no output)"))
            failed = {"status": "error"} if rest.get("is_error") else {}
            return {"toolResult": {"toolUseId": id, "content": inner, **failed}}
        case {"type": "thinking", "thinking": text, **rest}:
            signed = {"signature": rest["signature"]} if rest.get("signature") else {}
            return {"reasoningContent": {"reasoningText": {"text": text, **signed}}}
        case {"type": "redacted_thinking", "data": data}:
            return {"reasoningContent": {"redactedContent": base64.b64decode(data)}}
        case {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}:
            return {"image": {"format": kind.partition("/")[2], "source": {"bytes": base64.b64decode(data)}}}
        case {"type": "document", "source": {"type": "base64", "data": data}, **rest}:
            name = _NAME.sub(" ", rest.get("title") or "document").strip() or "document"
            return {"document": {"format": "pdf", "name": name, "source": {"bytes": base64.b64decode(data)}}}
        case {"type": "document", "source": {"type": "text", "data": text}}:
            return {"text": text}
    return {"text": encode({key: value for key, value in block.items() if key != "cache_control"}).decode()}
