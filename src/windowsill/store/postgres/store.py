"""The store in PostgreSQL."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg

from windowsill.errors import ConflictError, LockedError, StoreError
from windowsill.history.entries import COMMON, Entry, Kind
from windowsill.store import MOST_PLACES, Lock, Place, SessionInfo, StoreInfo
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
from windowsill.store.codec import DELETED, FACTS, SETTINGS, Packing, packing_of
from windowsill.store.postgres.pool import (
    BYTE_STRINGS,
    BYTES,
    FLOAT,
    FLOATS,
    INTEGER,
    INTEGERS,
    TEXT,
    TEXTS,
    Address,
    Connections,
    Parameters,
    ask,
    begin,
    connect,
    execute,
    is_lost,
    translated,
)
from windowsill.store.postgres.schema import applied, in_schema, migrate
from windowsill.store.postgres.tsvector import PostgresIndex
from windowsill.store.statements import Migration, migrations, statements

if TYPE_CHECKING:
    from psycopg_pool import ConnectionPool

PACKED, PLACED, SINGLE = "0004_packing_post", "0008_places_post", "0009_tips_post"
"""The steps after which values may be packed, entries hold their places and packed metas, and one is appended alone."""

MOST_TIPS = 1_000
"""Sessions whose ends are remembered."""
_NO_TIP = (0, b"")

PLACE_BYTES = 8
"""Bytes of a place's key that an entry holds."""


class PostgresStore:
    """Sessions in a PostgreSQL database, for any number of threads, processes and machines.

    `address` is `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`, with everything that libpq takes behind a `?`, and
    `schema` (default `windowsill`), `pool` (connections at most, 8), `wait` (seconds for a connection, for the turn of
    a writer and for a server that restarts, 10) and `prepare` (after how many runs a statement is prepared; never, so
    that it works behind a pooler; an append never is). A `pool` of your own is used as it is, and not closed. Tables
    that are missing are made, unless `create` is false and there are none at all.
    """

    def __init__(self, address: str, *, pool: ConnectionPool[Any] | None = None, create: bool = True) -> None:
        stated = Address(address)
        self._connections = Connections(stated, pool=pool)
        self.address = stated.name
        self._sql = {name: in_schema(text, stated.schema) for name, text in statements("postgres").items()}
        self._latest = threading.local()
        """The last entry that this thread appended."""
        self._tips: dict[str, tuple[int, bytes]] = {}
        """The keys of sessions with the hash of the entry that was appended last: the database knows if it still is."""
        with connect(stated) if pool is None else self._connections.connection() as db, translated(self.address):
            if db.info.encoding != "utf-8":
                raise StoreError(
                    f"{self.address}: the pool's connections are encoded as {db.info.encoding}",
                    remedy="open them with client_encoding=utf8",
                )
            if not create and not applied(db, stated.schema):
                raise StoreError(f"there are no sessions at {self.address}", remedy="check the address of the store")
            migrate(db, stated, migrations("postgres"))
            # Workers of an earlier version could not read it.
            done = applied(db, stated.schema).values()
            compress, self._placed, self._single = (step in done for step in (PACKED, PLACED, SINGLE))
        self._packing = Packing(compress=False)
        with closed_on_error(self):
            self._packing = packing_of(self, self.address, compress=compress, metas=self._placed)

    def migrate(self) -> list[Migration]:
        """Apply the steps of the schema that are missing, also those that older workers do not survive; return them."""
        with self._connections.connection() as db:
            return migrate(db, self._connections.address, migrations("postgres"), post=True)

    def create(self, session: str, *, at: float, settings: bytes = b"{}") -> bool:
        """Make sure the session exists; true when it is new. Its settings are written only then."""
        check_name("session's name", session)
        stored = self._packing.hide(settings, session, SETTINGS)
        row = {"created": float(at), "settings": stored, "checksum": settings_checksum(session, stored)}
        return bool(self._run("create_session", session=session, **row))

    def info(self, session: str) -> SessionInfo | None:
        """Return what is known of one session, or `None`."""
        rows = self._run("session_info", session=session)
        return self._packing.to_info(rows[0]) if rows else None

    def sessions(self) -> list[SessionInfo]:
        """List all sessions, the last used first."""
        return [self._packing.to_info(row) for row in self._run("all_sessions")]

    def delete(self, session: str) -> bool:
        """Remove a session with everything that belongs to it; false when there was none."""
        with self._connections.transaction() as db:
            execute(db, self._sql["drop_lease"], {"session": session, "holder": None})
            rows = execute(db, self._sql["hold_session"], {"session": session})
            for (key,) in rows:
                execute(db, self._sql["delete_passages_of_session"], {"key": key})
                execute(db, self._sql["delete_session"], {"key": key})
                execute(db, self._sql["count_deleted"], {"key": DELETED})
            return bool(rows)

    def set_settings(self, session: str, settings: bytes) -> None:
        """Replace the session's settings."""
        stored = self._packing.hide(settings, session, SETTINGS)
        checksum = settings_checksum(session, stored)
        if not self._run("set_settings", session=session, settings=stored, checksum=checksum):
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
        """Add entries after `version`, with what belongs to them, all or nothing; `ConflictError` if it moved on.

        When the connection breaks before the answer came, the entries that are there now tell what became of it: the
        same hashes are this append, nothing is one that did not happen, and anything else is somebody else's.
        """
        views, files = list(snapshots), list(blobs)
        check_batch(session, version, entries)
        check_extras(session, version + len(entries), views, files)
        packed = self._packing.pack_entries(session, entries)
        files, last_views = self._packing.pack_blobs(session, files), dict(self._packing.pack_views(session, views))
        apart, here = dict(places), dict[int, bytes]()
        if self._placed:
            # The first key of each entry stands in its row.
            for place, seq in list(apart.items()):
                if seq > version and seq not in here:
                    here[seq] = place[:PLACE_BYTES]
                    del apart[place]
        parameters: Parameters = [(TEXT, session), (INTEGER, _clamped(version, -1))]
        if self._single and len(entries) == 1 and not (last_views or files or apart):
            statement = "append_one"
            # In a transaction the session is locked before its tip, as by whoever deletes it.
            key, before = _NO_TIP if self._connections.held else self._tips.get(session, _NO_TIP)
            parameters += [(INTEGER, key), (BYTES, before)]
            parameters += _single(entries[0], *packed[0], here.get(version + 1, b""))
        else:
            statement = "append_with_places" if self._placed else "append"
            parameters += [
                (INTEGERS, [entry.seq for entry in entries]),
                (INTEGERS, [entry.parent for entry in entries]),
                (TEXTS, [entry.kind for entry in entries]),
                (TEXTS, [entry.id for entry in entries]),
                (FLOATS, [entry.at for entry in entries]),
                (BYTE_STRINGS, [meta for meta, _ in packed]),
                (BYTE_STRINGS, [entry.hash for entry in entries]),
                (BYTE_STRINGS, [entry.body_hash for entry in entries]),
                (BYTE_STRINGS, [body for _, body in packed]),
                *([(BYTE_STRINGS, [here.get(entry.seq, b"") for entry in entries])] if self._placed else []),
                (INTEGERS, last_views),
                (BYTE_STRINGS, last_views.values()),
                (TEXTS, [id for id, _ in files]),
                (BYTE_STRINGS, [data for _, data in files]),
                (BYTE_STRINGS, apart),
                (INTEGERS, apart.values()),
            ]
        end, lost = self._connections.deadline(), False
        while True:
            try:
                self._append(session, version, entries, self._sql[statement], parameters)
                break
            except StoreError as error:
                if not (lost and isinstance(error, ConflictError)):
                    self._connections.recover(error, end)
                lost = True
                if self._is_written(session, version, entries):
                    break
                if isinstance(error, ConflictError):
                    raise
        self._latest.append = (session, version, entries)

    @contextmanager
    def exclusive(self, session: str) -> Iterator[None]:
        """Keep everybody else from appending to a session until the end; what this thread writes is one transaction."""
        self._latest.append = None
        done = False
        try:
            with self._connections.hold() as db:
                execute(db, f"SET LOCAL lock_timeout = '{self._connections.address.wait}s'")
                execute(db, self._sql["wait_for_turn"], {"session": session})
                yield
                done = True
        except StoreError as error:
            # The answer to the commit is lost: what is there now tells.
            latest = self._latest.append
            if not done or not is_lost(error) or latest is None or not self._is_written(*latest):
                raise

    def _append(
        self, session: str, version: int, entries: Sequence[Entry], statement: str, parameters: Parameters
    ) -> None:
        try:
            with self._connections.connection() as db:
                found, *key = [None] if "\0" in session else ask(db, statement, parameters)
        except StoreError as error:
            if isinstance(error.__cause__, psycopg.errors.UniqueViolation):
                # Somebody else's entries may have the ids of these, as both were given by the same numbers.
                info = self.info(session)
                if info is not None and info.version != version:
                    raise ConflictError(session, version, info.version) from None
                if taken := self._run("taken_ids", session=session, ids=[entry.id for entry in entries]):
                    raise duplicate(session, taken[0][0]) from None
            raise
        if found is None:
            raise no_session(session)
        if found != version:
            raise ConflictError(session, version, found)
        if entries:
            if len(self._tips) > MOST_TIPS:
                self._tips.clear()
            # The key is told only where one entry was appended alone.
            known, _ = self._tips.get(session, _NO_TIP)
            self._tips[session] = ((key and key[0]) or known, entries[-1].hash)

    def _is_written(self, session: str, version: int, entries: Sequence[Entry]) -> bool:
        if not entries:
            # What comes without entries may be written twice.
            return False
        rows = self._run("written_hashes", session=session, version=version, most=len(entries))
        return [hash for (hash,) in rows] == [entry.hash for entry in entries]

    def read(
        self, session: str, first: int, last: int, *, kinds: Sequence[Kind] | None = None, bodies: bool = True
    ) -> list[Entry]:
        """Return the entries with `first <= seq <= last`, in order; without bodies their `body` is `None`."""
        few = "" if kinds is None or not COMMON.isdisjoint(kinds) else "rare_"
        wanted = None if kinds is None else list(kinds)
        statement = f"read_{few}whole" if bodies else f"read_{few}meta"
        numbers = {"first": _clamped(first), "last": _clamped(last)}
        return [
            self._packing.to_entry(session, row)
            for row in self._run(statement, session=session, kinds=wanted, **numbers)
        ]

    def jumps(self, session: str) -> list[tuple[int, int]]:
        """Return `(seq, parent)` of every entry whose parent is not the entry before it, in order."""
        return self._run("jumps", session=session)

    def find(self, session: str, id: str) -> Entry | None:
        """Return the entry with this id."""
        rows = self._run("find_entry", session=session, id=id)
        return self._packing.to_entry(session, rows[0]) if rows else None

    def places(self, keys: Iterable[bytes], *, session: str | None = None) -> list[Place]:
        """Return the places of the first of these keys that is known: one for each session, newer ones first."""
        rows = self._run("places", keys=list(keys), session=session, most=MOST_PLACES)
        return [Place(*row) for row in rows]

    def snapshot(self, session: str, at_or_before: int) -> tuple[int, bytes] | None:
        """Return the last view snapshot at or before an entry."""
        rows = self._run("last_snapshot", session=session, seq=_clamped(at_or_before, -1))
        return self._packing.to_view(session, *rows[0]) if rows else None

    def blob(self, session: str, id: str) -> bytes | None:
        """Return a blob of this session."""
        rows = self._run("blob", session=session, id=id)
        return self._packing.to_blob(session, id, rows[0][0]) if rows else None

    def put_blobs(self, session: str, blobs: Iterable[tuple[str, bytes]]) -> None:
        """Keep blobs without touching the journal; one whose id is already there is left as it is."""
        files = list(blobs)
        check_extras(session, 0, [], files)
        ids, data = [id for id, _ in files], [data for _, data in self._packing.pack_blobs(session, files)]
        if not self._run("put_blobs", session=session, ids=ids, blobs=data):
            raise no_session(session)

    def blob_ids(self, session: str, prefix: str) -> list[str]:
        """List the ids of the session's blobs that begin with `prefix`, in the order of their code points."""
        return [id for (id,) in self._run("blob_ids", session=session, prefix=prefix)]

    def drop_blobs(self, session: str, ids: Iterable[str]) -> int:
        """Remove blobs; return how many of them were there."""
        rows = self._run("drop_blobs", session=session, ids=[id for id in ids if "\0" not in id])
        if not rows:
            raise no_session(session)
        return int(rows[0][0])

    def remember(self, key: str, value: bytes) -> None:
        """Keep a fact learned about the world (a window, a calibration) across sessions."""
        check_name("fact's key", key)
        self._run("remember", key=key, value=self._packing.hide(value, FACTS, key))

    def recall(self, key: str) -> bytes | None:
        """Return a fact kept by `remember`."""
        rows = self._run("recall", key=key)
        return self._packing.unpack(rows[0][0], FACTS, key) if rows else None

    def facts(self, prefix: str) -> dict[str, bytes]:
        """Return the facts whose keys begin with `prefix`, in the order of their keys."""
        return {key: self._packing.unpack(value, FACTS, key) for key, value in self._run("facts", prefix=prefix)}

    def forget(self, key: str) -> bool:
        """Drop a fact; false when there was none."""
        return bool(self._run("forget", key=key))

    def lock(
        self, session: str, holder: str, *, seconds: float, now: float | None = None, patience: float = 0.0
    ) -> Lock:
        """Take or renew the session's lock; `LockedError` while another living holder has it, or came before."""
        check_name("session's name", session)

        def take(db: psycopg.Connection[Any]) -> tuple[str | None, float]:
            about: dict[str, object] = {"session": session, "holder": holder}
            with begin(db):
                ((_, clock),) = execute(db, self._sql["wait_for_lease"], about)
                at = clock if now is None else now
                held = [Lock(*row) for row in execute(db, self._sql["lease"], about)]
                line = [Lock(*row) for row in execute(db, self._sql["lease_line"], about)]
                first = in_the_way(holder, held[0] if held else None, line, at)
                if first is None:
                    execute(db, self._sql["put_lease"], {**about, "expires": at + seconds})
                    execute(db, self._sql["leave_lease_line"], {**about, "now": at})
                elif patience:
                    execute(db, self._sql["join_lease_line"], {**about, "expires": at + patience})
            return first, at

        first, at = self._connections.again(take)
        if first is not None:
            raise LockedError(session, first)
        return Lock(session, holder, at + seconds)

    def locked(self, session: str, *, now: float | None = None) -> Lock | None:
        """Return who holds the lock now."""
        rows = self._run("lease", session=session)
        lock = Lock(*rows[0]) if rows else None
        return lock if lock and in_force(lock, self._run("lease_clock")[0][0] if now is None else now) else None

    def unlock(self, session: str, holder: str | None = None) -> bool:
        """Give the lock and a place in the line back; without a holder, release the lock by force."""
        self._run("leave_lease_line", session=session, holder=holder, now=-math.inf)
        return bool(self._run("drop_lease", session=session, holder=holder))

    def search_index(self) -> PostgresIndex:
        """Return the index of what was said in the sessions, which is in the same database."""
        return PostgresIndex(self._connections, self._sql)

    def about(self) -> StoreInfo:
        """Return what is known of the store as a whole."""
        (size,) = self._run("size")[0]
        with self._connections.connection() as db:
            version = max(applied(db, self._connections.address.schema), default=0)
        deleted, encrypted = int(self.recall(DELETED) or 0), self._packing.key is not None
        return StoreInfo("postgresql", self.address, version, size, encrypted, deleted)

    def check(self, session: str | None = None) -> list[str]:
        """List what is wrong with the database itself; the hash chain is the reader's to check."""
        found: list[str] = []
        try:
            found += [f"the index {name} is not valid: REINDEX it" for (name,) in self._run("invalid_indexes")]
            found += journal_problems(lambda statement: self._run(statement, session=session))
        except StoreError as error:
            found.append(str(error))
        return found

    def vacuum(self) -> None:
        """Write the tables anew, without the bytes of what was deleted; others wait meanwhile.

        `VACUUM` alone would let them stand in its pages until others are written over them.
        """
        deleted, refused = self.recall(DELETED), list[str]()
        with self._connections.connection() as db:
            listener = lambda notice: refused.append(notice.message_primary or "")  # noqa: E731 - taken away below
            db.add_notice_handler(listener)
            try:
                db.execute(self._sql["vacuum"])
            finally:
                db.remove_notice_handler(listener)
        if refused:
            raise StoreError(f"{self.address}: {refused[0]}", remedy="let the owner of the tables run it")
        self._run("forget_deleted", key=DELETED, value=deleted)

    def close(self) -> None:
        """Release the connections. Closing twice is fine."""
        self._connections.close()

    def _run(self, statement: str, **parameters: object) -> list[Any]:
        return self._connections.run(self._sql[statement], parameters)


def _single(entry: Entry, meta: bytes, body: bytes, place: bytes) -> Parameters:
    """Return the parameters of an entry that is appended alone."""
    return [
        (INTEGER, entry.parent),
        (TEXT, entry.kind),
        (TEXT, entry.id),
        (FLOAT, entry.at),
        (BYTES, meta),
        (BYTES, entry.hash),
        (BYTES, entry.body_hash),
        (BYTES, body),
        (BYTES, place),
    ]


def _clamped(number: int, lowest: int = 0) -> int:
    return max(lowest, min(number, MAX_SEQ))
