"""A tool output that came before is stored once: the later message only says where the bytes stand."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from windowsill.history.entries import Same, reader
from windowsill.history.history import Draft
from windowsill.messages import Message, Text
from windowsill.store import Store

SMALLEST = 1_024
"""Characters below which looking an output up costs more than it saves."""


class Place(msgspec.Struct, frozen=True, array_like=True):
    """Where an output's bytes stand in the journal."""

    seq: int
    offset: int
    length: int


_pack = msgspec.msgpack.Encoder().encode
_place = reader(Place)


class Repeats:
    """Finds what a body repeats of the outputs of one session."""

    def __init__(self, store: Store, session: str) -> None:
        self._store = store
        self._session = session

    def thin(self, message: Message, body: bytes, draft: Draft) -> tuple[bytes, tuple[Same, ...]]:
        """The body without what is stored already, and what was left out; new outputs are made known with the draft."""
        kept: list[bytes] = []
        same: list[Same] = []
        start = size = 0
        for first, last in _outputs(message, body):
            name = "same/" + hashlib.blake2b(body[first:last], digest_size=16).hexdigest()
            found = draft.blobs.get(name) or self._store.blob(self._session, name)
            if found is None:
                draft.blobs[name] = _pack(Place(draft.next, size + first - start, last - first))
                continue
            place = _place(found)
            same.append(Same(first, place.length, place.seq, place.offset))
            kept.append(body[start:first])
            size += first - start
            start = last
        return b"".join((*kept, body[start:])) if same else body, tuple(same)


def _outputs(message: Message, body: bytes) -> Iterator[tuple[int, int]]:
    """Where the texts of a message's outputs stand in its body, in order, if they are spelled as JSON usually is."""
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
