"""How a run ends before its task does: limits, circles, cancellation."""

import anyio
import pytest

from support.agents import Shop, engine, over, results
from support.sessions import opened
from windowsill.agent.calls import CANCELLED
from windowsill.errors import LockedError
from windowsill.store.memory import MemoryStore
from windowsill.testing import Call

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("system.constraints.max_tool_calls", 2, "2 tool calls"),
        ("task.limits.max_cost", 0.000001, "dollars"),
        ("task.limits.max_seconds", 0.0, "seconds"),
    ],
)
def test_limits_of_the_state_end_a_run(path, value, said):
    """The result names the limit; raised, the same run goes on."""
    shop = Shop()
    calls = [Call("put", {"path": str(number)}) for number in range(5)]
    running = engine([*calls, "done"], shop=shop)
    running.session.state.set(path, value)
    result = running.run_sync("Go.")
    assert result.status == "limit"
    assert said in result.error
    assert path in result.error
    running.session.state.set(path, None)
    assert running.run_sync().status == "completed"
    assert sorted(set(shop.did)) == sorted(shop.did)


def test_one_run_has_a_limit_of_model_calls():
    """Raise it, or run it again."""
    running = engine([Call("look", {"path": str(number)}) for number in range(4)] + ["done"], max_turns=2)
    assert [running.run_sync("Go.").status for _ in range(3)] == ["limit", "limit", "completed"]


def test_a_model_that_goes_round_in_circles_is_told_and_then_stopped():
    """The same call with the same result, and a circle of two."""
    for circle in ([Call("look", {"path": "a"})], [Call("look", {"path": "a"}), Call("look", {"path": "b"})]):
        running = engine(circle * 20)
        result = running.run_sync("Go.")
        assert result.status == "stuck"
        assert "look" in result.error
        assert result.turns == 6 * len(circle)
        assert "time in a row" in str(running.model.requests[-1]["messages"])


def test_the_same_call_with_other_results_is_no_circle():
    """Waiting for something is work."""
    ticks = iter(range(100))
    running = over(lambda: next(ticks), [*[Call("work")] * 12, "done"])
    assert running.run_sync("Wait.").status == "completed"


def test_an_engine_that_runs_keeps_others_out():
    """The second is told who holds the session; when the first is done it may run."""
    store = MemoryStore()
    session = opened(store, budget=60_000)
    other = engine(["no"], session=opened(store, budget=60_000))

    def intrude() -> str:
        with pytest.raises(LockedError, match="is locked by"):
            other.run_sync("Mine!")
        return "kept out"

    assert over(intrude, session=session).run_sync("Go.").ok
    assert results(session)[0][1] == "kept out"
    assert session.journal.store.locked(session.id) is None
    assert other.run_sync("Mine!").text == "no"


def test_engines_that_wait_are_let_in_as_they_came():
    """Each runs when the one before it is done; one that waits no longer keeps nobody out."""
    store, order = MemoryStore(), []
    store.lock("s", "me", seconds=60)

    async def run(name: str, wait: float) -> None:
        async def work() -> str:
            order.append(name)
            return name

        try:
            await over(work, session=opened(store, "s", budget=60_000)).run(f"Work, {name}.", wait=wait)
        except LockedError:
            order.append(f"{name} gave up")

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            await run("hasty", 0.01)
            for place, name in enumerate(("first", "second", "third"), 1):
                tasks.start_soon(run, name, 60)
                while len(store._line["s"]) < place:  # noqa: ASYNC110 - a store has no events
                    await anyio.sleep(0.01)
            store.unlock("s", "me")

    anyio.run(main)
    assert order == ["hasty gave up", "first", "second", "third"]


def test_a_cancelled_run_is_told_to_the_model_and_goes_on_later():
    """What was at work when it was cancelled may have taken effect."""

    async def stop() -> str:
        running.cancel()
        await anyio.sleep(30)
        return "never"

    running = over(stop)
    result = running.run_sync("Go.")
    assert (result.status, result.phase, result.turns) == ("cancelled", "executing", 1)
    assert results(running.session) == [("work", CANCELLED, True)]
    assert running.run_sync("Go.").text == "done"


def test_from_another_thread_a_run_is_cancelled_after_the_step_at_hand():
    """What the step did is recorded."""

    def stop() -> str:
        running.cancel()
        return "stopped"

    running = over(stop)
    assert running.run_sync("Go.").status == "cancelled"
    assert results(running.session) == [("work", "stopped", False)]
    assert running.run_sync().text == "done"


def test_a_cancellation_from_outside_is_passed_on_and_loses_nothing():
    """The session can be taken up where it was."""

    async def go():
        begun = anyio.Event()

        async def hang() -> str:
            begun.set()
            await anyio.sleep(30)
            return "never"

        running = over(hang)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(running.run, "Go.")
            await begun.wait()
            tasks.cancel_scope.cancel()
        return running

    running = anyio.run(go)
    assert results(running.session) == [("work", CANCELLED, True)]
    assert running.session.journal.store.locked(running.session.id) is None
    assert running.run_sync("Go.").text == "done"


def test_whoever_listens_cannot_break_the_run(caplog):
    """An error there is logged."""

    def listen(event):
        raise RuntimeError(event.kind)

    assert engine(["ok"], listen=listen).run_sync("Go.").ok
    assert "a listener of the engine failed" in caplog.text
