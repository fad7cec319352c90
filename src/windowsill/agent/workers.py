"""Runs of engines as jobs of procrastinate, in the PostgreSQL database that keeps their sessions.

The queue, its locks and its heartbeats are procrastinate's; what a run has done is in its session. So a run whose
worker died is a stalled job, and whoever takes it goes on where the session stands.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any, TypeAlias

import anyio
import msgspec
import procrastinate
from anyio import to_thread
from procrastinate import exceptions, job_context
from psycopg import conninfo

from windowsill.agent.engine import Engine
from windowsill.agent.result import Event, Result
from windowsill.errors import InputError, LockedError, StoreError, WindowsillError, log
from windowsill.session.integrity import RUNS
from windowsill.store import Store, server_address
from windowsill.store.postgres import PostgresStore
from windowsill.store.postgres.pool import Address, connect, translated

QUEUE = "windowsill"
TASK = "windowsill.run"

STALLED = 30.0
"""Seconds without a sign of life after which a worker counts as dead, and its runs are taken up by others."""

LOCKED_WAIT = 5
"""Seconds after which a run is tried again whose session somebody else works on, or whose store gave no answer."""

MOST_ATTEMPTS = 100
"""The times that a run is tried whose store gives an error."""

GRACE = 10.0
"""Seconds that a worker which is told to stop leaves its runs to end by themselves."""

POLL = 0.2
"""Seconds between two writes of events, and between two looks for them."""

_LAST = "result"

_ENDED = {"failed": "failed", "cancelled": "cancelled", "aborted": "cancelled"}
"""The status of a result, by that of a job which ended without one."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was handed to the workers: its own id, its session, and its number as a job."""

    id: str
    session: str
    job: int


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """Tells a worker of a run, for the function that makes its engine.

    `settings` is what `Workers.add` was given; `listen` is for the engine: without it nobody can wait for events.
    """

    session: str
    store: Store
    listen: Callable[[Event], object]
    settings: dict[str, Any] = {}


MakeEngine: TypeAlias = Callable[[Order], AbstractAsyncContextManager[Engine]]
"""Makes the engine of a run, and closes what it opened for it."""


class Workers:
    """Hands runs to workers, waits for them, and works: `async with Workers("postgresql://...") as workers`.

    A worker needs `engine`, the function that makes the engine of an order. `stalled` is the number of seconds without
    a sign of life after which a worker counts as dead; all workers of a database need the same.
    """

    def __init__(
        self, place: str, *, engine: MakeEngine | None = None, queue: str = QUEUE, stalled: float = STALLED
    ) -> None:
        if server_address(place, {}) is None:
            raise InputError(
                "workers share a PostgreSQL database", remedy="give the store as postgresql://HOST/DATABASE"
            )
        self._place = place
        self._address = Address(place)
        self._make = engine
        self._queue = queue
        self._stalled = stalled
        connector = procrastinate.PsycopgConnector(
            conninfo=_in_schema(self._address),
            kwargs={"prepare_threshold": self._address.prepare},
            min_size=1,
            max_size=max(self._address.pool, 2),
        )
        self._app = procrastinate.App(connector=connector)
        # What a worker that stops gave up is for the next one; so is a session that is not free yet.
        again = procrastinate.RetryStrategy(wait=LOCKED_WAIT, retry_exceptions=(StoreError, asyncio.CancelledError))  # type: ignore[arg-type] # a cancellation is no Exception
        self._task = self._app.task(name=TASK, queue=queue, retry=again, pass_context=True)(self._work_on)
        self._stack = AsyncExitStack()
        self._store: PostgresStore | None = None

    async def __aenter__(self) -> Workers:
        async with AsyncExitStack() as stack:
            store = self._store = await to_thread.run_sync(PostgresStore, self._place)
            stack.callback(store.close)
            await to_thread.run_sync(_make_tables, self._address)
            with _translated(self._address):
                await stack.enter_async_context(self._app.open_async())
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def store(self) -> PostgresStore:
        """The store of the sessions."""
        if self._store is None:
            raise InputError("the workers' database is not open", remedy="use `async with Workers(...)`")
        return self._store

    # Whoever has runs done

    async def add(
        self,
        session: str,
        task: str | None = None,
        *,
        criteria: Iterable[str] = (),
        settings: dict[str, Any] | None = None,
    ) -> Run:
        """Hand a run to the workers; without a task, it goes on with the session's. Runs of a session keep their order.

        `settings` are for the function that makes the engine: whatever JSON can say.
        """
        if task is not None and not task.strip():
            raise InputError("the task is empty", remedy="say what is to be done, or leave it out to go on")
        stated = (criteria,) if isinstance(criteria, str) else tuple(criteria)
        id = uuid.uuid4().hex
        with _translated(self._address):
            job = await self._task.configure(lock=session).defer_async(
                id=id, session=session, task=task, criteria=list(stated), settings=settings or {}
            )
        return Run(id=id, session=session, job=job)

    async def events(self, run: Run) -> AsyncIterator[Event]:
        """Yield what happens in a run, from its beginning to its end, whichever workers it takes.

        They are kept until the next run of the session begins.
        """
        seen: set[str] = set()
        while True:
            over = await self._status(run) not in ("todo", "doing")
            names = await to_thread.run_sync(self.store.blob_ids, run.session, _prefix(run.id))
            for name in names:
                if name in seen or name.endswith(_LAST):
                    continue
                seen.add(name)
                data = await to_thread.run_sync(self.store.blob, run.session, name)
                for event in msgspec.json.decode(data or b"[]", type=list[Event]):
                    yield event
            if over or any(name.endswith(_LAST) for name in names):
                return
            await anyio.sleep(POLL)

    async def result(self, run: Run) -> Result:
        """Wait for the end of a run, and return how it ended."""
        while True:
            status = await self._status(run)
            name = _prefix(run.id) + _LAST
            data = await to_thread.run_sync(self.store.blob, run.session, name)
            if data is None and status == "succeeded":
                data = await to_thread.run_sync(self.store.recall, name)
            if data is not None:
                return msgspec.json.decode(data, type=Result)
            if status not in ("todo", "doing"):
                word: Any = _ENDED.get(status, "failed")
                return Result(status=word, error=f"job {run.job} ended as {status} and left no result")
            await anyio.sleep(POLL)

    async def cancel(self, run: Run) -> bool:
        """Cancel a run, at work or not; false when it is over. The session can go on with another run."""
        with _translated(self._address):
            return await self._app.job_manager.cancel_job_by_id_async(run.job, abort=True)

    async def _status(self, run: Run) -> str:
        with _translated(self._address):
            try:
                return (await self._app.job_manager.get_job_status_async(run.job)).value
            except exceptions.NoResult:
                return "deleted"

    # Whoever does them

    async def work(self, *, concurrency: int = 1, wait: bool = True, signals: bool = True) -> None:
        """Do runs until the process is told to stop (SIGINT, SIGTERM); without `wait`, until there is none left.

        A run that has not ended some seconds after that is given back, and another worker goes on with it.
        """
        if self._make is None:
            raise InputError("nobody says how an engine is made", remedy="give engine= to Workers")
        with _translated(self._address):
            await self._take_up_stalled()
            async with _beside(self._look_for_stalled()):
                await self._app.run_worker_async(
                    queues=[self._queue],
                    concurrency=concurrency,
                    wait=wait,
                    install_signal_handlers=signals,
                    shutdown_graceful_timeout=GRACE,
                    update_heartbeat_interval=self._stalled / 3,
                    stalled_worker_timeout=self._stalled,
                    fetch_job_polling_interval=min(5.0, self._stalled),
                )

    async def _look_for_stalled(self) -> None:
        while True:
            await anyio.sleep(self._stalled / 3)
            try:
                await self._take_up_stalled()
            except exceptions.ProcrastinateException as error:
                log.warning("runs of dead workers were not looked for: %s", error)

    async def _take_up_stalled(self) -> None:
        """Put runs of dead workers back into the queue. Should one live, the session's lock keeps others out."""
        manager = self._app.job_manager
        for job in await manager.get_stalled_jobs(task_name=TASK, seconds_since_heartbeat=self._stalled):
            log.info("the worker of run %s is gone: another takes it up", job.task_kwargs["id"])
            # Another worker may have put it back meanwhile.
            with suppress(exceptions.ConnectorException):
                await manager.retry_job(job)

    async def _work_on(
        self,
        context: job_context.JobContext,
        *,
        id: str,
        session: str,
        task: str | None,
        criteria: list[str],
        settings: dict[str, Any],
    ) -> None:
        """Do one run; nothing is done where it has a result already."""
        assert self._make is not None
        record = _Record(self.store, session, id)
        if await to_thread.run_sync(record.is_over):
            return
        log.info("run %s of session %r begins", context.job.id, session)
        order = Order(session=session, store=self.store, listen=record.events.append, settings=settings)
        try:
            async with self._make(order) as engine, record.kept():
                result = await engine.run(task, criteria=criteria, id=_prefix(id) + "task")
        except StoreError as error:
            if isinstance(error, LockedError) or context.job.attempts < MOST_ATTEMPTS:
                raise
            result = Result(status="failed", error=str(error))
        except asyncio.CancelledError:
            if context.abort_reason() is not job_context.AbortReason.USER_REQUEST:
                raise
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(record.end, Result(status="cancelled", error="it was cancelled"))
            raise exceptions.JobAborted from None
        except Exception as error:  # noqa: BLE001 - whoever waits for the run gets to know it
            log.warning("run %s could not be done", id, exc_info=not isinstance(error, WindowsillError))
            words = str(error) if isinstance(error, WindowsillError) else f"{type(error).__name__}: {error}"
            result = Result(status="failed", error=words)
        if result.status == "cancelled" and (other := self.store.locked(session)) is not None:
            # This worker was taken for dead: the result is that of the other.
            raise LockedError(session, other.holder)
        log.info("run %s of session %r ended: %s", context.job.id, session, result.status)
        await to_thread.run_sync(record.end, result)


class _Record:
    """The events and the result of a run, kept with its session in the store, and deleted with it."""

    def __init__(self, store: Store, session: str, id: str) -> None:
        self.events: list[Event] = []
        self._store = store
        self._session = session
        self._prefix = _prefix(id)
        self._written = 0
        self._writer = uuid.uuid4().hex[:8]

    def is_over(self) -> bool:
        """Tell whether the run has a result."""
        return self._store.blob(self._session, self._prefix + _LAST) is not None

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Write events down while they come."""
        await to_thread.run_sync(self._begin)

        async def write() -> None:
            while True:
                await anyio.sleep(POLL)
                try:
                    await to_thread.run_sync(self._write)
                except StoreError as error:
                    log.warning("events of a run were not written down yet: %s", error)

        async with _beside(write()):
            yield

    def _begin(self) -> None:
        """Go on behind what an earlier worker wrote; let go of the events of earlier runs."""
        names = self._store.blob_ids(self._session, RUNS)
        self._written = sum(name.startswith(self._prefix) for name in names)
        old = [name for name in names if not name.startswith(self._prefix) and not name.endswith(_LAST)]
        if old:
            self._store.drop_blobs(self._session, old)

    def _write(self) -> None:
        events = self.events[:]
        if events:
            data = msgspec.json.encode(events, enc_hook=str)
            self._store.put_blobs(self._session, [(f"{self._prefix}{self._written:08}-{self._writer}", data)])
            self._written += 1
            del self.events[: len(events)]

    def end(self, result: Result) -> None:
        """Write down what is left, and how it ended."""
        name, data = self._prefix + _LAST, msgspec.json.encode(result, enc_hook=str)
        if self._store.info(self._session) is None:
            # The engine could not be made, and no session with it.
            self._store.remember(name, data)
            return
        self._write()
        self._store.put_blobs(self._session, [(name, data)])


def _prefix(id: str) -> str:
    return f"{RUNS}{id}/"


def _in_schema(address: Address) -> str:
    """Return the connection string with which procrastinate finds its tables in the schema of the sessions."""
    before = conninfo.conninfo_to_dict(address.conninfo).get("options") or ""
    schema = address.schema.replace("\\", "\\\\").replace(" ", "\\ ")
    return conninfo.make_conninfo(address.conninfo, options=f'{before} -c search_path="{schema}"'.strip())


def _make_tables(address: Address) -> None:
    """Make procrastinate's tables where there are none, one process at a time."""
    with connect(address) as db, translated(address.name), db.transaction():
        db.execute("SELECT set_config('search_path', quote_ident(%s), true)", [address.schema])
        db.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"{TASK} {address.schema}"])
        if db.execute("SELECT to_regclass('procrastinate_jobs')").fetchone() == (None,):
            db.execute(procrastinate.schema.SchemaManager.get_schema())


@asynccontextmanager
async def _beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Let something without an end go on until the block ends."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@contextmanager
def _translated(address: Address) -> Iterator[None]:
    """Let an error of procrastinate leave as one of ours."""
    try:
        yield
    except exceptions.ConnectorException as error:
        words = str(error.__cause__ or error).strip()
        raise StoreError(f"{address.name}: {words}", remedy="check the server and try again") from error
