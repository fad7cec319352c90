"""What a person reads first."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cli_calls import anthropic_turns
from windowsill.cli.replay import sentences
from windowsill.replay import Replay, ReplayOptions, headline
from windowsill.replay.costs import CostComparison, RecordedCost
from windowsill.replay.evidence import Loss
from windowsill.replay.recordings import parse
from windowsill.replay.report import Figures
from windowsill.replay.summary import LEGEND, compare_headlines, describe_loss, money, percent

pytestmark = pytest.mark.unit


def replayed(window=None, turns=20, **total):
    """The report of one small session, with some figures of the total changed."""
    body = {"id": "caves", "model": "claude-opus-4-6", "messages": anthropic_turns(turns)}
    options = ReplayOptions(window=window, tokenizer="o200k_base", strategy="mask:keep=2")
    report = Replay([parse(json.dumps(body).encode(), "x")], options).report()
    return msgspec.structs.replace(report, total=msgspec.structs.replace(report.total, **total))


def spending(**fields):
    plain = {"calls": 2, "input": 10, "cache_write": 0, "cache_read": 1_000, "output": 90, "tokens": 1_100}
    return RecordedCost(**{**plain, "dollars": 1.5, "unpriced": {}, **fields})


def comparison(**fields):
    plain = {"calls": 2, "recorded_tokens": 1_010, "tokens": 700, "unrecorded": 0, "priced": 2}
    return CostComparison(**{**plain, "recorded_dollars": 1.5, "dollars": 0.75, **fields})


def test_headline_begins_with_the_money_and_ends_with_what_went_wrong():
    """Four sentences: saved, kept, not in view, safe."""
    total = {"recorded": spending(), "compared": comparison(), "kept": 0.975, "values_needed": 40}
    lost = Loss("value", "cave-3.txt", "read", 9, 4, "output of read", reachable=True)
    report = replayed(60_000, folds=3, **total)
    session = msgspec.structs.replace(report.sessions[0], losses=(lost,))
    assert headline(msgspec.structs.replace(report, sessions=(session,))) == [
        "With mask:keep=2 at 60,000 tokens, your 2 calls would have cost $0.75 instead of $1.50 (50.0% less).",
        "Of what later calls needed, the requests still had 97.5% of 40 values.",
        "Not in view when needed: 1 value; one search of the history finds all of them.",
        "3 folds; 0 requests invalid, 0 above the window, 0 messages lost.",
    ]


def test_values_of_outputs_are_told_apart_where_they_differ():
    """Nothing else could have shown them."""
    _, kept, *_ = headline(replayed(kept=0.95, kept_from_outputs=0.9, values_needed_from_outputs=10))
    assert kept.endswith("95.0% of 20 values (90.0% of the 10 that only tool outputs had shown).")


def test_replay_that_folds_nothing_says_the_same():
    """In dollars, whether usage was recorded or not."""
    same = comparison(dollars=1.5)
    assert headline(replayed(recorded=spending(), compared=same))[0].endswith("would have cost the same, $1.50.")
    whole, kept, safe = headline(replayed())
    assert "would cost the same as sending everything each time, $0." in whole
    assert kept == "Of what later calls needed, the requests still had 100% of 20 values."
    assert safe.startswith("0 folds; ")


def test_without_a_price_the_share_is_told():
    """Against sending everything; more is told as more."""
    unpriced = {"dollars": None, "dollars_everything": None}
    less, *_ = headline(replayed(cost_ratio=0.9, **unpriced))
    assert less.endswith("21 calls would cost 10.0% less than sending everything each time.")
    more, *_ = headline(replayed(cost_ratio=1.1, **unpriced))
    assert "10.0% more than" in more


def test_troubles_are_in_the_headline():
    """With the sessions that were not replayed to the end."""
    *_, safe = headline(replayed(invalid=1, over=2, lost=3, failed=1))
    assert safe == (
        "0 folds; 1 request invalid, 2 above the window, 3 messages lost, 1 of 1 session not replayed to the end."
    )


def test_comparison_names_the_cheapest_and_the_one_that_keeps_most():
    """Lines count as values do; one that is both is named once."""
    cheap = replayed(cost_ratio=0.6, kept=0.9, kept_lines=0.9, lines_needed=20)
    full = replayed(cost_ratio=0.8, kept=0.9, kept_lines=1.0, lines_needed=20)
    assert compare_headlines({"a": cheap, "b": full}) == [
        "a costs least: 40.0% less; it keeps 90.0% of values and 90.0% of lines.",
        "b keeps most: 20.0% less; it keeps 90.0% of values and 100% of lines.",
        "In each of them: 0 requests invalid, 0 above the window, 0 messages lost.",
    ]
    paid = replayed(recorded=spending(), compared=comparison())
    dear = replayed(recorded=spending(), compared=comparison(dollars=2.0))
    assert compare_headlines({"a": dear, "b": paid})[:1] == [
        "b costs least and keeps most: $0.75 instead of $1.50 (50.0% less); it keeps 100% of values."
    ]
    assert compare_headlines({"a": paid, "b": paid})[0].startswith("All of them cost and keep the same: $0.75 instead")


def test_comparison_tells_where_something_went_wrong():
    """Of each variant, where they differ."""
    *_, one, two = compare_headlines({"a": replayed(over=2), "b": replayed(failed=1)})
    assert one == "a: 0 requests invalid, 2 above the window, 0 messages lost."
    assert two.endswith("0 messages lost, 1 of 1 session not replayed to the end.")


def test_loss_is_told_with_both_places():
    """Where it stood, what needed it, and whether it is within reach."""
    loss = Loss("line", "def f():", "Edit", 41, 7, "output of Read", reachable=False)
    assert describe_loss(loss) == (
        "line 'def f():': stood in message 7, output of Read; needed by Edit in message 41; a search does not find it"
    )
    system = Loss("value", "door-7", "Edit", 41, None, "system", reachable=True)
    assert "stood in the system prompt; " in describe_loss(system)


@pytest.mark.parametrize(
    ("dollars", "text"), [(1_234.567, "$1,234.57"), (0.5, "$0.50"), (0.00441, "$0.0044"), (0, "$0.00")]
)
def test_small_sums_are_not_zero(dollars, text):
    """A session of a few calls costs less than a cent."""
    assert money(dollars) == text


@given(st.floats(0, 1, exclude_max=True))
def test_what_is_not_all_is_never_told_as_all(share):
    """99.99% is rounded down."""
    assert percent(share) != percent(1)


def test_legend_explains_every_figure_that_is_a_column():
    """A title that no figure has would explain nothing."""
    renamed = {"peak": "peak_tokens", "sent": "tokens_sent", "cached": "cache_hit_share", "cost": "cost_ratio"}
    renamed |= {"outputs": "kept_from_outputs", "lines": "kept_lines"}
    fields = {renamed.get(title, title) for title in LEGEND} - {"window", "failed", "paid", "would pay"}
    assert fields <= set(Figures.__struct_fields__)


def test_page_of_the_documentation_has_the_same_legend():
    """For those who read the report as JSON."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "replay.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    assert {row[0].strip("`"): row[-1] for row in rows}.items() >= LEGEND.items()
    assert all(f"`{name}`" in page for name in Figures.__struct_fields__)


def test_what_was_paid_is_told_kind_by_kind():
    """And nothing more where all of it was compared."""
    assert list(sentences(spending(), comparison())) == [
        "You paid for 2 calls: 1,100 tokens (input 10, cache read 1,000, output 90), $1.50."
    ]


@pytest.mark.parametrize(
    ("fields", "end"),
    [
        ({"unpriced": {"x": 1}}, "$1.50 without 1 call of x, for which no price is known."),
        ({"unpriced": {"x": 1, "y": 1}, "dollars": None}, "no price is known for x, y."),
    ],
)
def test_unknown_prices_are_told(fields, end):
    """With the models they are missing for."""
    assert next(sentences(spending(**fields), None)).endswith(f"), {end}")


def test_what_could_not_be_compared_is_told():
    """Calls that were not replayed or have no price are not passed over in silence."""
    _, fewer = sentences(spending(), comparison(priced=1))
    assert fewer.startswith("Of these, 1 call could be replayed and priced")
    _, none = sentences(spending(), None)
    assert none.startswith("No recorded call was replayed")
    assert list(sentences(None, None)) == []


def test_part_that_was_not_recorded_is_told_with_its_remedy():
    """How many tokens were added to each request, and the option that puts them in the window."""
    _, sources = sentences(spending(), comparison(unrecorded=18_000))
    assert "up to 18,000 tokens a request" in sources
    assert "--overhead N" in sources
