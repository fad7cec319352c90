"""The rules of a provider for a conversation, and the result of mending it: plain values."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from windowsill.messages import Block, Document, Image, Message, Reasoning, Text, ToolResult, ToolUse

RepairKind: TypeAlias = Literal[
    "orphan_told",
    "orphan_removed",
    "result_assigned",
    "missing_supplied",
    "duplicate_merged",
    "late_moved",
    "empty_filled",
    "role_order_mended",
    "id_renamed",
    "name_respelled",
    "end_trimmed",
    "image_told",
]


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The demands of a provider on a conversation, as data."""

    format: str
    user_first: bool = False
    """The first message that is not from the system is the user's."""
    alternate: bool = False
    """Messages of one role in a row become one; all results of a turn stand in the one user message after it."""
    takes_neighbours: bool = False
    """It takes messages of one role in a row, too, and joins them itself: those of its own format stay as they came."""
    joined_replies: bool = False
    """Those of the assistant become one all the same: a call has to stand right behind words of the user."""
    system_apart: bool = False
    """The system prompt has its own field; a system message of another format inside the conversation becomes words."""
    system_inside: bool = False
    """System messages may stand inside the conversation all the same."""
    dialects: frozenset[str] = frozenset()
    """Formats that divide an answer into messages as this one does; parts of another format's answer become one."""
    in_items: bool = False
    """A turn of the assistant is several messages in a row, and its results stand after the last of them. Reasoning is
    a message of its own, which something of the same turn must follow."""
    unique_ids: bool = False
    """No two calls of the conversation share an id."""
    id_pattern: str | None = None
    """The expression that a call's whole id must match."""
    name_pattern: str | None = None
    """The expression that the whole name of a tool that is called must match."""
    blank_text: bool = True
    """Text may be empty or nothing but white space."""
    signed_reasoning: bool = False
    """Reasoning of this format must carry the provider's signature."""
    reasoning_last: bool = True
    """An assistant message may end with reasoning."""
    trailing_space: bool = True
    """The last message may end with white space where it is the assistant's."""
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


def result_heading(result: ToolResult) -> str:
    """Return the heading of a result told as words: its call was sent as unanswered, is hidden, or never came."""
    kind = "error" if result.is_error else "result"
    return f"({kind} of tool call {result.tool_use_id})" if result.tool_use_id else f"({kind} of a tool call)"


def attached_heading(id: str) -> str:
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
            return "\n".join([result_heading(block), *map(describe, block.content)])
        case Image():
            return f"(image {_of(block.media_type, block.url)})"
        case Document():
            return block.text or f"(document {_of(block.title, block.media_type, block.url)})"
        case _:
            return f"({block.type or 'unknown'} block)"


def _of(*candidates: str | None) -> str:
    return next((candidate for candidate in candidates if candidate), "without a name")
