from __future__ import annotations

import pytest

from cli_calls import call
from windowsill import strategies

pytestmark = pytest.mark.integration


def test_each_strategy_has_a_line():
    """Names, what they do, and settings with their defaults."""
    done = call("strategies")
    assert [line.split()[0] for line in done.out.splitlines()[1:]] == list(strategies.names())
    assert "keep=4" in done.out


def test_json_lists_the_same():
    """`--json` has name, description and settings of each."""
    found = {each["name"]: each for each in call("strategies", "--json").json}
    assert list(found) == list(strategies.names())
    assert found["sliding-window"]["settings"] == strategies.settings_of("sliding-window")
    assert found["sliding-window"]["about"].endswith(".")
