"""Signed reasoning that is bound to its past is left out where that past was edited."""

import pytest

import windowsill
from conversations import result, text_block, thinking, use
from sessions import opened
from windowsill.messages import Reasoning

pytestmark = pytest.mark.unit

BOUND, FREE = "claude-sonnet-5", "claude-sonnet-4-5"


def reasoned(session, turns, start=0):
    """Turns that each begin with signed reasoning."""
    if not session.items():
        session.add({"role": "user", "content": "the task"})
    for turn in range(start, start + turns):
        content = [thinking(f"thought {turn}", signature="c2ln"), text_block("so"), use(f"t{turn}")]
        session.add({"role": "assistant", "content": content})
        session.add({"role": "user", "content": [result(f"t{turn}", "word " * 60)]})


def thoughts(payload):
    return [block["thinking"] for message in payload.messages for block in message["content"] if "thinking" in block]


def test_reasoning_stays_while_nothing_before_it_was_edited():
    """Every signature goes back as it came."""
    session = opened(model=BOUND, budget=100_000)
    reasoned(session, 3)
    assert thoughts(session.compose_sync()) == ["thought 0", "thought 1", "thought 2"]


def test_a_fold_takes_the_reasoning_that_was_written_after_another_past():
    """On a model that binds it; what is written after the fold stays."""
    session = opened(model=BOUND, budget=100_000)
    reasoned(session, 4)
    session.fold("m2", "m3", text="short")
    reasoned(session, 1, start=4)
    payload = session.compose_sync()
    assert thoughts(payload) == ["thought 4"]
    assert windowsill.validate({"max_tokens": 5, **payload.to()}) == []


def test_what_stands_before_the_edit_keeps_its_reasoning():
    """Its past is what it was."""
    session = opened(model=BOUND, budget=100_000)
    reasoned(session, 4)
    session.fold("m6", "m7", text="short")
    assert thoughts(session.compose_sync()) == ["thought 0", "thought 1"]


def test_removing_the_fold_gives_the_past_back_and_edits_that_of_what_came_since():
    """What was written before the fold is whole again; what was written while it applied is not."""
    session = opened(model=BOUND, budget=100_000)
    reasoned(session, 3)
    fold = session.fold("m2", "m3", text="short")
    reasoned(session, 1, start=3)
    session.unfold(fold)
    assert thoughts(session.compose_sync()) == ["thought 0", "thought 1", "thought 2"]


def test_other_models_keep_all_of_it():
    """Their signatures hold for the block alone."""
    session = opened(model=FREE, budget=100_000)
    reasoned(session, 4)
    session.fold("m2", "m3", text="short")
    assert thoughts(session.compose_sync()) == ["thought 1", "thought 2", "thought 3"]


def test_a_rewind_before_the_fold_brings_the_reasoning_back():
    """On that branch the past was never edited."""
    session = opened(model=BOUND, budget=100_000)
    reasoned(session, 4)
    session.fold("m2", "m3", text="short")
    session.rewind("m7")
    assert thoughts(session.compose_sync()) == ["thought 0", "thought 1", "thought 2"]


def test_what_is_left_out_of_a_request_is_in_the_history_and_not_in_the_count():
    """The tokens told are those of the bytes sent, also after opening the session again."""
    session = opened(model=BOUND, budget=1_500)
    reasoned(session, 30)
    payload = session.compose_sync()
    assert payload.report.folds
    assert thoughts(payload) == []
    kept = [block for message in session.messages() for block in message.blocks if isinstance(block, Reasoning)]
    assert len(kept) == 30
    call = session.calls[-1]
    assert session.request(call.id) == payload.body()
    again = opened(session._store, model=BOUND, budget=1_500)
    assert thoughts(again.compose_sync()) == []
