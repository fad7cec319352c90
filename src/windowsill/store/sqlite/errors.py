"""Translate SQLite's errors into ours: the only place where that happens."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from windowsill.errors import DamagedError, InputError, StoreError

_FAMILY = 0xFF
"""Extended result codes keep the plain code in their lowest byte."""

_NOT_TEXT = "could not decode to utf-8"
"""The message of Python's own layer, which has no result code, for text that was overwritten."""

_MEANINGS: dict[int, tuple[type[StoreError], str, str]] = {
    sqlite3.SQLITE_FULL: (
        StoreError,
        "the disk is full",
        "free some space and try again; everything acknowledged before is kept",
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
    code = getattr(error, "sqlite_errorcode", 0) & _FAMILY
    if not code and _NOT_TEXT in str(error).lower():
        code = sqlite3.SQLITE_CORRUPT
    kind, what, remedy = _MEANINGS.get(
        _ALIKE.get(code, code),
        (StoreError, "SQLite failed", "try again; if it stays so, run `windowsill sessions verify`"),
    )
    return kind(f"{path}: {what} ({error})", remedy=remedy, path=path)


def is_busy(error: sqlite3.Error) -> bool:
    """Tell whether somebody else was at the database, so that waiting helps."""
    code = getattr(error, "sqlite_errorcode", 0) & _FAMILY
    return _ALIKE.get(code, code) == sqlite3.SQLITE_BUSY
