"""Changes of a state: what may be changed, and what comes of it."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.errors import InputError, NotFoundError
from windowsill.state import State
from windowsill.state.changes import LATEST, NEXT, Drop, Put, Set, StateDocument, check_jump, places
from windowsill.state.layers import PHASES, Fact, Role, Step
from windowsill.state.prompt import Builder

pytestmark = pytest.mark.unit

FACTS, STEPS = "memory.semantic.facts", "work.plan.steps"


def changed(*changes, document=None, number=7):
    """The state after changes."""
    document = document or StateDocument()
    document.apply(document.check(changes, at=100.0, number=number))
    return document.state


def test_the_default_state_is_that_of_the_specification():
    """Role, four policies, limits, audit, permissions and environment, by name; no policy is hard without code."""
    state = State.coding_assistant()
    assert state.system.role.name == "AI Coding Assistant"
    assert [(policy.id, policy.priority, policy.enforcement) for policy in state.system.policies] == [
        ("pol-001", 100, "hard"),
        ("pol-002", 90, "hard"),
        ("pol-003", 95, "soft"),
        ("pol-004", 80, "soft"),
    ]
    limits = state.system.constraints
    assert (limits.max_seconds, limits.max_tool_calls, limits.max_file_bytes) == (3_600, 100, 10_485_760)
    assert limits.forbidden_paths == ("/etc", "/sys", "/proc", "~/.ssh")
    assert state.system.audit.require_approval == ("delete", "deploy")
    assert (state.runtime.phase, state.runtime.permissions, state.runtime.environment) == (
        "initializing",
        ("read", "write"),
        "dev",
    )
    assert (state.memory.short_term.ttl, state.memory.episodic.max_entries) == (300, 50)


def test_nobody_is_told_that_they_are_somebody_else():
    """Role, capabilities and policies are empty unless somebody states them; nothing counts time or calls."""
    system = State().system
    assert (system.role, system.policies) == (Role(), ())
    assert (system.role.name, system.role.capabilities) == ("", ())
    assert (system.constraints.max_seconds, system.constraints.max_tool_calls) == (None, None)
    assert system.constraints.forbidden_paths == ("/etc", "/sys", "/proc", "~/.ssh")
    assert Builder(len).build(State(), 1_000, now=0.0, layers=("system",)).digests == {}


def test_every_field_of_every_layer_can_be_reached():
    """Lists by putting and dropping, everything else by setting."""
    assert {path.partition(".")[0] for path in places()} == {"system", "task", "runtime", "memory", "evidence", "work"}
    assert len(places()) == 45
    assert places()["task.goal"].is_list is False
    assert places()[FACTS].is_list is True


def test_what_is_set_and_put_is_there_and_the_rest_is_as_it_was():
    """A change touches its own place alone."""
    state = changed(Set("task.goal", "Ship it"), Put(FACTS, {"content": "It is blue", "source": "m3"}))
    assert state.task.goal == "Ship it"
    assert state.memory.semantic.facts == (Fact(id="fact-7.2", at=100.0, content="It is blue", source="m3"),)
    assert msgspec.structs.replace(state, task=State().task, memory=State().memory) == State()


def test_an_element_with_the_same_key_takes_the_others_place():
    """Where it stood, not at the end."""
    document = StateDocument()
    for key in "ab":
        changed(Put(FACTS, Fact(id=key, content=key, source="x")), document=document)
    state = changed(Put(FACTS, Fact(id="a", content="new", source="x")), document=document)
    assert [fact.content for fact in state.memory.semantic.facts] == ["new", "b"]


def test_what_is_dropped_is_gone_and_what_is_not_there_cannot_be():
    """Dropping says what it did not find."""
    document = StateDocument()
    changed(Put(FACTS, Fact(id="a", content="a", source="x")), document=document)
    assert changed(Drop(FACTS, "a"), document=document) == State()
    with pytest.raises(NotFoundError, match=r"memory\.semantic\.facts has no 'a'"):
        changed(Drop(FACTS, "a"), document=document)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (Set("task.gaol", "x"), "nothing at 'task.gaol'; did you mean task.goal"),
        (Put("task.goal", "x"), "it is a value: set it"),
        (Set(FACTS, []), "it is a list: put elements into it"),
        (Put(FACTS, {"content": "x", "source": "  "}), "has no source; say where it comes from"),
        (Put(FACTS, {"content": "x"}), "missing required field `source`"),
        (Put(FACTS, Fact(content="x", source="y", confidence=1.5)), "<= 1.0"),
        (Set("runtime.permissions", ["fly"]), "Invalid enum value 'fly'"),
        (Set("runtime.phase", "verifying"), "cannot go from initializing to verifying"),
        (Set("runtime.phase", "dancing"), "Invalid enum value 'dancing'"),
        (Put(STEPS, {"id": "a", "description": "x", "dependencies": ["b"]}), "'a' depends on 'b', which the plan"),
        (Set("work.plan.current", "9"), "the plan has no step '9'"),
        (Put("memory.short_term.variables", {"name": "x", "value": object()}), "cannot hold this dict"),
        (Put("memory.short_term.variables", {"name": "x", "value": "\ud800"}), "surrogates not allowed"),
        (Put(FACTS, {"content": "x", "source": "y", "colour": 1}), "unknown field `colour`"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(change, said):
    """The error names the place and what to do."""
    document = StateDocument()
    with pytest.raises(InputError) as caught:
        document.check([Set("task.goal", "not this"), change], at=1.0, number=1)
    assert said in str(caught.value)
    assert document.state == State()


def test_steps_may_not_wait_for_each_other_in_a_circle():
    """Whatever the way round; the error shows it."""
    steps = [
        Put(STEPS, Step(id="a", description="a", dependencies=("c",))),
        Put(STEPS, Step(id="b", description="b", dependencies=("a",))),
        Put(STEPS, Step(id="c", description="c", dependencies=("b",))),
    ]
    with pytest.raises(InputError, match="steps wait for each other: a > c > b > a"):
        changed(*steps)
    assert len(changed(*steps[1:], Put(STEPS, Step(id="a", description="a"))).work.plan.steps) == 3


def test_a_step_may_not_wait_for_itself():
    """The smallest circle."""
    with pytest.raises(InputError, match="a > a"):
        changed(Put(STEPS, Step(id="a", description="a", dependencies=("a",))))


def test_only_some_phases_follow_each_other():
    """Nothing is completed that was never worked on; what has ended can be taken up again."""
    allowed = [(before, after) for before in PHASES for after in PHASES if before != after and after in NEXT[before]]
    assert ("initializing", "completed") not in allowed
    assert ("planning", "completed") not in allowed
    assert {("executing", "completed"), ("failed", "planning"), ("verifying", "executing")} <= {*allowed}
    for before in PHASES:
        for after in PHASES:
            if before == after or (before, after) in allowed:
                check_jump(before, after)
            else:
                with pytest.raises(InputError, match=f"from {before} to {after}; from {before} it may go to"):
                    check_jump(before, after)


def test_several_jumps_in_one_change_are_each_looked_at():
    """Two legal steps are one legal change; their sum alone would not be."""
    assert changed(Set("runtime.phase", "planning"), Set("runtime.phase", "executing")).runtime.phase == "executing"
    with pytest.raises(InputError, match="from planning to verifying"):
        changed(Set("runtime.phase", "planning"), Set("runtime.phase", "verifying"))


def test_production_is_prod():
    """Two words for one environment."""
    assert changed(Set("runtime.environment", "production")).runtime.environment == "prod"
    assert State.from_json('{"runtime": {"environment": "production"}}').runtime.environment == "prod"


def test_episodes_have_a_cap_that_can_be_changed():
    """The oldest leave the state."""
    document = StateDocument()
    path = "memory.episodic.milestones"
    for number in range(60):
        changed(Put(path, {"id": str(number), "event": "x"}), document=document)
    assert [each.id for each in document.state.memory.episodic.milestones] == [str(number) for number in range(10, 60)]
    state = changed(Set("memory.episodic.max_entries", 2), document=document)
    assert [each.id for each in state.memory.episodic.milestones] == ["58", "59"]


def test_what_happens_at_every_step_is_kept_in_sight_only_for_a_while():
    """The history has all of it."""
    document = StateDocument()
    for number in range(LATEST + 5):
        changed(Put("runtime.execution.errors", {"id": str(number), "message": "x"}), document=document)
    kept = document.state.runtime.execution.errors
    assert (len(kept), kept[0].id) == (LATEST, "5")


KEYS = st.sampled_from("abcde")
CHANGES = st.lists(
    st.one_of(
        st.builds(lambda text: Set("task.goal", text), st.text(max_size=8)),
        st.builds(
            lambda key, text: Put(FACTS, Fact(id=key, content=f"c{text}", source="s")), KEYS, st.text(max_size=4)
        ),
        st.builds(
            lambda key, value: Put("memory.short_term.variables", {"name": key, "value": value}),
            KEYS,
            st.none()
            | st.integers(-9, 9)
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.lists(st.booleans(), max_size=2),
        ),
        st.builds(lambda key: Drop(FACTS, key), KEYS),
    ),
    max_size=20,
)


@given(changes=CHANGES)
def test_changes_one_by_one_together_and_read_again_come_to_the_same(changes):
    """So that a session that is opened again has the state it had."""
    one_by_one, written = StateDocument(), []
    for number, change in enumerate(changes, start=1):
        try:
            made = one_by_one.check([change], at=1.0, number=number)
        except NotFoundError:
            continue
        one_by_one.apply(made)
        written.append(msgspec.msgpack.encode(made))
        assert State.from_json(one_by_one.state.to_json()) == one_by_one.state
    again = StateDocument()
    for body in written:
        again.apply(msgspec.msgpack.decode(body, type=tuple[Set | Put | Drop, ...]))
    assert again.state == one_by_one.state


def test_a_state_goes_through_json_and_says_what_is_wrong_with_one_that_does_not():
    """The error names the field."""
    state = changed(Set("task.goal", "x"), Put(STEPS, Step(description="do")), Set("work.plan.current", "step-7.2"))
    assert State.from_json(state.to_json()) == state
    with pytest.raises(InputError, match=r"`\$\.task\.goal`.*State\.schema"):
        State.from_json('{"task": {"goal": 3}}')
    with pytest.raises(InputError, match="not JSON"):
        State.from_json("{")
    with pytest.raises(InputError, match="depends on 'z'"):
        State.from_json('{"work": {"plan": {"steps": [{"id": "a", "description": "x", "dependencies": ["z"]}]}}}')


def test_the_schema_describes_the_state():
    """A state that is valid passes it, one that is not does not."""
    import jsonschema  # noqa: PLC0415 - slow to import

    validator = jsonschema.Draft202012Validator(State.schema())
    assert validator.is_valid(msgspec.json.decode(State().to_json()))
    assert not validator.is_valid({"runtime": {"phase": "dancing"}})


def test_what_a_later_version_wrote_is_passed_over():
    """It does not make a session unreadable."""
    document = StateDocument()
    document.apply([Set("task.mood", "good"), Set("task.goal", "x")])
    assert document.state.task.goal == "x"
