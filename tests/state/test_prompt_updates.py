"""What a model is told after the context (L3): what is new, what changed, what no longer holds."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.errors import BudgetError
from windowsill.state import State
from windowsill.state.layers import (
    Draft,
    Episodic,
    Evidence,
    Execution,
    Fact,
    FileChange,
    Hypothesis,
    Measurement,
    Memory,
    Milestone,
    Observation,
    Plan,
    Runtime,
    Semantic,
    ShortTerm,
    Step,
    Task,
    Trouble,
    Variable,
    Work,
)
from windowsill.state.prompt import Builder, Limits, StateSettings

pytestmark = pytest.mark.unit


def told(before, after, *, tokens=100_000, now=0.0, later=None, **settings):
    """The update from one state to another."""
    builder = Builder(len, StateSettings(**settings))
    digests = builder.build(before, 100_000, now=now).digests
    return builder.update(digests, after, tokens, now=now if later is None else later)


def work(**parts):
    return State(work=Work(**parts))


def semantic(*facts):
    return State(memory=Memory(semantic=Semantic(facts=facts)))


def fact(id, content="c", **more):
    return Fact(id=id, content=content, source="s", **more)


def test_nothing_changed_is_nothing_to_tell():
    """Not even for a state that was built anew."""
    state = semantic(fact("a"))
    assert told(state, State.from_json(state.to_json())) is None


def test_an_update_holds_only_what_is_new_or_changed():
    """Framed like the context; what stayed the same is not in it."""
    before = State(work=Work(drafts=(Draft(id="d", content="c"),)), memory=semantic(fact("a"), fact("b")).memory)
    after = State(
        work=before.work, memory=semantic(fact("a"), fact("b", "new </fact>"), fact("c")).memory, task=Task(goal="")
    )
    update = told(before, after)
    assert update.text == (
        "<context_update>\n<memory>\n<semantic>\n<facts>\n"
        '<fact id="b" source="s" confidence="1">new &lt;/fact&gt;</fact>\n'
        '<fact id="c" source="s" confidence="1">c</fact>\n'
        "</facts>\n</semantic>\n</memory>\n</context_update>"
    )
    assert update.tokens == len(update.text)
    assert list(update.digests) == ["memory.semantic.facts#b", "memory.semantic.facts#c"]
    assert [piece.key for piece in update.pieces] == ["b", "c"]
    assert (update.removed, update.left_out) == ((), ())


def test_an_update_as_markdown():
    """What is gone stands before the first layer."""
    before = State(memory=Memory(short_term=ShortTerm(variables=(Variable(name="v", value=1),))))
    update = told(before, work(scratchpad="a\nb"), format="markdown")
    assert update.text == (
        '# context_update\n- removed path="memory.short_term.variables" key="v"\n'
        "## work_buffer\n- scratchpad\n  > a\n  > b\n"
    )


@pytest.mark.parametrize(
    ("before", "after", "removed"),
    [
        (semantic(fact("a")), semantic(), "memory.semantic.facts#a"),
        (semantic(fact("a")), semantic(fact("a", verified=False)), "memory.semantic.facts#a"),
        (
            work(hypotheses=(Hypothesis(id="h", description="d"),)),
            work(hypotheses=(Hypothesis(id="h", description="d", tested=True, result="rejected"),)),
            "work.hypotheses#h",
        ),
        (
            work(changes=(FileChange(id="c", target="t"),)),
            work(changes=(FileChange(id="c", target="t", applied=True),)),
            "work.changes#c",
        ),
        (work(scratchpad="notes"), work(), "work.scratchpad#"),
        (State(task=Task(goal="g")), State(), "task.goal#"),
        (
            State(memory=Memory(short_term=ShortTerm(variables=(Variable(id="i", name="n"),)))),
            State(),
            "memory.short_term.variables#n",
        ),
        (
            State(memory=Memory(episodic=Episodic(milestones=(Milestone(id="m", event="e"),)))),
            State(),
            "memory.episodic.milestones#m",
        ),
    ],
)
def test_what_is_gone_or_no_longer_holds_is_told(before, after, removed):
    """Taken out of the state, unverified, decided, applied, emptied."""
    update = told(before, after)
    path, _, key = removed.partition("#")
    sign = f'<removed path="{path}" key="{key}"/>' if key else f'<removed path="{path}"/>'
    assert update.text == f"<context_update>\n{sign}\n</context_update>"
    assert (update.removed, update.digests, update.pieces) == ((removed,), {}, ())


def test_a_step_that_is_done_is_a_change():
    """It is told with its new status."""
    step = Step(id="1", description="d")
    after = work(plan=Plan(steps=(msgspec.structs.replace(step, status="completed"),)))
    update = told(work(plan=Plan(steps=(step,))), after)
    assert '<step id="1" status="completed">d</step>' in update.text
    assert update.removed == ()


SEEN = Observation(id="o", at=0.0, result="r")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # It grew old, and then left the state for it.
        (State(evidence=Evidence(observations=(SEEN,))), State(evidence=Evidence(observations=(SEEN,)))),
        (State(evidence=Evidence(observations=(SEEN,))), State()),
        (
            State(evidence=Evidence(observations=(SEEN,))),
            State(evidence=Evidence(observations=(msgspec.structs.replace(SEEN, result="other"),))),
        ),
        (State(memory=Memory(short_term=ShortTerm(observations=(SEEN,)))), State()),
        (State(runtime=Runtime(execution=Execution(errors=(Trouble(id="e", message="m"),)))), State()),
        # It cannot be named.
        (semantic(fact("")), State()),
    ],
)
def test_what_only_grew_old_is_no_news(before, after):
    """Observations, errors and the like expire without a word."""
    assert told(before, after, later=10_000.0) is None


def test_what_leaves_at_the_cap_is_no_news():
    """The oldest milestone makes room for a new one: only that is told."""
    stones = [Milestone(id=id, event="e") for id in "abc"]
    states = [
        State(memory=Memory(episodic=Episodic(milestones=tuple(each), max_entries=2)))
        for each in (stones[:2], stones[1:])
    ]
    update = told(*states)
    assert (list(update.digests), update.removed) == (["memory.episodic.milestones#c"], ())


def test_what_gave_way_to_something_better_is_no_news():
    """A surer fact takes the only place: it is told, and the other stays as it was told."""
    update = told(
        semantic(fact("a", confidence=0.5)), semantic(fact("a", confidence=0.5), fact("b")), picks=Limits(facts=1)
    )
    assert (list(update.digests), update.removed) == (["memory.semantic.facts#b"], ())


def test_what_gave_way_and_changed_is_told():
    """The model still believes what it was told of it."""
    update = told(
        semantic(fact("a", "old", confidence=0.5)),
        semantic(fact("a", "other", confidence=0.5), fact("b")),
        picks=Limits(facts=1),
    )
    assert [piece.key for piece in update.pieces] == ["b", "a"]
    assert "other" in update.text


def test_a_newer_measurement_replaces_an_older_one():
    """Only the new one is told."""
    old, new = Measurement(id="a", metric="ms", value=1, at=1), Measurement(id="b", metric="ms", value=2, at=2)
    update = told(State(evidence=Evidence(measurements=(old,))), State(evidence=Evidence(measurements=(old, new))))
    assert (list(update.digests), update.removed) == (["evidence.measurements#b"], ())


def test_what_had_no_room_in_the_context_is_no_news():
    """Only when it changes: then it is told, if there is room."""
    builder = Builder(len)
    large = Draft(id="e", content="e" * 2_200)
    before = work(drafts=(Draft(id="d", content="x" * 2_200), large))
    digests = builder.build(before, 5_000, now=0.0).digests
    assert builder.update(digests, before, 100_000, now=0.0) is None
    after = work(drafts=(Draft(id="d", content="shorter"), large))
    assert list(builder.update(digests, after, 5_000, now=0.0).digests) == ["work.drafts#d"]
    # It was never told, so nobody has to take it back.
    assert builder.update(digests, work(drafts=(large,)), 5_000, now=0.0) is None


def test_an_update_has_a_budget_too():
    """Whole elements, the most important first; the rest comes with the next one."""
    after = semantic(fact("a", "a" * 300, confidence=0.9), fact("b", "b" * 50, confidence=0.5))
    update = told(State(), after, tokens=200)
    assert list(update.digests) == ["memory.semantic.facts#b"]
    assert update.left_out == ("memory.semantic.facts#a",)
    assert update.tokens <= 200
    assert told(State(), after, tokens=60) is None


def test_a_goal_that_does_not_fit_an_update_is_an_error():
    """System and task are never cut here either."""
    with pytest.raises(BudgetError, match="the task layer has 128"):
        told(State(), State(task=Task(goal="g" * 99)), tokens=100)


def test_layers_that_are_not_asked_for_are_not_told():
    """Neither their changes nor what is gone."""
    builder = Builder(len)
    digests = builder.build(semantic(fact("a")), 100_000, now=0.0).digests
    assert builder.update(digests, work(scratchpad="x"), 100_000, now=0.0, layers=("task",)) is None


def test_a_part_that_is_not_known_is_passed_over():
    """What a later version told is no reason to fail."""
    known = Builder(len).build(State(), 100_000, now=0.0).digests
    assert Builder(len).update({**known, "mind.mood#x": "d", "odd": "d"}, State(), 100_000, now=0.0) is None


IDS = st.sampled_from("abcdef")
FACTS = st.builds(
    fact, IDS, st.sampled_from(["x", "y"]), confidence=st.sampled_from([0.2, 0.9]), verified=st.booleans()
)
STATES = st.builds(
    lambda facts, goal: State(memory=semantic(*facts).memory, task=Task(goal=goal)),
    st.lists(FACTS, max_size=6, unique_by=lambda fact: fact.id),
    st.sampled_from(["", "x", "y"]),
)


@given(st.lists(STATES, min_size=2, max_size=6), st.integers(200, 2_000))
def test_whoever_follows_the_updates_knows_what_holds(states, tokens):
    """Nothing that was told and is not taken back is wrong, and once all is told there is nothing left to tell."""
    builder = Builder(len, StateSettings(picks=Limits(facts=3)))
    told = dict(builder.build(states[0], 100_000, now=0.0).digests)
    for state in states[1:]:
        for _ in range(12):
            update = builder.update(told, state, tokens, now=0.0)
            if update is None:
                break
            assert update.tokens <= tokens
            told = {id: digest for id, digest in told.items() if id not in update.removed} | update.digests
        assert builder.update(told, state, tokens, now=0.0) is None
        wide = Builder(len, StateSettings(picks=Limits(facts=100, relevance=0))).build(
            msgspec.structs.replace(state, task=Task()), 100_000, now=0.0
        )
        true = {piece.id: piece.digest for piece in wide.pieces}
        assert {id: digest for id, digest in told.items() if "facts" in id}.items() <= true.items()


@pytest.mark.parametrize("name", ["=total", "#1", "=", "a#b"])
def test_what_is_gone_is_told_whatever_its_name_begins_with(name):
    """A name may begin with the signs that our own ids are made of."""
    before = State(memory=Memory(short_term=ShortTerm(variables=(Variable(name=name, value=1),))))
    assert told(before, State()).removed == (f"memory.short_term.variables#{name}",)


def test_of_two_with_one_key_the_second_leaves_without_a_word():
    """Nobody could say which of them it was; the first keeps its name."""
    assert told(semantic(fact("a", "one"), fact("a", "two")), semantic(fact("a", "one"))) is None
