"""The store in one SQLite file."""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec

from windowsill.errors import ConflictError, DamagedError, LockedError, StoreError, log
from windowsill.history.entries import COMMON, Entry, Kind
from windowsill.store import BUSY_SECONDS, MOST_PLACES, Lock, Place, SessionInfo, StoreInfo
from windowsill.store.base import (
    MAX_SEQ,
    check_batch,
    check_extras,
    check_name,
    closed_on_error,
    duplicate,
    in_force,
    in_the_way,
    journal_problems,
    no_session,
    settings_checksum,
)
from windowsill.store.codec import CLOCK, FACTS, SETTINGS, SINCE_ENCRYPTED, Packing, packing_of
from windowsill.store.sqlite.connections import Connections, disk_is_read_only
from windowsill.store.sqlite.fts import SQLiteIndex
from windowsill.store.sqlite.migrate import make_ready
from windowsill.store.statements import migrations, statements

_WHOLE = (int, int, str, str, float, bytes, bytes, bytes, bytes)
_META = (*_WHOLE[:6], type(None), *_WHOLE[7:])


def check_row(row: Sequence[Any], path: Path) -> Sequence[Any]:
    """Return a row that holds an entry; overwritten pages can give any type, which no hash could even compare."""
    if tuple(map(type, row)) not in (_WHOLE, _META):
        raise _changed(path, f"entry {row[0]!r}")
    return row


def _bytes(value: Any, what: str, path: Path) -> bytes:
    """Return a value that was written as bytes; overwritten pages can give any type."""
    if not isinstance(value, bytes):
        raise _changed(path, what)
    return value


def _changed(path: Path, what: str) -> DamagedError:
    return DamagedError(
        f"{path}: {what} is not what was written",
        remedy="put a backup in its place, or run `windowsill sessions verify` to see what is left",
        path=path,
    )


def problems(db: sqlite3.Connection, sql: Mapping[str, str], session: str | None) -> list[str]:
    """List problems: SQLite's own check of the file and its indexes, then rows that are not what was written."""
    found = [text for (text,) in db.execute("PRAGMA integrity_check") if text != "ok"]
    found += [
        f"a row of {table} belongs to no {parent}" for table, _, parent, _ in db.execute("PRAGMA foreign_key_check")
    ]
    found += journal_problems(lambda statement: db.execute(sql[statement], (session,)))
    (strays,) = db.execute(sql["stray_bodies"]).fetchone()
    if strays:
        found.append(f"{strays} bodies belong to no entry")
    return found


LARGE_BLOB = 65_536
"""Bytes above which a blob is read page by page: a row that holds it would be put together in memory first."""

BOOT = Path("/proc/sys/kernel/random/boot_id")
"""Names the start of the machine since which its steady clock counts."""

MOST_KEYS = 1_000
"""Sessions whose keys are remembered."""

SHORT = 1_000
"""Entries that are walked faster than an index over all entries of a session is compared with them."""


class SQLiteStore:
    """Sessions in a file, for any number of threads and processes of one machine."""

    def __init__(self, path: Path | str, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = Path(path).absolute()
        self._sql = statements("sqlite")
        make_ready(self.path, migrations("sqlite"), busy_seconds=busy_seconds)
        self._connections = Connections(self.path, busy_seconds=busy_seconds)
        self._packing = Packing()
        with closed_on_error(self):
            self._packing = packing_of(self, str(self.path))
        self._keys: dict[str, int] = {}
        """Keys of sessions that were appended to: the database tells whether they still are."""
        self._compared: set[tuple[str, str]] = set()
        """Indexes, with the sessions whose entries were compared with them."""

    def create(self, session: str, *, at: float, settings: bytes = b"{}") -> bool:
        """Make sure the session exists; true when it is new. Its settings are written only then."""
        check_name("session's name", session)
        stored = self._packing.hide(settings, session, SETTINGS)
        row = (session, float(at), stored, settings_checksum(session, stored))
        with self._connections.writing() as db:
            return db.execute(self._sql["create_session"], row).rowcount > 0

    def info(self, session: str) -> SessionInfo | None:
        """Return what is known of one session, or `None`."""
        row = self._one("session_info", session)
        return self._packing.to_info(row) if row else None

    def sessions(self) -> list[SessionInfo]:
        """List all sessions, the last used first."""
        return [self._packing.to_info(row) for row in self._all("all_sessions")]

    def delete(self, session: str) -> bool:
        """Remove a session with everything that belongs to it; false when there was none."""
        with self._connections.writing() as db:
            row = db.execute(self._sql["session_key"], (session,)).fetchone()
            db.execute(self._sql["drop_lease"], (session, None))
            if row:
                db.execute(self._sql["delete_bodies"], row)
                db.execute(self._sql["delete_session"], row)
        if row:
            self._connections.checkpoint()
        return row is not None

    def set_settings(self, session: str, settings: bytes) -> None:
        """Replace the session's settings."""
        stored = self._packing.hide(settings, session, SETTINGS)
        with self._connections.writing() as db:
            if not db.execute(
                self._sql["set_settings"], (stored, settings_checksum(session, stored), session)
            ).rowcount:
                raise no_session(session)

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
        # Whoever is waited for should not wait for this.
        packed = self._packing.pack_entries(session, entries)
        if views or files:
            check_extras(session, version + len(entries), views, files)
            views, files = self._packing.pack_views(session, views), self._packing.pack_blobs(session, files)
        with self._connections.writing() as db:
            key = self._move_tip(db, session, version, entries)
            if entries:
                self._insert(db, session, key, entries, packed)
            if views:
                db.executemany(self._sql["put_snapshot"], [(key, seq, data) for seq, data in views])
            if files:
                db.executemany(self._sql["put_blob"], [(key, id, data) for id, data in files])
            if places:
                db.executemany(self._sql["put_place"], [(place, key, seq) for place, seq in places])

    def exclusive(self, session: str) -> AbstractContextManager[object]:  # noqa: ARG002 - one lock for all sessions
        """Keep everybody else from writing until the end; what this thread writes meanwhile is one transaction."""
        return self._connections.writing()

    def read(
        self, session: str, first: int, last: int, *, kinds: Sequence[Kind] | None = None, bodies: bool = True
    ) -> list[Entry]:
        """Return the entries with `first <= seq <= last`, in order; without bodies their `body` is `None`."""
        wanted = None if kinds is None else msgspec.json.encode(list(kinds)).decode()
        rare = kinds is not None and COMMON.isdisjoint(kinds)
        few = "rare_" if rare and last - first >= SHORT else ""
        if few:
            self._compare_index("rare", session)
        statement = f"read_{few}whole" if bodies else f"read_{few}meta"
        rows = self._all(statement, session, max(first, 0), min(last, MAX_SEQ), wanted)
        return [self._packing.to_entry(session, check_row(row, self.path)) for row in rows]

    def jumps(self, session: str) -> list[tuple[int, int]]:
        """Return `(seq, parent)` of every entry whose parent is not the entry before it, in order."""
        self._compare_index("jump", session)
        return self._all("jumps", session)

    def find(self, session: str, id: str) -> Entry | None:
        """Return the entry with this id."""
        row = self._one("find_entry", session, id)
        if row and row[3] != id:
            self._remake_indexes()
            row = self._one("find_entry", session, id)
        return self._packing.to_entry(session, check_row(row, self.path)) if row else None

    def places(self, keys: Iterable[bytes], *, session: str | None = None) -> list[Place]:
        """Return the places of the first of these keys that is known: one for each session, newer ones first."""
        everywhere, here = self._sql["places"], self._sql["places_in_session"]
        with self._connections.reading() as db:
            for key in keys:
                asked = (everywhere, (key, MOST_PLACES)) if session is None else (here, (key, session))
                rows = db.execute(*asked).fetchall()
                if rows:
                    return [Place(key, name, seq) for name, seq in rows]
        return []

    def snapshot(self, session: str, at_or_before: int) -> tuple[int, bytes] | None:
        """Return the last view snapshot at or before an entry."""
        row = self._one("last_snapshot", session, max(-1, min(at_or_before, MAX_SEQ)))
        return self._packing.to_view(session, *row) if row else None

    def blob(self, session: str, id: str) -> bytes | None:
        """Return a blob of this session."""
        with self._connections.reading() as db:
            # Both steps see the same state of the file.
            db.execute("BEGIN")
            try:
                rows = db.execute(self._sql["blob"], (session, id, LARGE_BLOB)).fetchall()
                if not rows:
                    return None
                stored = rows[0][1]
                if stored is None:
                    with db.blobopen("blob", "data", rows[0][0], readonly=True) as data:
                        stored = data.read()
            finally:
                db.execute("COMMIT")
        return self._packing.to_blob(session, id, _bytes(stored, f"blob {id!r}", self.path))

    def put_blobs(self, session: str, blobs: Iterable[tuple[str, bytes]]) -> None:
        """Keep blobs without touching the journal; one whose id is already there is left as it is."""
        files = list(blobs)
        check_extras(session, 0, [], files)
        files = self._packing.pack_blobs(session, files)
        with self._connections.writing() as db:
            key = self._key(db, session)
            db.executemany(self._sql["put_blob"], [(key, id, data) for id, data in files])

    def blob_ids(self, session: str, prefix: str) -> list[str]:
        """List the ids of the session's blobs that begin with `prefix`, in the order of their code points."""
        return [id for (id,) in self._all("blob_ids", session, prefix)]

    def drop_blobs(self, session: str, ids: Iterable[str]) -> int:
        """Remove blobs; return how many of them were there."""
        doomed = set(ids)
        with self._connections.writing() as db:
            key = self._key(db, session)
            return sum(db.execute(self._sql["drop_blob"], (key, id)).rowcount for id in doomed)

    def remember(self, key: str, value: bytes) -> None:
        """Keep a fact learned about the world (a window, a calibration) across sessions."""
        check_name("fact's key", key)
        with self._connections.writing() as db:
            db.execute(self._sql["remember"], (key, self._packing.hide(value, FACTS, key)))

    def recall(self, key: str) -> bytes | None:
        """Return a fact kept by `remember`."""
        row = self._one("recall", key)
        return self._packing.unpack(row[0], FACTS, key) if row else None

    def facts(self, prefix: str) -> dict[str, bytes]:
        """Return the facts whose keys begin with `prefix`, in the order of their keys."""
        return {key: self._packing.unpack(value, FACTS, key) for key, value in self._all("facts", prefix)}

    def forget(self, key: str) -> bool:
        """Drop a fact; false when there was none."""
        with self._connections.writing() as db:
            return db.execute(self._sql["forget"], (key,)).rowcount > 0

    def lock(
        self, session: str, holder: str, *, seconds: float, now: float | None = None, patience: float = 0.0
    ) -> Lock:
        """Take or renew the session's lock; `LockedError` while another living holder has it, or came before."""
        check_name("session's name", session)
        with self._connections.writing() as db:
            now = self._clock(keep=True) if now is None else now
            held = [Lock(*row) for row in db.execute(self._sql["lease"], (session,))]
            line = [Lock(*row) for row in db.execute(self._sql["lease_line"], (session,))]
            first = in_the_way(holder, held[0] if held else None, line, now)
            if first is None:
                db.execute(self._sql["put_lease"], (session, holder, now + seconds))
                db.execute(self._sql["leave_lease_line"], (session, holder, now))
            elif patience:
                db.execute(self._sql["join_lease_line"], (session, holder, now + patience))
        if first is not None:
            raise LockedError(session, first)
        return Lock(session, holder, now + seconds)

    def locked(self, session: str, *, now: float | None = None) -> Lock | None:
        """Return who holds the lock now."""
        row = self._one("lease", session)
        lock = Lock(*row) if row else None
        return lock if lock and in_force(lock, self._clock() if now is None else now) else None

    def unlock(self, session: str, holder: str | None = None) -> bool:
        """Give the lock and a place in the line back; without a holder, release the lock by force."""
        with self._connections.writing() as db:
            db.execute(self._sql["leave_lease_line"], (session, holder, -math.inf))
            return db.execute(self._sql["drop_lease"], (session, holder)).rowcount > 0

    def _clock(self, *, keep: bool = False) -> float:
        """Return the time by a clock of the file's own, which goes on evenly when that of the machine is set.

        It began at the time of the machine when somebody first took a lock since the machine was started.
        """
        try:
            boot = BOOT.read_text().strip()
        except OSError:
            return time.time()
        known = (self.recall(CLOCK) or b"").decode(errors="replace").split()
        if known[:1] != [boot]:
            known = [boot, repr(time.time() - time.monotonic())]
            if keep:
                self.remember(CLOCK, " ".join(known).encode())
        return float(known[1]) + time.monotonic()

    def search_index(self) -> SQLiteIndex:
        """Return the index of what was said in the sessions, which is in the same file."""
        return SQLiteIndex(self._connections)

    def about(self) -> StoreInfo:
        """Return what is known of the store as a whole."""
        files = (self.path, self.path.with_name(f"{self.path.name}-wal"))
        size = sum(file.stat().st_size for file in files if file.exists())
        version = migrations("sqlite")[-1].version
        return StoreInfo("sqlite", str(self.path.resolve()), version, size, encrypted=self._packing.key is not None)

    def check(self, session: str | None = None) -> list[str]:
        """List what is wrong with the file itself; the hash chain is the reader's to check."""
        found: list[str] = []
        try:
            with self._connections.reading() as db:
                found += problems(db, self._sql, session)
            if not disk_is_read_only(self.path):  # SQLite writes to compare the words of passages
                with self._connections.writing() as db:
                    db.execute(self._sql["check_passage_words"])
        except StoreError as error:
            found.append(str(error))
        return found

    def vacuum(self) -> None:
        """Write the file anew without the room of what was deleted; others wait meanwhile."""
        self._connections.vacuum()

    def close(self) -> None:
        """Release the connections. Closing twice is fine."""
        self._connections.close()

    def _key(self, db: sqlite3.Connection, session: str) -> int:
        row = db.execute(self._sql["session_key"], (session,)).fetchone()
        if row is None:
            raise no_session(session)
        return int(row[0])

    def _move_tip(self, db: sqlite3.Connection, session: str, version: int, entries: Sequence[Entry]) -> int:
        """Move the end of a session to the last of these entries; return the session's key.

        Of a session that was appended to before, the tip alone tells where it ends: no journal is looked at.
        """
        jumps = rare = 0
        for entry in entries:
            jumps += entry.parent != entry.seq - 1
            rare += entry.kind not in COMMON
        tip = (entries[-1].seq, entries[-1].hash, jumps, rare) if entries else ()
        key = self._keys.get(session)
        if key is not None and tip and db.execute(self._sql["move_tip"], (*tip, key, version, session)).rowcount:
            return key
        row = db.execute(self._sql["journal_end"], (session,)).fetchone()
        if row is None:
            raise no_session(session)
        key, found, encrypted = row
        if found != version:
            raise ConflictError(session, version, found)
        if encrypted and self._packing.key is None:
            what, remedy = SINCE_ENCRYPTED
            raise StoreError(f"{self.path}: {what}", remedy=remedy, path=self.path)
        if tip:
            db.execute(self._sql["put_tip"], (key, *tip))
            if len(self._keys) > MOST_KEYS:
                self._keys.clear()
            self._keys[session] = key
        return int(key)

    def _insert(
        self,
        db: sqlite3.Connection,
        session: str,
        key: int,
        entries: Sequence[Entry],
        packed: Sequence[tuple[bytes, bytes]],
    ) -> None:
        rows, bodies = [], []
        for e, (meta, body) in zip(entries, packed, strict=True):
            rows.append((key, e.seq, e.parent, e.kind, e.id, e.at, meta, e.hash, e.body_hash))
            if body:
                bodies.append((key, e.seq, body))
        try:
            db.executemany(self._sql["insert_entry"], rows)
        except sqlite3.IntegrityError:
            ids = msgspec.json.encode([entry.id for entry in entries]).decode()
            taken = db.execute(self._sql["taken_ids"], (key, ids)).fetchone()
            if taken is None:
                raise
            raise duplicate(session, taken[0]) from None
        db.executemany(self._sql["insert_body"], bodies)

    def _compare_index(self, which: str, session: str) -> None:
        """Make the indexes over entries anew, once, if one has other rows of this session than were written.

        They decide what is a fold or a branch: one that lost a row would hide it from every list.
        """
        if (which, session) in self._compared:
            return
        try:
            row = self._one(f"is_{which}_index_whole", session)
            whole = row is None or bool(row[0])
        except DamagedError:
            whole = False
        if not whole:
            self._remake_indexes()
        self._compared.add((which, session))

    def _remake_indexes(self) -> None:
        log.warning("%s: indexes over its entries are damaged and are made again", self.path)
        with self._connections.writing() as db:
            for index in ("entry_by_id", "entry_jump", "entry_rare"):
                db.execute(f"REINDEX {index}")

    def _one(self, statement: str, *parameters: object) -> Any:
        with self._connections.reading() as db:
            # All rows are fetched: a statement left half read would keep its snapshot, and the log could not shrink.
            rows = db.execute(self._sql[statement], parameters).fetchall()
        return rows[0] if rows else None

    def _all(self, statement: str, *parameters: object) -> list[Any]:
        with self._connections.reading() as db:
            return db.execute(self._sql[statement], parameters).fetchall()
