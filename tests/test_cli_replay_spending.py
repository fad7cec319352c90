from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from test_cli_replay_report import turn
from windowsill.cli.replay.spending import Account, Purse, dollars
from windowsill.formats.transcripts import Charge
from windowsill.messages import Usage

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


def test_purse_counts_each_call_once():
    """A call that a branch, a fork or another file repeats is told by its key; calls without one all count."""
    seen: set[str] = set()
    first, second = Purse(seen), Purse(seen)
    assert [first.pay(paid(key="a", input=10)), first.pay(paid(key="a", input=10))] == [True, False]
    assert [second.pay(paid(key="a", input=10)), second.pay(paid(input=7)), second.pay(paid(input=7))] == [
        False,
        True,
        True,
    ]
    first.add(second)
    spending = first.spending()
    assert spending is not None
    assert (spending.calls, spending.tokens) == (3, 24)


def test_spending_tells_what_it_could_not_price():
    """The dollars are of the other calls; there are none when no price is known, and nothing when nothing was paid."""
    purse = Purse(set())
    assert purse.spending() is None
    purse.pay(paid("home-made", input=5))
    assert msgspec.structs.asdict(purse.spending()) | {"dollars": None, "unpriced": {"home-made": 1}} == (
        msgspec.structs.asdict(purse.spending())
    )
    purse.pay(paid(output=MILLION))
    assert (purse.spending().dollars, purse.spending().unpriced) == (25.0, {"home-made": 1})


def test_part_that_was_not_recorded_is_in_every_request():
    """What the first recorded request has beyond its messages is the system prompt and the tools."""
    account = Account((paid(message=1, input=1_200), paid(message=3, input=1_500)), set())
    account.replayed(turn(turn=1, tokens=200, everything=200, stable=0))
    account.replayed(turn(turn=3, tokens=300, everything=490, stable=200))
    compared = account.balance.comparison()
    assert compared is not None
    assert (compared.recorded_tokens, compared.tokens, compared.unrecorded) == (2_700, 1_200 + 1_300, 1_000)


def test_cache_serves_what_it_served_as_far_as_the_request_is_the_same():
    """A request finds no more in the cache than the recorded one, and no more than it shares with the one before."""
    warm = paid(message=1, cache_read=90_000, cache_write=10_000)
    for stable, cached in [(40_000, 40_000), (95_000, 50_000)]:
        account = Account((warm,), set())
        account.replayed(turn(turn=1, tokens=50_000, everything=100_000, stable=stable))
        expected = (cached * 0.5 + (50_000 - cached) * 6.25) / MILLION
        assert account.balance.comparison().dollars == pytest.approx(expected)
    cold = Account((paid(message=1, input=100_000),), set())
    cold.replayed(turn(turn=1, tokens=50_000, everything=100_000, stable=40_000))
    assert cold.balance.comparison().dollars == pytest.approx(50_000 * 5 / MILLION)


def test_cache_serves_the_part_that_was_not_recorded():
    """The system prompt stays at the start of every request, whatever a fold did after it."""
    account = Account((paid(message=1, cache_read=90_000, cache_write=10_000),), set())
    account.replayed(turn(turn=1, tokens=20_000, everything=80_000, stable=5_000))
    expected = (25_000 * 0.5 + 15_000 * 6.25) / MILLION
    assert account.balance.comparison().dollars == pytest.approx(expected)


def test_what_was_written_for_an_hour_still_is():
    """The share of the cache writes that cost more stays the same."""
    account = Account((paid(message=1, cache_write=1_000, long=1_000),), set())
    account.replayed(turn(turn=1, tokens=500, everything=1_000, stable=0))
    assert account.balance.comparison().dollars == pytest.approx(500 * 10 / MILLION)


def test_stated_model_is_the_one_that_would_be_paid():
    """What was paid stays at the recorded model's prices."""
    account = Account((paid(message=1, input=MILLION),), set(), "claude-haiku-4-5")
    account.replayed(turn(turn=1, tokens=MILLION, everything=MILLION, stable=0))
    compared = account.balance.comparison()
    assert (compared.recorded_dollars, compared.dollars) == (5.0, 1.0)


def test_only_new_recorded_calls_are_compared():
    """Calls without a record, and those that another session told of, are on neither side."""
    seen = {"a"}
    account = Account((paid(message=1, key="a", input=50), paid(message=5, key="b", input=70)), seen)
    for index in (1, 3, 5):
        account.replayed(turn(turn=index, tokens=60, everything=60, stable=0))
    compared = account.balance.comparison()
    assert (compared.calls, compared.recorded_tokens, account.purse.spending().calls) == (1, 70, 1)


@given(st.lists(st.tuples(st.integers(1, 5_000), st.integers(0, 5_000), st.integers(0, 5_000)), min_size=1, max_size=8))
def test_request_that_is_not_reduced_costs_what_was_paid(calls):
    """Where Windowsill sends what was sent, and the cache serves what it served, both sides are the same."""
    charges = tuple(
        paid(message=index, input=new, cache_write=written, cache_read=read, output=3)
        for index, (new, written, read) in enumerate(calls)
    )
    account = Account(charges, set())
    for index, each in enumerate(charges):
        prompt = each.usage.prompt
        account.replayed(turn(turn=index, tokens=prompt, everything=prompt, stable=each.usage.cache_read))
    compared = account.balance.comparison()
    assert compared.tokens == compared.recorded_tokens
    assert compared.dollars == pytest.approx(compared.recorded_dollars, rel=1e-9, abs=1e-5)
