"""When a checkpoint is due (C3): each condition by itself, and what looking every turn must not change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill import SettingError
from windowsill.session.checkpoints import Automatic, Seen

pytestmark = pytest.mark.unit

RULE = Automatic()
LAST = Seen(at=1_000.0, messages=10, tokens=5_000, phase="planning")


def now(**changes):
    return Seen(**{"at": 1_001.0, "messages": 11, "tokens": 5_100, "phase": "planning", **changes})


def reasons(rule, looks, seen=LAST):
    """The reason at each look, where whoever looks makes the checkpoints that are due."""
    found = []
    for look in looks:
        seen = seen.lowered(look.tokens)
        found.append(rule.due(seen, look))
        seen = look if found[-1] else seen
    return found


def test_nothing_is_due_right_after_a_checkpoint():
    """A turn alone is no reason."""
    assert RULE.due(LAST, now()) is None


@pytest.mark.parametrize(
    ("look", "reason"),
    [
        (now(at=1_599.9), None),
        (now(at=1_600.0), "time"),
        (now(messages=59), None),
        (now(messages=60), "messages"),
        (now(tokens=99_999), None),
        (now(tokens=100_000), "tokens"),
        (now(phase="executing"), "phase"),
    ],
)
def test_each_condition_is_met_exactly_at_its_line(look, reason):
    """C3: 10 minutes, 50 messages, 100,000 tokens, another phase."""
    assert RULE.due(LAST, look) == reason


def test_the_most_telling_reason_is_given():
    """Phase before messages before tokens before time."""
    everything = {"at": 9_999.0, "messages": 99, "tokens": 200_000, "phase": "executing"}
    assert RULE.due(LAST, now(**everything)) == "phase"
    assert RULE.due(LAST, now(**{**everything, "phase": "planning"})) == "messages"
    assert RULE.due(LAST, now(**{**everything, "phase": "planning", "messages": 11})) == "tokens"


def test_looking_at_every_message_still_reaches_fifty():
    """A rule that counts from the last look instead of the last checkpoint would never be due."""
    found = reasons(RULE, [now(messages=count) for count in range(11, 161)])
    assert [place for place, reason in enumerate(found, 11) if reason == "messages"] == [60, 110, 160]


def test_a_view_that_stays_above_the_line_is_due_once():
    """A rule that only asks whether the view is large would be due every turn."""
    found = reasons(RULE, [now(tokens=tokens) for tokens in (99_000, 101_000, 102_000, 250_000, 180_000)])
    assert found == [None, "tokens", None, None, None]


def test_a_view_that_was_below_the_line_may_cross_it_again():
    """A fold made it small; growing past the line is a crossing of its own."""
    found = reasons(RULE, [now(tokens=tokens) for tokens in (101_000, 40_000, 99_999, 100_001, 100_002)])
    assert found == ["tokens", None, None, "tokens", None]


def test_a_checkpoint_for_another_reason_above_the_line_counts():
    """There is one after the crossing already."""
    found = reasons(RULE, [now(tokens=101_000, phase="executing"), now(tokens=102_000, phase="executing")])
    assert found == ["phase", None]


@given(st.lists(st.integers(0, 200_000), max_size=30))
def test_it_is_due_once_for_each_crossing(sizes):
    """Whatever the view does: as often as it goes from below the line to it or above."""
    rule = Automatic(seconds=None, messages=None, on_phase=False)
    before = [LAST.tokens, *sizes]
    crossed = [a < 100_000 <= b for a, b in zip(before, sizes, strict=False)]
    assert [reason == "tokens" for reason in reasons(rule, [now(tokens=size) for size in sizes])] == crossed


@given(st.lists(st.tuples(st.floats(0, 2_000), st.integers(0, 99), st.integers(0, 200_000)), max_size=9))
def test_a_rule_without_conditions_is_never_due(looks):
    """Every condition can be switched off."""
    rule = Automatic(seconds=None, messages=None, tokens=None, on_phase=False)
    found = [
        rule.due(LAST, now(at=at, messages=messages, tokens=tokens, phase="failed")) for at, messages, tokens in looks
    ]
    assert found == [None] * len(looks)


def test_a_clock_that_was_set_back_makes_nothing_due():
    """Nor does it fail."""
    assert RULE.due(LAST, now(at=-50.0)) is None


@pytest.mark.parametrize(
    ("setting", "value"),
    [("seconds", 0), ("seconds", -1.0), ("seconds", float("inf")), ("messages", 0), ("tokens", -5)],
)
def test_a_value_out_of_range_is_refused_by_name(setting, value):
    """The error names the setting and what it may be."""
    with pytest.raises(SettingError, match=f"setting '{setting}' is {value}"):
        Automatic(**{setting: value})
