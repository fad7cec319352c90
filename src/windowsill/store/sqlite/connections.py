"""Connections to one SQLite file: a single writer, a few readers, none of them carried through a fork.

SQLite's errors become ours here, and only here.
"""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import cache
from pathlib import Path

from windowsill.errors import DamagedError, InputError, StoreError
from windowsill.store import BUSY_SECONDS
from windowsill.store.codec import SINCE_ENCRYPTED

_FAMILY = 0xFF
"""Extended result codes keep the plain code in their lowest byte."""

_NOT_TEXT = "could not decode to utf-8"
"""The message of Python's own layer, which has no result code, for text that was overwritten."""

_MEANINGS: dict[int, tuple[type[StoreError], str, str]] = {
    sqlite3.SQLITE_FULL: (
        StoreError,
        "the disk is full",
        # The log of up to 4 MB is moved into the database before anything else, which takes as much again.
        "free some space (8 MB or more) and try again; everything acknowledged before is kept",
    ),
    sqlite3.SQLITE_IOERR: (
        StoreError,
        "the disk refused to read or write",
        "check free space, quotas and the disk, then try again; everything acknowledged before is kept",
    ),
    sqlite3.SQLITE_NOTADB: (
        DamagedError,
        "this is not a SQLite database, or its beginning was overwritten",
        "give another path, or put a backup in its place; the file was left as it is",
    ),
    sqlite3.SQLITE_CORRUPT: (
        DamagedError,
        "the database is damaged",
        "put a backup in its place, or save what can be read with `windowsill store repair`",
    ),
    sqlite3.SQLITE_READONLY: (
        StoreError,
        "the database cannot be written",
        "allow this user to write to the file and to its folder, or set WINDOWSILL_HOME to another folder",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        StoreError,
        "the database cannot be opened",
        "check that the file exists and that this user may write to it and to its folder",
    ),
    sqlite3.SQLITE_BUSY: (
        StoreError,
        "another process kept the database locked for too long",
        "try again, or end the process that holds it",
    ),
    sqlite3.SQLITE_CONSTRAINT_TRIGGER: (StoreError, *SINCE_ENCRYPTED),
    sqlite3.SQLITE_TOOBIG: (
        StoreError,
        "one value is larger than SQLite can keep",
        "split it; the limit is about 1 GB",
    ),
}
_ALIKE = {
    sqlite3.SQLITE_PERM: sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_LOCKED: sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_PROTOCOL: sqlite3.SQLITE_BUSY,
}


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Let no error of SQLite out: raise the one that says what happened to which file, and what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise meaning(error, path) from error
    except UnicodeDecodeError as error:
        # Python's own layer fails on a message of SQLite that quotes overwritten bytes.
        kind, what, remedy = _MEANINGS[sqlite3.SQLITE_CORRUPT]
        raise kind(f"{path}: {what} ({error})", remedy=remedy, path=path) from error
    except UnicodeEncodeError as error:
        raise InputError(f"{error.object!r} is not text", remedy="leave out what UTF-8 cannot hold") from error


def meaning(error: sqlite3.Error, path: Path) -> StoreError:
    """Return the error of ours that explains one of SQLite's."""
    code = getattr(error, "sqlite_errorcode", 0)
    code = code if code in _MEANINGS else code & _FAMILY
    if not code and _NOT_TEXT in str(error).lower():
        code = sqlite3.SQLITE_CORRUPT
    kind, what, remedy = _MEANINGS.get(
        _ALIKE.get(code, code),
        (StoreError, "SQLite failed", "try again; if it stays so, run `windowsill sessions verify`"),
    )
    return kind(f"{path}: {what} ({error})", remedy=remedy, path=path)


def is_busy(error: sqlite3.Error) -> bool:
    """Tell whether somebody else was at the database, so that waiting helps."""
    code = getattr(error, "sqlite_errorcode", 0)
    code = code if code in _MEANINGS else code & _FAMILY
    return _ALIKE.get(code, code) == sqlite3.SQLITE_BUSY


_watched: weakref.WeakSet[Connections] = weakref.WeakSet()
"""Holders of connections that are paused around every fork."""
_paused: list[Connections] = []


@cache
def _register() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_pause, after_in_parent=_resume, after_in_child=_resume)


def _pause() -> None:
    _paused.extend(holder for holder in list(_watched) if holder.pause())


def _resume() -> None:
    while _paused:
        _paused.pop().resume()


POLL_SECONDS = 0.002
"""The longest pause before the lock of another writer is tried again: about as long as a commit."""

IDLE_READERS = 8
"""Readers kept open between calls; more exist only while more threads read at once."""

FORK_SECONDS = 5.0
"""The wait of a fork for calls in other threads to end; they take milliseconds."""

_EVERY = (
    "PRAGMA foreign_keys = ON",
    # FULL makes each commit wait for the disk; on macOS only a full sync reaches the disk itself.
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",
)
_READER = ("PRAGMA query_only = ON",)
_WRITER = (
    # Sessions hold private text: what is deleted is overwritten.
    "PRAGMA secure_delete = ON",
    # One large import must not leave its write-ahead log behind for good.
    "PRAGMA journal_size_limit = 67108864",
)

_inherited: list[sqlite3.Connection] = []
"""Connections of a parent process: never used here, and kept, as closing them would disturb the parent's."""


class _Transaction:
    """A transaction of the writer under its lock; as a generator it would take a third of an insert longer."""

    __slots__ = ("_connections", "_lock")

    def __init__(self, connections: Connections, lock: threading.Lock) -> None:
        self._connections, self._lock = connections, lock

    def __enter__(self) -> sqlite3.Connection:
        self._lock.acquire()
        try:
            return self._connections.begin()
        except BaseException as error:
            self.__exit__(None, error, None)
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self._connections.end(error)
        finally:
            self._lock.release()


class Connections:
    """Hands out connections; an error of SQLite leaves a `with` block as one of ours."""

    def __init__(self, path: Path, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = path
        self._name = str(path)
        self._busy_seconds = busy_seconds
        self._closed = False
        self._writer: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        """The file that the writer has open, as the system numbers it."""
        self._idle: list[sqlite3.Connection] = []
        self._writing_thread: int | None = None
        self._start_afresh()
        _watched.add(self)
        _register()

    def writing(self) -> AbstractContextManager[sqlite3.Connection]:
        """Give the writer inside a transaction, which is committed at the end and rolled back by an exception.

        Inside another one of the same thread it is part of that.
        """
        self._notice_fork()
        if self._writing_thread == threading.get_ident() and self._writer is not None:
            return nullcontext(self._writer)
        return _Transaction(self, self._write_lock)

    def begin(self) -> sqlite3.Connection:
        """Begin a transaction that may write: its lock is taken now, as one that began by reading may fail to get it.

        SQLite's own pauses grow to 100 ms, and whoever writes in a loop is faster each time.
        """
        db, end = self._writer or self._open_writer(), 0.0
        while True:
            try:
                db.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                end = end or time.monotonic() + self._busy_seconds
                if not is_busy(error) or time.monotonic() > end:
                    raise
                # Of any length: those who wait for the same do not come back together.
                time.sleep(POLL_SECONDS * random.random())  # noqa: S311 - nothing secret
            else:
                self._writing_thread = threading.get_ident()
                return db

    def end(self, error: BaseException | None) -> None:
        """Commit the transaction, or roll it back after an error and raise what that means."""
        db = self._writer
        try:
            if error is None and db is not None:
                db.execute("COMMIT")
        except BaseException as failure:  # noqa: BLE001 - it is raised below
            error = failure
        try:
            if error is not None:
                with translated(self.path):
                    if db is not None and db.in_transaction:
                        db.execute("ROLLBACK")
                    raise error
        finally:
            self._writing_thread = None
        if _file_at(self._name) != self._file:
            self._close_idle()
            raise StoreError(
                f"{self.path} was removed or replaced while it was open: what was written is not kept",
                remedy="put it back if it was moved, open the store again, and write again",
                path=self.path,
            )

    def checkpoint(self) -> None:
        """Empty the write-ahead log into the file, so that what was deleted is in neither, unless this thread writes.

        The log of a process that reads just now is left for later.
        """
        if self._writing_thread != threading.get_ident():
            self._run_alone("PRAGMA wal_checkpoint(TRUNCATE)")

    def vacuum(self) -> None:
        """Write the file anew without the pages that nothing uses."""
        self._run_alone("VACUUM")
        self._run_alone("PRAGMA wal_checkpoint(TRUNCATE)")

    def _run_alone(self, statement: str) -> None:
        """Run a statement that cannot be part of a transaction."""
        self._notice_fork()
        # Not by the writer, which does not wait for readers.
        with self._write_lock, translated(self.path), closing(self._open(_WRITER)) as db:
            db.execute(statement).fetchall()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Give a connection for this thread alone, which cannot write."""
        self._notice_fork()
        with translated(self.path):
            with self._readers:
                db = self._idle.pop() if self._idle else self._open(_READER)
                self._reading += 1
            try:
                yield db
            finally:
                with self._readers:
                    self._reading -= 1
                    if self._closed or len(self._idle) >= IDLE_READERS:
                        db.close()
                    else:
                        self._idle.append(db)
                    self._readers.notify_all()

    def close(self) -> None:
        """Close what is idle now, and readers at work as they come back. Closing twice is fine."""
        self._notice_fork()
        with self._write_lock, self._readers, translated(self.path):
            self._closed = True
            self._close_idle()

    def pause(self) -> bool:
        """Close all connections and keep new calls waiting; false when a running call did not end in time."""
        # Bounded, as a signal handler may fork in the middle of a call of the same thread.
        if not self._write_lock.acquire(timeout=FORK_SECONDS):
            return False
        if self._readers.acquire(timeout=FORK_SECONDS):
            if self._readers.wait_for(lambda: not self._reading, timeout=FORK_SECONDS):
                self._close_idle()
                return True
            self._readers.release()
        self._write_lock.release()
        return False

    def resume(self) -> None:
        """Let calls go on, in the parent and in the child."""
        self._pid = os.getpid()
        self._readers.release()
        self._write_lock.release()

    def _open_writer(self) -> sqlite3.Connection:
        self._writer = db = self._open(_WRITER)
        self._file = _file_at(self._name)
        # With a write-ahead log only the beginning of a transaction waits for others, in our own way.
        if db.execute("PRAGMA journal_mode").fetchone() == ("wal",):
            db.execute("PRAGMA busy_timeout = 0")
        return db

    def _open(self, pragmas: tuple[str, ...]) -> sqlite3.Connection:
        if self._closed:
            raise StoreError(f"the store {self.path} is closed", remedy="open it again", path=self.path)
        return connect(self.path, pragmas, busy_seconds=self._busy_seconds)

    def _close_idle(self) -> None:
        # The writer last: the last one to close tidies the write-ahead log away, which a reader may not do.
        for db in (*self._idle, self._writer):
            if db is not None:
                db.close()
        self._idle.clear()
        self._writer = None

    def _start_afresh(self) -> None:
        self._pid = os.getpid()
        self._write_lock = threading.Lock()
        self._readers = threading.Condition(threading.Lock())
        self._reading = 0
        self._writing_thread = None

    def _notice_fork(self) -> None:
        """In a child that forked past Python, or in the middle of a call: open new connections."""
        if self._pid != os.getpid():
            _inherited.extend(db for db in (*self._idle, self._writer) if db is not None)
            self._idle, self._writer = [], None
            self._start_afresh()


def _file_at(path: str) -> tuple[int, int] | None:
    """Return the number of the file that has this path now; `None` when there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - for each write: a `Path` takes longer
    except OSError:
        return None
    return found.st_dev, found.st_ino


def disk_is_read_only(path: Path) -> bool:
    """Tell whether nothing can be written at this path; raise where a log is left, which cannot be read there."""
    try:
        read_only = bool(os.statvfs(path).f_flag & os.ST_RDONLY)
        log = path.with_name(path.name + "-wal")
        left = read_only and log.exists() and log.stat().st_size > 0
    except (AttributeError, OSError):  # Windows does not tell; a file that is missing is told by SQLite
        return False
    if left:
        raise StoreError(
            f"{path} is on a read-only disk, and {log.name} holds what is not yet in it",
            remedy="copy both files to a disk that can be written, and open them there",
            path=path,
        )
    return read_only


def connect(
    path: Path, pragmas: tuple[str, ...] = _WRITER, *, busy_seconds: float = BUSY_SECONDS
) -> sqlite3.Connection:
    """Open a connection whose commits survive power loss; the file has to exist. On a read-only disk it only reads."""
    db = sqlite3.connect(
        # Without `mode=rw` a file that was moved away would come back as an empty one. The files that SQLite makes
        # beside a database cannot be made on a read-only disk, and are not needed: nobody writes there.
        f"{path.as_uri()}?{'mode=ro&immutable=1' if disk_is_read_only(path) else 'mode=rw'}",
        uri=True,
        timeout=busy_seconds,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        for pragma in (*_EVERY, *pragmas):
            db.execute(pragma)
    except BaseException:
        db.close()
        raise
    return db
