"""Connections to one PostgreSQL database; nothing is kept in one, so that a pooler may stand between.

No prepared statement, no `SET`, no `LISTEN`, no lock that outlives its transaction. The errors of psycopg become ours
here, and only here.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from struct import Struct
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg import conninfo, errors, generators
from psycopg.pq import ExecStatus, Format
from psycopg.rows import tuple_row
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout, TooManyRequests

from windowsill.errors import DamagedError, InputError, StoreError, log
from windowsill.store.codec import SINCE_ENCRYPTED

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
    (errors.RestrictViolation, StoreError, *SINCE_ENCRYPTED),
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
        errors.IdleInTransactionSessionTimeout,
        StoreError,
        "this process was silent for too long inside a transaction, and the server ended it",
        "try again; nothing of it was written",
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
    except (psycopg.Error, UnicodeEncodeError) as error:
        raise meaning(error, address) from error


def meaning(error: psycopg.Error | UnicodeEncodeError, address: str) -> StoreError | InputError:
    """Return the error of ours that explains one of psycopg's."""
    if isinstance(error, UnicodeEncodeError):
        return InputError(f"{error.object!r} is not text", remedy="leave out what UTF-8 cannot hold")
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


SCHEMA = "windowsill"

MOST_CONNECTIONS = 8
WAIT_SECONDS = 10
"""The wait for a connection, for the turn of a writer, and for a server that restarts."""

_DEFAULTS: dict[str, str | int | None] = {
    "connect_timeout": 10,
    "application_name": "windowsill",
    # A machine that is gone is noticed after 15 seconds, not after the two hours of the system.
    "tcp_user_timeout": 15_000,
    "keepalives_idle": 30,
}

IDLE_SECONDS = 1.0
"""A connection that was not used for so long is asked for a sign of life before it is used again."""

PAUSE_SECONDS = 0.05
"""The longest pause before work is done again whose connection broke."""

SILENT_SECONDS = 60
"""The longest pause between two statements of a transaction: nothing in it waits for a model or a person."""

_STARTING = ("is starting up", "not yet accepting connections")
"""The words of a server that was just started: libpq has no code for it."""

_OPTIONS = ("schema", "pool", "prepare", "wait")

_inherited: list[object] = []
"""Pools of a parent process: never used here, and kept, as closing them would disturb the parent's."""

_BROKEN = (
    psycopg.errors.AdminShutdown,
    psycopg.errors.CrashShutdown,
    psycopg.errors.CannotConnectNow,
    psycopg.errors.DeadlockDetected,
    psycopg.errors.SerializationFailure,
    psycopg.errors.IdleInTransactionSessionTimeout,
)

T = TypeVar("T")
Connection = psycopg.Connection[Any]
Pool = ConnectionPool[Any]


class Address:
    """A `postgresql://` address with our own options taken out of it: `schema`, `pool`, `prepare`, `wait`."""

    def __init__(self, url: str) -> None:
        # Others name the driver too: postgresql+psycopg://.
        parts = urlsplit("postgresql://" + url.partition("://")[2])
        query = parse_qsl(parts.query, keep_blank_values=True)
        own = {key: value for key, value in query if key in _OPTIONS}
        others = urlencode([(key, value) for key, value in query if key not in _OPTIONS])
        self.schema = own.get("schema", SCHEMA)
        if not self.schema or '"' in self.schema or "'" in self.schema or "\0" in self.schema:
            raise InputError("the schema of the store's address is not a name", remedy="give letters and digits")
        self.pool = self._count(own, "pool", MOST_CONNECTIONS)
        self.prepare = self._count(own, "prepare", 0) or None
        self.wait = self._count(own, "wait", WAIT_SECONDS)
        try:
            stated = conninfo.conninfo_to_dict(urlunsplit(parts._replace(query=others)))
        except psycopg.Error as error:
            # The address itself stays out of the message: it may hold a password.
            raise InputError(
                "the address of the PostgreSQL store cannot be read",
                remedy="give postgresql://USER:PASSWORD@HOST:PORT/DATABASE",
            ) from error
        self.conninfo = conninfo.make_conninfo("", **{**_DEFAULTS, **stated, "client_encoding": "utf8"})
        host, database = (stated.get(key) or "" for key in ("host", "dbname"))
        self.name = f"postgresql://{host}/{database}" + ("" if self.schema == SCHEMA else f"?schema={self.schema}")
        """The address without its user and password, for messages."""

    @staticmethod
    def _count(own: Mapping[str, str], key: str, default: int) -> int:
        text = own.get(key, str(default))
        if not text.isdecimal():
            raise InputError(f"{key}={text} in the store's address is no number", remedy="give a whole number")
        return int(text)


class _Connection(psycopg.Connection[Any]):
    used = 0.0
    """The time when it was last given back."""


def _check(connection: _Connection) -> None:
    if time.monotonic() - connection.used > IDLE_SECONDS:
        ConnectionPool.check_connection(connection)


def open_pool(address: Address) -> Pool:
    """Open a pool that makes its connections when they are needed."""
    return ConnectionPool(
        address.conninfo,
        connection_class=_Connection,
        kwargs={"autocommit": True, "prepare_threshold": address.prepare},
        min_size=0,
        max_size=max(address.pool, 1),
        max_idle=300,
        max_lifetime=1_800,
        timeout=address.wait,
        check=_check,
        num_workers=1,
        name="windowsill",
        open=True,
    )


def connect(address: Address) -> Connection:
    """Open one connection; what is wrong with the address or the server is known at once, not after a pool's wait.

    Only a server that is just starting is waited for.
    """
    end = time.monotonic() + address.wait
    while True:
        try:
            with translated(address.name):
                return psycopg.connect(address.conninfo, autocommit=True, prepare_threshold=address.prepare)
        except StoreError as error:
            if not any(text in str(error) for text in _STARTING) or time.monotonic() > end:
                raise
            time.sleep(PAUSE_SECONDS)


class Connections:
    """Runs statements; an error of psycopg leaves it as one of ours."""

    def __init__(self, address: Address, *, pool: Pool | None = None) -> None:
        self.address = address
        self._owned = pool is None
        self._pool: Pool | None = pool
        self._lock = threading.Lock()
        self._bound = threading.local()
        self._pid = os.getpid()
        self._closed = False

    def run(self, statement: str, parameters: Mapping[str, object] | None = None) -> list[Any]:
        """Run one statement that may be done twice, which is a transaction of its own, and return its rows."""
        return self.again(lambda db: execute(db, statement, parameters))

    def again(self, work: Callable[[Connection], T]) -> T:
        """Do work in a connection, and do it again when the connection broke: it has to be fit for that."""
        end = self.deadline()
        while True:
            try:
                with self.connection() as db:
                    return work(db)
            except StoreError as error:
                self.recover(error, end)

    def deadline(self) -> float:
        """Return until when work is done again."""
        return time.monotonic() + self.address.wait

    def recover(self, error: StoreError, end: float) -> None:
        """Replace the connections that broke together with one; raise an error that is not of that kind, or too late.

        What was done in a connection that is held is gone with it, and cannot be done again by itself.
        """
        if self.held is not None or not is_lost(error) or time.monotonic() > end:
            raise error
        log.info("%s: %s", self.address.name, error)
        # Of any length: those who lost their connection together do not come back together.
        time.sleep(PAUSE_SECONDS * random.random())  # noqa: S311 - nothing secret
        with translated(self.address.name):
            self._current().check()

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Give a connection to this thread alone; what is done in it is committed at the end."""
        held = self.held
        try:
            if held is not None:
                # A statement that fails leaves the transaction around it as it was.
                with held.transaction():
                    yield held
                return
            pool = self._current()
            if not self._owned:
                with pool.connection() as db:
                    yield db
                return
            # A connection of ours commits each statement by itself: there is nothing to end when it is given back.
            db = pool.getconn()
            try:
                yield db
            finally:
                # Not by `reset` of the pool, which gives connections back in a thread of its own: whoever asked again
                # at once got another one, or had a new one opened.
                db.used = time.monotonic()
                pool.putconn(db)
        except (psycopg.Error, UnicodeEncodeError) as error:
            # Not by `translated`: a second generator takes as long as the pool.
            raise meaning(error, self.address.name) from error

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Give a connection inside a transaction."""
        with self.connection() as db, begin(db):
            yield db

    @property
    def held(self) -> Connection | None:
        """The connection in which this thread does everything."""
        return getattr(self._bound, "connection", None)

    @contextmanager
    def hold(self) -> Iterator[Connection]:
        """Do everything that this thread does until the end in one transaction."""
        before = self.held
        with self.transaction() as db:
            self._bound.connection = db
            try:
                yield db
            finally:
                self._bound.connection = before

    def close(self) -> None:
        """Close the connections, unless the pool is somebody else's. Closing twice is fine."""
        with self._lock:
            pool, self._pool, self._closed = self._pool, None, True
        if pool is not None and self._owned and self._pid == os.getpid():
            pool.close()

    def _current(self) -> Pool:
        pool = self._pool
        if pool is not None and self._pid == os.getpid():
            return pool
        with self._lock:
            if self._closed:
                raise StoreError(f"the store {self.address.name} is closed", remedy="open it again")
            if self._owned and self._pid != os.getpid():
                # Neither the threads of a pool nor its sockets may be used on both sides of a fork.
                _inherited.append(self._pool)
                self._pool, self._pid = None, os.getpid()
            if self._pool is None:
                self._pool = open_pool(self.address)
            return self._pool


@contextmanager
def begin(db: Connection) -> Iterator[None]:
    """Begin a transaction that the server ends by itself when this process falls silent: others wait for its locks.

    Without that a machine that lost its power would hold them until the server's system misses it, in two hours.
    """
    with db.transaction():
        db.execute(f"SET LOCAL idle_in_transaction_session_timeout = '{SILENT_SECONDS}s'")
        yield


def execute(db: Connection, statement: str, parameters: Mapping[str, object] | None = None) -> list[Any]:
    """Run a statement and return its rows, whatever the connection makes of rows by itself.

    A name with the character NUL, which no text of PostgreSQL holds, is a name of nothing.
    """
    if parameters and any(isinstance(value, str) and "\0" in value for value in parameters.values()):
        return []
    with db.cursor(row_factory=tuple_row, binary=True) as cursor:
        cursor.execute(statement, parameters)
        return [] if cursor.rownumber is None else cursor.fetchall()


class _Type(NamedTuple):
    number: int
    write: Callable[[Any], bytes]
    """Returns a value as it goes over the wire."""


def _array(number: int, element: _Type) -> _Type:
    """Return the type of arrays of another type."""
    # Dimensions, whether there is a NULL, the type of the values, their count, and the index of the first.
    header, size = Struct(">iiIii"), Struct(">i")

    def write(values: Iterable[Any]) -> bytes:
        written = [element.write(value) for value in values]
        parts = [part for value in written for part in (size.pack(len(value)), value)]
        return b"".join([header.pack(1, 0, element.number, len(written), 1), *parts])

    return _Type(number, write)


TEXT = _Type(25, str.encode)
BYTES = _Type(17, bytes)
INTEGER = _Type(20, Struct(">q").pack)
FLOAT = _Type(701, Struct(">d").pack)
TEXTS, BYTE_STRINGS, INTEGERS, FLOATS = (
    _array(number, element) for number, element in ((1009, TEXT), (1001, BYTES), (1016, INTEGER), (1022, FLOAT))
)

Parameters = list[tuple[_Type, Any]]


def ask(db: Connection, statement: str, parameters: Parameters) -> list[int | None]:
    """Run a statement whose parameters come with their types, `$1` the first of them; return its one row of numbers.

    A cursor looks at each value for a way to write it, which takes longer than the server does for a small statement.
    """
    values = [type.write(value) for type, value in parameters]
    types, formats = [type.number for type, _ in parameters], [Format.BINARY] * len(values)
    db.pgconn.send_query_params(statement.encode(), values, types, formats, Format.BINARY)
    *_, result = db.wait(generators.execute(db.pgconn))
    if result.status != ExecStatus.TUPLES_OK:
        raise errors.error_from_result(result)
    return [
        None if (value := result.get_value(0, column)) is None else int.from_bytes(value, signed=True)
        for column in range(result.nfields)
    ]


def is_lost(error: StoreError) -> bool:
    """Tell whether the connection broke, so that nobody knows what became of the statement; or it was rolled back."""
    cause = error.__cause__
    if isinstance(cause, _BROKEN):
        return True
    # An error without a code comes from the network, not from the server.
    return isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError) and cause.sqlstate is None
