"""`windowsill models`: what is known of models, and what was learned of them."""

import json

import pytest

from support.cli_calls import call
from windowsill import Session, models

pytestmark = pytest.mark.integration

OVERFLOW = "prompt is too long: 150000 tokens > 100000 maximum"


@pytest.fixture
def store(tmp_path):
    """A store in which the window of a model, and that of one nobody knows, were learned."""
    for name, window in (("claude-sonnet-4-5", None), ("my-model", 120_000)):
        with Session.open(name, model=name, budget=window, store=tmp_path) as session:
            session.composer.overflowed(OVERFLOW)
    return str(tmp_path)


def test_the_table_is_listed_with_what_was_learned(store):
    """One line for each model, the learned ones that the table does not know behind them."""
    found = json.loads(call("models", "list", "--store", store, "--json").out)
    assert [each["model"] for each in found] == [*models.names(), "my-model"]
    (sonnet,) = [each for each in found if each["model"] == "claude-sonnet-4-5"]
    assert (sonnet["window"], sonnet["learned"]) == (200_000, 100_000)
    assert "claude-sonnet-4-5" in call("models").out


def test_only_what_was_learned_is_listed(store):
    """A model that the table does not know has no other window."""
    lines = call("models", "list", "--learned", "--store", store).out.splitlines()
    assert [line.split()[:5] for line in lines[1:]] == [
        ["claude-sonnet-4-5", "200,000", "200,000", "64,000", "100,000"],
        ["my-model", "-", "-", "-", "100,000"],
    ]


def test_a_learned_window_is_forgotten(store):
    """The table's holds again, for every session of the store."""
    done = call("models", "forget", "claude-sonnet-4-5", "--store", store)
    assert done.out == "forgotten: the window of claude-sonnet-4-5 was 100,000 tokens\n"
    assert Session.open("claude-sonnet-4-5", store=store).model.window == 200_000
    again = call("models", "forget", "claude-sonnet-4-5", "--store", store)
    assert again.code == 1
    assert "no window was learned for 'claude-sonnet-4-5'" in again.err
