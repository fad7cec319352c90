"""Bring the search index of a store up to the end of its journals, in batches that happen whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable

from windowsill.history.view import message_meta
from windowsill.journal.reader import message_of
from windowsill.search.passages import fold_passages, message_passages
from windowsill.search.query import index_words
from windowsill.store import SearchIndex, SessionInfo, Store
from windowsill.store.search_index import IndexedSession, Passage

BATCH = 1_000
"""Entries indexed in one transaction: enough that its commit costs little, few enough that others wait only shortly."""

BATCH_BYTES = 4 << 20
"""And bytes of their messages, so that large outputs take no more memory than small ones; a larger message is alone."""

LOOK_BACK = 200
"""Entries before a batch in which the call of a result is looked for: it is nearly always the one before."""


def catch_up(store: Store, index: SearchIndex, sessions: Iterable[SessionInfo]) -> list[IndexedSession]:
    """Index what the journals hold beyond what is indexed; return how far each session is then."""
    known = {info.id: info for info in sessions}
    # A session that was deleted and made again in the meantime is another one.
    found = [each for each in index.sessions(known) if each.created == known[each.id].created]
    return [_catch_up(store, index, each, known[each.id].version) for each in found]


def passages_between(store: Store, session: str, first: int, last: int, *, redacted: bool = False) -> list[Passage]:
    """Return the passages of the entries from `first` to `last`; with `redacted` as another session may see them."""
    found: list[Passage] = []
    tools: dict[str, str] = {}
    looked_back = False
    for entry in store.read(session, first, last, kinds=("message", "fold")):
        if entry.kind == "fold":
            found += fold_passages(entry, redacted=redacted)
            continue
        message = message_of(entry, store, session)
        tools.update((call.id, call.name) for call in message.calls)
        if not looked_back and any(not each.name and each.tool_use_id not in tools for each in message.results):
            tools, looked_back = _tools_before(store, session, first) | tools, True
        found += message_passages(message, seq=entry.seq, tools=tools, redacted=redacted)
    return found


def _catch_up(store: Store, index: SearchIndex, now: IndexedSession, version: int) -> IndexedSession:
    if now.seq > version:
        # A store that lost its last entries: what is indexed is not what is there.
        index.forget(now.id, seq=0)
        now = _reload(store, index, now)
    while now.seq < version:
        last = _batch_end(store, now.id, now.seq + 1, min(now.seq + BATCH, version))
        passages = passages_between(store, now.id, now.seq + 1, last)
        after = index.add(now, last, passages, [index_words(passage.text) for passage in passages])
        # Another thread or process was faster: its work counts, and this one's was not written.
        now = after or _reload(store, index, now)
    return now


def _batch_end(store: Store, session: str, first: int, last: int) -> int:
    """Return the last entry up to which messages are small enough to be read at once."""
    if first == last:
        return last
    total = 0
    for entry in store.read(session, first, last, kinds=("message",), bodies=False):
        total += message_meta(entry.meta).weight.bytes
        if total > BATCH_BYTES and entry.seq > first:
            return entry.seq - 1
    return last


def _reload(store: Store, index: SearchIndex, old: IndexedSession) -> IndexedSession:
    """Read how far a session is indexed now; one that is gone has nothing more to index."""
    info = store.info(old.id)
    found = [each for each in index.sessions([old.id]) if info and each.created == info.created]
    return found[0] if found else IndexedSession(old.id, old.key, old.created, 1 << 62, 0, 0, old.epoch)


def _tools_before(store: Store, session: str, first: int) -> dict[str, str]:
    """Return the names of the tools called shortly before an entry, by the ids of the calls."""
    found: dict[str, str] = {}
    for entry in store.read(session, max(first - LOOK_BACK, 1), first - 1, kinds=("message",), bodies=False):
        meta = message_meta(entry.meta)
        for call, name in zip(meta.calls, meta.tools, strict=False):
            found.setdefault(call, name)
    return found
