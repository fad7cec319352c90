"""Reduce by hand: compact with a wish, reduce to a size, and read what was extracted."""

import asyncio

import pytest

from support.sessions import opened, problems, talk
from windowsill import InputError, Session
from windowsill.session.context_manager import AgentState
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit

WISH = "focus on the tests"


def test_a_session_is_compacted_at_once():
    """However empty the window is; the last turn stays, and undone it is all there again."""
    session = opened(budget=100_000)
    talk(session, 30)
    before = session.view.tokens()
    done = asyncio.run(session.compact())
    assert (done.pruned, done.tokens_before, done.tokens_after) == (True, before, session.view.tokens())
    assert session.view.tokens() < before / 2
    assert problems(session.compose_sync()) == []
    session.unfold(session.folds[-1].id)
    assert session.view.tokens() == before


def test_a_wish_reaches_the_model_that_writes():
    """It is waited for, as a caller asked for it; the same from a program with an event loop."""
    prompts = []

    async def writer(prompt):
        prompts.append(prompt)
        return "<retain>\n- login.html\n</retain>\n<summary>The tests of the login were mended.</summary>"

    session = opened(budget=100_000, writer=writer)
    talk(session, 30)
    assert session.compact_sync(WISH).pruned
    assert WISH in prompts[0]
    assert "The tests of the login were mended." in session.view.read(session.view.items[1]).text


def test_one_long_turn_is_compacted_too():
    """Of an agent that works on one task the oldest steps go."""
    session = opened(budget=100_000)
    talk(session, 1)
    for number in range(40):
        session.add({"role": "assistant", "content": f"Step {number}: " + "word " * 50})
    assert session.compact_sync().tokens_removed > 1_000


def test_what_could_not_follow_the_wish_is_in_the_next_report():
    """Code writes without a model, and says that it cannot follow wishes."""
    session = opened(budget=100_000)
    talk(session, 30)
    session.compact_sync(WISH)
    assert any("cannot follow instructions" in note for note in session.compose_sync().report.notes)


def test_an_empty_session_has_nothing_to_compact():
    """It is told so by the result."""
    session = opened(budget=100_000)
    session.add("Hello.")
    assert not session.compact_sync().pruned


@pytest.mark.parametrize("ask", [lambda session: session.compact_sync(), lambda session: session.reduce_sync(to=0.2)])
def test_compact_without_auto_acts_when_it_is_asked(ask):
    """And not before."""
    session = opened(budget=10_000, strategy="compact:auto=false,keep=2")
    talk(session, 60)
    session.compose_sync()
    assert session.folds == []
    assert ask(session).pruned
    assert session.folds[-1].strategy == "compact"


def test_reducing_by_hand_waits_for_the_model():
    """A text that is wanted now is not left to a later request."""

    async def writer(_):
        await asyncio.sleep(0)
        return "<summary>All was looked at.</summary>"

    session = opened(budget=10_000, strategy="condense", writer=writer)
    talk(session, 60)
    assert session.reduce_sync(to=0.2).pruned
    assert "All was looked at." in str([session.view.read(item).text for item in session.view.items if item.fold])


def test_an_agents_state_is_pruned_in_time_with_a_model_too():
    """At 98% of the budget, before the message that would not fit."""

    async def writer(_):
        return "<summary>Notes were taken.</summary>"

    state = AgentState(opened(budget=2_000, strategy="condense", writer=writer))

    async def run():
        while state.session.view.tokens() < 1_900:
            await asyncio.to_thread(state.add_message, "user", "note " + "word " * 30)
            await asyncio.to_thread(state.add_message, "assistant", "noted")
        return await state.add_message_with_pruning("user", "one more")

    assert asyncio.run(run()).pruned


def test_the_extracted_object_can_be_read():
    """As the strategy `extract` keeps it, also after the session was opened again; empty before."""
    schema = {"type": "object", "properties": {"destination": {"type": "string"}, "date": {"type": "string"}}}

    async def writer(prompt):
        return '{"destination": "Kyoto", "date": "5 May"}' if "Nara" not in prompt else '{"destination": "Nara"}'

    store = MemoryStore()
    stated = {"model": "gpt-5", "store": store, "writer": writer, "strategies": {"extract": {"schema": schema}}}
    session = Session.open("s", strategy="extract", **stated)
    assert session.state.extracted == {}
    session.add("Book a trip. " + "word " * 200)
    session.add({"role": "assistant", "content": "Where to? " + "word " * 400})
    session.add("To Kyoto on the 5th of May.")
    session.reduce_sync()
    assert session.state.extracted == {"destination": "Kyoto", "date": "5 May"}
    assert Session.open("s", strategy="extract", **stated).state.extracted == session.state.extracted


def test_a_size_that_is_none_is_refused():
    """With the setting and what it may be."""
    session = opened(budget=10_000)
    session.add("Hello.")
    with pytest.raises(InputError, match="'to'"):
        session.reduce_sync(to=-3)
