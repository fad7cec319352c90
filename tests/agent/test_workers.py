"""Runs that any worker takes, over a real PostgreSQL."""

import asyncio
import os
import signal
import sys
import time
from contextlib import asynccontextmanager, suppress

import pytest

from support import postgres, queued_agent
from support.killed_agent import TASK
from windowsill import Session
from windowsill.agent.calls import INTERRUPTED
from windowsill.agent.workers import Workers
from windowsill.errors import InputError

pytestmark = pytest.mark.integration


@pytest.fixture
def url() -> str:
    return postgres.server().url()


def workers(url: str, engine=queued_agent.engine) -> Workers:
    return Workers(url, engine=engine, stalled=queued_agent.STALLED)


def results(session: Session, name: str) -> list[str]:
    found = [each for message in session.messages() for each in message.results]
    return ["".join(block.text for block in each.content) for each in found if each.name == name]


def done(folder) -> list[str]:
    return (folder / "done.log").read_text().split()


def test_a_worker_does_a_run_and_whoever_waits_gets_events_and_result(url, tmp_path):
    """What is added by one is done by another; events come in order up to the end, and the session is whole."""

    async def go():
        async with workers(url, engine=None) as asker, workers(url) as worker:
            run = await asker.add("s", TASK, settings={"folder": str(tmp_path)})
            _, events, result = await asyncio.gather(
                worker.work(wait=False, signals=False), _all(asker.events(run)), asker.result(run)
            )
            return events, result

    events, result = asyncio.run(go())
    assert (result.status, result.text) == ("completed", "Both are written.")
    assert [event.text for event in events if event.kind == "tool_finished"][-3:] == [
        "wrote b",
        "contents of c",
        "wrote d",
    ]
    assert [event.kind for event in events].index("ended") == len(events) - 1
    assert done(tmp_path) == ["a", "b", "d"]
    with Session.open("s", store=url) as session:
        assert session.verify() == []


def test_a_killed_worker_s_run_is_completed_by_another_and_nothing_is_done_twice(url, tmp_path):
    """SIGKILL in the middle of a tool: the other worker goes on there, and the uncertain call is told, not repeated."""
    (tmp_path / "wait").touch()

    async def go():
        async with workers(url) as other:
            run = await other.add("s", TASK, settings={"folder": str(tmp_path), "stop": "b"})
            async with _worker(url) as process:
                async for event in other.events(run):
                    if event.text == "wrote a":
                        break
                await asyncio.to_thread(_wait_for, lambda: "b" in done(tmp_path))
                process.send_signal(signal.SIGKILL)
            (tmp_path / "wait").unlink()
            working = asyncio.create_task(other.work(signals=False))
            result, events = await asyncio.gather(other.result(run), _all(other.events(run)))
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            return result, events

    result, events = asyncio.run(asyncio.wait_for(go(), 120))
    assert result.status == "completed"
    assert done(tmp_path) == ["a", "b", "d"]
    with Session.open("s", store=url) as session:
        assert results(session, "put") == ["wrote a", INTERRUPTED, "wrote d"]
        assert sum(message.text == TASK for message in session.messages()) == 1
        assert session.verify() == []
    # The events of both: the first began b, the second did d.
    assert [event.kind for event in events].count("ended") == 1
    assert "wrote a" in [event.text for event in events]


def test_a_run_that_ended_without_a_word_to_the_queue_is_not_begun_again(url, tmp_path):
    """Killed between the end of the task and that of the job: the next worker only reports how it ended."""

    @asynccontextmanager
    async def dying(order):
        async with queued_agent.engine(order) as engine:
            run = engine.run

            async def once(*given, **named):
                await run(*given, **named)
                raise asyncio.CancelledError

            engine.run = once
            yield engine

    async def go():
        async with workers(url, dying) as first, workers(url) as second:
            run = await first.add("s", TASK, settings={"folder": str(tmp_path)})
            await first.work(wait=False, signals=False)
            assert done(tmp_path) == ["a", "b", "d"]
            working = asyncio.create_task(second.work(signals=False))
            result = await second.result(run)
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            return result

    result = asyncio.run(asyncio.wait_for(go(), 60))
    assert (result.status, result.text) == ("completed", "Both are written.")
    assert done(tmp_path) == ["a", "b", "d"]


def test_runs_of_one_session_are_done_one_after_the_other(url, tmp_path):
    """A worker with room for several runs does those of one session in their order."""

    async def go():
        async with workers(url) as all:
            added = [await all.add("s", f"{TASK} {n}", settings={"folder": str(tmp_path)}) for n in range(3)]
            working = asyncio.create_task(all.work(concurrency=3, signals=False))
            found = [await all.result(run) for run in added]
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            return found

    assert [result.status for result in asyncio.run(asyncio.wait_for(go(), 60))] == ["completed"] * 3
    with Session.open("s", store=url) as session:
        tasks = [message.text for message in session.messages() if message.text.startswith(TASK)]
    assert tasks == [f"{TASK} {n}" for n in range(3)]


def test_a_run_that_is_cancelled_ends_as_cancelled_and_can_go_on(url, tmp_path):
    """Before a worker took it, and while one is at it; a run without a task then goes on with the session's."""
    (tmp_path / "wait").touch()
    settings = {"folder": str(tmp_path), "stop": "a"}

    async def go():
        async with workers(url) as all:
            waiting = await all.add("s", TASK, settings=settings)
            assert await all.cancel(waiting)
            assert (await all.result(waiting)).status == "cancelled"
            working = asyncio.create_task(all.work(signals=False))
            run = await all.add("s", TASK, settings=settings)
            await asyncio.to_thread(_wait_for, (tmp_path / "done.log").exists)
            assert await all.cancel(run)
            (tmp_path / "wait").unlink()
            assert (await all.result(run)).status == "cancelled"
            result = await all.result(await all.add("s", settings=settings))
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            return result

    assert asyncio.run(asyncio.wait_for(go(), 60)).status == "completed"
    assert done(tmp_path) == ["a", "b", "d"]


def test_an_engine_that_cannot_be_made_is_a_result(url):
    """Whoever waits is told what is wrong, rather than waiting for ever."""

    @asynccontextmanager
    async def broken(_):
        raise InputError("no such model", remedy="name another")
        yield

    async def go():
        async with workers(url, broken) as all:
            run = await all.add("s", TASK)
            await all.work(wait=False, signals=False)
            return await all.result(run), await _all(all.events(run))

    result, events = asyncio.run(asyncio.wait_for(go(), 60))
    assert (result.status, result.error) == ("failed", "no such model; name another")
    assert events == []


def test_workers_want_a_server(tmp_path):
    """A file is not shared between machines: that is said at once."""
    with pytest.raises(InputError, match="PostgreSQL"):
        Workers(str(tmp_path))


async def _all(events):
    return [event async for event in events]


def _wait_for(condition):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


@asynccontextmanager
async def _worker(url):
    paths = os.pathsep.join(path for path in sys.path if path)
    process = await asyncio.create_subprocess_exec(
        sys.executable, queued_agent.__file__, url, env={**os.environ, "PYTHONPATH": paths}
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
