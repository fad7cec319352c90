"""Ties calls and responses of a whole conversation together where the API left out their ids.

A content alone shows only its own calls: streams write one content for each, and responses may lack the id that their
call has. Only the neutral ids change here; the bytes stay as they came.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from windowsill.history.repair.pairing import numbered_id, numbered_name
from windowsill.messages import Block, Message, ToolResult, ToolUse


def linked(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages, the calls of one turn numbered through and each response under the id of its call."""
    open_calls: list[ToolUse] = []
    seen: Counter[str] = Counter()
    before = ""
    found: list[Message] = []
    for message in messages:
        if message.role == "assistant" and before != "assistant":
            open_calls, seen = [], Counter()
        blocks = tuple([_linked(block, open_calls, seen) for block in message.blocks])
        same = all(one is other for one, other in zip(blocks, message.blocks, strict=True))
        found.append(message if same else msgspec.structs.replace(message, blocks=blocks))
        before = message.role
    return tuple(found)


def _linked(block: Block, open_calls: list[ToolUse], seen: Counter[str]) -> Block:
    if isinstance(block, ToolUse):
        number = seen[block.name]
        seen[block.name] += 1
        id = block.id if numbered_name(block.id) is None else numbered_id(block.name, number)
        call = block if id == block.id else msgspec.structs.replace(block, id=id)
        open_calls.append(call)
        return call
    if isinstance(block, ToolResult):
        name = numbered_name(block.tool_use_id)
        for call in open_calls:
            if call.id == block.tool_use_id if name is None else call.name == name:
                open_calls.remove(call)
                return block if call.id == block.tool_use_id else msgspec.structs.replace(block, tool_use_id=call.id)
    return block
