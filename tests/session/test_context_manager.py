"""An agent's own ways to a session: its state, a context manager, and what it is told when the window fills."""

import asyncio
import logging
import re

import pytest

from support.sessions import TASK, fill, opened, talk
from windowsill import ContextManager, Session
from windowsill.session.context_manager import AgentState, Manager
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit


def session_stats(session):
    talk(session, 1)
    found = session.compose_sync().report.statistics
    return found if found.pruned else None


def test_statistics_say_what_reducing_did():
    """Messages and tokens before, after and removed; how often it ran."""
    session = opened(budget=1_500)
    assert session_stats(session) is None
    fill(session, 2_000)
    found = session.compose_sync().report.statistics
    assert found.pruned
    assert found.emergency
    assert found.messages_removed == found.messages_before - found.messages_after > 0
    assert found.tokens_removed == found.tokens_before - found.tokens_after > 0
    assert (found.runs, session.compose_sync().report.statistics.runs) == (1, 1)
    assert not session.compose_sync().report.statistics.pruned


def test_an_agents_state_reduces_when_it_has_grown():
    """E3: by role and text."""
    state = AgentState(opened(budget=1_000))

    async def run():
        found = None
        for number in range(40):
            found = await state.add_message_with_pruning("user", f"note {number} " + "word " * 30)
            state.add_message("assistant", "noted")
            if found.pruned:
                return found
        return found

    assert asyncio.run(run()).tokens_removed > 0
    assert state.conversation_history[0]["content"].startswith("note 0")


def test_a_context_manager_takes_an_agents_list():
    """`compose_payload` and `on_turn_complete`: what is new is added, what is retrieved comes last."""
    session = Session.open("m", model="gpt-5", store=MemoryStore())
    manager = Manager(session)
    assert isinstance(manager, ContextManager)
    history = [{"role": "user", "content": TASK}]

    async def run():
        payload = await manager.compose_payload("You mend.", history, [], rag_context="The page is login.html.")
        history.append({"role": "assistant", "content": "done"})
        await manager.on_turn_complete(history)
        history.append({"role": "user", "content": "thanks"})
        return payload, await manager.compose_payload("You mend.", history, [])

    first, second = asyncio.run(run())
    assert [message["content"] for message in first.messages] == ["You mend.", TASK, "The page is login.html."]
    assert second.messages[-1]["content"] == "thanks"
    assert len(list(session.messages())) == 4
    assert len(session.branches) == 1


def test_a_filling_window_is_said_once(caplog):
    """At the warning mark, with what happens next; not with every request above it, nor each time it fills again."""
    session = opened(budget=3_000)
    with caplog.at_level(logging.WARNING, logger="windowsill"):
        at = fill(session, 1_900)
        session.compose_sync()
        fill(session, 2_000, start=at)
        session.compose_sync()
        session.rewind(session.view.items[0].id)
        session.compose_sync()
        fill(session, 2_000, start=at + 100)
        session.compose_sync()
    (said,) = [record.message for record in caplog.records if "of what fits" in record.message]
    assert re.search(r": 1,9\d\d tokens, 6\d% of what fits; it is reduced above 2,\d{3} at the latest$", said)


def test_history_tells_calls_and_results_in_words():
    """A message that only calls a tool, and its result, are not empty text."""
    state = AgentState(opened())
    state.session.add("look")
    state.session.add(
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "ls", "input": {"a": 1}}]}
    )
    state.session.add({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "a.py"}]})
    assert [each["content"] for each in state.conversation_history][1:] == [
        '[calls ls: {"a":1}]',
        "[result of c]\na.py",
    ]
