"""Ties calls and responses of a whole conversation together where the API left out their ids.

A content alone shows only its own calls: streams write one content for each, and responses may lack the id that their
call has. Only the neutral ids change here; the bytes stay as they came.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from windowsill.history.repair.pairing import numbered_id, numbered_name
from windowsill.messages import Block, Message, ToolResult, ToolUse


def linked(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages, the calls of one turn numbered through and each response under the id of its call."""
    turn = _Turn()
    before = ""
    found: list[Message] = []
    for message in messages:
        if message.role == "assistant" != before:
            turn = _Turn()
        before = message.role
        blocks: list[Block] | None = None
        for place, block in enumerate(message.blocks):
            known: Block
            if isinstance(block, ToolUse):
                known = turn.call(block)
            elif isinstance(block, ToolResult):
                known = turn.answer(block)
            else:
                continue
            if known is not block:
                blocks = list(message.blocks) if blocks is None else blocks
                blocks[place] = known
        found.append(message if blocks is None else msgspec.structs.replace(message, blocks=tuple(blocks)))
    return tuple(found)


def following(turn: Sequence[Message], messages: Sequence[Message]) -> tuple[Message, ...]:
    """Messages that come later, tied to the turn they belong to: all since the model began to speak, linked already."""
    return linked((*turn, *messages))[len(turn) :]


class _Turn:
    """The calls since the model began to speak."""

    __slots__ = ("_open", "_seen")

    def __init__(self) -> None:
        self._open: list[ToolUse] = []
        self._seen: dict[str, int] = {}

    def call(self, block: ToolUse) -> ToolUse:
        """The call under the number it has in its turn, unless it has an id of its own."""
        number = self._seen[block.name] = self._seen.get(block.name, -1) + 1
        id = numbered_id(block.name, number)
        if block.id != id and numbered_name(block.id) is not None:
            block = msgspec.structs.replace(block, id=id)
        self._open.append(block)
        return block

    def answer(self, block: ToolResult) -> ToolResult:
        """The result under the id of the first open call it can answer."""
        calls = self._open
        if calls and calls[0].id == block.tool_use_id:
            del calls[0]
            return block
        name = numbered_name(block.tool_use_id)
        for place, call in enumerate(calls):
            if call.id == block.tool_use_id if name is None else call.name == name:
                del calls[place]
                return block if call.id == block.tool_use_id else msgspec.structs.replace(block, tool_use_id=call.id)
        return block
