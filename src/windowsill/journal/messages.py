"""Writes messages: weighed once, all of them or none."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TypeVar

import msgspec

from windowsill import providers
from windowsill.errors import ConflictError, InputError
from windowsill.history.entries import Entry, Same, reader
from windowsill.history.head import Draft
from windowsill.journal.writer import RETRIES, JournalWriter
from windowsill.messages import Message, Text, Usage
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


class SharedBytes:
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


T = TypeVar("T")


def again_after_conflicts(act: Callable[[], T]) -> T:
    """Do it again when somebody else moved the session on meanwhile; `ConflictError` when that goes on and on."""
    for _ in range(RETRIES):
        try:
            return act()
        except ConflictError:
            continue
    return act()


def write(
    ledger: JournalWriter,
    messages: Sequence[Message],
    usage: Usage | None,
    *,
    steady: bytes | None = None,
    also: Callable[[Draft, list[Entry]], object] | None = None,
) -> list[str]:
    """Append messages, and what was reported for the last request, in one commit; the ids of the messages.

    `also` adds to the same commit what belongs to these messages.

    With `steady`, the fingerprint of the conversation they continue, it is a `ConflictError` when somebody else has
    led it elsewhere meanwhile.
    """
    if not messages:
        return []
    _refuse_known_ids(ledger, messages)
    if any(message.format in providers.LINKED for message in messages):
        messages = providers.link_messages(_turn(ledger), messages)
    scale, thin = ledger.scale, SharedBytes(ledger.store, ledger.session).thin
    weights = [scale.weigh(message) for message in messages]

    def make(draft: Draft) -> list[Entry]:
        written = [
            draft.message(message, weight, scale.name, thin) for message, weight in zip(messages, weights, strict=True)
        ]
        if usage is not None:
            draft.record("usage", usage)
        if also is not None:
            also(draft, written)
        return written

    entries = ledger.commit(make, steady=steady)
    for entry, message in zip(entries, messages, strict=True):
        ledger.remember(entry.seq, msgspec.structs.replace(message, id=entry.id, at=entry.at))
    return [entry.id for entry in entries]


def _turn(ledger: JournalWriter) -> list[Message]:
    """What was said since the model last began to speak: there stand the calls that new results may answer."""
    items = ledger.view.items
    start = len(items)
    while start and not (start < len(items) and items[start].role == "assistant" != items[start - 1].role):
        if start < len(items) and items[start].role != "assistant" and not items[start].results:
            return []
        start -= 1
    return [ledger.view.read(item) for item in items[start:]]


def _refuse_known_ids(ledger: JournalWriter, messages: Sequence[Message]) -> None:
    stated = [message.id for message in messages if message.id]
    for place, id in enumerate(stated):
        if id in stated[:place] or ledger.store.find(ledger.session, id) is not None:
            raise InputError(
                f"session {ledger.session!r} has a message {id!r} already", remedy="give another id, or none"
            )
