"""Recordings of sessions that Windowsill keeps, or has exported."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from windowsill.history.head import call_meta, usage_meta
from windowsill.messages import ORIGIN, Message, Origin, Request
from windowsill.replay.recordings import Recording
from windowsill.session import Session
from windowsill.session.audit import prompt_of
from windowsill.session.export import import_session
from windowsill.store import Store
from windowsill.store.memory import MemoryStore
from windowsill.transcripts import Charge

_MADE_HERE = frozenset({Origin.RECALLED, Origin.STATE})
"""Messages that a replay adds by itself where its options ask for them."""


def read_export(lines: Iterable[bytes]) -> Recording:
    """Read an exported session; `DamagedError` names a line that is not what was written."""
    store = MemoryStore()
    return stored_recording(store, import_session(store, lines))


def stored_recording(store: Store, id: str) -> Recording:
    """Return the current branch of a stored session as it would have been recorded: no fold applies to it.

    System prompt and tools are those of its last request.
    """
    with Session.open(id, store=store, config=False) as session:
        journal = session.journal
        messages: list[Message] = []
        times: list[float | None] = []
        charges: list[Charge] = []
        for entry in journal.branch("message", "usage", bodies=True):
            if entry.kind == "usage":
                answer = len(messages) - 1 if messages else None
                charges.append(Charge(usage=usage_meta(entry.meta), model=session.settings.model, message=answer))
                continue
            message = journal.decode(entry)
            if message.origin not in _MADE_HERE:
                metadata = {name: value for name, value in message.metadata.items() if name != ORIGIN}
                messages.append(msgspec.structs.replace(message, id="", metadata=metadata))
                times.append(entry.at)
        calls = list(journal.branch("call"))
        system, tools = prompt_of(journal, call_meta(calls[-1].meta)) if calls else (None, ())
        request = Request(
            format=session.composer.format,
            messages=tuple(messages),
            system=system,
            tools=tools,
            model=session.settings.model,
        )
    return Recording(id=id, request=request, times=tuple(times), charges=tuple(charges))
