"""Find what is wrong with a database file, short of the hash chain."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping


def problems(db: sqlite3.Connection, sql: Mapping[str, str], session: str | None) -> list[str]:
    """One line for each: SQLite's own check of the file, then rows that lack their counterpart."""
    found = [text for (text,) in db.execute("PRAGMA quick_check") if text != "ok"]
    found += [
        f"a row of {table} belongs to no {parent}" for table, _, parent, _ in db.execute("PRAGMA foreign_key_check")
    ]
    found += [
        f"session {id!r} has {count} entries, but its last one is number {last}"
        for id, count, last in db.execute(sql["gaps"], (session,))
    ]
    (strays,) = db.execute(sql["stray_bodies"]).fetchone()
    if strays:
        found.append(f"{strays} bodies belong to no entry")
    return found
