"""Errors and what ended them."""

import pytest

from windowsill.writers.ledger import CAPS, Trouble
from windowsill.writers.troubles import Troubles

pytestmark = pytest.mark.unit


def test_only_the_latest_errors_are_held():
    """Each success is checked against a few errors, however many there were."""
    troubles = Troubles([])
    for number in range(1_000):
        troubles.add(Trouble(text="no", source=f"make {number}"))
    assert [one.source for one in troubles.all()][:: CAPS["errors"] - 1] == ["make 976", "make 999"]


def test_a_change_and_a_later_success_are_both_told():
    """What was changed, and that it helped."""
    troubles = Troubles([Trouble(text="a.py:3: error: no", source="make test")])
    troubles.ended("", ["src/a.py"])
    troubles.ended("make test | tail -3", [])
    assert [one.fix for one in troubles.all()] == ["changed src/a.py; passed later"]


def test_an_error_that_comes_back_is_open_again():
    """A fix that did not last is none."""
    troubles = Troubles([Trouble(text="no", source="make", fix="passed later")])
    troubles.add(Trouble(text="no", source="make"))
    assert [one.fix for one in troubles.all()] == [""]
