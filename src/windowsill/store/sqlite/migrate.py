"""Bring a database to the schema this version knows, or refuse it untouched."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

from windowsill.errors import DamagedError, StoreError, WindowsillError
from windowsill.store import BUSY_SECONDS
from windowsill.store.sqlite.connections import connect, is_busy, translated
from windowsill.store.statements import Migration

APPLICATION_ID = 0x57534C4C
"""'WSLL' in the file's header: tells our databases from those of other programs."""


PLACES = "0004_places"
"""The step that made the index of `Store.places`, which is filled from what stands in the entries."""


def migrate(db: sqlite3.Connection, steps: Sequence[Migration], path: Path) -> int:
    """Apply the steps that are missing, each in a transaction of its own; the version reached."""
    newest = steps[-1].version
    for step in steps:
        if schema_version(db, newest, path) < step.version:
            _apply(db, step, newest, path)
    return newest


def schema_version(db: sqlite3.Connection, newest: int, path: Path) -> int:
    """Return the database's version; raise for one of a newer Windowsill or of another program."""
    # All three at one moment: another process may be creating the tables.
    alone = not db.in_transaction
    if alone:
        db.execute("BEGIN")
    try:
        (tables,) = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (owner,) = db.execute("PRAGMA application_id").fetchone()
    finally:
        if alone:
            db.execute("ROLLBACK")
    if owner != APPLICATION_ID and (tables or version):
        raise StoreError(
            f"{path} is a database of another program", remedy="give another path; it was left as it is", path=path
        )
    if version > newest:
        raise StoreError(
            f"{path} has schema version {version}, and this Windowsill knows up to {newest}",
            remedy="upgrade windowsill; the file was left as it is",
            path=path,
        )
    return int(version)


def _apply(db: sqlite3.Connection, step: Migration, newest: int, path: Path) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have done it while this one waited for the lock.
        if schema_version(db, newest, path) < step.version:
            for statement in split(step.script):
                db.execute(statement)
            if step.name == PLACES:
                _fill_places(db)
            # PRAGMA takes no parameters; both are integers of ours.
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {step.version:d}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _fill_places(db: sqlite3.Connection) -> None:
    """Enter the messages of an older version under the keys by which a client's list finds them."""
    from windowsill.history.view import message_meta  # noqa: PLC0415 - only needed for an old database

    def places() -> Iterator[tuple[bytes, int, int]]:
        messages = db.execute("SELECT session, seq, meta FROM entry WHERE kind = 'message' ORDER BY seq")
        for session, seq, meta in messages:
            # A damaged entry stays to be told by `verify`: the others are moved.
            with suppress(WindowsillError):
                yield from ((key, session, seq) for key in message_meta(meta).places)

    db.executemany("INSERT OR REPLACE INTO place (key, session, seq) VALUES (?, ?, ?)", list(places()))


def split(script: str) -> Iterator[str]:
    """Divide a script into its statements: `executescript` would commit in the middle."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement


PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600
"""Sessions hold private text: nobody but their owner reads them."""

_PAUSE_SECONDS = 0.01

_CLOSE_SECONDS = 1.0
"""The wait for a process that is just closing the database: it removes two files."""

_creating = threading.Lock()


def make_ready(path: Path, steps: Sequence[Migration], *, busy_seconds: float = BUSY_SECONDS) -> None:
    """Create the database if it is missing and bring it to the newest schema; an error leaves it as it was."""
    create(path)
    _check_log(path)
    with translated(path), closing(connect(path, busy_seconds=busy_seconds)) as db:
        # Before anything is written: what is not ours, or newer than we are, stays as it is.
        schema_version(db, steps[-1].version, path)
        _write_ahead(db, busy_seconds)
        migrate(db, steps, path)


def create(path: Path) -> None:
    """Make an empty file, and its folder, that only their owner can read; what exists keeps its permissions."""
    try:
        if path.is_dir():
            raise StoreError(f"{path} is a folder", remedy="give a file, or a folder whose name has no .db at its end")
        path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        # One thread at a time: closing the new file would drop the locks of a connection that another thread opened.
        with _creating:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE_FILE))
    except FileExistsError as error:
        if path.is_symlink() and not path.exists():
            what, remedy = f"{path} is a link to {path.readlink()}, which does not exist", "make what it points to, or"
            raise StoreError(what, remedy=f"{remedy} remove the link", path=path) from error
        if not path.exists():
            raise StoreError(f"{path.parent} is not a folder", remedy="give another path", path=path) from error
    except OSError as error:
        raise StoreError(
            f"{path} cannot be created ({error.strerror})",
            remedy="allow this user to write to the folder, or set WINDOWSILL_HOME to another one",
            path=path,
        ) from error


def _check_log(path: Path) -> None:
    """Refuse a database whose write-ahead log was taken away: SQLite would go on without what stands only there.

    SQLite removes the log and then its index, so an index alone is left by nobody but who removed the log. Only names
    are looked at: closing a file would drop the locks of this process on it.
    """
    log, index = (path.with_name(path.name + end) for end in ("-wal", "-shm"))
    end = time.monotonic() + _CLOSE_SECONDS
    while index.exists() and not log.exists():
        if time.monotonic() > end:
            raise DamagedError(
                f"{log} is missing although {index.name} is there: it held the latest writes",
                remedy=f"put it back; or remove {index} as well, and what stood only in the log is lost",
                path=path,
            )
        time.sleep(_PAUSE_SECONDS)


def _write_ahead(db: sqlite3.Connection, busy_seconds: float) -> None:
    """Switch to write-ahead logging, so that readers and the writer do not wait for each other."""
    end = time.monotonic() + busy_seconds
    while True:
        try:
            # The file remembers it; a file system without shared memory stays with the slower, equally safe journal.
            db.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.Error as error:
            # Two processes that switch at once are refused without waiting: SQLite sees a deadlock there.
            if not is_busy(error) or time.monotonic() > end:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return
