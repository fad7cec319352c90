"""Make a database file ready: created for its owner alone, its schema up to date, or refused untouched."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from windowsill.errors import StoreError
from windowsill.store.sqlite.connections import BUSY_SECONDS, connect
from windowsill.store.sqlite.faults import is_busy, translated
from windowsill.store.sqlite.migrate import migrate, schema_version
from windowsill.store.statements import Migration

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600
"""Sessions hold private text: nobody but their owner reads them."""

_PAUSE_SECONDS = 0.01

_creating = threading.Lock()


def make_ready(path: Path, steps: Sequence[Migration], *, busy_seconds: float = BUSY_SECONDS) -> None:
    """Create the database if it is missing and bring it to the newest schema; an error leaves it as it was."""
    create(path)
    with translated(path), closing(connect(path, busy_seconds=busy_seconds)) as db:
        # Before anything is written: what is not ours, or newer than we are, stays as it is.
        schema_version(db, steps[-1].version, path)
        _write_ahead(db, busy_seconds)
        migrate(db, steps, path)


def create(path: Path) -> None:
    """Make an empty file, and its folder, that only their owner can read; what exists keeps its permissions."""
    if path.is_dir():
        raise StoreError(f"{path} is a folder", remedy="give a file, or a folder whose name has no .db at its end")
    try:
        path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        # One thread at a time: closing the new file would drop the locks of a connection that another thread opened.
        with _creating:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE_FILE))
    except FileExistsError as error:
        if not path.exists():
            raise StoreError(f"{path.parent} is not a folder", remedy="give another path", path=path) from error
    except OSError as error:
        raise StoreError(
            f"{path} cannot be created ({error.strerror})",
            remedy="allow this user to write to the folder, or set WINDOWSILL_HOME to another one",
            path=path,
        ) from error


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
