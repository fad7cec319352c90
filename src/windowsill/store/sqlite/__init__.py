"""Sessions in one SQLite file: no server, several threads and processes at once, durable when a call returns."""

from __future__ import annotations

from windowsill.store.sqlite.store import SQLiteStore

__all__ = ["SQLiteStore"]
