"""A state under whatever programs and people do to it: nothing in it is lost, or becomes unreadable."""

import math
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.examples import examples
from support.sessions import opened
from windowsill import Session
from windowsill.errors import InputError, NotFoundError, StoreError
from windowsill.state import State, session_state
from windowsill.state.changes import MOST_NESTED, Drop, Put, Set
from windowsill.store.memory import MemoryStore
from windowsill.store.sqlite import SQLiteStore

pytestmark = pytest.mark.integration


def facts(session):
    return [fact.content for fact in session.state.value.memory.semantic.facts]


# Values


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_cannot_say_is_refused(number):
    """Or the state could be kept, and never again be read from its own file."""
    state = opened().state
    for change in (
        Put("memory.short_term.variables", {"name": "x", "value": {"deep": [number]}}),
        Put("evidence.measurements", {"metric": "m", "value": number}),
        Put("memory.semantic.facts", {"content": "x", "source": "y", "at": number}),
        Set("runtime.resources", {"cost": abs(number)}),
    ):
        with pytest.raises(InputError, match="is not a number that JSON has"):
            state.patch(change)
    assert State.from_json(state.value.to_json()) == state.value == State()


def nested(depth):
    value = "bottom"
    for _ in range(depth):
        value = [value]
    return value


def test_what_is_nested_so_deep_that_not_everybody_could_read_it_is_refused():
    """What can be written can be read, however deep in a program."""
    store = MemoryStore()
    session = opened(store)
    # The variable itself is one level.
    session.state.put("memory.short_term.variables", {"name": "x", "value": nested(MOST_NESTED - 1)})

    def below(levels):
        return below(levels - 1) if levels else opened(store).state.value

    assert below(500) == session.state.value
    for depth in (MOST_NESTED, 5_000):
        with pytest.raises(InputError, match="cannot hold this"):
            session.state.put("memory.short_term.variables", {"name": "y", "value": nested(depth)})


def test_half_characters_and_objects_are_refused():
    """With the place."""
    state = opened().state
    for value in ("\ud800", object(), {1: object()}, 2**64):
        with pytest.raises(InputError, match=r"memory\.short_term\.variables cannot hold"):
            state.put("memory.short_term.variables", {"name": "x", "value": value})


def test_a_text_alone_is_one_criterion_and_one_step():
    """Not its letters."""
    state = opened().state
    state.set_goal("Mend it", "all tests pass")
    state.set_plan("look at it")
    assert [each.description for each in state.value.task.success_criteria] == ["all tests pass"]
    assert [each.description for each in state.value.work.plan.steps] == ["look at it"]


# States that come from elsewhere


def test_elements_without_ids_are_all_kept():
    """A state from a file; each gets an id, and a later one replaces none of them."""
    session = opened()
    known = '{"content": "%s", "source": "s"}'
    session.state.load(State.from_json(f'{{"memory": {{"semantic": {{"facts": [{known % "a"}, {known % "b"}]}}}}}}'))
    session.state.add_fact("c", source="s")
    assert facts(session) == ["a", "b", "c"]
    assert len({fact.id for fact in session.state.value.memory.semantic.facts}) == 3


def test_a_state_of_another_session_is_added_to_and_not_overwritten():
    """Its ids may be the ones that come next here."""
    first = opened()
    first.add("hello")
    for number in range(5):
        first.state.add_fact(f"old {number}", source="s")
    second = opened()
    second.state.load(first.state.value)
    for number in range(5):
        second.state.patch(
            *(Put("memory.semantic.facts", {"content": f"new {number}.{place}", "source": "s"}) for place in range(2))
        )
    assert facts(second) == [
        *(f"old {number}" for number in range(5)),
        *(f"new {number}.{place}" for number in range(5) for place in range(2)),
    ]


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ('{"steps": [{"id": "1", "description": "a"}, {"id": "1", "description": "b"}]}', "two elements '1'"),
        ('{"steps": [{"id": "1", "description": "a"}], "current": "9"}', "no step '9'"),
        ('{"steps": [{"id": "1", "description": "a", "dependencies": ["2"]}]}', "depends on '2'"),
    ],
)
def test_a_state_that_contradicts_itself_is_not_loaded(plan, said):
    """And the one that was there stays."""
    session = opened()
    with pytest.raises(InputError, match=said):
        session.state.load(State.from_json(f'{{"work": {{"plan": {plan}}}}}'))
    assert session.state.value == State()


# Several who change one state


@pytest.fixture(params=["memory", "sqlite"])
def pair(request, tmp_path):
    """Two who opened the same session; neither looks before it writes."""
    store = MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "sessions.db")
    yield opened(store), opened(store)
    store.close()


def test_verbs_that_change_what_is_there_start_from_what_is_there(pair):
    """Not from what their session last saw: fields, permissions, failures, plans, steps, criteria."""
    one, two = (each.state for each in pair)
    one.set("task.about.tags", ["a"])
    two.set("task.about.priority", "high")
    one.grant("execute")
    two.revoke("write")
    for each in (one, two):
        each.change(lambda state: [Put("runtime.failures", session_state.count_failure(state, "run", "exit 1"))])
    one.set_goal("one", ["first"])
    two.set_goal("two", ["second"])
    one.set_plan(["a", "b"])
    two.set_step("1", "completed", result="seen")
    one.set_step("1", "completed", error="late")
    value = one.value
    assert (value.task.about.tags, value.task.about.priority) == (("a",), "high")
    assert value.runtime.permissions == ("read", "execute")
    assert [(each.tool, each.retries) for each in value.runtime.failures] == [("run", 1)]
    assert [each.description for each in value.task.success_criteria] == ["second"]
    assert [(step.result, step.error) for step in value.work.plan.steps] == [("seen", "late"), (None, "")]
    two.set_plan(["c"])
    assert [step.description for step in two.value.work.plan.steps] == ["c"]


def test_a_change_that_follows_from_the_state_is_made_anew_when_somebody_was_faster():
    """Between looking and writing."""
    store = MemoryStore()
    one, two = opened(store), opened(store)
    one.state.put("memory.short_term.variables", {"name": "n", "value": 0})
    append, raced = store.append, []

    def slow(*arguments, **named):
        if not raced:
            raced.append(True)
            two.state.put("memory.short_term.variables", {"name": "n", "value": 10})
        return append(*arguments, **named)

    store.append = slow
    one.state.change(lambda state: [Put("memory.short_term.variables", plus_one(state))])
    assert one.state.value.memory.short_term.variables[0].value == 11


def plus_one(state):
    return {"name": "n", "value": state.memory.short_term.variables[0].value + 1}


def test_nothing_is_lost_between_threads_and_sessions():
    """Every one of many changes counts once."""
    store = MemoryStore()
    sessions = [opened(store) for _ in range(2)]
    sessions[0].state.put("memory.short_term.variables", {"name": "n", "value": 0})

    def work(session):
        for _ in range(15):
            session.state.change(lambda state: [Put("memory.short_term.variables", plus_one(state))])

    threads = [threading.Thread(target=work, args=(session,)) for session in (*sessions, *sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    again = opened(store)
    assert again.state.value.memory.short_term.variables[0].value == 60
    assert again.verify() == []


def test_two_who_contradict_each_other_are_told(pair):
    """What the other one dropped cannot be dropped again; a phase follows from the one that is."""
    one, two = (each.state for each in pair)
    one.add_fact("x", source="y", id="f")
    two.drop("memory.semantic.facts", "f")
    with pytest.raises(NotFoundError, match="has no 'f'"):
        one.drop("memory.semantic.facts", "f")
    one.enter("executing")
    with pytest.raises(InputError, match="from executing to initializing"):
        two.enter("initializing")


def test_a_store_that_fails_leaves_the_state_as_it_was():
    """In memory as on disk, for changes, whole states and changes with a message."""
    store = MemoryStore()
    session = opened(store)
    session.state.set_goal("before")
    append = store.append

    def broken(*_, **__):
        raise StoreError("the disk is full")

    store.append = broken
    for change in (
        lambda: session.state.set_goal("after"),
        lambda: session.state.load(State()),
        lambda: session.add("hello", state=[Set("task.goal", "after")]),
    ):
        with pytest.raises(StoreError, match="disk is full"):
            change()
        assert session.state.value.task.goal == "before"
    store.append = append
    assert opened(store).state.value == session.state.value
    session.state.set_goal("after")
    assert opened(store).state.value.task.goal == "after"


# Size


@pytest.mark.parametrize(("words", "whole"), [(1, 12), (20_000, 1)])
def test_a_large_state_is_written_whole_only_after_as_many_bytes_of_changes(monkeypatch, words, whole):
    """A small one after so many changes; opened again, both are the same."""
    monkeypatch.setattr(session_state, "WHOLE_AFTER", 10)
    store = MemoryStore()
    session = opened(store)
    session.state.set("work.scratchpad", "word " * words)
    for number in range(120):
        session.state.put("memory.short_term.variables", {"name": "n", "value": f"{number} " + "digits " * 100})
    entries = store.read("s", 1, store.info("s").version, kinds=("state",))
    assert sum(session_state._state_meta(entry.meta).form == "copy" for entry in entries) == whole
    assert opened(store).state.value == session.state.value


def test_ten_thousand_facts_are_kept_and_one_change_is_small():
    """What a change writes does not depend on how much the state holds."""
    store = MemoryStore()
    session = opened(store)
    session.state.patch(
        *(Put("memory.semantic.facts", {"content": f"fact {number}", "source": "s"}) for number in range(10_000))
    )
    session.state.add_fact("one more", source="s")
    (entry,) = store.read("s", 2, 2)
    assert len(entry.body) < 200
    assert len(facts(opened(store))) == 10_001


# Branches


CHANGES = st.one_of(
    st.tuples(st.just("fact"), st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8)),
    st.tuples(st.just("goal"), st.sampled_from(["a", "b"])),
    st.tuples(st.just("plan"), st.integers(1, 4)),
    st.tuples(st.just("drop"), st.none()),
    st.tuples(st.just("load"), st.none()),
    st.tuples(st.just("message"), st.none()),
    st.tuples(st.just("checkpoint"), st.none()),
    st.tuples(st.just("back"), st.integers(0, 100)),
)


def made(session, what, value):
    """Do one thing to a session; the id of the entry."""
    state, known = session.state, session.state.value.memory.semantic.facts
    doing = {
        "fact": lambda: state.put("memory.semantic.facts", {"content": f"f{value}", "source": "s"}),
        "goal": lambda: state.set_goal(value, [value]),
        "plan": lambda: state.set_plan([f"step {number}" for number in range(value)]),
        "drop": lambda: state.patch(*(Drop("memory.semantic.facts", fact.id) for fact in known), Set("task.goal", "")),
        "load": lambda: state.load(State(memory=state.value.memory)),
        "message": lambda: session.add("more"),
        "checkpoint": lambda: session.checkpoint().id,
    }
    return doing[what]()


@settings(max_examples=examples(0.4))
@given(steps=st.lists(CHANGES, min_size=5, max_size=40))
def test_every_moment_of_every_branch_has_the_state_that_it_had(steps):
    """Whatever was done there, and however far apart whole states are written."""
    store = MemoryStore()
    session = Session.open("s", model="gpt-4o", store=store, clock=lambda: 5.0)
    moments = {session.add("begin"): State()}
    for what, value in steps:
        if what == "back":
            id = sorted(moments)[value % len(moments)]
            session.switch(id)
            assert session.state.value == moments[id]
        else:
            id = made(session, what, value)
            moments[id] = session.state.value
    again = Session.open("s", store=store)
    assert {id: again.state.at(id) for id in moments} == moments
    assert again.state.value == session.state.value
    assert again.verify() == []
