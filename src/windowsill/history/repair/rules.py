"""What a provider demands of a conversation, and what mending it yields: plain values."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Literal, TypeAlias

import msgspec

from windowsill.messages import (
    NEUTRAL,
    Block,
    Document,
    Image,
    Mark,
    Message,
    Reasoning,
    Role,
    Text,
    ToolResult,
    ToolUse,
)

RepairKind: TypeAlias = Literal[
    "orphan_removed",
    "missing_supplied",
    "duplicate_merged",
    "late_moved",
    "empty_filled",
    "role_order_mended",
    "id_renamed",
]


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider demands of a conversation, as data."""

    format: str
    user_first: bool = False
    """The first message that is not from the system is the user's."""
    alternate: bool = False
    """Messages of one role in a row become one; all results of a turn stand in the one user message after it."""
    system_apart: bool = False
    """The system prompt has its own field; a system message of another format inside the conversation becomes words."""
    system_inside: bool = False
    """System messages may stand inside the conversation all the same."""
    in_items: bool = False
    """A turn of the assistant is several messages in a row, and its results stand after the last of them. Reasoning is
    a message of its own, which something of the same turn must follow."""
    unique_ids: bool = False
    """No two calls of the conversation share an id."""
    id_pattern: str | None = None
    """What the whole of a call's id must match."""
    blank_text: bool = True
    """Text may be empty or nothing but white space."""
    signed_reasoning: bool = False
    """Reasoning of this format must carry the provider's signature."""
    reasoning_last: bool = True
    """An assistant message may end with reasoning."""
    result_media: bool = True
    """Results may hold pictures and files."""
    bare_results: bool = True
    """Results of this format may have no content at all, not even empty text."""
    silent_errors: bool = True
    """A result marked as an error may be empty."""
    named_results: bool = False
    """Results carry the name of the tool; where ids are missing, name and order tie them to their calls."""
    cache_markers: bool = False
    """The provider wants the places stated up to which it caches."""


class Repair(msgspec.Struct, frozen=True):
    """One thing that was mended; `where` is an index of the conversation as it came."""

    kind: RepairKind
    where: int
    id: str
    what: str


class Repaired(msgspec.Struct, frozen=True):
    """A sound conversation. `sources` holds, for each message, the indices it came from (none for a stand-in)."""

    messages: tuple[Message, ...]
    repairs: tuple[Repair, ...]
    sources: tuple[tuple[int, ...], ...]
    ids: frozenset[str]
    """Every call id this conversation uses: for whatever follows they are `used`."""


MISSING = "no result was recorded for this call"
EMPTY = "(empty message)"
SILENT = "(no reply)"
NOTHING_NEW = "(no new message)"
OPENING = "(the conversation begins here)"
NO_OUTPUT = "(no output)"


def late(id: str, *, failed: bool) -> str:
    """Return the heading of a result that came after its call had already been sent as unanswered."""
    return f"(late {'error' if failed else 'result'} of tool call {id})"


def hoisted(id: str) -> str:
    """Return the heading of pictures and files that a tool returned where a result may hold only text."""
    return f"(attached to the result of tool call {id})"


def as_system(text: str) -> str:
    """Render a system message in the middle of a conversation as words of the user."""
    return f"<system>\n{text}\n</system>"


def describe(block: Block) -> str:
    """Describe a block in words, for a place that cannot hold the block itself."""
    match block:
        case Text() | Reasoning():
            return block.text
        case ToolUse():
            return f"(tool call {block.name} {block.arguments})"
        case ToolResult():
            return "\n".join([f"(result of tool call {block.tool_use_id})", *map(describe, block.content)])
        case Image():
            return f"(image {_of(block.media_type, block.url)})"
        case Document():
            return block.text or f"(document {_of(block.title, block.media_type, block.url)})"
        case _:
            return f"({block.type or 'unknown'} block)"


def _of(*candidates: str | None) -> str:
    return next((candidate for candidate in candidates if candidate), "without a name")


class Piece(msgspec.Struct, gc=False):
    """Blocks of one message that stay together; without a source they are a stand-in."""

    source: int | None
    role: Role
    blocks: list[Block]
    fresh: bool = False
    """True when the fields around the blocks do not fit any more, because the role changed."""


class Draft:
    """A message in the making."""

    __slots__ = ("blocks", "fresh", "last_source", "owners", "role", "sources")

    def __init__(self, piece: Piece) -> None:
        self.role = piece.role
        self.blocks: list[Block] = []
        self.owners: list[int | None] = []
        self.sources: set[int] = set()
        self.fresh = False
        self.add(piece)

    def add(self, piece: Piece) -> None:
        """Put a piece at the end."""
        self.last_source = piece.source
        self.blocks += piece.blocks
        self.owners += [piece.source] * len(piece.blocks)
        self.fresh = self.fresh or piece.fresh
        if piece.source is not None:
            self.sources.add(piece.source)

    def add_text(self, text: str) -> None:
        """Put words at the end that nobody said."""
        self.blocks.append(Text(text=text))
        self.owners.append(None)


def build(draft: Draft, messages: Sequence[Message], format: str) -> Message:
    """Build the message of a draft: the very same object when nothing about it changed."""
    parts = [messages[source] for source in sorted(draft.sources)]
    if len(parts) == 1 and parts[0].role == draft.role and _unchanged(draft.blocks, parts[0]):
        return parts[0]
    if not parts:
        return Message(role=draft.role, blocks=tuple(draft.blocks), format=format)
    found = {part.format for part in parts} - {NEUTRAL}
    # Bytes of two formats cannot stand in one message: those of the format it is made for are kept.
    own = format if format in found or not found else min(found)
    blocks = draft.blocks
    if len(found) > 1:
        blocks = [
            stripped(block) if owner is not None and messages[owner].format != own else block
            for block, owner in zip(draft.blocks, draft.owners, strict=True)
            if owner is None or messages[owner].format == own or not isinstance(block, Reasoning)
        ]
    fitting = (part.raw for part in parts if part.format == own and part.role == draft.role and part.raw)
    raw = None if draft.fresh else next(fitting, None)
    marks: frozenset[Mark] = frozenset().union(*(part.marks for part in parts))
    return msgspec.structs.replace(
        parts[0],
        role=draft.role,
        blocks=tuple(blocks) or (Text(text=EMPTY),),
        format=own,
        raw=raw,
        edited=True,
        marks=marks,
    )


def stripped(block: Block) -> Block:
    """Return the block without the bytes it came as."""
    if isinstance(block, ToolResult):
        return msgspec.structs.replace(block, raw=None, content=tuple(map(stripped, block.content)))
    return block if block.raw is None else msgspec.structs.replace(block, raw=None)


def _unchanged(blocks: Sequence[Block], message: Message) -> bool:
    return len(blocks) == len(message.blocks) and all(map(is_, blocks, message.blocks))
