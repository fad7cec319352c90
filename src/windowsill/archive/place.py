"""Where the index of a store is kept: in the store's own database, or in memory for a store that has none."""

from __future__ import annotations

import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from windowsill.errors import DamagedError
from windowsill.store import Store
from windowsill.store.sqlite.connections import Connections
from windowsill.store.sqlite.faults import translated
from windowsill.store.sqlite.migrate import split
from windowsill.store.sqlite.store import SQLiteStore
from windowsill.store.statements import migrations


class Place(Protocol):
    """Connections to the database of an index."""

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """A connection to read with."""

    def writing(self) -> AbstractContextManager[sqlite3.Connection]:
        """A connection inside a transaction, which is committed at the end and rolled back by an exception."""

    def close(self) -> None:
        """Release the connections."""


class InMemory:
    """An index that is gone with its process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        weakref.finalize(self, self._db.close)
        self._db.execute("PRAGMA foreign_keys = ON")
        for step in migrations("sqlite"):
            for statement in split(step.script):
                self._db.execute(statement)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The one connection, for this thread alone."""
        with self._lock, translated(Path(":memory:")):
            yield self._db

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The one connection inside a transaction."""
        with self.reading() as db:
            db.execute("BEGIN")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                db.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Nothing: other archives of the same store share it, and it goes with the store."""


_in_memory: weakref.WeakKeyDictionary[Store, InMemory] = weakref.WeakKeyDictionary()
_making = threading.Lock()


def place_of(store: Store) -> Place:
    """Where a store's index is kept. All archives of one store share it."""
    if isinstance(store, SQLiteStore):
        return Connections(store.path)
    with _making:
        if store not in _in_memory:
            _in_memory[store] = InMemory()
        return _in_memory[store]


@contextmanager
def explained() -> Iterator[None]:
    """Say what helps when the index is damaged: SQLite does not tell that from damage of the journal beside it."""
    try:
        yield
    except DamagedError as error:
        if getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_CORRUPT:
            raise
        raise DamagedError(
            f"the index of the archive is damaged ({error.__cause__})",
            remedy="`archive.rebuild()` makes it again from the journal; if that fails too, put a backup of the store "
            "in its place",
        ) from error.__cause__
