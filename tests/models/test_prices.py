import subprocess
import sys

import msgspec
import pytest

from windowsill.models import Prices, find, names, prices, relative_prices

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("name", "dollars"),
    [
        ("claude-opus-4-5", (5, 25, 0.5, 6.25)),
        ("claude-sonnet-4-5", (3, 15, 0.3, 3.75)),
        ("gpt-5", (1.25, 10, 0.125, 1.25)),
        ("gemini-2.5-pro", (1.25, 10, 0.125, 1.25)),
    ],
)
def test_prices_of_well_known_models(name, dollars):
    """Prices for a million tokens are the published ones; of tiers the lowest; automatic caches are free to write."""
    known = prices(find(name))
    paid = (known.input, known.output, known.cache_read, known.cache_write)
    assert tuple(price * 1e6 for price in paid) == pytest.approx(dollars)
    assert known.known


def test_most_models_have_a_price():
    """The table and the price data speak of the same models."""
    unknown = [name for name in names() if not prices(find(name)).known]
    assert len(unknown) < len(names()) / 8, unknown


def test_unknown_prices_are_relative():
    """A model without a price counts in input tokens: answers five, cached reads a tenth."""
    assert prices(find("my-model", window=8_000)) == Prices(
        input=1.0, output=5.0, cache_read=0.1, cache_write=1.0, known=False
    )


def test_explicit_caches_cost_a_quarter_more_to_write():
    """Where breakpoints are explicit, an unknown price for writing is 1.25 times the input."""
    model = find("my-model", window=8_000, overrides={"my-model": {"cache": "explicit"}})
    assert prices(model).cache_write == 1.25


def test_stated_prices_win():
    """Prices the user states are dollars for a million tokens and win over the data."""
    model = find("gpt-5", overrides={"gpt-5": {"prices": {"input": 2, "output": 8, "cache_read": 1}}})
    assert prices(model) == Prices(input=2e-6, output=8e-6, cache_read=1e-6, cache_write=2e-6)


def test_a_price_that_changed_is_the_newest():
    """One million input tokens of o3 cost ten dollars once, and two now."""
    assert prices(find("o3")).input == pytest.approx(2e-6)


@pytest.mark.parametrize("name", names())
def test_relative_prices_are_those_of_the_price_list(name):
    """Where the price list has changed, `price_ratios.toml` has to be brought up to it."""
    listed, relative = prices(find(name)), relative_prices(find(name))
    for field in ("input", "output", "cache_read", "cache_write"):
        assert getattr(relative, field) == pytest.approx(getattr(listed, field) / listed.input, rel=1e-3), field


def test_relative_prices_of_stated_ones():
    """Prices the user states win there too, and a model that nobody knows has the usual ratios."""
    model = find("gpt-5", overrides={"gpt-5": {"prices": {"input": 2, "output": 8, "cache_read": 1}}})
    assert relative_prices(model) == Prices(input=1, output=4, cache_read=0.5, cache_write=1, known=False)
    unknown = find("my-model", window=8_000, overrides={"my-model": {"cache": "explicit"}})
    assert msgspec.structs.astuple(relative_prices(unknown)) == pytest.approx((1, 5, 0.1, 1.25, False))


FIND = "import windowsill.models as m, windowsill.tokens; m.find('gpt-5'); assert 'splintr' not in sys.modules"
FOLD = """
from windowsill import Session
session = Session.open('a', model='gpt-5', budget=900, store=':memory:')
session.extend([{'role': role, 'content': 'word ' * 90} for role in 9 * ('user', 'assistant')])
assert session.compose_sync().compacted"""


@pytest.mark.parametrize("use", [FIND, FOLD])
def test_price_data_is_loaded_on_use_only(use):
    """Finding a model imports neither the price data nor any tokenizer, and folding by prices no price data."""
    code = f"import sys\n{use}\nsys.exit('genai_prices' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_prices_are_never_negative():
    """No price of the table is below zero, and reading a cache never costs more than the input."""
    for name in names():
        each = prices(find(name))
        assert min(msgspec.structs.astuple(each)[:4]) >= 0
        assert each.cache_read <= each.input
