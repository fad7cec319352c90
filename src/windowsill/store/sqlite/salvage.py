"""Read what can still be read of a damaged database, page by page, through its tables alone: no index is trusted."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from windowsill.errors import DamagedError, StoreError, log
from windowsill.history.entries import Entry
from windowsill.store.codec import MARK, Packing, fitting_key, stated_keys
from windowsill.store.sqlite.connections import translated
from windowsill.store.sqlite.store import check_row
from windowsill.store.statements import statements

T = TypeVar("T")

MOST_SESSIONS = 1 << 20
"""Keys of sessions that are looked for when the last one cannot be read."""


class Remains(msgspec.Struct):
    """The remains of one session: entries by their numbers, with an empty body where that is lost, and blobs."""

    id: str
    created: float
    settings: bytes
    entries: dict[int, Entry]
    version: int
    """The number of its last entry, as far as that is known."""
    blobs: dict[str, bytes]


def read_remains(path: Path) -> Iterator[Remains]:
    """Read every session of a database, however damaged; it is not changed. `DamagedError` when nothing can be read."""
    with translated(path), closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
        sql = statements("sqlite")
        db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        packing = _packing(db, path)
        last = _number(db, sql["salvage_last_session"]) or MOST_SESSIONS
        for key, id, created, settings in _rows(_reader(db, sql["salvage_sessions"]), 1, last):
            if not isinstance(id, str) or not isinstance(created, float) or not isinstance(settings, bytes):
                continue
            entries: dict[int, Entry] = {}
            version = max(_number(db, sql["salvage_tip"], key), _number(db, sql["salvage_last_entry"], key))
            bodies = dict(_rows(_reader(db, sql["salvage_bodies"], key), 1, version))
            for row in _rows(_reader(db, sql["salvage_entries"], key), 1, version):
                body = bodies.get(row[0], b"")
                with suppress(DamagedError):
                    found = check_row((*row[:6], body if isinstance(body, bytes) else b"", *row[7:]), path)
                    entries[row[0]] = packing.to_entry(id, found)
            blobs: dict[str, bytes] = {}
            for of, blob, data in _rows(_reader(db, sql["salvage_blobs"]), 1, _number(db, sql["salvage_last_blob"])):
                if of == key and isinstance(blob, str) and isinstance(data, bytes):
                    with suppress(DamagedError):
                        blobs[blob] = packing.to_blob(id, blob, data)
            about = packing.to_info((id, created, created, version, settings))
            yield Remains(id, created, about.settings, entries, version, blobs)


def _packing(db: sqlite3.Connection, path: Path) -> Packing:
    """Return the packing of the database; with the first key that is stated, if it cannot say which one it needs."""
    stated = stated_keys(os.environ)
    try:
        row = db.execute(statements("sqlite")["recall"], (MARK,)).fetchone()
        return Packing(fitting_key(row[0] if row else None, stated, str(path)))
    except (sqlite3.Error, StoreError) as error:
        if not stated and isinstance(error, StoreError):
            raise
        log.warning("%s does not say with which key it was encrypted: the first that is stated is tried", path)
        return Packing(stated[0] if stated else None)


def _reader(db: sqlite3.Connection, statement: str, *first: object) -> Callable[[int, int], list[Any]]:
    return lambda low, high: db.execute(statement, (*first, low, high)).fetchall()


def _rows(read: Callable[[int, int], list[T]], low: int, high: int) -> Iterator[T]:
    """Yield the rows between two keys; a range that cannot be read is halved, down to single rows."""
    if low > high:
        return
    try:
        yield from read(low, high)
    except (sqlite3.Error, UnicodeDecodeError):
        if low < high:
            middle = (low + high) // 2
            yield from _rows(read, low, middle)
            yield from _rows(read, middle + 1, high)


def _number(db: sqlite3.Connection, statement: str, *parameters: object) -> int:
    try:
        row = db.execute(statement, parameters).fetchone()
    except (sqlite3.Error, UnicodeDecodeError):
        return 0
    return row[0] if row and isinstance(row[0], int) else 0
