"""Context for one step: shown while its turn lasts, ranked above old talk, gone from later requests."""

import pytest

from support.conversations import result, use
from support.sessions import problems
from windowsill import InputError, Session
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit


def opened(store=None, **settings):
    settings = {"model": "claude-sonnet-4-5", "tokenizer": "o200k_base", "budget": 8_000} | settings
    return Session.open("s", store=store or MemoryStore(), **settings)


def page(number):
    return f"PAGE {number}: " + "fact " * 100


def turn(session, number, **more):
    session.add({"role": "user", "content": f"question {number}"})
    payload = session.compose_sync(dynamic=page(number), **more)
    session.add({"role": "assistant", "content": f"answer {number} " + "so " * 20})
    return payload


def pages(payload):
    return [number for number in range(50) if f"PAGE {number}: ".encode() in payload.body()]


def test_the_next_request_does_not_carry_the_context_of_the_last():
    """Each turn shows its own alone; the history and the search keep all."""
    session = opened()
    payloads = [turn(session, number) for number in range(10)]
    assert [pages(payload) for payload in payloads] == [[number] for number in range(10)]
    assert all(problems(payload) == [] for payload in payloads)
    assert sum("PAGE" in message.text for message in session.messages()) == 10
    assert "context of an earlier step left: " in payloads[-1].report.notes[0]


def test_what_stood_before_the_context_stays_cached():
    """Only the answer, the question and the context are new; a breakpoint stands before the context."""
    session = opened(budget=100_000)
    turn(session, 0)
    session.add({"role": "user", "content": "long " * 3_000})
    session.compose_sync(dynamic=page(1))
    session.add({"role": "assistant", "content": "so"})
    payload = turn(session, 2)
    assert payload.report.stable > 3_000
    content = payload.to()["messages"][-1]["content"]
    assert [("cache_control" in block) for block in content] == [True, False]
    assert payload.body().count(b"cache_control") <= 4


def test_the_same_context_is_not_repeated_in_a_tool_loop():
    """It was given for the turn; the request only grows at its end."""
    session = opened()
    session.add({"role": "user", "content": "go"})
    before = session.compose_sync(dynamic=page(1)).body(cache=False)
    for number in range(5):
        session.add({"role": "assistant", "content": [use(f"t{number}")]})
        session.add({"role": "user", "content": [result(f"t{number}", "ok")]})
        body = session.compose_sync(dynamic=page(1)).body(cache=False)
        assert body.startswith(before[:-2])
        assert body.count(b"PAGE 1: ") == 1
        before = body


def test_another_context_in_the_loop_takes_the_place_of_the_one_before():
    """The state of a browser at each step: only the last is there, and the request is valid."""
    session = opened()
    session.add({"role": "user", "content": "go"})
    for number in range(6):
        payload = session.compose_sync(dynamic=page(number))
        assert pages(payload) == [number]
        assert problems(payload) == []
        session.add({"role": "assistant", "content": [use(f"t{number}")]})
        session.add({"role": "user", "content": [result(f"t{number}", "ok")]})


def test_context_may_be_kept_like_a_message():
    """On demand it stays where it was."""
    session = opened()
    assert pages([turn(session, number, keep="history") for number in range(5)][-1]) == [0, 1, 2, 3, 4]
    with pytest.raises(InputError, match="for 'ever'"):
        session.compose_sync(dynamic="x", keep="ever")


def test_a_reopened_session_still_knows_whose_turn_is_over():
    """The view says it, not the memory of a process."""
    store = MemoryStore()
    turn(opened(store), 0)
    assert pages(turn(opened(store), 1)) == [1]


def test_old_talk_goes_before_context_is_cut():
    """B1: 5,000 words of knowledge are sent whole, the oldest turns are folded."""
    session = opened()
    for number in range(30):
        session.add({"role": "user", "content": f"q{number} " + "w " * 40})
        session.add({"role": "assistant", "content": f"a{number} " + "w " * 40})
    session.add({"role": "user", "content": "what does it say?"})
    knowledge = "fact " * 5_000
    payload = session.compose_sync(dynamic=knowledge)
    assert knowledge.encode() in payload.body()
    assert b"what does it say?" in payload.body()
    assert payload.tokens <= 8_000
