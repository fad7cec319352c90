"""The rules by which OpenAI refuses a Responses request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from windowsill.providers.base import Problem, check_strict, check_tools
from windowsill.providers.openai_chat import ID_PATTERN
from windowsill.providers.openai_responses import (
    CALLS,
    CUSTOM,
    FUNCTION,
    INPUT_PARTS,
    KNOWN_PARTS,
    LOCAL_SHELL,
    NAME_PATTERN,
    OUTPUTS,
    PARTS,
    PATCH,
    SPEC,
    author,
)

FOREIGN_PARTS = frozenset({"text", "image_url", "image", "document", "tool_use", "tool_result", "thinking"})
"""Parts of other formats."""

_id = re.compile(ID_PATTERN)
_name = re.compile(NAME_PATTERN)


def check_body(body: dict[str, Any]) -> Iterator[Problem]:
    """Find what is wrong with a body beside its items."""
    if not isinstance(body.get("model"), str) and not body.get("prompt"):
        yield Problem("model", "model", "model is missing", "name the model")
    if not isinstance(body.get("instructions"), str | None):
        yield Problem("instructions", "instructions", "instructions are not text", "write them as text")
    yield from check_tools(body.get("tools"), _tool)


def _tool(tool: Any, where: str) -> Iterator[Problem]:
    kind = tool.get("type") if isinstance(tool, dict) else None
    if not isinstance(kind, str):
        yield Problem("tool", where, "a tool without a type", "give it a type")
    elif kind in {"function", "custom"} and not _is_name(tool.get("name")):
        yield Problem("tool-name", where, "a tool without a proper name", f"match {_name.pattern}")
    elif kind == "function":
        schema = tool.get("parameters")
        if schema and (not isinstance(schema, dict) or schema.get("type") != "object"):
            yield Problem("tool-schema", where, "parameters are not of type object", 'give them "type": "object"')
        elif schema and tool.get("strict") is True:
            yield from check_strict(schema, where)


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and _name.fullmatch(name) is not None


def check_messages(messages: Any, where: str, body: Mapping[str, Any]) -> Iterator[Problem]:
    """Find what is wrong with the messages; the provider may have more of the conversation than is here."""
    known = any(body.get(field) for field in SPEC.history_fields)
    if isinstance(messages, str) and messages:
        return
    if not isinstance(messages, list) or not messages:
        if not known:
            yield Problem("no-input", where, "no input", "add at least one item")
        return
    calls = _Calls(known=known)
    reasoning: str | None = None
    for index, item in enumerate(messages):
        place = f"{where}[{index}]"
        kind = _kind(item)
        if kind is None:
            yield Problem("item", place, "neither a message nor an item with a type", "give it a type")
            continue
        assistants = item.get("role") == "assistant" if kind == "message" else author(kind) == "assistant"
        if reasoning is not None and not assistants:
            yield _loose(reasoning)
        reasoning = place if kind == "reasoning" else None
        yield from _item(item, kind, place)
        yield from calls.take(item, kind, place)
    if reasoning is not None:
        yield _loose(reasoning)
    yield from calls.end()


def _kind(item: Any) -> str | None:
    if not isinstance(item, dict):
        return None
    kind = item.get("type")
    if kind is None:
        kind = "message" if "role" in item else "item_reference" if "id" in item else None
    return kind if isinstance(kind, str) else None


def _loose(place: str) -> Problem:
    what = "reasoning without the item it led to"
    return Problem("reasoning-is-followed", place, what, "keep both together, or leave it out")


def _item(item: dict[str, Any], kind: str, where: str) -> Iterator[Problem]:
    if kind == "message":
        yield from _message(item, where)
    elif kind == "reasoning" and not isinstance(item.get("summary"), list):
        yield Problem("reasoning", where, "reasoning without a summary", 'give it "summary": []')
    elif kind in {FUNCTION, CUSTOM}:
        if not _is_name(item.get("name")):
            yield Problem("tool-name", where, f"a tool name {item.get('name')!r}", f"match {_name.pattern}")
        field = "arguments" if kind == FUNCTION else "input"
        if not isinstance(item.get(field), str):
            yield Problem("arguments", where, f"{field} is not text", "write it as text")
    elif kind in OUTPUTS:
        yield from _output(item, OUTPUTS[kind], where)


def _message(item: dict[str, Any], where: str) -> Iterator[Problem]:
    role = item.get("role")
    if not isinstance(role, str) or role not in PARTS:
        yield Problem("role", where, f"role {role!r}", f"use one of {', '.join(PARTS)}")
        return
    content = item.get("content")
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        yield Problem("empty-content", where, "a message without content", "give it text")
        return
    for index, part in enumerate(content):
        yield from _part(part, PARTS[role], f"a message of the {role}", f"{where}.content[{index}]")


def _part(part: Any, allowed: frozenset[str], holder: str, where: str) -> Iterator[Problem]:
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str):
        yield Problem("part", where, "a part without a type", "give it a type")
    elif (kind in KNOWN_PARTS and kind not in allowed) or kind in FOREIGN_PARTS:
        remedy = f"use one of {', '.join(sorted(allowed))}"
        yield Problem("parts-by-role", where, f"{kind} in {holder}", remedy)
    elif kind in {"input_text", "output_text"} and not isinstance(part.get("text"), str):
        yield Problem("part", where, "a text part without text", "give it text")
    elif kind == "input_image" and not (part.get("image_url") or part.get("file_id")):
        yield Problem("part", where, "a picture without image_url or file_id", "give it one of them")


def _output(item: dict[str, Any], call: str, where: str) -> Iterator[Problem]:
    output = item.get("output")
    if call not in {FUNCTION, CUSTOM}:
        if output is None and call != PATCH:
            yield Problem("output", where, "an answer without output", "say what came of the call")
        return
    if not isinstance(output, str | list):
        yield Problem("output", where, "output that is neither text nor parts", "write it as text")
        return
    for index, part in enumerate(output if isinstance(output, list) else ()):
        yield from _part(part, INPUT_PARTS, "an output", f"{where}.output[{index}]")


class _Calls:
    """Follows calls and their outputs through a conversation."""

    def __init__(self, *, known: bool) -> None:
        self.known = known
        self.kinds: dict[str, str] = {}
        self.open: dict[str, str] = {}
        self.answered: set[str] = set()

    def take(self, item: dict[str, Any], kind: str, where: str) -> Iterator[Problem]:
        """Follow one more item."""
        if kind in CALLS:
            yield from self._call(item, kind, where)
        elif kind in OUTPUTS:
            yield from self._answer(item, OUTPUTS[kind], where)
        elif kind == "tool_search_call" and isinstance(item.get("call_id"), str):
            # A search that the program runs may be answered as a function is.
            self.kinds[item["call_id"]] = FUNCTION
        elif kind == "item_reference":
            # It may stand for any call.
            self.known = True

    def _call(self, item: dict[str, Any], kind: str, where: str) -> Iterator[Problem]:
        id = item.get("call_id")
        if not isinstance(id, str) or not _id.fullmatch(id):
            yield Problem("call-id", where, f"a call_id {id!r}", "give it 1 to 64 characters")
            return
        if id in self.kinds:
            self.answered.discard(id)
            yield Problem("unique-ids", where, f"call_id {id!r} a second time", "give it its own id")
        self.kinds[id] = kind
        if not item.get("async"):
            self.open[id] = where

    def _answer(self, item: dict[str, Any], call: str, where: str) -> Iterator[Problem]:
        id = item.get("call_id") or (item.get("id") if call == LOCAL_SHELL else None)
        if not isinstance(id, str):
            if not item.get("name"):
                yield Problem("output-has-id", where, "an output without call_id", "name its call")
            return
        if id not in self.kinds:
            if not self.known:
                what = f"an output for {id!r}, which nothing before it calls"
                yield Problem("output-follows-call", where, what, "put it after its call, or leave it out")
        elif self.kinds[id] != call:
            what = f"an answer to a {call} for {id!r}, which is a {self.kinds[id]}"
            yield Problem("output-fits-call", where, what, f"make it a {self.kinds[id]}_output")
        elif id in self.answered:
            yield Problem("one-output", where, f"a second output for call {id!r}", "keep one")
        self.answered.add(id)
        self.open.pop(id, None)

    def end(self) -> Iterator[Problem]:
        """Whatever is still open now stays so."""
        for id, place in self.open.items():
            yield Problem("call-has-output", place, f"call {id!r} has no output", "add its output")
