"""Messages as the journal's entries hold them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from windowsill import formats
from windowsill.errors import DamagedError
from windowsill.history.entries import Entry, Same
from windowsill.history.view import message_meta
from windowsill.messages import NEUTRAL, Block, Message, OutputRef, ToolResult
from windowsill.store import Store


def message_of(entry: Entry, store: Store, session: str) -> Message:
    """The message of an entry that was read with its body."""
    meta = message_meta(entry.meta)
    body = whole_body(entry.body or b"", meta.same, store, session) if meta.same else entry.body or b""
    if meta.format == NEUTRAL:
        message = msgspec.json.decode(body, type=Message)
    else:
        message = formats.get(meta.format).read_message(body, entry.id)
    return msgspec.structs.replace(
        message,
        id=entry.id,
        at=entry.at,
        marks=frozenset(meta.marks),
        metadata=meta.metadata,
        blocks=with_refs(message.blocks, meta.refs) if meta.refs else message.blocks,
    )


def with_refs(blocks: tuple[Block, ...], refs: Sequence[OutputRef | None]) -> tuple[Block, ...]:
    """Blocks whose results say, one after the other, where the whole of each is kept."""
    left = iter(refs)
    return tuple(
        msgspec.structs.replace(block, ref=next(left, None)) if isinstance(block, ToolResult) else block
        for block in blocks
    )


def whole_body(stored: bytes, same: Sequence[Same], store: Store, session: str) -> bytes:
    """A body with what it shares with earlier entries put back in."""
    pieces: list[bytes] = []
    taken = written = 0
    for each in same:
        pieces.append(stored[taken : taken + each.at - written])
        taken += each.at - written
        found = store.read(session, each.seq, each.seq)
        shared = (found[0].body or b"")[each.offset : each.offset + each.length] if found else b""
        if len(shared) != each.length:
            raise DamagedError(
                f"entry {each.seq} of session {session!r} lacks bytes that a later one shares",
                remedy="`windowsill sessions verify` says what is left; restore a backup",
            )
        pieces.append(shared)
        written = each.at + each.length
    return b"".join((*pieces, stored[taken:]))
