"""The rules by which OpenAI refuses a Chat Completions request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from windowsill.models import find_known
from windowsill.providers.base import Problem, check_strict, check_tools
from windowsill.providers.openai_chat import NAME_PATTERN

_name = re.compile(NAME_PATTERN)

KINDS = frozenset({"function", "custom"})
"""Tools that the program runs; some servers have kinds of their own, such as a search under another name."""

PARTS = dict.fromkeys(("system", "developer", "tool", "function"), frozenset({"text"})) | {
    "assistant": frozenset({"text", "refusal"}),
    "user": frozenset({"text", "image_url", "input_audio", "file"}),
}
KNOWN_PARTS = frozenset().union(*PARTS.values())

FOREIGN_PARTS = frozenset(
    {"tool_use", "tool_result", "redacted_thinking", "input_text", "output_text", "input_image", "input_file"}
)
"""Parts of other providers' formats, which no server of a chat takes; what is in neither set may be a server's own."""


def check_body(body: dict[str, Any]) -> Iterator[Problem]:
    """Find what is wrong with a body beside its messages."""
    if not isinstance(body.get("model"), str):
        yield Problem("model", "model", "model is missing", "name the model")
    check = partial(_tool, strict=_is_openais(body.get("model")))
    yield from check_tools(body.get("tools"), check, _inner)


def _is_openais(model: Any) -> bool:
    known = find_known(model) if isinstance(model, str) else None
    return known is not None and known.provider == "openai"


def _inner(tool: Any) -> dict[str, Any] | None:
    """Return the function or custom tool of a definition; Mistral's need no type."""
    inner = tool.get(tool.get("type") or "function") if isinstance(tool, dict) else None
    return inner if isinstance(inner, dict) else None


def _tool(tool: Any, where: str, *, strict: bool) -> Iterator[Problem]:
    kind = tool.get("type") if isinstance(tool, dict) else None
    if isinstance(kind, str) and kind not in KINDS:
        return  # a tool that the server runs itself
    if kind is None and strict:
        yield Problem("tool-type", where, "a tool without a type", 'give it "type": "function"')
    inner = _inner(tool)
    if not isinstance(inner, dict) or not _name.fullmatch(str(inner.get("name", ""))):
        yield Problem("tool-name", where, "a tool without a proper name", f"match {_name.pattern}")
        return
    schema = inner.get("parameters", {"type": "object"})
    if not isinstance(schema, dict) or (schema and schema.get("type") != "object"):
        yield Problem("tool-schema", where, "parameters are not of type object", 'give them "type": "object"')
    elif inner.get("strict") is True:
        yield from check_strict(schema, where)


def check_messages(messages: Any, where: str, body: Mapping[str, Any]) -> Iterator[Problem]:
    """Find what is wrong with the messages."""
    del body
    if not isinstance(messages, list) or not messages:
        yield Problem("no-messages", where, "no messages", "add at least one message")
        return
    open_calls: dict[str, str] = {}
    answered: set[str] = set()
    for index, message in enumerate(messages):
        place = f"{where}[{index}]"
        role = message.get("role") if isinstance(message, dict) else None
        if role not in PARTS:
            yield Problem("role", place, f"role {role!r}", f"use one of {', '.join(PARTS)}")
            continue
        yield from _content(message, role, place)
        if role in {"tool", "function"}:
            yield from _answer(message, role, place, open_calls, answered)
            continue
        yield from _unanswered(open_calls)
        open_calls, answered = {}, set()
        if role == "assistant":
            yield from _calls(message, place, open_calls)
    yield from _unanswered(open_calls)


def _unanswered(open_calls: dict[str, str]) -> Iterator[Problem]:
    for id, place in open_calls.items():
        yield Problem("call-has-result", place, f"call {id!r} has no tool message right after it", "add its result")


def _answer(
    message: dict[str, Any], role: str, where: str, open_calls: dict[str, str], answered: set[str]
) -> Iterator[Problem]:
    field = "tool_call_id" if role == "tool" else "name"
    id = message.get(field)
    if not isinstance(id, str):
        yield Problem("result-has-id", where, f"a {role} message without {field}", f"give it {field}")
    elif id in answered:
        yield Problem("one-result", where, f"a second result for call {id!r}", "keep one")
    elif id in open_calls:
        answered.add(id)
        del open_calls[id]
    elif role == "tool":
        what = f"a result for {id!r}, which the assistant message before does not call"
        yield Problem("tool-follows-call", where, what, "put it right after its call, or leave it out")


def _calls(message: dict[str, Any], where: str, open_calls: dict[str, str]) -> Iterator[Problem]:
    calls = message.get("tool_calls")
    if calls is not None and not (isinstance(calls, list) and calls):
        yield Problem("tool-calls", where, "tool_calls is no list of calls", "give a list, or leave it out")
        return
    for index, call in enumerate(calls or ()):
        place = f"{where}.tool_calls[{index}]"
        kind = call.get("type", "function") if isinstance(call, dict) else None
        inner = call.get(kind if kind in KINDS else "function") if isinstance(call, dict) else None
        if not isinstance(inner, dict) or not isinstance(call.get("id"), str):
            yield Problem("tool-call", place, "a call without id or function", "give it both")
            continue
        if kind in KINDS and not _name.fullmatch(str(inner.get("name", ""))):
            yield Problem("tool-name", place, f"a tool name {inner.get('name')!r}", f"match {_name.pattern}")
        if kind != "custom" and not isinstance(inner.get("arguments"), str):
            yield Problem("arguments", place, "arguments are not text", "write the object as JSON text")
        if call["id"] in open_calls:
            yield Problem("unique-ids", place, f"call id {call['id']!r} a second time", "give it its own id")
        open_calls[call["id"]] = place
    legacy = message.get("function_call")
    if isinstance(legacy, dict) and isinstance(legacy.get("name"), str):
        open_calls[legacy["name"]] = f"{where}.function_call"


def _content(message: dict[str, Any], role: str, where: str) -> Iterator[Problem]:
    content = message.get("content")
    if isinstance(content, str):
        return
    if content is None:
        others = ("tool_calls", "function_call", "refusal", "audio")
        if role != "function" and not (role == "assistant" and any(message.get(field) for field in others)):
            yield Problem("empty-content", where, "a message without content", "give it text")
        return
    if not isinstance(content, list) or not content:
        yield Problem("empty-content", where, "neither text nor parts", "give it text")
        return
    for index, part in enumerate(content):
        place = f"{where}.content[{index}]"
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str):
            yield Problem("part", place, "a part without a type", "give it a type")
        elif (kind in KNOWN_PARTS and kind not in PARTS[role]) or kind in FOREIGN_PARTS:
            yield Problem("parts-by-role", place, f"the part {kind} in the {role}'s message", "move or remove it")
        elif kind == "text" and not isinstance(part.get("text"), str):
            yield Problem("part", place, "a text part without text", "give it text")
