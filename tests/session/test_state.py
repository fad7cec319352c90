"""The layered state of a session is part of its history."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from support.examples import examples
from support.sessions import opened
from windowsill import Session
from windowsill.errors import InputError, NotFoundError
from windowsill.state import State, session_state
from windowsill.state.changes import Put, Set
from windowsill.state.layers import Step
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.integration


def test_a_rewind_and_a_switch_bring_the_state_of_that_moment_back(store):
    """And what was left stays on its branch."""
    session = opened(store)
    session.add("Fix it.")
    session.state.set_goal("Fix the login", ["tests pass"])
    here = session.add({"role": "assistant", "content": "I will."})
    before = session.state.value
    session.state.enter("planning")
    session.state.set_plan(["look", "mend"])
    later, left = session.state.value, session.branches[0].id
    session.rewind(here)
    assert session.state.value == before
    session.state.add_fact("It is Tuesday", source="user")
    session.switch(left)
    assert session.state.value == later
    assert [step.description for step in later.work.plan.steps] == ["look", "mend"]


def test_a_session_that_is_opened_again_has_its_state(store):
    """With thousands of changes, of which few are read."""
    session = opened(store)
    session.state.set_goal("Count")
    for number in range(2 * session_state.WHOLE_AFTER + 5):
        session.state.put("memory.short_term.variables", {"name": "n", "value": number})
    again = opened(store)
    assert again.state.value == session.state.value
    assert again.state.value.memory.short_term.variables[0].value == 2 * session_state.WHOLE_AFTER + 4
    assert len(again.state.history) == 2 * session_state.WHOLE_AFTER + 6


def test_the_state_of_any_moment_can_be_asked_for(store):
    """By the id of a change, a message or a fold."""
    session = opened(store)
    first = session.state.set_goal("One")
    message = session.add("hello")
    session.state.set_goal("Two")
    assert session.state.at(first).task.goal == "One"
    assert session.state.at(message).task.goal == "One"
    assert session.state.value.task.goal == "Two"
    with pytest.raises(InputError, match="no entry 'x9'"):
        session.state.at("x9")


def test_two_who_change_one_state_lose_nothing(store):
    """Each change is checked against what the other wrote."""
    one, two = opened(store), opened(store)
    one.state.add_fact("A", source="one")
    two.state.add_fact("B", source="two")
    one.state.add_fact("C", source="one")
    two.journal.refresh()
    assert [fact.content for fact in two.state.value.memory.semantic.facts] == ["A", "B", "C"]
    one.state.enter("planning")
    with pytest.raises(InputError, match="from planning to reflecting"):
        two.state.enter("reflecting")


def test_changes_are_made_together_or_not_at_all(store):
    """A mistake in the last one leaves the first one out too."""
    session = opened(store)
    with pytest.raises(InputError, match="cannot go from"):
        session.state.patch(Set("task.goal", "x"), Set("runtime.phase", "verifying"))
    assert session.state.value == State()
    assert session.state.history == []
    with pytest.raises(InputError, match="nothing to change"):
        session.state.patch()


def test_a_whole_state_can_be_loaded_and_undone(store):
    """From JSON, as one entry."""
    session = opened(store)
    session.add("hello")
    at = session.view.items[-1].id
    loaded = State.from_json('{"task": {"goal": "Moved here"}, "runtime": {"phase": "executing"}}')
    session.state.load(loaded, reason="moved")
    assert session.state.value == loaded
    assert opened(store).state.value == loaded
    assert str(session.state.history[-1]) == "changed the whole state: moved"
    session.rewind(at)
    assert session.state.value == State()


def test_the_verbs_say_what_they_mean(store):
    """Each one, and a path for everything that has no verb."""
    state = opened(store).state
    state.record_decision("Use SQLite", rationale="no server", alternatives=["PostgreSQL"])
    state.put("memory.episodic.milestones", {"event": "It starts", "significance": "high"})
    state.put("evidence.observations", {"result": {"lines": 3}, "tool": "read"})
    state.put("evidence.measurements", {"metric": "coverage", "value": 0.9, "unit": "share"})
    state.put("evidence.retrieved", {"content": "text", "source": "a.md", "relevance": 0.5})
    state.put("memory.episodic.summaries", {"text": "We began", "condensed_from": ["m1"]})
    state.put("memory.semantic.preferences", {"category": "style", "name": "quotes", "value": "double"})
    state.put("work.hypotheses", {"description": "It is the cache", "confidence": 0.4})
    state.put("runtime.execution.errors", {"message": "boom"})
    state.put("runtime.execution.warnings", {"message": "hm"})
    state.set("work.scratchpad", "notes")
    state.grant("execute")
    state.revoke("write")
    state.set("runtime.environment", "production")
    value = state.value
    assert value.memory.episodic.decisions[0].alternatives == ("PostgreSQL",)
    assert value.runtime.execution.decisions[0].rationale == "no server"
    assert value.memory.episodic.milestones[0].significance == "high"
    assert value.evidence.observations[0].result == {"lines": 3}
    assert (value.evidence.measurements[0].value, value.evidence.retrieved[0].source) == (0.9, "a.md")
    assert value.memory.episodic.summaries[0].condensed_from == ("m1",)
    assert value.memory.semantic.preferences[0].key == "style/quotes"
    assert value.work.hypotheses[0].open
    assert (value.runtime.execution.errors[0].message, value.runtime.execution.warnings[0].message) == ("boom", "hm")
    assert (value.work.scratchpad, value.runtime.environment) == ("notes", "prod")
    assert value.runtime.permissions == ("read", "execute")


def test_steps_of_a_plan_begin_and_end(store):
    """The one in progress is the current one until it ends."""
    state = opened(store).state
    state.set_plan(["look", Step(id="mend", description="mend it", dependencies=("1",))])
    state.set_step("1", "in_progress")
    assert state.value.work.plan.current == "1"
    state.set_step("1", "completed", result="seen")
    state.set_step("mend", "failed", error="too hard")
    assert [(step.id, step.status, step.result, step.error) for step in state.value.work.plan.steps] == [
        ("1", "completed", "seen", ""),
        ("mend", "failed", None, "too hard"),
    ]
    assert state.value.work.plan.current == ""
    with pytest.raises(NotFoundError, match="no step '9'; it has 1, mend"):
        state.set_step("9", "completed")
    state.set_plan(["again"])
    assert [step.description for step in state.value.work.plan.steps] == ["again"]


def test_a_field_of_a_value_can_be_set_by_its_path(store):
    """The rest of the value stays."""
    state = opened(store).state
    state.set("task.about.tags", ["a"])
    state.set("task.about.priority", "critical")
    assert (state.value.task.about.priority, state.value.task.about.tags) == ("critical", ("a",))
    with pytest.raises(InputError, match=r"nothing at .task\.about\.mood."):
        state.set("task.about.mood", "x")
    with pytest.raises(InputError, match="there is no permission 'fly'"):
        state.grant("fly")
    with pytest.raises(InputError, match="there is no permission 'fly'"):
        state.revoke("fly")
    with pytest.raises(InputError, match="the goal is empty"):
        state.set_goal(" ")


def test_the_audit_tells_changes_of_the_state(store):
    """With their reason, among folds and rewinds."""
    session = opened(store)
    session.state.enter("planning", reason="the user said go")
    session.state.put("memory.semantic.facts", {"content": "x", "source": "y"})
    session.state.drop("memory.semantic.facts", "fact-2")
    assert [(event.kind, event.what) for event in session.audit] == [
        ("state", "changed runtime.phase: the user said go"),
        ("state", "changed memory.semantic.facts"),
        ("state", "changed memory.semantic.facts"),
    ]
    assert session.verify() == []


class Going(RuleBasedStateMachine):
    """Changes, messages, rewinds, checkpoints and openings in any order, against a plain record of what was when."""

    def __init__(self):
        super().__init__()
        self.store = MemoryStore()
        self.session = Session.open("s", model="gpt-4o", store=self.store, clock=lambda: 5.0)
        self.session.add("begin")
        self.moments = {self.session.view.items[-1].id: State()}
        self.checkpoints = {}
        self.expected = State()

    @rule(value=st.integers(-(2**63), 2**64 - 1))
    def variable(self, value):
        id = self.session.state.put("memory.short_term.variables", {"name": "x", "value": value})
        self.expected = self.session.state.value
        assert self.expected.memory.short_term.variables[0].value == value
        self.moments[id] = self.expected

    @rule(text=st.text(min_size=1, max_size=5))
    def fact(self, text):
        id = self.session.state.patch(Put("memory.semantic.facts", {"content": f"f{text}", "source": "s"}))
        facts = self.session.state.value.memory.semantic.facts
        assert facts[:-1] == self.expected.memory.semantic.facts
        self.moments[id] = self.expected = self.session.state.value

    @rule()
    def message(self):
        self.moments[self.session.add("more")] = self.expected

    @rule(data=st.data())
    def go_back(self, data):
        id = data.draw(st.sampled_from(sorted(self.moments)))
        self.session.switch(id)
        self.expected = self.moments[id]

    @rule()
    def checkpoint(self):
        self.checkpoints[self.session.checkpoint().id] = self.expected

    @precondition(lambda self: self.checkpoints)
    @rule(data=st.data())
    def restore(self, data):
        id = data.draw(st.sampled_from(sorted(self.checkpoints)))
        self.session.restore(id)
        self.expected = self.checkpoints[id]

    @rule()
    def reopen(self):
        self.session = Session.open("s", store=self.store, clock=lambda: 5.0)

    @rule(data=st.data())
    def look_back(self, data):
        id = data.draw(st.sampled_from(sorted(self.moments)))
        assert self.session.state.at(id) == self.moments[id]

    @invariant()
    def holds(self):
        assert self.session.state.value == self.expected


TestGoing = Going.TestCase
TestGoing.settings = settings(max_examples=examples(0.25), stateful_step_count=25)
