from __future__ import annotations

import pytest

from windowsill import models
from windowsill.cli.replay.economy import Economy, request_cost
from windowsill.models import Prices

pytestmark = pytest.mark.unit

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
    economy = Economy(model("explicit"))
    before = 0
    for tokens in (2_000, 5_000, 9_000):
        bill = economy.pay(tokens=tokens, stable=before, everything=tokens, output=100, at=None)
        assert bill.sent == pytest.approx(bill.everything)
        before = tokens


def test_answer_is_paid_at_the_output_price():
    """100 tokens of an answer cost 500 input tokens here."""
    bill = Economy(model("none")).pay(tokens=2_000, stable=0, everything=2_000, output=100, at=None)
    assert bill.sent == pytest.approx(2_500)


@pytest.mark.parametrize(("pause", "cost"), [(299, 500 + 0.0), (301, 6_250)])
def test_cache_left_alone_too_long_is_cold(pause, cost):
    """After its lifetime the whole request is written again."""
    economy = Economy(model("explicit"))
    economy.pay(tokens=5_000, stable=0, everything=5_000, output=0, at=1_000.0)
    bill = economy.pay(tokens=5_000, stable=5_000, everything=5_000, output=0, at=1_000.0 + pause)
    assert bill.sent == pytest.approx(cost)
    assert bill.everything == pytest.approx(cost)


def test_without_times_the_cache_stays_warm():
    """A recording that has no times is taken as one without pauses."""
    economy = Economy(model("explicit"))
    economy.pay(tokens=5_000, stable=0, everything=5_000, output=0, at=None)
    assert economy.pay(tokens=5_000, stable=5_000, everything=5_000, output=0, at=None).sent == pytest.approx(500)
