"""The sliding window: oldest units first, whole, with a marker that says what was there."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windowsill
from support.conversations import result, text_block, use
from support.examples import examples
from windowsill import Session, SettingError
from windowsill.store.memory import MemoryStore
from windowsill.strategies.sliding_window import SlidingWindow

pytestmark = pytest.mark.unit


def opened(**settings):
    ticks = itertools.count(1)
    return Session.open(
        "s",
        store=MemoryStore(),
        clock=lambda: float(next(ticks)),
        **{
            "model": "claude-sonnet-4-5",
            "budget": 1_500,
            "tokenizer": "o200k_base",
            "strategy": "sliding-window",
            **settings,
        },
    )


def turn(session, number, calls=1, words=30):
    ids = [f"t{number}_{index}" for index in range(calls)]
    session.add({"role": "assistant", "content": [text_block("looking"), *(use(id) for id in ids)]})
    session.add({"role": "user", "content": [result(id, f"line {number} " + "word " * words) for id in ids]})


@settings(max_examples=examples(0.4))
@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 120)), min_size=10, max_size=30),
    st.integers(0, 5),
    st.sampled_from([600, 1_000, 2_000]),
)
def test_folding_a_sound_conversation_needs_no_repair(turns, keep, budget):
    """P1: a call and its results are hidden together, parallel ones too, whatever `keep` is."""
    session = opened(budget=budget, strategy=f"sliding-window:keep={keep}")
    session.add({"role": "user", "content": "the task"})
    for number, (calls, words) in enumerate(turns):
        turn(session, number, calls, words)
        payload = session.compose_sync(system="mend it")
        assert payload.report.repairs == ()
        assert payload.tokens <= budget
        for format in windowsill.providers.names():
            assert windowsill.validate({"max_tokens": 5, **payload.to(format)}, format) == []


def test_a_cut_never_falls_between_a_call_and_its_result():
    """P1: with an odd number of messages to keep, the whole unit is kept."""
    session = opened(strategy="sliding-window:keep=3")
    session.add({"role": "user", "content": "the task"})
    for number in range(40):
        turn(session, number)
    session.compose_sync()
    shown = list(session.view.items)
    assert shown[1].fold
    assert shown[2].calls == shown[3].results
    assert len(shown[2].calls) == 1


def test_the_oldest_go_first_down_to_the_low_mark():
    """S1: and the newest stay as they came."""
    session = opened()
    session.add({"role": "user", "content": "the task"})
    for number in range(40):
        turn(session, number)
    payload = session.compose_sync()
    assert [bool(item.fold) for item in session.view.items][:3] == [False, True, False]
    assert payload.tokens <= 750 + 60
    assert b"line 39 " in payload.body()
    assert b"line 0 " not in payload.body()


def test_the_marker_says_what_was_there():
    """M4: how many messages, which tools, and the user's words quoted."""
    session = opened()
    session.add({"role": "user", "content": "the task"})
    session.add({"role": "assistant", "content": "yes?"})
    session.add({"role": "user", "content": "Use tabs, never spaces."})
    for number in range(40):
        turn(session, number)
    session.add({"role": "user", "content": "go on"})
    session.compose_sync()
    marker = next(item for item in session.view.items if item.fold)
    text = session.view.read(marker).text
    assert f"{marker.hides} earlier messages" in text
    assert "read x" in text
    assert "Use tabs, never spaces." in text


def test_running_calls_are_never_hidden():
    """A call whose result has not come yet stays, with all that follows it."""
    session = opened(strategy="sliding-window:keep=0")
    session.add({"role": "user", "content": "the task"})
    for number in range(40):
        turn(session, number)
    session.add({"role": "assistant", "content": [use("running")]})
    session.compose_sync()
    assert session.view.items[-1].calls == ("running",)


def test_the_report_weighs_each_message_of_the_middle():
    """S1: tokens, share of the window, tokens per character."""
    session = opened()
    session.add({"role": "user", "content": "the task"})
    for number in range(40):
        turn(session, number)
    weights = session.compose_sync().report.weights
    assert len(weights) == 80 - 4
    assert all(each.tokens > 0 and 0 < each.share < 1 and each.density > 0 for each in weights)


@pytest.mark.parametrize(("setting", "value"), [("keep", -1), ("keep", 10_001), ("quote", -0.1), ("quote", 1.1)])
def test_a_setting_out_of_range_is_refused(setting, value):
    """With its name, its value and its range."""
    with pytest.raises(SettingError, match=f"setting '{setting}' is {value}; give"):
        SlidingWindow(**{setting: value})
