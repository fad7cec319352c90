"""The rules of four providers, written from their public documentation and apart from the ones the product has.

Each check yields what a provider would answer with status 400. Parts that no provider knows are passed over.
"""

# ruff: noqa: C901, PLR0912 - the rules of a provider are read best in one piece, in the order of its documentation

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

PICTURES = {"image/jpeg", "image/png", "image/gif", "image/webp"}
MOST_MARKS = 4


def problems(format: str, body: dict[str, Any]) -> list[str]:
    """Return what the provider of this format would refuse in a request."""
    return list({"anthropic": anthropic, "openai": openai, "responses": responses, "gemini": gemini}[format](body))


def words(format: str, body: dict[str, Any]) -> str:
    """Return all that the model reads as text: a lower bound of the request, without frames, ids and media."""
    found: list[str] = []

    def collect(value: Any, *, everything: bool = False) -> None:
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, list):
            for each in value:
                collect(each, everything=everything)
        elif isinstance(value, dict):
            for key, each in value.items():
                whole = everything or (key in ("input", "args", "response") and not isinstance(each, str))
                if whole and everything:
                    found.append(key)
                if whole or key in READ:
                    collect(each, everything=whole)

    collect(body.get({"anthropic": "messages", "openai": "messages", "gemini": "contents"}.get(format, "input"), []))
    return "\n".join(found)


READ = {"text", "content", "parts", "name", "arguments", "output", "tool_calls", "function"} | {
    "functionCall",
    "functionResponse",
}
"""Fields whose words a model reads, in any of the formats."""


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_base64(text: Any) -> bool:
    try:
        return isinstance(text, str) and bool(base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True))
    except (binascii.Error, ValueError):
        return False


def _is_named(pattern: str, value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(pattern, value) is not None


# Anthropic


def anthropic(body: dict[str, Any]) -> Iterator[str]:
    messages = [message for message in body.get("messages") or [] if message.get("role") != "system"]
    if not messages:
        yield "no messages"
        return
    if str(body).count("'cache_control'") > MOST_MARKS:
        yield "too many cache marks"
    system = body.get("system")
    if isinstance(system, list) and not all(_is_text(block.get("text")) for block in system):
        yield "a blank block of the system prompt"
    if messages[0]["role"] != "user":
        yield "the first message is not the user's"
    # Messages of one role in a row are one turn.
    turns: list[tuple[str, list[Any]]] = []
    for place, message in enumerate(messages):
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks:
            yield f"empty content at {place}"
            continue
        for block in blocks:
            yield from (f"{rule} at {place}" for rule in _anthropic_block(message["role"], block))
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(blocks)
        else:
            turns.append((message["role"], list(blocks)))
    pending: list[Any] = []
    seen: set[Any] = set()
    for place, (role, blocks) in enumerate(turns):
        if role == "assistant":
            pending = [block.get("id") for block in blocks if block.get("type") == "tool_use"]
            if len(pending) != len({*pending} - seen):
                yield f"a call id used twice in turn {place}"
            seen.update(pending)
            if blocks[-1].get("type") in ("thinking", "redacted_thinking"):
                yield f"reasoning at the end of turn {place}"
            continue
        results = [block.get("type") == "tool_result" for block in blocks]
        answered = [block.get("tool_use_id") for block in blocks if block.get("type") == "tool_result"]
        if sorted(map(str, answered)) != sorted(map(str, pending)):
            yield f"results in turn {place} are not those of the calls before"
        if results != sorted(results, reverse=True):
            yield f"something before results in turn {place}"
        pending = []
    if pending:
        yield "calls without results at the end"


def _anthropic_block(role: str, block: dict[str, Any]) -> Iterator[str]:
    kind = block.get("type")
    allowed = {"assistant": ("image", "document", "tool_result"), "user": ("tool_use", "thinking", "redacted_thinking")}
    if kind in allowed[role]:
        yield f"{kind} of {role}"
    if kind == "text" and not _is_text(block.get("text")):
        yield "blank text"
    elif kind == "image":
        source = block.get("source") or {}
        if source.get("type") == "base64" and not (
            source.get("media_type") in PICTURES and _is_base64(source.get("data"))
        ):
            yield "picture that cannot be read"
    elif kind == "tool_use":
        if not _is_named(r"[a-zA-Z0-9_-]+", block.get("id")):
            yield "call id"
        if not _is_named(r"[a-zA-Z0-9_-]{1,128}", block.get("name")):
            yield "tool name"
        if not isinstance(block.get("input"), dict):
            yield "arguments"
    elif kind == "thinking" and not block.get("signature"):
        yield "reasoning without a signature"
    elif kind == "tool_result":
        content = block.get("content")
        if block.get("is_error") and not content:
            yield "an error without words"
        for part in content if isinstance(content, list) else []:
            yield from _anthropic_block("user", part)


# The chat completions of OpenAI


def openai(body: dict[str, Any]) -> Iterator[str]:
    messages = body.get("messages")
    if not messages:
        yield "no messages"
        return
    pending: list[str] = []
    for place, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if pending and role != "tool":
            yield f"calls without results before {place}"
            pending = []
        if role == "tool":
            if message.get("tool_call_id") in pending:
                pending.remove(message["tool_call_id"])
            else:
                yield f"a result without its call at {place}"
        elif role == "assistant":
            calls = message.get("tool_calls")
            if calls == []:
                yield f"an empty list of calls at {place}"
            ids = [call.get("id") for call in calls or ()]
            yield from (f"{rule} at {place}" for rule in _openai_calls(calls or [], ids))
            pending = list(ids)
            if content is None and not calls and not any(message.get(key) for key in ("refusal", "function_call")):
                yield f"an answer without anything at {place}"
        elif role not in ("user", "system", "developer", "function"):
            yield f"role {role} at {place}"
        yield from (f"{rule} at {place}" for rule in _openai_content(role, content))
        name = message.get("name")
        if name is not None and role != "function" and not _is_named(r"[^\s<|\\/>]{1,64}", name):
            yield f"name at {place}"
    if pending:
        yield "calls without results at the end"


def _openai_calls(calls: list[Any], ids: list[Any]) -> Iterator[str]:
    if any(count > 1 for count in Counter(map(str, ids)).values()):
        yield "call id used twice"
    if len(calls) > 128:
        yield "too many calls"
    for call in calls:
        function = call.get("function") or {}
        if not _is_named(r"(?s).{1,64}", call.get("id")):
            yield "call id"
        if call.get("type") == "function" and not _is_named(r"[a-zA-Z0-9_-]{1,64}", function.get("name")):
            yield "tool name"
        if call.get("type") == "function" and not isinstance(function.get("arguments"), str):
            yield "arguments"


def _openai_content(role: str, content: Any) -> Iterator[str]:
    if content is None and role not in {"assistant", "function"}:
        yield "no content"
    if not isinstance(content, list):
        return
    if not content:
        yield "an empty list of parts"
    kinds = {"user": {"text", "image_url", "input_audio", "file"}, "assistant": {"text", "refusal"}}.get(role, {"text"})
    for part in content:
        if part.get("type") in ("tool_use", "tool_result", "image") or (role == "tool" and part.get("type") != "text"):
            yield f"part {part.get('type')} of {role}"
        if part.get("type") == "text" and not isinstance(part.get("text"), str):
            yield "text that is none"
        if part.get("type") == "image_url" and "image_url" not in kinds:
            yield f"picture of {role}"


# The items of OpenAI's responses


def responses(body: dict[str, Any]) -> Iterator[str]:
    items = body.get("input")
    if isinstance(items, str):
        return
    if not items:
        yield "no input"
        return
    calls, outputs = set(), set()
    for place, item in enumerate(items):
        kind = item.get("type", "message" if "role" in item else None)
        if kind is None:
            yield f"an item without a type at {place}"
        elif kind == "message":
            yield from (f"{rule} at {place}" for rule in _responses_message(item))
        elif kind == "function_call":
            id = item.get("call_id")
            if not _is_named(r"(?s).{1,64}", id):
                yield f"call id at {place}"
            if id in calls:
                yield f"call id used twice at {place}"
            calls.add(id)
            if not _is_named(r"[a-zA-Z0-9_-]{1,128}", item.get("name")):
                yield f"tool name at {place}"
            if not isinstance(item.get("arguments"), str):
                yield f"arguments at {place}"
        elif kind == "function_call_output":
            if item.get("call_id") not in calls or item.get("call_id") in outputs:
                yield f"an output without its call at {place}"
            outputs.add(item.get("call_id"))
            if not isinstance(item.get("output"), (str, list)):
                yield f"output at {place}"
        elif kind == "reasoning":
            after = items[place + 1] if place + 1 < len(items) else {"role": "user"}
            if after.get("type") == "function_call_output" or after.get("role") in ("user", "system", "developer"):
                yield f"reasoning without what it led to at {place}"
    if calls - outputs:
        yield "calls without outputs"


def _responses_message(item: dict[str, Any]) -> Iterator[str]:
    role, content = item.get("role"), item.get("content")
    if role not in ("user", "assistant", "system", "developer"):
        yield f"role {role}"
    if not isinstance(content, (str, list)):
        yield "content"
    if content == []:
        yield "empty content"
    kinds = ("output_text", "refusal") if role == "assistant" else ("input_text", "input_image", "input_file")
    others = {"output_text", "refusal", "input_text", "input_image", "input_file", "text", "tool_result"} - {*kinds}
    for part in content if isinstance(content, list) else []:
        if part.get("type") in others:
            yield f"part {part.get('type')} of {role}"


# Gemini

_FUNCTION = r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}"
_DATA = ("text", "inlineData", "functionCall", "functionResponse", "fileData", "executableCode", "codeExecutionResult")


def gemini(body: dict[str, Any]) -> Iterator[str]:
    contents = body.get("contents")
    if not contents:
        yield "no contents"
        return
    if contents[0].get("role") == "model":
        yield "the first content is not the user's"
    pending: list[str] = []
    last = ""
    for place, content in enumerate(contents):
        role, parts = content.get("role", "user"), content.get("parts")
        if not parts:
            yield f"no parts at {place}"
            continue
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
        if sorted(str(answer.get("name")) for answer in answers) != sorted(pending):
            yield f"responses are not those of the calls before {place}"
        if (calls and role != "model") or (answers and role == "model"):
            yield f"calls or responses of {role} at {place}"
        if calls and last == "model":
            yield f"calls behind the model's own content at {place}"
        for inner in (*calls, *answers):
            if not _is_named(_FUNCTION, inner.get("name")):
                yield f"function name at {place}"
        if any(not isinstance(call.get("args", {}), dict) for call in calls):
            yield f"arguments at {place}"
        if any(not isinstance(answer.get("response"), dict) for answer in answers):
            yield f"response at {place}"
        for part in parts:
            if "hologram" not in part and sum(key in part for key in _DATA) != 1:
                yield f"a part without data at {place}"
            if "inlineData" in part and not _is_base64(part["inlineData"].get("data")):
                yield f"picture that cannot be read at {place}"
        pending = [str(call.get("name")) for call in calls]
        last = role
    if pending:
        yield "calls without responses at the end"
