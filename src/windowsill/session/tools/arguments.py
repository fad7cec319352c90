"""What each tool takes, and how it is described to a model: the one definition behind every door."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta

from windowsill.history.own_tools import GREP_TOOL, MESSAGE_TOOL, READ_TOOL, SEARCH_TOOL, STATUS_TOOL
from windowsill.messages import Tool

MOST_FOUND = 50
"""The most passages that one search gives: more is a reading of the history, not a search."""

MOST_LINES = 2_000

_Ref: TypeAlias = Annotated[str, Meta(description="The ref of the output, as the conversation shows it: ref=o12.")]
_Limit: TypeAlias = Annotated[int, Meta(ge=1, le=MOST_LINES, description="How many lines to show.")]
_Offset: TypeAlias = Annotated[int, Meta(ge=1, description="The first line to show, counted from 1.")]
_Context: TypeAlias = Annotated[int, Meta(ge=0, le=50, description="Lines to show before and after each match.")]
_Switch: TypeAlias = bool


class _Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a model passes to one tool."""


class ReadOutput(_Arguments, frozen=True, kw_only=True):
    """Show lines of a tool output that was trimmed or cut, with their numbers. Nothing of it is lost."""

    ref_id: _Ref
    offset: _Offset = 1
    limit: _Limit = 200
    column: Annotated[int, Meta(ge=1, description="Where in the first line to begin, for a very long line.")] = 1


class GrepOutput(_Arguments, frozen=True, kw_only=True):
    """Search a tool output that was trimmed or cut; matching lines come with their numbers."""

    ref_id: _Ref
    pattern: Annotated[str, Meta(description="A regular expression (RE2), or the text itself with fixed.")]
    context: _Context = 0
    ignore_case: Annotated[_Switch, Meta(description="Take upper and lower case for the same.")] = False
    fixed: Annotated[_Switch, Meta(description="Take the pattern literally.")] = False
    limit: Annotated[int, Meta(ge=1, le=1_000, description="How many matches to show.")] = 50
    offset: Annotated[int, Meta(ge=1, description="The line to begin at, to page through the matches.")] = 1


class SearchHistory(_Arguments, frozen=True, kw_only=True):
    """Search everything that was ever said or shown in this session, hidden from view or not."""

    query: Annotated[str, Meta(description="Words, names, paths or a question.")]
    k: Annotated[int, Meta(ge=1, le=MOST_FOUND, description="How many passages to show.")] = 5


class ReadHistory(_Arguments, frozen=True, kw_only=True):
    """Show one message of the history whole, by its id, hidden from view or not."""

    message_id: Annotated[str, Meta(description="The id of the message, as history_search shows it: m12.")]
    offset: _Offset = 1
    limit: _Limit = 200


class ContextStatus(_Arguments, frozen=True, kw_only=True):
    """Tell how full the context window is and what was folded away to fit it."""


KINDS: dict[str, type[_Arguments]] = {
    READ_TOOL: ReadOutput,
    GREP_TOOL: GrepOutput,
    SEARCH_TOOL: SearchHistory,
    MESSAGE_TOOL: ReadHistory,
    STATUS_TOOL: ContextStatus,
}

TOOLS: tuple[str, ...] = tuple(KINDS)
"""The names of the tools, in the order they are offered."""


def definition(name: str) -> Tool:
    """A tool as it is offered to a model."""
    kind = KINDS[name]
    ((_, found),) = msgspec.json.schema_components([kind])[1].items()
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {key: _plain(value) for key, value in found["properties"].items()},
        "required": found["required"],
        "additionalProperties": False,
    }
    return Tool(name=name, description=(kind.__doc__ or "").strip(), schema=schema)


KEPT = frozenset({"type", "description", "minimum", "maximum", "default"})


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter's schema in words that every provider takes."""
    return {key: value for key, value in schema.items() if key in KEPT}
