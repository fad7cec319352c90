"""The store in memory: everything a store does except outliving the process. Made for tests, and for trying things."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from windowsill.errors import ConflictError, LockedError
from windowsill.history.entries import Entry, Kind
from windowsill.store import MOST_PLACES, Lock, Place, SessionInfo, StoreInfo
from windowsill.store.base import check_batch, check_extras, check_name, duplicate, in_force, in_the_way, no_session

if TYPE_CHECKING:
    from windowsill.store.sqlite.fts import MemoryIndex


class _Journal(msgspec.Struct):
    created: float
    settings: bytes
    entries: list[Entry] = msgspec.field(default_factory=list)
    by_id: dict[str, Entry] = msgspec.field(default_factory=dict)
    jumps: list[tuple[int, int]] = msgspec.field(default_factory=list)
    snapshots: dict[int, bytes] = msgspec.field(default_factory=dict)
    blobs: dict[str, bytes] = msgspec.field(default_factory=dict)
    places: dict[bytes, int] = msgspec.field(default_factory=dict)

    def add(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.by_id[entry.id] = entry
        if entry.parent != entry.seq - 1:
            self.jumps.append((entry.seq, entry.parent))

    def info(self, session: str) -> SessionInfo:
        updated = max(self.created, self.entries[-1].at) if self.entries else self.created
        return SessionInfo(session, self.created, updated, len(self.entries), self.settings)


_NONE = _Journal(0.0, b"{}")
"""Stands for a session that does not exist where it is read: it is never written to."""


class MemoryStore:
    """Sessions in this process, gone with it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._journals: dict[str, _Journal] = {}
        self._holders: dict[bytes, dict[str, None]] = {}
        """The sessions that have a place for each key, the newest last."""
        self._facts: dict[str, bytes] = {}
        self._leases: dict[str, Lock] = {}
        self._line: dict[str, dict[str, Lock]] = {}
        """Those who wait for a lock, in the order in which they came."""
        self._index: MemoryIndex | None = None

    def create(self, session: str, *, at: float, settings: bytes = b"{}") -> bool:
        """Make sure the session exists; true when it is new. Its settings are written only then."""
        check_name("session's name", session)
        with self._lock:
            if session in self._journals:
                return False
            self._journals[session] = _Journal(float(at), settings)
            if self._index:
                self._index.create_session(session, float(at))
            return True

    def info(self, session: str) -> SessionInfo | None:
        """Return what is known of one session, or `None`."""
        with self._lock:
            journal = self._journals.get(session)
            return journal.info(session) if journal else None

    def sessions(self) -> list[SessionInfo]:
        """List all sessions, the last used first."""
        with self._lock:
            found = [journal.info(session) for session, journal in self._journals.items()]
        return sorted(found, key=lambda info: (-info.updated, info.id))

    def delete(self, session: str) -> bool:
        """Remove a session with everything that belongs to it; false when there was none."""
        with self._lock:
            self._leases.pop(session, None)
            if self._index:
                self._index.delete_session(session)
            journal = self._journals.pop(session, None)
            for key in journal.places if journal else ():
                del self._holders[key][session]
            return journal is not None

    def set_settings(self, session: str, settings: bytes) -> None:
        """Replace the session's settings."""
        with self._lock:
            self._journal(session).settings = settings

    def append(
        self,
        session: str,
        version: int,
        entries: Sequence[Entry],
        *,
        snapshots: Iterable[tuple[int, bytes]] = (),
        blobs: Iterable[tuple[str, bytes]] = (),
        places: Iterable[tuple[bytes, int]] = (),
    ) -> None:
        """Add entries after `version`, with what belongs to them, all or nothing; `ConflictError` if it moved on."""
        views, files = list(snapshots), list(blobs)
        check_batch(session, version, entries)
        check_extras(session, version + len(entries), views, files)
        with self._lock:
            journal = self._journal(session)
            if len(journal.entries) != version:
                raise ConflictError(session, version, len(journal.entries))
            for entry in entries:
                if entry.id in journal.by_id:
                    raise duplicate(session, entry.id)
            for entry in entries:
                journal.add(entry)
            journal.snapshots.update(views)
            for id, data in files:
                journal.blobs.setdefault(id, data)
            for key, seq in places:
                journal.places[key] = seq
                self._holders.setdefault(key, {})[session] = None

    def exclusive(self, session: str) -> AbstractContextManager[object]:  # noqa: ARG002 - one lock for all sessions
        """Keep everybody else out until the end."""
        return self._lock

    def read(
        self, session: str, first: int, last: int, *, kinds: Sequence[Kind] | None = None, bodies: bool = True
    ) -> list[Entry]:
        """Return the entries with `first <= seq <= last`, in order; without bodies their `body` is `None`."""
        with self._lock:
            found = self._journals.get(session, _NONE).entries[max(first - 1, 0) : max(last, 0)]
        if kinds is not None:
            found = [entry for entry in found if entry.kind in kinds]
        return found if bodies else [msgspec.structs.replace(entry, body=None) for entry in found]

    def jumps(self, session: str) -> list[tuple[int, int]]:
        """Return `(seq, parent)` of every entry whose parent is not the entry before it, in order."""
        with self._lock:
            return list(self._journals.get(session, _NONE).jumps)

    def find(self, session: str, id: str) -> Entry | None:
        """Return the entry with this id."""
        with self._lock:
            return self._journals.get(session, _NONE).by_id.get(id)

    def places(self, keys: Iterable[bytes], *, session: str | None = None) -> list[Place]:
        """Return the places of the first of these keys that is known: one for each session, newer ones first."""
        with self._lock:
            for key in keys:
                holders = self._holders.get(key, {})
                names = reversed(holders) if session is None else [session] if session in holders else []
                found = [Place(key, name, self._journals[name].places[key]) for name in islice(names, MOST_PLACES)]
                if found:
                    return found
        return []

    def snapshot(self, session: str, at_or_before: int) -> tuple[int, bytes] | None:
        """Return the last view snapshot at or before an entry."""
        with self._lock:
            known = self._journals.get(session, _NONE).snapshots
            last = max((seq for seq in known if seq <= at_or_before), default=None)
            return None if last is None else (last, known[last])

    def blob(self, session: str, id: str) -> bytes | None:
        """Return a blob of this session."""
        with self._lock:
            return self._journals.get(session, _NONE).blobs.get(id)

    def put_blobs(self, session: str, blobs: Iterable[tuple[str, bytes]]) -> None:
        """Keep blobs without touching the journal; one whose id is already there is left as it is."""
        files = list(blobs)
        check_extras(session, 0, [], files)
        with self._lock:
            kept = self._journal(session).blobs
            for id, data in files:
                kept.setdefault(id, data)

    def blob_ids(self, session: str, prefix: str) -> list[str]:
        """List the ids of the session's blobs that begin with `prefix`, in the order of their code points."""
        with self._lock:
            return sorted(id for id in self._journals.get(session, _NONE).blobs if id.startswith(prefix))

    def drop_blobs(self, session: str, ids: Iterable[str]) -> int:
        """Remove blobs; return how many of them were there."""
        doomed = set(ids)
        with self._lock:
            kept = self._journal(session).blobs
            return len([id for id in doomed if kept.pop(id, None) is not None])

    def remember(self, key: str, value: bytes) -> None:
        """Keep a fact learned about the world (a window, a calibration) across sessions."""
        check_name("fact's key", key)
        with self._lock:
            self._facts[key] = value

    def recall(self, key: str) -> bytes | None:
        """Return a fact kept by `remember`."""
        with self._lock:
            return self._facts.get(key)

    def facts(self, prefix: str) -> dict[str, bytes]:
        """Return the facts whose keys begin with `prefix`, in the order of their keys."""
        with self._lock:
            return {key: value for key, value in sorted(self._facts.items()) if key.startswith(prefix)}

    def forget(self, key: str) -> bool:
        """Drop a fact; false when there was none."""
        with self._lock:
            return self._facts.pop(key, None) is not None

    def lock(
        self, session: str, holder: str, *, seconds: float, now: float | None = None, patience: float = 0.0
    ) -> Lock:
        """Take or renew the session's lock; `LockedError` while another living holder has it, or came before."""
        check_name("session's name", session)
        now = time.monotonic() if now is None else now
        with self._lock:
            line = self._line.setdefault(session, {})
            first = in_the_way(holder, self._leases.get(session), line.values(), now)
            if first is not None:
                if patience:
                    line[holder] = Lock(session, holder, now + patience)
                raise LockedError(session, first)
            line.pop(holder, None)
            self._leases[session] = lock = Lock(session, holder, now + seconds)
            return lock

    def locked(self, session: str, *, now: float | None = None) -> Lock | None:
        """Return who holds the lock now."""
        with self._lock:
            held = self._leases.get(session)
        return held if held and in_force(held, time.monotonic() if now is None else now) else None

    def unlock(self, session: str, holder: str | None = None) -> bool:
        """Give the lock and a place in the line back; without a holder, release the lock by force."""
        with self._lock:
            self._line.get(session, {}).pop(holder or "", None)
            held = self._leases.get(session)
            if held is None or holder not in (None, held.holder):
                return False
            del self._leases[session]
            return True

    def search_index(self) -> MemoryIndex:
        """Return the index of what was said in the sessions; it is made when it is first asked for."""
        from windowsill.store.sqlite.fts import MemoryIndex  # noqa: PLC0415 - few sessions in memory search

        with self._lock:
            if self._index is None:
                self._index = MemoryIndex()
                for session, journal in self._journals.items():
                    self._index.create_session(session, journal.created)
            return self._index

    def about(self) -> StoreInfo:
        """Return what is known of the store as a whole."""
        return StoreInfo("memory", f"memory:{id(self)}", 0, 0)

    def check(self, session: str | None = None) -> list[str]:  # noqa: ARG002 - there is no file that could be damaged
        """Nothing: memory has no file that could be damaged."""
        return []

    def vacuum(self) -> None:
        """Do nothing: what was deleted is gone."""

    def close(self) -> None:
        """Nothing to release: the store stays usable, so that a test can look at it afterwards."""

    def _journal(self, session: str) -> _Journal:
        journal = self._journals.get(session)
        if journal is None:
            raise no_session(session)
        return journal
