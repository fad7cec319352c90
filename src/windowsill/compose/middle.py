"""Cuts one block in the middle: its beginning and its end stay, a line between them says how much was left out."""

from __future__ import annotations

from typing import Any

import msgspec

from windowsill.messages import Block, Document, Image, Message, Reasoning, Text, ToolResult, ToolUse
from windowsill.text import keep_ends
from windowsill.tokens import Scale

TRIES = 8
"""Each try comes closer to the size wanted; text is so uneven that one seldom suffices."""

SAFETY = 0.95
"""Aims a little below the size wanted, because head and tail may be denser than the whole."""

SHORTEST = 16
"""Tokens below which nothing useful is left of a text: a note of what it was stands there instead."""

SMALLEST_STRING = 120
"""Characters below which an argument of a call is left alone: ids, paths and flags stay whole."""

DEEPEST = 50
"""How deep arguments are looked into: what is nested further is left as it is."""


def cut_block(block: Block, most: int, scale: Scale) -> Block | None:
    """The block within `most` tokens, or `None` when it cannot be made smaller."""
    # Blocks are weighed as messages of their own: what frames them is not text that could be cut.
    words = max(1, most - weigh(Text(text=""), scale))
    match block:
        case Text():
            shorter: Block = Text(text=cut_text(block.text, words, scale))
        case ToolResult():
            shorter = _cut_result(block, most, scale)
        case ToolUse():
            shorter = _cut_call(block, most, scale)
        case Document() if block.text:
            shorter = msgspec.structs.replace(block, raw=None, text=cut_text(block.text, words, scale))
        case _:
            shorter = Text(text=note(block))
    return shorter if weigh(shorter, scale) < weigh(block, scale) else None


def can_be_cut(block: Block) -> bool:
    """Whether a block may be shown in part; the others are there or not."""
    return isinstance(block, (Text, ToolResult, ToolUse)) or (isinstance(block, Document) and bool(block.text))


def weigh(block: Block, scale: Scale) -> int:
    """The tokens of one block."""
    return scale.tokens(scale.weigh(Message(role="user", blocks=(block,))))


def note(block: Block) -> str:
    """A line that says what stood here."""
    match block:
        case Image():
            return f"[image omitted: {block.media_type or 'by address'}{_size(block.data)}]"
        case Document():
            return f"[document omitted: {block.title or block.media_type or 'untitled'}{_size(block.data)}]"
        case Reasoning():
            return "[reasoning omitted]"
        case _:
            return f"[{len(block.raw or b''):,} bytes of {getattr(block, 'type', '') or 'content'} omitted]"


def _size(data: str | None) -> str:
    return f", {len(data) * 3 // 4:,} bytes" if data else ""


def cut_text(text: str, most: int, scale: Scale) -> str:
    """A text within `most` tokens."""
    tokens = scale.tokens(scale.weigh_text(text))
    if tokens <= most:
        return text
    keep = int(len(text) * most / tokens * SAFETY)
    for _ in range(TRIES):
        shorter = keep_ends(text, keep)
        size = scale.tokens(scale.weigh_text(shorter))
        if size <= most:
            return shorter
        keep = int(keep * most / size * SAFETY) - 1
        if keep <= 0:
            break
    return f"[{len(text):,} characters omitted]" if most >= SHORTEST else "[...]"


def _cut_result(block: ToolResult, most: int, scale: Scale) -> ToolResult:
    content = list(block.content)
    # The largest pieces give way first, so that a short exit status beside a long log survives.
    for index in sorted(range(len(content)), key=lambda each: -weigh(content[each], scale)):
        excess = weigh(_with(block, content), scale) - most
        if excess <= 0:
            break
        room = max(1, weigh(content[index], scale) - excess)
        content[index] = cut_block(content[index], room, scale) or content[index]
    return _with(block, content)


def _with(block: ToolResult, content: list[Block]) -> ToolResult:
    return msgspec.structs.replace(block, raw=None, content=tuple(content))


def _cut_call(block: ToolUse, most: int, scale: Scale) -> ToolUse:
    share = 1.0
    shorter = block
    for _ in range(TRIES):
        size = weigh(shorter, scale)
        if size <= most:
            return shorter
        share *= most / size * SAFETY
        shorter = _call(block, {key: _cut_value(value, share) for key, value in block.input.items()})
    return (
        shorter if weigh(shorter, scale) <= most else _call(block, {"_omitted": f"{len(block.arguments):,} characters"})
    )


def _call(block: ToolUse, input: dict[str, Any]) -> ToolUse:
    return msgspec.structs.replace(block, arguments=msgspec.json.encode(input).decode(), raw=None)


def _cut_value(value: Any, share: float) -> Any:
    """An argument within a share of its length: strings are cut wherever they stand, anything else as JSON text."""
    if isinstance(value, str):
        return _cut_string(value, share)
    try:
        text = msgspec.json.encode(value).decode()
    except RecursionError:
        return "[omitted: nested too deeply]"
    limit = max(SMALLEST_STRING, int(len(text) * share))
    if len(text) <= limit:
        return value
    smaller = _cut_strings(value, share)
    return smaller if len(msgspec.json.encode(smaller)) <= limit else keep_ends(text, limit)


def _cut_string(text: str, share: float) -> str:
    return keep_ends(text, max(SMALLEST_STRING, int(len(text) * share))) if len(text) > SMALLEST_STRING else text


def _cut_strings(value: Any, share: float, depth: int = 0) -> Any:
    if isinstance(value, str):
        return _cut_string(value, share)
    if depth >= DEEPEST:
        return value
    if isinstance(value, dict):
        return {key: _cut_strings(inner, share, depth + 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [_cut_strings(inner, share, depth + 1) for inner in value]
    return value
