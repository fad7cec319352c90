from __future__ import annotations

import pytest

from windowsill.cli.replay import sentences
from windowsill.replay.costs import CostComparison, RecordedCost

pytestmark = pytest.mark.unit


def spending(**fields):
    plain = {"calls": 2, "input": 10, "cache_write": 0, "cache_read": 1_000, "output": 90, "tokens": 1_100}
    return RecordedCost(**{**plain, "dollars": 1.5, "unpriced": {}, **fields})


def comparison(**fields):
    plain = {"calls": 2, "recorded_tokens": 1_010, "tokens": 700, "unrecorded": 0, "priced": 2}
    return CostComparison(**{**plain, "recorded_dollars": 1.5, "dollars": 0.75, **fields})


def test_both_sides_in_words():
    """What was paid, kind by kind, and what the same calls are with Windowsill."""
    paid, here, sources = sentences(spending(), comparison(), 60_000)
    assert paid == "your sessions: 2 calls, 1,100 tokens (input 10, cache read 1,000, output 90), $1.50"
    assert here == (
        "with Windowsill at 60,000, the same 2 calls: 700 input tokens instead of 1,010, $0.75 instead of $1.50"
    )
    assert "as the provider reported it" in sources


@pytest.mark.parametrize(
    ("fields", "end"),
    [
        ({"unpriced": {"x": 1}}, "$1.50 without 1 call of x, for which no price is known"),
        ({"unpriced": {"x": 1, "y": 1}, "dollars": None}, "no price is known for x, y"),
    ],
)
def test_unknown_prices_are_told(fields, end):
    """With the models they are missing for."""
    assert next(sentences(spending(**fields), None, None)).endswith(f"), {end}")


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"calls": 1, "priced": 1}, "with Windowsill at each model's own window, of these, 1 call: 700 input tokens"),
        ({"priced": 1}, "$0.75 instead of $1.50 for the 1 call with a known price"),
        ({"priced": 0, "recorded_dollars": None, "dollars": None}, "700 input tokens instead of 1,010"),
    ],
)
def test_what_could_not_be_compared_is_told(fields, part):
    """Calls that were not replayed or have no price are not passed over in silence."""
    _, here, _ = sentences(spending(), comparison(**fields), None)
    assert part in here


def test_part_that_was_not_recorded_is_told_with_its_remedy():
    """How many tokens were added to each request, and the option that puts them in the window."""
    *_, sources = sentences(spending(), comparison(unrecorded=18_000), None)
    assert "up to 18,000 tokens a request" in sources
    assert "--overhead N" in sources


def test_nothing_recorded_is_no_sentence():
    """And what was recorded but not replayed is said to be so."""
    assert list(sentences(None, None, 9)) == []
    assert list(sentences(spending(), None, 9))[1].startswith("with Windowsill: nothing to compare")
