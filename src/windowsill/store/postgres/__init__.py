"""Sessions in PostgreSQL: many machines, one statement an append, safe behind a pooler in transaction mode."""

from __future__ import annotations

from windowsill.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
