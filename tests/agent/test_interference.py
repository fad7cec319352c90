"""What others do to a session and its store while an engine runs on it."""

import sqlite3

import pytest

from support.agents import Shop, engine, over, results, sound
from support.sessions import opened
from windowsill.agent import ModelError
from windowsill.agent.calls import WENT_BACK
from windowsill.errors import StoreError
from windowsill.session.checkpoints import Checkpoints
from windowsill.store.memory import MemoryStore
from windowsill.store.sqlite import SQLiteStore
from windowsill.testing import Call, Scripted

pytestmark = pytest.mark.integration


def test_an_answer_to_what_is_no_longer_said_is_left_out():
    """Somebody rewinds while the model answers: the run goes on from there, and nothing is run twice."""
    store = MemoryStore()
    session, other, shop = opened(store, budget=60_000), opened(store, budget=60_000), Shop()

    def rewind(_):
        other.journal.refresh()
        call = next(item for item in other.view.items if item.calls)
        other.rewind(call.id)
        return Call("put", {"path": "never"})

    running = engine([Call("put", {"path": "a"}), rewind, "fine"], session=session, shop=shop)
    result = running.run_sync("Go.")
    assert (result.text, shop.did) == ("fine", ["put a"])
    assert results(session) == [("put", WENT_BACK, True)]
    assert "led elsewhere while the model answered" in result.notes[0]
    assert sound(session)


def test_results_of_calls_that_are_no_longer_made_are_left_out():
    """Somebody goes back before them while they run; the calls behind them are not run at all."""
    session = opened(budget=60_000)
    did = []

    def work(name: str) -> str:
        did.append(name)
        session.rewind(session.view.items[0].id)
        return "done"

    calls = [Call("work", {"name": "a"}), Call("work", {"name": "b"})]
    result = over(work, [calls, "fine"], session=session).run_sync("Go.")
    assert did == ["a"]
    assert results(session) == []
    assert any("led elsewhere while calls ran" in note for note in result.notes)
    assert "the phase initializing" in result.error
    assert session.verify() == []


def test_words_and_changes_of_others_are_taken_in_between():
    """A message while a tool runs, a fact, and a phase that this engine does not work in."""
    store = MemoryStore()
    session, other = opened(store, budget=60_000), opened(store, budget=60_000)

    def work() -> str:
        other.journal.refresh()
        other.add("By the way: hurry.")
        other.state.add_fact("It is late", source="other")
        return "ok"

    running = over(work, session=session)
    assert running.run_sync("Say how late it is.").ok
    assert "hurry" in str(running.model.requests[-1])
    assert "It is late" in str(running.model.requests[-1])
    assert sound(session)
    led = over(lambda: session.state.enter("reflecting"), [Call("work"), "x"], session=session)
    assert "the phase reflecting, which this engine does not work in" in led.run_sync("More.").error


# Stores


class Failing:
    """A store whose n-th append fails, with whatever it is given."""

    def __init__(self, number, error):
        self.store = MemoryStore()
        self._append, self._left, self._error = self.store.append, number, error
        self.store.append = self.append

    def append(self, *arguments, **named):
        self._left -= 1
        if self._left == 0:
            raise self._error
        return self._append(*arguments, **named)


def worked(request):
    """The next step, by what the request holds."""
    seen = str(request["messages"])
    if "[phase: executing]" not in seen:
        return "I will." if "There is a plan" in seen or "The plan has" in seen else Call("update_plan", PLAN)
    if "wrote" not in seen and "interrupted" not in seen:
        return [Call("put", {"path": "a"}), Call("look", {"path": "b"}), Call("remember", FACT)]
    return Call("finish", {"done": True, "result": "fine"})


PLAN, FACT = {"steps": [{"description": "look"}]}, {"kind": "fact", "text": "x"}


@pytest.mark.parametrize("error", [StoreError("disk"), OSError("disk"), RuntimeError("disk")], ids=repr)
@pytest.mark.parametrize("number", range(1, 15))
def test_a_store_that_fails_at_any_append_ends_the_run_with_a_result(number, error):
    """Or not even that; the task is done when it is run again, and nothing twice."""
    failing = Failing(number + 1, error)
    session, shop = opened(failing.store, budget=60_000), Shop()
    settings = {"shop": shop, "phases": ("planning", "executing")}
    session.add("Hello.")
    result = engine(Scripted([worked] * 9, format="anthropic"), session=session, **settings).run_sync("Go.")
    assert (result.status, "disk" in result.error) in (("failed", True), ("completed", False))
    again = opened(failing.store, budget=60_000)
    model = Scripted([worked] * 9, format="anthropic")
    ended = result if result.ok else engine(model, session=again, **settings).run_sync("Go.")
    assert ended.status == "completed"
    told = [message.text for message in again.messages()]
    assert told.count("Go.") == 1
    assert sum("[phase: planning]" in text for text in told) == 1
    assert shop.did.count("put a") <= 1
    assert again.state.value.runtime.phase == "completed"
    assert sound(again)


def test_a_store_that_stays_broken_is_told_too():
    """The result says that the end was not recorded."""
    store = MemoryStore()
    running = engine(["x"], session=opened(store, budget=60_000))

    def append(*_, **__):
        raise RuntimeError("no disk at all")

    store.append = append
    result = running.run_sync("Go.")
    assert (result.status, result.error) == ("failed", "RuntimeError: no disk at all")
    assert result.notes == ("the end was not recorded: no disk at all",)


def test_a_state_that_is_damaged_before_the_run_begins_is_restored(tmp_path):
    """As after a crash of the disk: a process that is started again finds it."""
    store = SQLiteStore(tmp_path / "sessions.db")
    session, shop = opened(store, budget=60_000), Shop()
    engine(
        Scripted([Call("put", {"path": "a"}), ModelError("refused", "no")], format="anthropic"),
        session=session,
        shop=shop,
    ).run_sync("Go.")
    id = session.state.put("memory.short_term.variables", {"name": "x", "value": 1})
    with sqlite3.connect(tmp_path / "sessions.db") as database:
        damaged = "UPDATE body SET data = x'c1' WHERE key IN (SELECT (session << 32) | seq FROM entry WHERE id = ?)"
        database.execute(damaged, (id,))
    result = engine(["fine"], session=opened(store, budget=60_000), shop=shop).run_sync("Go.")
    assert (result.status, result.text, shop.did) == ("completed", "fine", ["put a"])
    assert "went back to checkpoint" in result.notes[0]
    store.close()


def test_a_checkpoint_that_cannot_be_made_is_a_note(monkeypatch):
    """Once, however often it is tried."""
    running = engine([Call("look", {"path": "a"}), "fine"])

    def refuse(*_, **__):
        raise StoreError("no names are left", remedy="forget some")

    monkeypatch.setattr(Checkpoints, "make_if_due", refuse)
    result = running.run_sync("Go.")
    assert (result.status, len(result.notes)) == ("completed", 1)
    assert result.notes[0] == "no checkpoint was made: no names are left; forget some"


def test_what_a_turn_writes_does_not_grow_with_the_state_or_the_history():
    """Commits and bytes of a turn are the same late and early, with ten facts and with two thousand."""

    def written(facts, turns):
        store, sizes = MemoryStore(), []
        session = opened(store, budget=60_000)
        for number in range(facts):
            session.state.add_fact(f"Fact number {number} about the world", source="x")
        session.state.set("system.constraints.max_tool_calls", None)
        append = store.append

        def watched(id, version, entries, **named):
            sizes.append(sum(len(entry.body or b"") for entry in entries if entry.kind == "state"))
            return append(id, version, entries, **named)

        store.append = watched
        script = [*(Call("put", {"path": str(number)}) for number in range(turns)), "done"]
        running = engine(script, session=session, max_turns=turns + 1, checkpoints=None)
        assert running.run_sync("Go.").ok
        return len(sizes) / turns, sum(sizes) / turns

    (few, small), (many, large) = written(10, 60), written(2_000, 60)
    assert few == many < 3.2
    assert large < 1.1 * small
