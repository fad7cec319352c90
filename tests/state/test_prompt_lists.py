"""A builder that is used again gives what a new one would, and looks only at what changed."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.archives import Synonyms
from support.examples import examples
from windowsill.state import State
from windowsill.state.layers import Evidence, Fact, Memory, Observation, Semantic, Task
from windowsill.state.prompt import Builder, Limits, StateSettings

pytestmark = pytest.mark.unit

WORDS = ("mail", "letter", "stamp", "parcel")
FACTS = tuple(Fact(id=str(n), content=WORDS[n % 4], source="s", confidence=n % 7 / 7) for n in range(20))
SEEN = tuple(Observation(id=str(n), at=float(n), result=WORDS[n % 4]) for n in range(10))


def state(facts=FACTS, goal="mail", seen=SEEN):
    return State(
        task=Task(goal=goal), memory=Memory(semantic=Semantic(facts=facts)), evidence=Evidence(observations=seen)
    )


LISTS = st.lists(st.sampled_from(FACTS), max_size=12).map(tuple)
STATES = st.builds(
    state, LISTS, st.sampled_from(["mail", "stamp letter", ""]), st.lists(st.sampled_from(SEEN)).map(tuple)
)


@given(st.lists(st.tuples(STATES, st.floats(0, 100), st.sampled_from([1_900, 10_000])), min_size=2, max_size=5))
@settings(max_examples=examples(0.6))
def test_used_again_it_gives_what_a_new_one_would(rounds):
    """Whatever came, went, moved or was doubled, whatever the goal, the time and the budget before."""
    builder = Builder(len)
    for shown, now, tokens in rounds:
        assert builder.build(shown, tokens, now=now) == Builder(len).build(shown, tokens, now=now)


def shown(builder, state, now):
    return {piece.key for piece in builder.build(state, 10_000, now=now, layers=("memory", "evidence")).pieces}


def test_another_goal_chooses_anew_from_the_same_list():
    """The list is the very same object."""
    builder, facts = Builder(len, StateSettings(picks=Limits(facts=1))), FACTS[:2]
    assert shown(builder, state(facts, "mail", ()), 0.0) == {"0"}
    assert shown(builder, state(facts, "letter", ()), 0.0) == {"1"}


def test_time_passes_for_the_same_list():
    """What was fresh is not fresh for ever."""
    builder, same = Builder(len), state((), seen=SEEN[:1])
    assert shown(builder, same, 0.0) == {"0"}
    assert shown(builder, same, 100.0) == set()


def changed(facts, place):
    return (*facts[:place], msgspec.structs.replace(facts[place], content="mail mail"), *facts[place + 1 :])


class Counting:
    """Counts characters, and how often it was asked."""

    def __init__(self):
        self.asked = 0

    def __call__(self, text):
        self.asked += 1
        return len(text)


def test_only_what_changed_is_counted_again():
    """Of 2,000 facts one is new: it, its layer and the whole are counted, and no other element."""
    count = Counting()
    builder = Builder(count)
    facts = tuple(msgspec.structs.replace(fact) for fact in FACTS * 100)
    builder.build(state(facts), 10_000, now=0.0)
    assert count.asked > 2_000
    count.asked = 0
    builder.build(state(changed(facts, 777)), 10_000, now=0.0)
    assert count.asked <= 4


def test_only_what_changed_is_compared_with_the_goal():
    """The embedder sees the goal and the one fact that is new."""
    embedder = Synonyms(("mail", "letter"), ("stamp",))
    builder = Builder(len, embedder=embedder)
    builder.build(state(), 10_000, now=0.0)
    embedder.embedded = 0
    builder.build(state(changed(FACTS, 3)), 10_000, now=0.0)
    assert embedder.embedded == 2


def test_a_state_that_did_not_change_is_not_looked_at_again():
    """Neither its elements nor the goal are read a second time; it takes a change or the end of an observation."""
    count = Counting()
    builder, same = Builder(count), state(seen=SEEN[:1])
    told = builder.build(same, 10_000, now=0.0).digests
    assert builder.update(told, same, 10_000, now=0.0) is None
    count.asked, builder._selections = 0, {}
    assert builder.update(told, same, 10_000, now=59.0) is None
    assert count.asked == 0
    with pytest.raises(KeyError):
        builder.update(told, same, 10_000, now=60.0)


def test_what_left_the_state_is_forgotten():
    """However much came and went, no more is remembered than is there."""
    builder = Builder(len)
    for number in range(50):
        fact = Fact(id=str(number), content="mail", source="s")
        builder.build(state((fact,)), 10_000, now=0.0)
    found = builder._selections["memory.semantic.facts"]
    assert (len(found.elements), len(found._ranks), len(found._rendered)) == (1, 1, 1)


def test_a_counter_that_fails_leaves_nothing_half_done():
    """The next build is as if there had been no failure."""
    fails = False

    def count(text):
        if fails and "mail mail" in text:
            raise RuntimeError
        return len(text)

    builder = Builder(count)
    builder.build(state(), 10_000, now=0.0)
    fails = True
    with pytest.raises(RuntimeError):
        builder.build(state(changed(FACTS, 3)), 10_000, now=0.0)
    fails = False
    assert builder.build(state(changed(FACTS, 4)), 10_000, now=0.0) == Builder(len).build(
        state(changed(FACTS, 4)), 10_000, now=0.0
    )
