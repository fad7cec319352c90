"""What of a message or a summary can be searched: its words, calls and results, in passages of a few hundred tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias

import msgspec

from windowsill.archive.splitting import ends, pieces
from windowsill.archive.words import plain
from windowsill.history.entries import Entry, reader
from windowsill.history.folds import Fold, Run, unpack_stand_ins
from windowsill.history.own_tools import ECHOES, OWN_TOOLS
from windowsill.messages import Block, Document, Message, Reasoning, Text, ToolResult, ToolUse

Source: TypeAlias = Literal["message", "summary", "fact", "stored"]

BLOB = re.compile(r"[A-Za-z0-9+/=_-]{256,}")
"""Encoded data inside text. No word, path or key is as long, and nobody looks for it by its letters."""

OMITTED = "[data]"

_STRIDE = 100
"""Less than half of such data, so that it covers one whole stretch of a text cut into these."""

OURS = "windowsill"
"""Where the metadata of a message says what part of ours wrote it."""

SUMMARY = "summary"
RECALLED = "recalled"
"""A message that repeats what the archive found: finding it again would feed the archive with itself."""

STATE_STRATEGY = "extract"
"""The strategy whose summaries are facts: a JSON object of what was established."""


class Passage(msgspec.Struct, frozen=True, gc=False):
    """A piece of something said, with where it stands; its fields are in the order of the table's columns."""

    seq: int | None
    """The entry of the journal; `None` for what was stored by hand."""
    id: str
    role: str
    source: Source
    tool: str | None
    speaker: str | None
    at: float
    first: int
    last: int
    sources: str | None
    """JSON: the ids it was made from, or the first and last entry it stands for."""
    text: str


Section: TypeAlias = tuple[str, str, str | None]
"""A part of a message that is searched by itself: its text, who said it, and the tool it belongs to."""


def of_message(
    message: Message,
    *,
    seq: int | None,
    tool_of: Callable[[str], str | None],
    source: Source = "message",
    sources: str | None = None,
) -> list[Passage]:
    """The passages of a message; `tool_of` gives the name of the tool that was called under an id."""
    if message.metadata.get(OURS) == RECALLED:
        return []
    speaker = message.metadata.get("speaker")
    speaker = plain(speaker) if isinstance(speaker, str) else None
    id, at = message.id, message.at
    return [
        Passage(seq, id, role, source, tool, speaker, at, first, last, sources, text)
        for words, role, tool in sections(message, speaker, tool_of)
        for start, part in ends(words)
        for first, last, text in pieces(_clean(part), start)
    ]


def of_fold(entry: Entry) -> Iterator[Passage]:
    """The passages of the summaries a fold put in the place of messages; a cut that says only what it cut has none."""
    fold = _fold(entry.meta)
    source: Source = "fact" if fold.strategy == STATE_STRATEGY else "summary"
    for span, stand_in in zip(fold.spans, unpack_stand_ins(entry.body or b""), strict=True):
        if isinstance(span, Run) and stand_in is not None and stand_in.metadata.get(OURS) == SUMMARY:
            message = msgspec.structs.replace(stand_in, id=entry.id, at=entry.at)
            covers = msgspec.json.encode([span.first, span.last]).decode()
            yield from of_message(message, seq=entry.seq, tool_of=_no_tool, source=source, sources=covers)


def sections(message: Message, speaker: str | None, tool_of: Callable[[str], str | None]) -> Iterator[Section]:
    """What the model thought, as far as it can be read, the words of a message, each of its calls, and each result."""
    thought = "\n".join([block.text for block in message.blocks if isinstance(block, Reasoning) and block.text])
    if thought:
        yield thought, message.role, None
    words = "\n".join([text for block in message.blocks if (text := _words(block))])
    if words:
        yield f"{speaker}: {words}" if speaker else words, message.role, None
    for block in message.blocks:
        if isinstance(block, ToolUse):
            # Nothing matches a question as well as the call that asks it.
            if block.name not in OWN_TOOLS:
                yield "\n".join((block.name, *_leaves(block.input))), message.role, block.name
        elif isinstance(block, ToolResult):
            tool = block.name or tool_of(block.tool_use_id)
            if tool not in ECHOES:
                yield "\n".join([text for each in block.content if (text := _words(each))]), "tool", tool


def _words(block: Block) -> str:
    if isinstance(block, Text):
        return block.text
    if isinstance(block, Document):
        return "\n".join(filter(None, (block.title, block.text)))
    return ""


def _leaves(value: Any) -> Iterator[str]:
    """The values of a call's arguments as text: in JSON every line break would be part of the next word."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from (f"{name}: {leaf}" for leaf in _leaves(each))
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    elif value is not None:
        yield value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _clean(text: str) -> str:
    text = plain(text)
    # The pattern tries every letter; a look at a few places tells that there is no such run in nearly all texts.
    for place in range(0, len(text) - _STRIDE, _STRIDE):
        if text.find(" ", place, place + _STRIDE) < 0 and text.find("\n", place, place + _STRIDE) < 0:
            return BLOB.sub(OMITTED, text)
    return text


def _no_tool(_: str) -> None:
    return None


_fold = reader(Fold)
