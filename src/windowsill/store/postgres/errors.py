"""Translate the errors of psycopg into ours: the only place where that happens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from windowsill.errors import DamagedError, InputError, StoreError

_MEANINGS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], type[StoreError], str, str], ...] = (
    (PoolClosed, StoreError, "the store is closed", "open it again"),
    (
        (PoolTimeout, TooManyRequests),
        StoreError,
        "no connection could be had in time",
        "check that the server runs and that its address and password are right, or allow more connections",
    ),
    (
        (errors.InvalidSchemaName, errors.UndefinedTable, errors.UndefinedColumn),
        StoreError,
        "the tables are not there, or are those of another version",
        "run `windowsill store migrate`",
    ),
    (
        errors.InsufficientPrivilege,
        StoreError,
        "this role may not do that",
        "grant it the rights, or let an administrator run what `windowsill store migrate --sql` prints",
    ),
    (
        errors.ReadOnlySqlTransaction,
        StoreError,
        "the server takes no writes: it is a replica",
        "give the address of the primary",
    ),
    (
        (errors.DiskFull, errors.OutOfMemory),
        StoreError,
        "the server has no room left",
        "free some space and try again; everything acknowledged before is kept",
    ),
    (
        (errors.TooManyConnections, errors.ConfigurationLimitExceeded),
        StoreError,
        "the server takes no more connections",
        "put a pooler before it, or open fewer stores",
    ),
    (
        errors.ProgramLimitExceeded,
        StoreError,
        "one value is larger than PostgreSQL can keep",
        "split it; the limit is 1 GB",
    ),
    (
        (errors.DataCorrupted, errors.IndexCorrupted),
        DamagedError,
        "the database is damaged",
        "restore a backup of the server; `REINDEX` mends an index",
    ),
    (
        errors.LockNotAvailable,
        StoreError,
        "somebody else kept the session for too long",
        "try again, or end the process that holds it",
    ),
    (
        psycopg.OperationalError,
        StoreError,
        "the connection failed",
        "check that the server runs, then try again; everything acknowledged before is kept",
    ),
)


@contextmanager
def translated(address: str) -> Iterator[None]:
    """Let no error of psycopg out: raise the one that says what happened, at which address, and what to do."""
    try:
        yield
    except psycopg.Error as error:
        raise meaning(error, address) from error
    except UnicodeEncodeError as error:
        raise InputError(f"{error.object!r} is not text", remedy="leave out what UTF-8 cannot hold") from error


def meaning(error: psycopg.Error, address: str) -> StoreError:
    """Return the error of ours that explains one of psycopg's."""
    for kinds, kind, what, remedy in _MEANINGS:
        if isinstance(error, kinds):
            return kind(f"{address}: {what} ({_line(error)})", remedy=remedy, address=address)
    return StoreError(
        f"{address}: PostgreSQL failed ({_line(error)})",
        remedy="try again; if it stays so, run `windowsill store check`",
        address=address,
    )


def _line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
