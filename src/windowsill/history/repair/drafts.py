"""Messages while they are being put together: which blocks, and which message each came from."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

import msgspec

from windowsill.history.repair import notes
from windowsill.messages import NEUTRAL, Block, Mark, Message, Reasoning, Role, Text, ToolResult


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
    """The message of a draft: the very same object when nothing about it changed."""
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
        blocks=tuple(blocks) or (Text(text=notes.EMPTY),),
        format=own,
        raw=raw,
        edited=True,
        marks=marks,
    )


def stripped(block: Block) -> Block:
    """The block without the bytes it came as."""
    if isinstance(block, ToolResult):
        return msgspec.structs.replace(block, raw=None, content=tuple(map(stripped, block.content)))
    return block if block.raw is None else msgspec.structs.replace(block, raw=None)


def _unchanged(blocks: Sequence[Block], message: Message) -> bool:
    return len(blocks) == len(message.blocks) and all(map(is_, blocks, message.blocks))
