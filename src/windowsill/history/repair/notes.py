"""The short texts that stand in a view where something is missing or cannot be shown as it was.

They depend on nothing but what they stand for: the same broken history gives the same bytes each time.
"""

from __future__ import annotations

from windowsill.messages import Block, Document, Image, Reasoning, Text, ToolResult, ToolUse

MISSING = "no result was recorded for this call"
EMPTY = "(empty message)"
SILENT = "(no reply)"
NOTHING_NEW = "(no new message)"
OPENING = "(the conversation begins here)"
NO_OUTPUT = "(no output)"


def late(id: str, *, failed: bool) -> str:
    """The heading of a result that came after its call had already been sent as unanswered."""
    return f"(late {'error' if failed else 'result'} of tool call {id})"


def hoisted(id: str) -> str:
    """The heading of pictures and files that a tool returned where a result may hold only text."""
    return f"(attached to the result of tool call {id})"


def as_system(text: str) -> str:
    """A system message in the middle of a conversation, as words of the user."""
    return f"<system>\n{text}\n</system>"


def describe(block: Block) -> str:
    """What a block was, in words, for a place that cannot hold the block itself."""
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
