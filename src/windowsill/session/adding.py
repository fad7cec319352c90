"""Writes messages: weighed once, all of them or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from windowsill.errors import ConflictError, InputError
from windowsill.formats.gemini.linking import following
from windowsill.history.entries import Entry
from windowsill.history.history import Draft
from windowsill.messages import Message, Usage
from windowsill.session.ledger import RETRIES, Ledger
from windowsill.session.repeats import Repeats

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
    ledger: Ledger,
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
    if any(message.format == "gemini" for message in messages):
        messages = following(_turn(ledger), messages)
    scale, thin = ledger.scale, Repeats(ledger.store, ledger.session).thin
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


def _turn(ledger: Ledger) -> list[Message]:
    """What was said since the model last began to speak: there stand the calls that new results may answer."""
    items = ledger.view.items
    start = len(items)
    while start and not (start < len(items) and items[start].role == "assistant" != items[start - 1].role):
        if start < len(items) and items[start].role != "assistant" and not items[start].results:
            return []
        start -= 1
    return [ledger.view.read(item) for item in items[start:]]


def _refuse_known_ids(ledger: Ledger, messages: Sequence[Message]) -> None:
    stated = [message.id for message in messages if message.id]
    for place, id in enumerate(stated):
        if id in stated[:place] or ledger.store.find(ledger.session, id) is not None:
            raise InputError(
                f"session {ledger.session!r} has a message {id!r} already", remedy="give another id, or none"
            )
