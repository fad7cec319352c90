from __future__ import annotations

import msgspec
import pytest

from support.model_calls import model_call
from windowsill.history.repair_rules import Repair
from windowsill.providers import Problem
from windowsill.replay.costs import CallCost
from windowsill.replay.evidence import KeptEvidence
from windowsill.replay.report import Tally, percentile, share

pytestmark = pytest.mark.unit


def test_shares_are_over_all_tokens_not_over_turns():
    """A long request weighs more than a short one."""
    tally = Tally()
    tally.count(model_call(tokens=100, stable=0), CallCost(100, 100), KeptEvidence())
    tally.count(model_call(tokens=900, stable=900), CallCost(50, 400), KeptEvidence(4, 3, 2, 1))
    figures = tally.figures()
    assert (figures.cache_hit_share, figures.cost_ratio, figures.kept, figures.kept_from_outputs) == (
        0.9,
        0.3,
        0.75,
        0.5,
    )
    assert (figures.calls, figures.peak_tokens, figures.tokens_sent) == (2, 900, 1_000)


def test_nothing_counted_has_no_shares():
    """Where there was nothing, a share is neither 0 nor 1."""
    figures = Tally().figures()
    assert (figures.kept, figures.cost_ratio, figures.cache_hit_share, figures.median_ms) == (None, None, None, None)


def test_request_above_the_limit_or_refused_is_a_defect():
    """Each bad request is counted and listed with its turn."""
    tally = Tally()
    tally.count(model_call(turn=3, tokens=1_001), CallCost(), KeptEvidence())
    tally.count(
        model_call(turn=5, problems=(Problem("rule", "messages[0]", "wrong", "mend it"),)), CallCost(), KeptEvidence()
    )
    figures = tally.figures()
    assert (figures.over, figures.invalid) == (1, 1)
    assert [(defect.turn, defect.problems[0]) for defect in tally.defects] == [
        (3, "1,001 tokens, and a request may have 1,000"),
        (5, "messages[0]: wrong (rule); mend it"),
    ]


def test_same_repair_in_later_requests_counts_once():
    """A repair is made again each turn; it is one repair."""
    tally = Tally()
    first, second = Repair("orphan_removed", 2, "x", "removed"), Repair("empty_filled", 3, "y", "filled")
    tally.count(model_call(repairs=(first,)), CallCost(), KeptEvidence())
    tally.count(model_call(repairs=(msgspec.structs.replace(first, where=7), second)), CallCost(), KeptEvidence())
    assert tally.figures().repairs == {"empty_filled": 1, "orphan_removed": 1}


def test_total_adds_up():
    """Two tallies together say what one would have said."""
    apart, one = [Tally(), Tally()], Tally()
    problem = Problem("rule", "messages[0]", "wrong", "mend it")
    repaired = model_call(
        tokens=2_000,
        stable=7,
        repairs=(Repair("empty_filled", 1, "x", "filled"),),
        folds=("f1",),
        seconds=0.004,
        problems=(problem,),
    )
    for tally, each in ((apart[0], model_call()), (apart[1], repaired)):
        for counter in (tally, one):
            counter.count(each, CallCost(10, 20, 0.5), KeptEvidence(2, 1))
            counter.lost += 1
    total = Tally()
    for tally in apart:
        total.add(tally)
    assert total.figures() == one.figures()


@pytest.mark.parametrize(("rank", "expected"), [(0.95, 19), (0.5, 10), (1.0, 20), (0.0, 1)])
def test_percentile(rank, expected):
    """The smallest of the values that so many do not exceed."""
    assert percentile(range(1, 21), rank) == expected


def test_share_of_nothing_is_none():
    """Nothing of nothing is no share."""
    assert (share(1, 4), share(0, 0)) == (0.25, None)
