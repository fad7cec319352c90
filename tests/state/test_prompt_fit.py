"""What is shown when not everything fits (B7, L3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.errors import BudgetError, SettingError
from windowsill.state import State
from windowsill.state.layers import (
    Audit,
    Citation,
    Constraints,
    Definition,
    Draft,
    Evidence,
    Execution,
    Fact,
    Memory,
    Plan,
    Role,
    Runtime,
    Semantic,
    ShortTerm,
    Step,
    System,
    Task,
    Trouble,
    Turn,
    Work,
)
from windowsill.state.prompt import Builder, LeftOut, Limits, StateSettings
from windowsill.state.shares import ShareSettings
from windowsill.tokens import counter

ASSISTANT = State.coding_assistant().system

pytestmark = pytest.mark.unit

FACTS = "memory.semantic.facts"


ONLY_MEMORY = {"memory": 1} | dict.fromkeys(("system", "task", "runtime", "evidence", "work"), 0)

BARE = System(
    role=Role(name="r", description="", capabilities=(), limitations=()),
    policies=(),
    constraints=Constraints(max_seconds=None, max_tool_calls=None, max_file_bytes=None, forbidden_paths=()),
    audit=Audit(require_approval=()),
)


def facts(*sizes):
    return Memory(
        semantic=Semantic(
            facts=tuple(
                Fact(id=str(place), content="x" * size, source="s", confidence=1 - place / 100)
                for place, size in enumerate(sizes)
            )
        )
    )


def keys(built, path):
    return [piece.key for piece in built.pieces if piece.path == path]


def test_the_least_sure_facts_go_first():
    """Whole facts: of ten, the surest that there is room for, and the others are told of as left out."""
    built = Builder(len).build(State(system=ASSISTANT, memory=facts(*[400] * 10)), 4_000, now=0.0)
    assert keys(built, FACTS) == ["0", "1", "2", "3"]
    assert built.left_out == {FACTS: LeftOut(no_room=6)}
    assert built.tokens <= 3_600


def test_what_is_larger_than_everything_is_shortened_alone():
    """The surest fact is far too large: the others stay, and it is shortened to what they leave."""
    built = Builder(len).build(State(memory=facts(9_000, 100, 100)), 4_000, now=0.0)
    assert keys(built, FACTS) == ["0", "1", "2"]
    assert built.tokens <= 4_000
    assert built.shortened["memory.semantic.facts#0"] > 9_000


def test_a_layer_gets_what_the_others_leave():
    """Memory has more than its share of 52%, as there is nothing else."""
    built = Builder(len).build(State(memory=facts(*[1_000] * 10)), 10_000, now=0.0)
    assert built.shares.memory == 4_680
    assert 5_000 < built.layers["memory"] < 9_000


def test_the_more_important_layer_gets_it_first():
    """Evidence and memory are both short: evidence has all that it needs before memory gets any more."""
    quotes = tuple(Citation(id=str(place), text="x" * 300, source="s") for place in range(10))
    state = State(system=BARE, memory=facts(*[1_000] * 10), evidence=Evidence(citations=quotes))
    built = Builder(len).build(state, 10_000, now=0.0)
    assert built.shares.evidence == 2_250
    assert len(keys(built, "evidence.citations")) == 10
    assert keys(built, FACTS) == ["0", "1", "2", "3"]


def test_memory_is_shared_among_the_kinds_that_hold_something():
    """B6: 15 to 8 of 8,980: 57 turns of 100 and 31 definitions of 100 with their tags, the newest turns."""
    turns = tuple(Turn(role="user", text=f"{place:074}") for place in range(100))
    known = tuple(Definition(term=f"{place:02}", definition="d" * 64) for place in range(100))
    memory = Memory(short_term=ShortTerm(turns=turns), semantic=Semantic(definitions=known))
    builder = Builder(
        len, StateSettings(picks=Limits(turns=100, definitions=100), shares=ShareSettings(base=ONLY_MEMORY))
    )
    built = builder.build(State(memory=memory), 10_000, now=0.0, layers=["memory"])
    said = [piece for piece in built.pieces if piece.path == "memory.short_term.turns"]
    assert {piece.tokens for piece in built.pieces} == {100}
    assert len(said) == 57
    assert (said[0].text[-9:-7], said[-1].text[-9:-7]) == ("43", "99")
    assert keys(built, "memory.semantic.definitions") == [f"{place:02}" for place in range(31)]


def test_steps_that_are_done_go_before_those_to_come():
    """The plan keeps what is worked on and what is pending."""
    steps = [("a", "completed"), ("b", "skipped"), ("c", "in_progress"), ("d", "pending"), ("e", "failed")]
    plan = Plan(steps=tuple(Step(id=id, status=status, description="x" * 500) for id, status in steps))
    built = Builder(len).build(State(system=ASSISTANT, work=Work(plan=plan)), 3_200, now=0.0)
    assert keys(built, "work.plan.steps") == ["c", "d"]


def test_system_and_task_are_never_cut():
    """The goal is far beyond its share, so everything else gives way, the least important first."""
    goal = "g" * 1_000
    runtime = Runtime(execution=Execution(errors=(Trouble(id="e", message="m" * 100),)))
    state = State(
        system=BARE, task=Task(goal=goal), runtime=runtime, work=Work(drafts=(Draft(id="d", content="c" * 100),))
    )
    built = Builder(len).build(state, 1_800, now=0.0)
    assert goal in built.text
    assert keys(built, "runtime.execution.errors") == ["e"]
    assert built.left_out == {"work.drafts": LeftOut(no_room=1)}


def test_system_and_task_may_use_what_stays_free():
    """Beyond nine tenths, but within the budget: they are all that is shown."""
    state = State(system=BARE, task=Task(goal="g" * 800), memory=facts(5))
    built = Builder(len).build(state, 1_020, now=0.0)
    assert 918 < built.tokens <= 1_020
    assert set(built.layers) == {"system", "task"}


def test_system_and_task_that_are_too_large_are_an_error():
    """It names both sizes, the budget and what to do."""
    state = State(system=BARE, task=Task(goal="g" * 100))
    with pytest.raises(
        BudgetError, match=r"the system layer has 47 and the task layer has 204 tokens.* 271 of 270"
    ) as caught:
        Builder(len).build(state, 270, now=0.0)
    assert (caught.value.parts, caught.value.wanted, caught.value.available) == ({"system": 47, "task": 204}, 271, 270)
    assert Builder(len).build(state, 271, now=0.0).tokens == 271


def test_no_budget_is_no_budget():
    """Nothing can be built in no tokens."""
    with pytest.raises(SettingError, match="window"):
        Builder(len).build(State(), 0, now=0.0)


COUNTERS = {
    "characters": len,
    # Together more than one by one: each part loses the rest of its division.
    "rounded down": lambda text: len(text) // 7,
    "rounded up": lambda text: -(-len(text) // 4),
    "a real one": counter("o200k_base").count,
}
TAGS = len("<memory>\n<short_term>\n<recent_turns>\n</recent_turns>\n</short_term>\n</memory>\n")
"""The most that a single element needs around it."""
SIZES = st.lists(st.integers(1, 300), max_size=8)


@pytest.mark.parametrize("name", COUNTERS)
@given(facts=SIZES, turns=SIZES, quotes=SIZES, drafts=SIZES, tokens=st.integers(160, 4_000))
def test_the_budget_holds_whatever_counts(name, facts, turns, quotes, drafts, tokens):
    """The whole text, counted as one, stays in the budget; what is shown is a part of what would be with more."""
    count = COUNTERS[name]
    state = filled(facts, turns, quotes, drafts)
    everything = Builder(count).build(state, 10**6, now=0.0)
    built = Builder(count).build(state, tokens, now=0.0)
    assert count(built.text) == built.tokens
    assert built.tokens <= max(tokens * 9 // 10, min(tokens, alone(count)))
    assert {piece.id: piece.text for piece in built.pieces if piece.id not in built.shortened}.items() <= {
        piece.id: piece.text for piece in everything.pieces
    }.items()
    assert {piece.path for piece in built.pieces if piece.layer in ("system", "task")} == {
        "system.role",
        "task.output_format",
        "task.about",
    }


@given(facts=SIZES, turns=SIZES, quotes=SIZES, drafts=SIZES, tokens=st.integers(300, 4_000))
def test_nothing_is_left_out_that_would_fit(facts, turns, quotes, drafts, tokens):
    """Whatever had no room is larger than what is left of the budget."""
    state = filled(facts, turns, quotes, drafts)
    sizes = {piece.id: piece.tokens for piece in Builder(len).build(state, 10**6, now=0.0).pieces}
    built = Builder(len).build(state, tokens, now=0.0)
    missing = sizes.keys() - {piece.id for piece in built.pieces}
    assert sum(each.no_room for each in built.left_out.values()) == len(missing)
    assert all(built.tokens + sizes[id] + TAGS > tokens * 9 // 10 for id in missing)


def filled(sizes, turns, quotes, drafts):
    return State(
        system=BARE,
        memory=Memory(
            semantic=facts(*sizes).semantic,
            short_term=ShortTerm(
                turns=tuple(Turn(id=f"t{n}", role="user", text="t " * size) for n, size in enumerate(turns))
            ),
        ),
        evidence=Evidence(
            citations=tuple(Citation(id=f"c{n}", text="q" * size, source="s") for n, size in enumerate(quotes))
        ),
        work=Work(drafts=tuple(Draft(id=f"d{n}", content="日" * size) for n, size in enumerate(drafts))),
    )


def alone(count):
    return count(Builder(count).build(State(system=BARE), 10**6, now=0.0, layers=("system", "task")).text)


def test_how_much_is_chosen_does_not_depend_on_the_room():
    """What is passed over is counted apart from what had no room."""
    built = Builder(len, StateSettings(picks=Limits(facts=8))).build(
        State(system=ASSISTANT, memory=facts(*[400] * 10)), 4_000, now=0.0
    )
    assert built.left_out == {FACTS: LeftOut(filtered=2, no_room=4)}
