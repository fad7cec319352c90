"""Cuts one block in the middle: its beginning and its end stay, a line between them says how much was left out."""

from __future__ import annotations

from typing import Any

import msgspec

from windowsill.messages import Block, Document, Image, Message, Reasoning, Text, ToolResult, ToolUse
from windowsill.tokens import Scale

TRIES = 8
"""Each try comes closer to the size wanted; text is so uneven that one seldom suffices."""

SAFETY = 0.95
"""Aims a little below the size wanted, because head and tail may be denser than the whole."""

SHORTEST = 16
"""Tokens below which nothing useful is left of a text: a note of what it was stands there instead."""

SMALLEST_STRING = 200
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


def keep_ends(text: str, keep: int) -> str:
    """About `keep` characters of a text, from both ends, at line breaks where some are near."""
    if keep >= len(text):
        return text
    head = text[: (keep + 1) // 2]
    tail = text[len(text) - keep // 2 :] if keep // 2 else ""
    # A line break in the outer half is near enough: whole lines are worth more than a few characters.
    if (cut := head.rfind("\n")) > len(head) // 2:
        head = head[:cut]
    if 0 <= (cut := tail.find("\n")) < len(tail) // 2:
        tail = tail[cut + 1 :]
    gone = text[len(head) : len(text) - len(tail)]
    lines = gone.count("\n")
    what = f"{lines:,} lines, {len(gone):,} characters" if lines > 1 else f"{len(gone):,} characters"
    return f"{head}\n[... data truncated: {what} omitted here ...]\n{tail}"


def _cut_result(block: ToolResult, most: int, scale: Scale) -> ToolResult:
    content = list(block.content)
    # The largest pieces give way first, so that a short exit status beside a long log survives.
    for index in sorted(range(len(content)), key=lambda each: -weigh(content[each], scale)):
        others = sum(weigh(piece, scale) for place, piece in enumerate(content) if place != index)
        excess = weigh(_with(block, content), scale) - most
        if excess <= 0:
            break
        room = max(1, weigh(content[index], scale) - excess) if others else most
        content[index] = cut_block(content[index], max(1, room), scale) or content[index]
    return _with(block, content)


def _with(block: ToolResult, content: list[Block]) -> ToolResult:
    return msgspec.structs.replace(block, raw=None, content=tuple(content))


def _cut_call(block: ToolUse, most: int, scale: Scale) -> ToolUse:
    share = 1.0
    shorter = block
    for _ in range(TRIES):
        size = weigh(shorter, scale)
        if size <= most:
            break
        share *= most / size * SAFETY
        arguments = msgspec.json.encode(_cut_strings(block.input, share)).decode()
        shorter = ToolUse(id=block.id, name=block.name, arguments=arguments)
    return shorter


def _cut_strings(value: Any, share: float, depth: int = 0) -> Any:
    if isinstance(value, str) and len(value) > SMALLEST_STRING:
        return keep_ends(value, max(SMALLEST_STRING, int(len(value) * share)))
    if depth >= DEEPEST:
        return value
    if isinstance(value, dict):
        return {key: _cut_strings(inner, share, depth + 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [_cut_strings(inner, share, depth + 1) for inner in value]
    return value
