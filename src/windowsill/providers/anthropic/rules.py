"""The rules by which Anthropic refuses a request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from windowsill.providers.anthropic import ID_PATTERN, IMAGE_TYPES, NAME_PATTERN
from windowsill.providers.base import Problem, check_tools

MAX_CACHE_MARKERS = 4

_id = re.compile(ID_PATTERN)
_name = re.compile(NAME_PATTERN)

USER_ONLY = frozenset({"tool_result", "image", "document", "search_result"})
THOUGHTS = frozenset({"thinking", "redacted_thinking"})
FOREIGN = frozenset({"image_url", "input_text", "output_text", "input_image", "input_file", "input_audio", "refusal"})
"""Blocks of OpenAI's formats."""

ASSISTANT_ONLY = frozenset({"tool_use", "thinking", "redacted_thinking", "server_tool_use"})


def check_body(body: dict[str, Any]) -> Iterator[Problem]:
    """Find what is wrong with a body beside its messages."""
    limit = body.get("max_tokens")
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        yield Problem("max-tokens", "max_tokens", "max_tokens is missing", "say how long the reply may be")
    if not isinstance(body.get("model"), str):
        yield Problem("model", "model", "model is missing", "name the model")
    system = body.get("system")
    if isinstance(system, list):
        for index, block in enumerate(system):
            yield from _text(block, f"system[{index}]")
    yield from check_tools(body.get("tools"), _tool)
    if (markers := _markers(body)) > MAX_CACHE_MARKERS:
        what = f"{markers} cache_control markers, {MAX_CACHE_MARKERS} are allowed"
        yield Problem("cache-markers", "", what, "remove the oldest")


def _markers(value: Any) -> int:
    """Count the markers in the places that take one (not inside arguments or schemas, which are data)."""
    if isinstance(value, list):
        return sum(map(_markers, value))
    if not isinstance(value, dict):
        return 0
    inside = sum(_markers(value.get(key)) for key in ("system", "tools", "messages", "content"))
    return inside + (value.get("cache_control") is not None)


def _tool(tool: Any, where: str) -> Iterator[Problem]:
    fields = tool if isinstance(tool, dict) else {}
    # Sets of tools that the provider gets elsewhere have a type and no name.
    own = fields.get("type", "custom") in {"custom", None}
    if (own or "name" in fields) and not _name.fullmatch(str(fields.get("name", ""))):
        yield Problem("tool-name", where, "a tool without a proper name", f"match {_name.pattern}")
        return
    if not own:
        return
    schema = tool.get("input_schema")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        yield Problem("tool-schema", where, "input_schema is not of type object", 'give it "type": "object"')


def check_messages(messages: Any, where: str, body: Mapping[str, Any]) -> Iterator[Problem]:
    """Find what is wrong with the messages."""
    if not isinstance(messages, list) or not messages:
        yield Problem("no-messages", where, "no messages", "add at least one message of the user")
        return
    calls = _Calls()
    begun = False
    for index, message in enumerate(messages):
        place = f"{where}[{index}]"
        role = message.get("role") if isinstance(message, dict) else None
        if role not in {"user", "assistant", "system"}:
            yield Problem("role", place, f"role {role!r}", "use user or assistant")
            continue
        blocks = _content(message.get("content"))
        if not begun and role == "assistant" and not (blocks and blocks[0].get("type") == "compaction"):
            what = "the first message is the assistant's"
            yield Problem("first-message-is-user", place, what, "put a user message first")
        begun = begun or role != "system"
        yield from _contents(message.get("content"), role, place)
        yield from calls.take(role, blocks, place)
    yield from calls.end()
    yield from _last(messages, where)
    if found := lacks_thinking(messages, body.get("thinking")):
        what = "thinking is on, and the turn that calls tools does not begin with thinking"
        remedy = "send its thinking back as it came, or send the request without `thinking`"
        yield Problem("thinking-begins-turn", f"{where}[{found[0]}]", what, remedy)


def _last(messages: list[Any], where: str) -> Iterator[Problem]:
    """Find white space at the end of words that the model is to go on from."""
    last = messages[-1] if isinstance(messages[-1], dict) else {}
    blocks = _content(last.get("content"))
    text = blocks[-1].get("text") if blocks and blocks[-1].get("type") == "text" else None
    if last.get("role") == "assistant" and isinstance(text, str) and text != text.rstrip():
        what = "the last message, which the model goes on from, ends with white space"
        yield Problem("trailing-space", f"{where}[{len(messages) - 1}]", what, "take the white space off")


def thinks(thinking: Any) -> bool:
    """Tell whether a request has thinking on in the form that asks for it back."""
    return isinstance(thinking, dict) and thinking.get("type") == "enabled"


def lacks_thinking(messages: list[Any], thinking: Any) -> tuple[int, int] | None:
    """Find the block that the running turn begins with, where that has to be thinking and is not.

    A loop of calls and results is one turn: only its beginning has to be thinking.
    """
    if not thinks(thinking):
        return None
    begins: int | None = None
    calls = False
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index] if isinstance(messages[index], dict) else {}
        kinds = [block.get("type") for block in _content(message.get("content"))]
        if message.get("role") == "user" and "tool_result" not in kinds:
            break
        if message.get("role") == "assistant":
            begins = index
            calls = calls or "tool_use" in kinds
    if begins is None or not calls:
        return None
    kinds = [block.get("type") for block in _content(messages[begins].get("content"))]
    first = next((number for number, kind in enumerate(kinds) if kind != "compaction"), len(kinds))
    return None if first < len(kinds) and kinds[first] in THOUGHTS else (begins, first)


def _content(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _contents(content: Any, role: str, where: str) -> Iterator[Problem]:
    if isinstance(content, str):
        yield from _text({"text": content}, where)
    elif not isinstance(content, list) or not content:
        yield Problem("empty-content", where, "a message without content", "fill it or leave it out")
    else:
        for index, block in enumerate(content):
            yield from _block(block, role, f"{where}.content[{index}]")
        last = content[-1]
        if role == "assistant" and isinstance(last, dict) and last.get("type") in {"thinking", "redacted_thinking"}:
            yield Problem("thinking-is-not-last", where, "the last block is thinking", "put text or a call after it")


def _block(block: Any, role: str, where: str) -> Iterator[Problem]:
    kind = block.get("type") if isinstance(block, dict) else None
    if not isinstance(kind, str):
        yield Problem("block", where, "a block without a type", "give it a type")
        return
    if (kind in USER_ONLY and role != "user") or (kind in ASSISTANT_ONLY and role != "assistant"):
        yield Problem("blocks-by-role", where, f"the block {kind} in the {role}'s message", "move or remove it")
    if kind == "text":
        yield from _text(block, where)
    elif kind in FOREIGN:
        yield Problem("block", where, f"a part of type {kind}, which is OpenAI's", "convert or remove it")
    elif kind == "thinking" and not (isinstance(block.get("signature"), str) and block["signature"]):
        yield Problem("thinking-has-signature", where, "thinking without its signature", "leave it out")
    elif kind == "image":
        yield from _image(block, where)
    elif kind == "tool_use":
        yield from _tool_use(block, where)
    elif kind == "tool_result":
        yield from _tool_result(block, where)


def _text(block: Any, where: str) -> Iterator[Problem]:
    text = block.get("text") if isinstance(block, dict) else None
    if not isinstance(text, str) or not text:
        yield Problem("empty-text", where, "empty text", "leave it out")
    elif text.isspace():
        yield Problem("blank-text", where, "text of nothing but white space", "leave it out")


def _image(block: dict[str, Any], where: str) -> Iterator[Problem]:
    source = block.get("source")
    if not isinstance(source, dict):
        yield Problem("image-source", where, "an image without a source", "give it a source")
    elif source.get("type") == "base64" and source.get("media_type") not in IMAGE_TYPES:
        what = f"an image of type {source.get('media_type')!r}"
        yield Problem("image-type", where, what, "use JPEG, PNG, GIF or WebP")


def _tool_use(block: dict[str, Any], where: str) -> Iterator[Problem]:
    if not _id.fullmatch(str(block.get("id", ""))):
        yield Problem("tool-id", where, f"a call id {block.get('id')!r}", f"match {ID_PATTERN}")
    if not _name.fullmatch(str(block.get("name", ""))):
        yield Problem("tool-name", where, f"a tool name {block.get('name')!r}", f"match {_name.pattern}")
    if not isinstance(block.get("input"), dict):
        yield Problem("tool-input", where, "input is not an object", "give an object")


def _tool_result(block: dict[str, Any], where: str) -> Iterator[Problem]:
    content = block.get("content")
    if isinstance(content, list):
        for index, each in enumerate(content):
            if isinstance(each, dict) and each.get("type") == "text":
                yield from _text(each, f"{where}.content[{index}]")
            elif isinstance(each, dict) and each.get("type") == "image":
                yield from _image(each, f"{where}.content[{index}]")
    if block.get("is_error") and not content:
        yield Problem("error-has-content", where, "an error result without content", "say what went wrong")


class _Calls:
    """Follows calls and results through a conversation; messages of one role in a row count as one."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.open: dict[str, str] = {}
        self.answered: set[str] = set()
        self.role = ""
        self.others = False

    def take(self, role: str, blocks: list[dict[str, Any]], where: str) -> Iterator[Problem]:
        """Follow one more message."""
        if role == "assistant":
            if self.role != "assistant":
                yield from self.end()
                self.answered = set()
            yield from self._calls(blocks, where)
        elif role == "user":
            if self.role != "user":
                self.others = False
            yield from self._results(blocks, where)
        elif self.open:
            self.others = True
        self.role = role if role != "system" else self.role

    def _calls(self, blocks: list[dict[str, Any]], where: str) -> Iterator[Problem]:
        for index, block in enumerate(blocks):
            if block.get("type") == "tool_use":
                place = f"{where}.content[{index}]"
                id = str(block.get("id"))
                if id in self.seen:
                    yield Problem("unique-ids", place, f"call id {id!r} a second time", "give it its own id")
                self.seen.add(id)
                self.open[id] = place

    def _results(self, blocks: list[dict[str, Any]], where: str) -> Iterator[Problem]:
        for index, block in enumerate(blocks):
            if block.get("type") != "tool_result":
                self.others = True
                continue
            place = f"{where}.content[{index}]"
            id = str(block.get("tool_use_id"))
            if id in self.answered:
                yield Problem("one-result", place, f"a second result for call {id!r}", "keep one")
            elif id not in self.open:
                what = f"a result for {id!r}, which the assistant message before does not call"
                remedy = "put it right after its call, or leave it out"
                yield Problem("tool-result-follows-call", place, what, remedy)
            elif self.others:
                yield Problem("results-first", place, "a result after other content", "put results first")
            self.open.pop(id, None)
            self.answered.add(id)

    def end(self) -> Iterator[Problem]:
        """Report the calls that are still open."""
        for id, place in self.open.items():
            yield Problem("call-has-result", place, f"call {id!r} has no result in the next message", "add its result")
        self.open = {}
