"""What providers do to a conversation themselves: forget what a compaction closed, clear old results, compact."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec

from windowsill.messages import Block, Message, Request, Role, Text, ToolResult, ToolUse

CLEARED = "(cleared)"
"""What the model reads in the place of a result that was cleared."""

Place: TypeAlias = tuple[int, int]
"""A message of a request and a block in it."""


class Clearing(msgspec.Struct, frozen=True, kw_only=True):
    """The wish to clear old tool results once a request is above `tokens`, or has more than `uses` calls."""

    tokens: int | None = None
    uses: int | None = None
    keep: int = 3
    at_least: int = 0
    exclude: frozenset[str] = frozenset()
    inputs: bool | frozenset[str] = False
    """Whether the arguments go too: all, or those of these tools."""


class Compacting(msgspec.Struct, frozen=True, kw_only=True):
    """The wish to compact a request above `tokens`; `pause` to hear of it before the model answers."""

    tokens: int
    pause: bool = False


Edit: TypeAlias = Clearing | Compacting


class Managed(msgspec.Struct, frozen=True, kw_only=True):
    """A request as the model reads it, and what was done to make it so."""

    request: Request
    tokens: int
    original: int
    """Its tokens before anything was done."""
    cleared: tuple[tuple[int, int], ...] = ()
    """For each clearing that took place the calls and the tokens it cleared."""
    compacting: Compacting | None = None
    """The wish that a compaction follows, when one is due."""


def blocks(request: Request, start: Place = (0, 0)) -> Iterator[tuple[Place, Role, Block]]:
    """The blocks of a request's messages, from a place on."""
    for index, message in enumerate(request.messages):
        for number, block in enumerate(message.blocks):
            if (index, number) >= start:
                yield (index, number), message.role, block


def opening(request: Request, closes: Callable[[Block], bool]) -> Place:
    """Where the part begins that still counts: at the last block that closes what stands before it."""
    return max((place for place, _, block in blocks(request) if closes(block)), default=(0, 0))


def since(request: Request, start: Place) -> Request:
    """The request without what stands before a place."""
    index, number = start
    messages = request.messages[index:]
    if messages and number:
        messages = (msgspec.structs.replace(messages[0], blocks=messages[0].blocks[number:]), *messages[1:])
    return msgspec.structs.replace(request, messages=messages)


def manage(request: Request, edits: tuple[Edit, ...], count: Callable[[Request], int]) -> Managed:
    """Do what was wished for, in order; a compaction ends it, as nothing is left to clear then."""
    original = tokens = count(request)
    cleared: list[tuple[int, int]] = []
    for edit in edits:
        if isinstance(edit, Compacting):
            if tokens > edit.tokens:
                return Managed(
                    request=request, tokens=tokens, original=original, cleared=tuple(cleared), compacting=edit
                )
            continue
        ids = _clearable(request, edit, tokens)
        smaller = _without(request, ids, edit)
        left = count(smaller)
        if ids and tokens - left >= edit.at_least:
            cleared.append((len(ids), max(tokens - left, 0)))
            request, tokens = smaller, left
    return Managed(request=request, tokens=tokens, original=original, cleared=tuple(cleared))


def _clearable(request: Request, edit: Clearing, tokens: int) -> frozenset[str]:
    """The ids of the calls whose results go."""
    calls = [call for message in request.messages for call in message.calls]
    above = (edit.tokens is not None and tokens > edit.tokens) or (edit.uses is not None and len(calls) > edit.uses)
    if not above:
        return frozenset()
    answered = {result.tool_use_id for message in request.messages for result in message.results}
    old = calls[: max(len(calls) - edit.keep, 0)]
    return frozenset(call.id for call in old if call.id in answered and call.name not in edit.exclude)


def _without(request: Request, ids: frozenset[str], edit: Clearing) -> Request:
    messages = tuple(_emptied(message, ids, edit) for message in request.messages)
    return msgspec.structs.replace(request, messages=messages)


def _emptied(message: Message, ids: frozenset[str], edit: Clearing) -> Message:
    def emptied(block: Block) -> Block:
        if isinstance(block, ToolResult) and block.tool_use_id in ids:
            return msgspec.structs.replace(block, content=(Text(text=CLEARED),), raw=None)
        if isinstance(block, ToolUse) and block.id in ids:
            goes = edit.inputs if isinstance(edit.inputs, bool) else block.name in edit.inputs
            return msgspec.structs.replace(block, arguments="{}", raw=None) if goes else block
        return block

    return msgspec.structs.replace(message, blocks=tuple(map(emptied, message.blocks)))
