"""Identical tool outputs are stored once, and come back byte for byte."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill import Session
from windowsill.session.export import export_session, import_session
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.unit

LONG = "".join(f'line {number}: "quoted" é \\ \t\n' for number in range(200))


def call(number: int) -> dict:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": f"c{number}", "name": "read", "input": {}}]}


def result(number: int, *texts: str) -> dict:
    parts = [{"type": "text", "text": text} for text in texts]
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"c{number}", "content": parts}]}


def stored_bytes(store: MemoryStore) -> int:
    return sum(len(entry.body or b"") for entry in store.read("s", 1, 10_000))


def open_with(store, *results) -> Session:
    session = Session.open("s", model="claude-sonnet-4-5", store=store)
    session.add({"role": "user", "content": "go"})
    for number, texts in enumerate(results):
        session.add(call(number))
        session.add(result(number, *texts))
    return session


def test_the_same_output_a_second_time_takes_no_room():
    """Ten copies of one output weigh little more than one."""
    once, often = MemoryStore(), MemoryStore()
    open_with(once, (LONG,))
    open_with(often, *[(LONG,)] * 10)
    assert stored_bytes(often) < stored_bytes(once) + 10 * 300


@given(st.lists(st.lists(st.sampled_from([LONG, LONG[::-1], "short", "x" * 2_000]), max_size=3), max_size=5))
def test_every_message_comes_back_as_it_was_added(texts):
    """Whatever is repeated, in one message or over many, each message reads as it was added."""
    store = MemoryStore()
    added = [result(number, *each) for number, each in enumerate(texts)]
    open_with(store, *texts).close()
    again = Session.open("s", store=store)
    kept = [message.raw for message in again.messages() if message.results]
    assert [json.loads(raw) for raw in kept] == added
    assert again.verify() == []


def test_bytes_in_an_unusual_spelling_are_stored_as_they_came():
    """Escapes that no encoder writes by itself are kept, at the price of storing them twice."""
    store = MemoryStore()
    session = open_with(store)
    raw = json.dumps(result(0, LONG)).replace("line", "\\u006cine")
    for number in range(2):
        session.add(call(number))
        session.add(json.loads(raw.replace("c0", f"c{number}")))
    assert [message.text for message in session.messages()][:1] == ["go"]
    kept = [block.text for message in session.messages() for each in message.results for block in each.content]
    assert kept == [LONG, LONG]


def test_an_exported_session_keeps_its_repeats():
    """An export and its import give every repeated output back."""
    store, other = MemoryStore(), MemoryStore()
    before = [message.raw for message in open_with(store, (LONG,), (LONG,)).messages()]
    import_session(other, export_session(store, "s"))
    assert [message.raw for message in Session.open("s", store=other).messages()] == before
