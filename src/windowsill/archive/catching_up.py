"""Brings the index up to the journal's end, in batches that each happen whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from windowsill.archive.index import Index, Progress
from windowsill.archive.passages import Passage, of_fold, of_message
from windowsill.history.entries import Entry, Kind
from windowsill.history.view import message_meta
from windowsill.messages import Message
from windowsill.store import SessionInfo, Store
from windowsill.store.decoding import message_of

BATCH = 1_000
"""Entries indexed in one transaction: enough that its commit costs little, few enough that others wait only shortly."""

BATCH_BYTES = 4 << 20
"""And bytes of their messages, so that large outputs take no more memory than small ones; a larger message is alone."""

LOOK_BACK = 200
"""Entries before a batch in which the call of a result is looked for: it is nearly always the one before."""

_KINDS: tuple[Kind, ...] = ("message", "fold")


def catch_up(store: Store, index: Index, sessions: Iterable[SessionInfo]) -> list[Progress]:
    """Index what the journals hold beyond what is indexed; how far each session is then."""
    known = {info.id: info for info in sessions}
    index.keep_only(lambda name: name in known or store.info(name) is not None)
    return [_one(store, index, each, known[each.id].version) for each in index.progress(known.values())]


def _one(store: Store, index: Index, now: Progress, version: int) -> Progress:
    if now.seq > version:
        # A store that lost its last entries, or a new session under an old name: what is indexed is not what is there.
        index.drop(now.id, seq=0, stored=True)
        now = _again(store, index, now)
    while now.seq < version:
        last = _batch_end(store, now.id, now.seq + 1, min(now.seq + BATCH, version))
        after = index.add(now, last, passages_between(store, now.id, now.seq + 1, last))
        # Another thread or process was faster: its work counts, and this one's was not written.
        now = after or _again(store, index, now)
    return now


def _batch_end(store: Store, session: str, first: int, last: int) -> int:
    """The last entry up to which messages are small enough to be read at once."""
    if first == last:
        return last
    total = 0
    for entry in store.read(session, first, last, kinds=("message",), bodies=False):
        total += message_meta(entry.meta).weight.bytes
        if total > BATCH_BYTES and entry.seq > first:
            return entry.seq - 1
    return last


def _again(store: Store, index: Index, old: Progress) -> Progress:
    info = store.info(old.id)
    found = index.progress([info]) if info else []
    return found[0] if found else Progress(old.id, old.key, old.created, 1 << 62, 0, 0, old.epoch)


def passages_between(store: Store, session: str, first: int, last: int) -> list[Passage]:
    """The passages of the entries from `first` to `last`."""
    entries = store.read(session, first, last, kinds=_KINDS)
    found: list[Passage] = []
    names = _Names(store, session, first)
    for entry in entries:
        if entry.kind == "fold":
            found += of_fold(entry)
        else:
            message = message_of(entry, store, session)
            names.learn(message)
            found += of_message(message, seq=entry.seq, tool_of=names.of)
    return found


class _Names:
    """Which tool was called under which id, as far as results need it."""

    def __init__(self, store: Store, session: str, first: int) -> None:
        self._before: Callable[[], Sequence[Entry]] | None = lambda: store.read(
            session, max(first - LOOK_BACK, 1), first - 1, kinds=("message",), bodies=False
        )
        self._names: dict[str, str] = {}

    def learn(self, message: Message) -> None:
        for call in message.calls:
            self._names[call.id] = call.name

    def of(self, id: str) -> str | None:
        if id not in self._names and self._before is not None:
            for entry in self._before():
                meta = message_meta(entry.meta)
                for call, name in zip(meta.calls, meta.tools, strict=False):
                    self._names.setdefault(call, name)
            self._before = None
        return self._names.get(id)
