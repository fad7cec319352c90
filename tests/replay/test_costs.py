from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.model_calls import model_call
from windowsill import models
from windowsill.messages import Usage
from windowsill.models import Prices
from windowsill.replay.costs import CostComparison, CostSimulation, RecordedCost, SessionCosts, dollars, request_cost
from windowsill.transcripts import Charge

pytestmark = pytest.mark.unit

OPUS = "claude-opus-4-6"
"""Its list prices for a million tokens: input 5, output 25, cache read 0.5, cache write 6.25 (an hour: 10) dollars."""

MILLION = 1_000_000


def paid(model=OPUS, message=None, key=None, long=0, **used):
    return Charge(usage=Usage(**used), model=model, message=message, key=key, long_cache_write=long)


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        ({"input": MILLION}, 5.0),
        ({"output": MILLION}, 25.0),
        ({"cache_read": MILLION}, 0.5),
        ({"cache_write": MILLION}, 6.25),
        ({"cache_write": MILLION, "long": MILLION}, 10.0),
        ({"cache_write": MILLION, "long": MILLION // 2}, 8.125),
    ],
)
def test_each_kind_of_token_has_its_price(used, expected):
    """At the list prices of the recorded model; an hour in the cache costs twice the input."""
    assert dollars(paid(**used)) == pytest.approx(expected)


@pytest.mark.parametrize("model", [None, "home-made"])
def test_price_of_an_unknown_model_is_unknown(model):
    """Neither zero nor a guess."""
    assert dollars(paid(model, input=5)) is None


def test_recorded_cost_names_what_it_could_not_price():
    """The dollars are of the other calls; there are none if no price is known, and no cost if nothing was paid."""
    assert RecordedCost.of([]) is None
    unknown = paid("home-made", input=5)
    cost = RecordedCost.of([unknown])
    assert (cost.dollars, cost.unpriced) == (None, {"home-made": 1})
    cost = RecordedCost.of([unknown, paid(output=MILLION)])
    assert (cost.dollars, cost.unpriced) == (25.0, {"home-made": 1})


def test_part_that_was_not_recorded_is_in_every_request():
    """What the first recorded request has beyond its messages is the system prompt and the tools."""
    costs = SessionCosts((paid(message=1, input=1_200), paid(message=3, input=1_500)))
    costs.replayed(model_call(turn=1, tokens=200, everything=200, stable=0))
    costs.replayed(model_call(turn=3, tokens=300, everything=500, stable=200))
    compared = CostComparison.of(costs.compared)
    assert compared is not None
    assert (compared.recorded_tokens, compared.tokens, compared.unrecorded) == (2_700, 1_200 + 1_300, 1_000)


def after_a_long_request(*charges):
    """The costs of a session whose first request, which was not recorded, had 100,000 tokens."""
    costs = SessionCosts(charges)
    costs.replayed(model_call(turn=0, tokens=100_000, everything=100_000, stable=0))
    return costs


@pytest.mark.parametrize(
    ("charge", "cached"),
    [
        (paid(message=1, cache_read=90_000, cache_write=10_000), 40_000),
        (paid(message=1, cache_read=30_000, cache_write=70_000), 30_000),
    ],
)
def test_cache_serves_what_it_served_as_far_as_the_request_is_the_same(charge, cached):
    """A request finds no more in the cache than the recorded one, and no more than it shares with the one before."""
    costs = after_a_long_request(charge)
    costs.replayed(model_call(turn=1, tokens=50_000, everything=100_000, stable=40_000))
    expected = (cached * 0.5 + (50_000 - cached) * 6.25) / MILLION
    assert CostComparison.of(costs.compared).dollars == pytest.approx(expected)


def test_cache_that_served_nothing_serves_nothing():
    """All of the request is paid at the input price, as it was."""
    costs = after_a_long_request(paid(message=1, input=100_000))
    costs.replayed(model_call(turn=1, tokens=50_000, everything=100_000, stable=40_000))
    assert CostComparison.of(costs.compared).dollars == pytest.approx(50_000 * 5 / MILLION)


def test_cache_serves_the_part_that_was_not_recorded():
    """The system prompt stays at the start of every request, whatever a fold did after it."""
    costs = after_a_long_request(paid(message=1, cache_read=90_000, cache_write=10_000))
    costs.replayed(model_call(turn=1, tokens=20_000, everything=80_000, stable=5_000))
    expected = (25_000 * 0.5 + 15_000 * 6.25) / MILLION
    assert CostComparison.of(costs.compared).dollars == pytest.approx(expected)


def test_what_was_written_for_an_hour_still_is():
    """The share of the cache writes that cost more stays the same."""
    costs = SessionCosts((paid(message=1, cache_write=1_000, long=1_000),))
    costs.replayed(model_call(turn=1, tokens=500, everything=1_000, stable=0))
    assert CostComparison.of(costs.compared).dollars == pytest.approx(500 * 10 / MILLION)


def test_stated_model_is_the_one_that_would_be_paid():
    """What was paid stays at the recorded model's prices."""
    costs = SessionCosts((paid(message=1, input=MILLION),), "claude-haiku-4-5")
    costs.replayed(model_call(turn=1, tokens=MILLION, everything=MILLION, stable=0))
    compared = CostComparison.of(costs.compared)
    assert (compared.recorded_dollars, compared.dollars) == (5.0, 1.0)


def test_only_recorded_calls_are_compared():
    """Calls without a record are on neither side."""
    costs = SessionCosts((paid(message=5, key="b", input=70),))
    for index in (1, 3, 5):
        costs.replayed(model_call(turn=index, tokens=60, everything=60, stable=0))
    compared = CostComparison.of(costs.compared)
    assert (compared.calls, compared.recorded_tokens) == (1, 70)


@given(
    st.lists(
        st.tuples(*[st.integers(0, 5_000)] * 3, st.integers(1, 9_000)).filter(lambda call: sum(call[:3]) > 0),
        min_size=1,
        max_size=8,
    )
)
def test_request_that_is_not_reduced_costs_what_was_paid(calls):
    """Where Windowsill sends what was sent, both sides are the same, whatever is counted here for a request."""
    charges = tuple(
        paid(message=index, input=new, cache_write=written, cache_read=read, output=3)
        for index, (new, written, read, _) in enumerate(calls)
    )
    costs = SessionCosts(charges)
    before = 0
    for index, (*_, counted) in enumerate(calls):
        everything = max(before, counted)
        costs.replayed(model_call(turn=index, tokens=everything, everything=everything, stable=before))
        before = everything
    compared = CostComparison.of(costs.compared)
    assert compared.tokens == compared.recorded_tokens
    assert compared.dollars == compared.recorded_dollars


def test_count_above_the_record_is_no_cost():
    """A request of which half is left costs half, though 7% more is counted here than the provider did."""
    costs = SessionCosts((paid(message=1, cache_read=90_000, cache_write=10_000),))
    costs.replayed(model_call(turn=0, tokens=53_500 - 5_350, everything=96_300, stable=0))
    costs.replayed(model_call(turn=1, tokens=53_500, everything=107_000, stable=53_500 - 5_350))
    compared = CostComparison.of(costs.compared)
    assert compared.tokens == 50_000
    assert compared.dollars == pytest.approx((45_000 * 0.5 + 5_000 * 6.25) / MILLION)


PRICES = Prices(input=1.0, output=5.0, cache_read=0.1, cache_write=1.25)
STATED = {"prices": {"input": 1_000_000, "output": 5_000_000, "cache_read": 100_000, "cache_write": 1_250_000}}


def model(cache, **fields):
    facts = {"window": 100_000, "cache": cache, "cache_minimum": 1_000, "cache_lifetime": 300, **STATED, **fields}
    return models.find("own", overrides={"own": facts})


@pytest.mark.parametrize(
    ("cache", "tokens", "prefix", "cost"),
    [
        ("explicit", 10_000, 8_000, 800 + 2_500),
        ("automatic", 10_000, 8_000, 800 + 2_000),
        ("none", 10_000, 8_000, 10_000),
        ("explicit", 10_000, 900, 12_500),
        ("explicit", 900, 900, 900),
    ],
)
def test_request_cost(cache, tokens, prefix, cost):
    """The prefix is read at the cache's price, the rest written or sent; what is too short for a cache is sent."""
    assert request_cost(PRICES, model(cache), tokens, prefix) == pytest.approx(cost)


def test_unreduced_session_costs_the_same_both_ways():
    """When nothing was reduced, sending everything is what was done."""
    simulation = CostSimulation(model("explicit"))
    before = 0
    for tokens in (2_000, 5_000, 9_000):
        bill = simulation.cost(model_call(tokens=tokens, stable=before, everything=tokens, output=100, at=None))
        assert bill.sent == pytest.approx(bill.everything)
        before = tokens


def test_answer_is_paid_at_the_output_price():
    """100 tokens of an answer cost 500 input tokens here."""
    bill = CostSimulation(model("none")).cost(model_call(tokens=2_000, stable=0, everything=2_000, output=100, at=None))
    assert bill.sent == pytest.approx(2_500)


@pytest.mark.parametrize(("pause", "cost"), [(299, 500 + 0.0), (301, 6_250)])
def test_cache_left_alone_too_long_is_cold(pause, cost):
    """After its lifetime the whole request is written again."""
    simulation = CostSimulation(model("explicit"))
    simulation.cost(model_call(tokens=5_000, stable=0, everything=5_000, output=0, at=1_000.0))
    bill = simulation.cost(model_call(tokens=5_000, stable=5_000, everything=5_000, output=0, at=1_000.0 + pause))
    assert bill.sent == pytest.approx(cost)
    assert bill.everything == pytest.approx(cost)


def test_without_times_the_cache_stays_warm():
    """A recording that has no times is taken as one without pauses."""
    simulation = CostSimulation(model("explicit"))
    simulation.cost(model_call(tokens=5_000, stable=0, everything=5_000, output=0, at=None))
    assert simulation.cost(
        model_call(tokens=5_000, stable=5_000, everything=5_000, output=0, at=None)
    ).sent == pytest.approx(500)
