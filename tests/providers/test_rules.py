"""The table of rules in the documentation, against the validators."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from windowsill import providers

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "formats.md").read_text()


@pytest.mark.parametrize("name", providers.names())
def test_every_rule_is_on_the_page(name):
    """A rule that a validator may report is in the row of its format."""
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |")]
    module = inspect.getmodule(type(providers.get(name)).check_messages)
    rules = set(re.findall(r'Problem\(\s*"([a-z-]+)"', inspect.getsource(module)))
    assert rules
    assert {rule for rule in rules if f"`{rule}`" not in row} == set()
