"""A conversation as text for a model to read, within a number of tokens.

Messages are divided by a mark that is made from all of them, so that none of them can hold it: what a message says
cannot pass for another message.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from windowsill.formats.wording import words
from windowsill.messages import Block, Document, Image, Message, Reasoning, Text, ToolResult, ToolUse, Unknown
from windowsill.text import cut_middle

LARGEST_SHARE = 6
"""Where not everything fits, no message gets more than this part of the room: one output must not push out the rest."""

HEAD_SHARE = 4
"""This part of the room is for the beginning, the rest for the end: what came last is what the work goes on with."""

NOTE_TOKENS = 40
"""Kept free for the note that says how much was left out."""


def mark_for(messages: Sequence[Message]) -> str:
    """How a message begins: the same for the same messages. Who writes one of them cannot know it."""
    digest = hashlib.blake2b(digest_size=6)
    for message in messages:
        digest.update(told(message).encode("utf-8", "replace") + b"\0")
    return f"=== {digest.hexdigest()}"


def transcript(messages: Sequence[Message], *, mark: str, room: int, count: Callable[[str], int]) -> str:
    """The messages as text of at most `room` tokens: long ones cut in their middle, then the middle ones left out."""
    whole = [_framed(message, number, mark) for number, message in enumerate(messages, 1)]
    sizes = [count(text) for text in whole]
    if sum(sizes) > room:
        most = max(1, room // LARGEST_SHARE)
        whole = [_cut(text, size, most) for text, size in zip(whole, sizes, strict=True)]
        sizes = [count(text) for text in whole]
    while True:
        chosen, left_out = _choose(whole, sizes, room)
        text = "\n\n".join(chosen)
        if count(text) <= room or not chosen:
            return text
        # Joined, the pieces weigh a little more than apart.
        room -= max(NOTE_TOKENS, room // 20)
        if left_out == len(whole):
            return ""


def _choose(texts: list[str], sizes: list[int], room: int) -> tuple[list[str], int]:
    if sum(sizes) <= room:
        return texts, 0
    room -= NOTE_TOKENS
    head, used = 0, 0
    while head < len(texts) and used + sizes[head] <= room // HEAD_SHARE:
        used += sizes[head]
        head += 1
    tail = len(texts)
    while tail > head and used + sizes[tail - 1] <= room:
        tail -= 1
        used += sizes[tail]
    left_out = tail - head
    note = f"[{left_out:,} messages were left out here: there was no room for them.]"
    return ([*texts[:head], note, *texts[tail:]] if left_out < len(texts) else []), left_out


def _cut(text: str, size: int, most: int) -> str:
    if size <= most:
        return text
    first, _, rest = text.partition("\n")
    return f"{first}\n{cut_middle(rest, len(rest) * most // size)}"


def _framed(message: Message, number: int, mark: str) -> str:
    who = "earlier summary" if message.origin else message.role
    return f"{mark} message {number}: {who}\n{told(message)}"


def told(message: Message) -> str:
    """What a message says, calls and results in words; reasoning is left out."""
    return "\n".join(text for block in message.blocks if (text := _block(block)))


def _block(block: Block) -> str:
    match block:
        case Text():
            return block.text
        case ToolUse():
            return f"[calls {block.name}: {block.arguments}]"
        case ToolResult():
            inner = "\n".join(text for each in block.content if (text := _block(each)))
            return f"[result{' (an error)' if block.is_error else ''} of {block.name or block.tool_use_id}]\n{inner}"
        case Image():
            return "[a picture]"
        case Document():
            return f"[a document{f': {block.title}' if block.title else ''}]\n{block.text or ''}".rstrip()
        case Unknown():
            return words(block.type, block.raw) if block.raw is not None else ""
        case Reasoning():
            return ""
