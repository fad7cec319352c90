"""Cut messages and summaries into the passages that are searched: words, calls and results, each with its lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from windowsill.history.entries import Entry
from windowsill.history.folds import MessageSpan, unpack_stand_ins
from windowsill.history.view import fold_meta
from windowsill.messages import (
    ECHOES,
    OWN_TOOLS,
    Block,
    Document,
    Message,
    Origin,
    Reasoning,
    Text,
    ToolResult,
    ToolUse,
)
from windowsill.search.query import valid_text
from windowsill.secrets import redact
from windowsill.secrets.documents import redact_for_reading
from windowsill.store.search_index import Passage, Source

PIECE_BYTES = 1_200
"""About 300 tokens in most languages: four bytes of English each, three bytes of a Japanese character."""

OVERLAP_BYTES = 160
"""The last line of a piece begins the next one too, if it is no longer than this: a hit at a cut keeps its context."""

END = 8 << 20
"""Characters of a text that are indexed from its beginning, and as many from its end. What is larger is a dump of data
whose middle is there for those who search the output itself."""

ENCODED = re.compile(r"[A-Za-z0-9+/=_-]{256,}")
"""Encoded data inside text. No word, path or key is as long, and nobody looks for it by its letters."""

OMITTED = "[data]"

_STRIDE = 100
"""Less than half of such data, so that it covers one whole stretch of a text cut into these."""

STATE_STRATEGY = "extract"
"""The strategy whose summaries are facts: a JSON object of what was established."""

Section: TypeAlias = tuple[str, str, str | None]
"""A part of a message that is searched by itself: its text, who said it, and the tool it belongs to."""


class Piece(NamedTuple):
    """A part of a text, with its first and last line counted from 1."""

    first: int
    last: int
    text: str


def message_passages(
    message: Message,
    *,
    seq: int | None,
    tools: Mapping[str, str],
    source: Source = "message",
    sources: str | None = None,
    redacted: bool = False,
) -> list[Passage]:
    """Return the passages of a message; `tools` are the names of the tools called so far, by the ids of the calls.

    With `redacted` secrets are taken out before anything is cut: a part of one would not be known as a secret.
    """
    if message.origin == Origin.RECALLED:
        return []
    message = redact_for_reading(message) if redacted else message
    speaker = message.metadata.get("speaker")
    speaker = valid_text(speaker) if isinstance(speaker, str) else None
    id, at = message.id, message.at
    return [
        Passage(seq, id, role, source, tool, speaker, at, first, last, sources, text)
        for words, role, tool in _sections(message, speaker, tools)
        for start, part in ends(redact(words) if redacted else words)
        for first, last, text in split(_without_data(part), start)
    ]


def fold_passages(entry: Entry, *, redacted: bool = False) -> Iterator[Passage]:
    """Yield the passages of the summaries in a fold; a marker that only says what was cut has none."""
    fold = fold_meta(entry.meta)
    source: Source = "fact" if fold.strategy == STATE_STRATEGY else "summary"
    for span, stand_in in zip(fold.spans, unpack_stand_ins(entry.body or b""), strict=True):
        if isinstance(span, MessageSpan) and stand_in is not None and stand_in.origin == Origin.SUMMARY:
            message = msgspec.structs.replace(stand_in, id=entry.id, at=entry.at)
            covers = msgspec.json.encode([span.first, span.last]).decode()
            yield from message_passages(
                message, seq=entry.seq, tools={}, source=source, sources=covers, redacted=redacted
            )


def split(text: str, start: int = 1) -> list[Piece]:
    """Split a text into pieces, between lines where it can be; `start` is the number of its first line."""
    if len(text) <= PIECE_BYTES and (text.isascii() or len(text.encode()) <= PIECE_BYTES):
        return [Piece(start, start + text.count("\n"), text)] if text and not text.isspace() else []
    found: list[Piece] = []
    held: list[tuple[int, str]] = []
    size = fresh = 0
    for number, part in _parts(text, start):
        weight = len(part.encode()) + 1
        if fresh and size + weight > PIECE_BYTES:
            found.append(_joined(held))
            last = held[-1]
            held = [last] if len(last[1].encode()) <= OVERLAP_BYTES else []
            size, fresh = sum(len(each.encode()) + 1 for _, each in held), 0
        held.append((number, part))
        size += weight
        fresh += 1
    if fresh:
        found.append(_joined(held))
    return [piece for piece in found if piece.text.strip()]


def _sections(message: Message, speaker: str | None, tools: Mapping[str, str]) -> Iterator[Section]:
    """Yield the readable reasoning of a message, its words, each of its calls, and each result."""
    reasoning = "\n".join([block.text for block in message.blocks if isinstance(block, Reasoning) and block.text])
    if reasoning:
        yield reasoning, message.role, None
    words = "\n".join([text for block in message.blocks if (text := _words(block))])
    if words:
        yield f"{speaker}: {words}" if speaker else words, message.role, None
    for block in message.blocks:
        if isinstance(block, ToolUse):
            # Nothing matches a question as well as the call that asks it.
            if block.name not in OWN_TOOLS:
                yield "\n".join((block.name, *_leaves(block.input))), message.role, block.name
        elif isinstance(block, ToolResult):
            tool = block.name or tools.get(block.tool_use_id)
            if tool not in ECHOES:
                yield "\n".join([text for each in block.content if (text := _words(each))]), "tool", tool


def _words(block: Block) -> str:
    if isinstance(block, Text):
        return block.text
    if isinstance(block, Document):
        return "\n".join(filter(None, (block.title, block.text)))
    return ""


def _leaves(value: Any) -> Iterator[str]:
    """Yield the values of a call's arguments as text: in JSON every line break would be part of the next word."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from (f"{name}: {leaf}" for leaf in _leaves(each))
    elif isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    elif value is not None:
        yield value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _without_data(text: str) -> str:
    text = valid_text(text)
    # The pattern tries every letter; a look at a few places tells that there is no such run in nearly all texts.
    for place in range(0, len(text) - _STRIDE, _STRIDE):
        if text.find(" ", place, place + _STRIDE) < 0 and text.find("\n", place, place + _STRIDE) < 0:
            return ENCODED.sub(OMITTED, text)
    return text


def ends(text: str) -> list[tuple[int, str]]:
    """Return what of a text is indexed, with the number of its first line: all of it, or its ends, cut at lines."""
    if len(text) <= 2 * END:
        return [(1, text)]
    # A single line as long as this is cut wherever that is.
    stop = text.rfind("\n", END // 2, END) + 1 or END
    start = text.find("\n", len(text) - END, len(text) - END // 2) + 1 or len(text) - END
    return [(1, text[:stop]), (text.count("\n", 0, start) + 1, text[start:])]


def _joined(held: list[tuple[int, str]]) -> Piece:
    return Piece(held[0][0], held[-1][0], "\n".join(part for _, part in held))


def _parts(text: str, first: int) -> Iterator[tuple[int, str]]:
    """Yield lines with their numbers; one longer than a piece in several parts, cut between words where it has any."""
    for number, line in enumerate(_lines(text), first):
        start = 0
        most = PIECE_BYTES if line.isascii() else PIECE_BYTES // 3
        while len(line) - start > most:
            stop = line.rfind(" ", start + most // 2, start + most) + 1 or start + most
            yield number, line[start:stop]
            # What a cut would tear apart stands whole in the part after it.
            back = stop - OVERLAP_BYTES * most // PIECE_BYTES
            start = line.find(" ", back, stop - 1) + 1 or back
        yield number, line[start:]


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a text one after the other: a list of all would take several times its memory."""
    start = 0
    while (stop := text.find("\n", start)) >= 0:
        yield text[start:stop]
        start = stop + 1
    yield text[start:]
