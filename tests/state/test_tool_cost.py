"""What it costs to change the tools of a request, against leaving them in."""

from __future__ import annotations

import math

import msgspec
import pytest

from support.offered_tools import state, tool
from windowsill.models import Prices, find, prices
from windowsill.state.tools import Projection, ToolChange, ToolOffer

pytestmark = pytest.mark.unit

PRICES = Prices(input=1.0, output=5.0, cache_read=0.1, cache_write=1.25)
TOOLS = [ToolOffer(tool(name), name) for name in ("read", "write", "search")]
PLAN, ACT = state("planning"), state("executing")


def hundred(_):
    return 100


def change(mode, before, after):
    projection = Projection(TOOLS, count=hundred, mode=mode)
    earlier = None if before is None else projection.project(before)
    return projection.project(after).change(earlier, cached_tokens=10_000, prices=PRICES)


def test_other_tools_write_everything_again():
    """200 tokens of new definitions and the 9,800 behind the old ones; reading them would have cost a tenth."""
    found = change("remove", PLAN, ACT)
    assert (found.changed, found.written, found.cost) == (True, 10_000, 12_500.0)
    assert found.extra == 12_500.0 - 1_000.0


def test_masking_reads_what_is_hidden_each_turn():
    """One of three definitions, at the price of reading a cache."""
    found = change("mask", PLAN, ACT)
    assert found == ToolChange(changed=False, masking=100, masking_cost=10.0)


def test_a_report_can_hold_both_against_each_other():
    """Removing 100 tokens pays after 1,150 turns here; never, if nothing is hidden."""
    assert change("remove", PLAN, ACT).turns == 1_150.0
    assert change("remove", PLAN, PLAN).turns == 0.0
    assert ToolChange(changed=True, extra=1.0).turns == math.inf


def test_more_and_larger_tools_are_counted():
    """What is written holds the new definitions, not the old ones."""
    projection = Projection(TOOLS, count=hundred)
    found = projection.project(PLAN).change(projection.project(state("reflecting")), cached_tokens=1_000, prices=PRICES)
    assert found.written == 200 + 1_000


@pytest.mark.parametrize(("before", "after"), [(None, PLAN), (PLAN, state("initializing"))])
def test_what_does_not_change_costs_nothing(before, after):
    """Neither the first request, nor another phase with the same tools."""
    found = change("remove", before, after)
    assert (found.changed, found.written, found.cost, found.extra) == (False, 0, 0.0, 0.0)


def test_a_cold_cache_has_nothing_to_lose():
    """With nothing cached the change costs nothing more."""
    projection = Projection(TOOLS, count=hundred)
    found = projection.project(ACT).change(projection.project(PLAN), cached_tokens=0, prices=PRICES)
    assert (found.changed, found.written, found.extra) == (True, 0, 0.0)


def test_prices_of_models_are_taken():
    """In dollars; where they are not known the change says so."""
    projection = Projection(TOOLS, count=hundred)
    paid = prices(find("claude-sonnet-4-5"))
    found = projection.project(ACT).change(projection.project(PLAN), cached_tokens=10_000, prices=paid)
    assert found.cost == pytest.approx(10_000 * 3.75 / 1e6)
    unknown = msgspec.structs.replace(PRICES, known=False)
    assert not projection.project(ACT).change(None, cached_tokens=0, prices=unknown).known
