"""Messages as the journal's entries hold them: read from an entry, and stored without bytes that are there already."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec

from windowsill import providers
from windowsill.errors import DamagedError
from windowsill.history.entries import Entry, Same, reader
from windowsill.history.head import Draft
from windowsill.history.view import message_meta
from windowsill.messages import NEUTRAL, Block, Message, OutputRef, Text, ToolResult
from windowsill.store import Store

SMALLEST = 1_024
"""Characters below which looking an output up costs more than it saves."""


def message_of(entry: Entry, store: Store, session: str) -> Message:
    """Decode the message of an entry that was read with its body."""
    meta = message_meta(entry.meta)
    body = whole_body(entry.body or b"", meta.same, store, session) if meta.same else entry.body or b""
    if meta.format == NEUTRAL:
        message = msgspec.json.decode(body, type=Message)
    else:
        message = providers.get(meta.format).read_message(body, entry.id)
    return msgspec.structs.replace(
        message,
        id=entry.id,
        at=entry.at,
        marks=frozenset(meta.marks),
        metadata=meta.metadata,
        blocks=with_refs(message.blocks, meta.refs) if meta.refs else message.blocks,
    )


def with_refs(blocks: tuple[Block, ...], refs: Sequence[OutputRef | None]) -> tuple[Block, ...]:
    """Give the results among blocks, one after the other, the refs under which the whole of each is kept."""
    left = iter(refs)
    return tuple(
        msgspec.structs.replace(block, ref=next(left, None)) if isinstance(block, ToolResult) else block
        for block in blocks
    )


def whole_body(stored: bytes, same: Sequence[Same], store: Store, session: str) -> bytes:
    """Put back into a body what it shares with earlier entries."""
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


class Place(msgspec.Struct, frozen=True, array_like=True):
    """Where an output's bytes stand in the journal."""

    seq: int
    offset: int
    length: int


_place = reader(Place)


class SharedBytes:
    """Finds the outputs of one session that a body repeats."""

    def __init__(self, store: Store, session: str) -> None:
        self._store = store
        self._session = session

    def thin(self, message: Message, body: bytes, draft: Draft) -> tuple[bytes, tuple[Same, ...]]:
        """Leave out of a body what is stored already; the draft makes new outputs known."""
        kept: list[bytes] = []
        same: list[Same] = []
        start = size = 0
        for first, last in _outputs(message, body):
            name = "same/" + hashlib.blake2b(body[first:last], digest_size=16).hexdigest()
            found = draft.blobs.get(name) or self._store.blob(self._session, name)
            if found is None:
                draft.blobs[name] = msgspec.msgpack.encode(Place(draft.next, size + first - start, last - first))
                continue
            place = _place(found)
            same.append(Same(first, place.length, place.seq, place.offset))
            kept.append(body[start:first])
            size += first - start
            start = last
        return b"".join((*kept, body[start:])) if same else body, tuple(same)


def _outputs(message: Message, body: bytes) -> Iterator[tuple[int, int]]:
    """Find where the texts of a message's outputs stand in its body, if they are spelled as JSON usually is."""
    start = 0
    for result in message.results:
        for block in result.content:
            if isinstance(block, Text) and len(block.text) >= SMALLEST:
                for spelled in _spellings(block.text):
                    where = body.find(spelled, start)
                    if where >= 0:
                        start = where + len(spelled)
                        yield where, start
                        break


def _spellings(text: str) -> Iterator[bytes]:
    with suppress(UnicodeEncodeError):
        # Half of a surrogate pair has no bytes of its own, only an escape.
        yield msgspec.json.encode(text)
    yield json.dumps(text).encode()
