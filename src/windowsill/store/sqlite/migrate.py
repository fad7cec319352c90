"""Bring a database to the schema this version knows, or refuse it untouched."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from windowsill.errors import StoreError
from windowsill.store.statements import Migration

APPLICATION_ID = 0x57534C4C
"""'WSLL' in the file's header: tells our databases from those of other programs."""


def migrate(db: sqlite3.Connection, steps: Sequence[Migration], path: Path) -> int:
    """Apply the steps that are missing, each in a transaction of its own; the version reached."""
    newest = steps[-1].version
    for step in steps:
        if schema_version(db, newest, path) < step.version:
            _apply(db, step, newest, path)
    return newest


def schema_version(db: sqlite3.Connection, newest: int, path: Path) -> int:
    """The database's version; an error for one of a newer Windowsill or of another program."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (owner,) = db.execute("PRAGMA application_id").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
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
            # PRAGMA takes no parameters; both are integers of ours.
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {step.version:d}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def split(script: str) -> Iterator[str]:
    """The statements of a script, one by one: `executescript` would commit in the middle."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement
