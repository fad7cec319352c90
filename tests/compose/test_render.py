"""Renderer turn by turn gives the same bytes as rendering at once, and only what is new is rendered."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import sessions
from support.conversations import (
    broken_anthropic,
    broken_openai,
    result,
    sound_anthropic,
    sound_openai,
    text_block,
    use,
)
from support.examples import examples
from windowsill import Session, providers
from windowsill.compose.render import Renderer
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit


def opened(format="anthropic", budget=100_000):
    ticks = itertools.count(1)
    return Session.open(
        "s",
        budget=budget,
        tokenizer="bytes/4",
        format=format,
        store=MemoryStore(),
        clock=lambda: float(next(ticks)),
    )


def at_once(session, format):
    return Renderer(providers.get(format)).render(session.view)


def steps(session, messages, format):
    """Render after each message, as an agent would, and compare with rendering everything afresh."""
    growing = Renderer(providers.get(format))
    for message in messages:
        session.add(message)
        session.journal.head.sent = True
        rendered = growing.render(session.view)
        fresh = at_once(session, format)
        assert rendered.chunks == fresh.chunks
        assert rendered.tokens == fresh.tokens
        assert rendered.extra == fresh.extra
        assert [each.kind for each in rendered.repairs] == [each.kind for each in fresh.repairs]


@given(broken_anthropic, st.sampled_from(["anthropic", "openai"]))
def test_growing_and_fresh_rendering_agree_on_broken_anthropic(messages, format):
    """Whatever order results come in, remembering the settled part changes no byte."""
    steps(opened(), messages, format)


@given(broken_openai, st.sampled_from(["anthropic", "openai"]))
def test_growing_and_fresh_rendering_agree_on_broken_openai(messages, format):
    """The same for conversations in OpenAI's format."""
    steps(opened("openai"), messages, format)


@settings(max_examples=examples(0.6))
@given(st.one_of(sound_anthropic()))
def test_a_sound_conversation_is_sent_as_it_came(messages):
    """No message of a sound conversation changes a byte."""
    session = opened()
    session.extend(messages)
    assert at_once(session, "anthropic").chunks == [message.raw for message in session.messages()]


@settings(max_examples=examples(0.6))
@given(sound_openai())
def test_a_sound_openai_conversation_is_sent_as_it_came(messages):
    """Nor does one in OpenAI's format."""
    session = opened("openai")
    session.extend(messages)
    assert at_once(session, "openai").chunks == [message.raw for message in session.messages()]


def test_nothing_is_settled_while_a_call_waits():
    """A result that comes after the assistant spoke again still finds its call."""
    session = opened()
    growing = Renderer(providers.get("anthropic"))
    session.add({"role": "user", "content": "task"})
    session.add({"role": "assistant", "content": [use("a"), use("b")]})
    session.add({"role": "user", "content": [result("a", "first")]})
    session.add({"role": "assistant", "content": "still waiting for b"})
    growing.render(session.view)
    session.add({"role": "user", "content": [result("b", "second")]})
    body = b"".join(growing.render(session.view).chunks)
    assert b"second" in body
    assert body == b"".join(at_once(session, "anthropic").chunks)


def test_a_settled_part_is_rendered_once():
    """The next turn hands out the very same bytes, not a copy made again."""
    session = opened()
    growing = Renderer(providers.get("anthropic"))
    session.add({"role": "user", "content": "task"})
    session.add({"role": "assistant", "content": [use("a")]})
    session.add({"role": "user", "content": [result("a")]})
    session.add({"role": "assistant", "content": "done"})
    first = growing.render(session.view).chunks
    read = []
    reader = session.view.read
    session.view.read = lambda item: read.append(item.id) or reader(item)
    session.add({"role": "user", "content": "next"})
    second = growing.render(session.view).chunks
    assert all(old is new for old, new in zip(first[:3], second[:3], strict=True))
    assert len(read) <= 2


def test_tokens_of_the_parts_are_those_of_the_view():
    """What each native message weighs adds up to the view, give or take what repairs added."""
    session = opened()
    session.add({"role": "user", "content": "task"})
    session.add({"role": "assistant", "content": [use("a")]})
    session.add({"role": "user", "content": "never mind"})
    rendered = at_once(session, "anthropic")
    assert [each.kind for each in rendered.repairs] == ["missing_supplied"]
    assert sum(rendered.tokens) == session.view.tokens() + rendered.extra
    assert rendered.extra > 0


def test_a_marker_beside_the_users_message_is_no_repair():
    """Two user messages stand together only because a fold put a marker there: nothing was broken."""
    session = opened(budget=400)
    session.add({"role": "user", "content": "task"})
    for turn in range(8):
        session.add({"role": "assistant", "content": [text_block("see"), use(f"t{turn}")]})
        session.add({"role": "user", "content": [result(f"t{turn}", "word " * 60)]})
    payload = session.compose_sync()
    assert payload.report.hidden > 0
    assert payload.report.repairs == ()


def test_system_messages_that_lead_go_apart():
    """A conversation from OpenAI gives its system prompt to Anthropic's own field."""
    session = opened("openai")
    session.add({"role": "system", "content": "be brief"})
    session.add({"role": "user", "content": "hi"})
    rendered = at_once(session, "anthropic")
    assert [message.text for message in rendered.systems] == ["be brief"]
    assert len(rendered.chunks) == 1


@pytest.mark.parametrize("strategy", ["sliding-window", "condense", "importance"])
def test_hidden_messages_are_said_to_be_within_reach_only_where_they_are(strategy):
    """A marker, a notice and a summary name the tool that finds what they stand for in requests that offer it."""
    session = sessions.opened(strategy=strategy, budget=6_000)
    sessions.fill(session, 7_000)
    without, offered = session.compose_sync(), session.compose_sync(tools=session.tools.tools)
    assert "[Memory Summary]" in str(without.messages)
    assert "history_search" not in str(without.messages)
    assert "history_search finds them" in str(offered.messages)
    assert session.request(session.calls[-2].id) == without.body()
    assert session.request(session.calls[-1].id) == offered.body()
