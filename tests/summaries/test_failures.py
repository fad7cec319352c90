"""Errors and what ended them."""

import pytest

from windowsill.summaries.collect import Failures
from windowsill.summaries.digest import CAPS, Failure

pytestmark = pytest.mark.unit


def test_only_the_latest_errors_are_held():
    """Each success is checked against a few errors, however many there were."""
    failures = Failures([])
    for number in range(1_000):
        failures.add(Failure(text="no", source=f"make {number}"))
    assert [one.source for one in failures.all()][:: CAPS["errors"] - 1] == ["make 976", "make 999"]


def test_a_change_and_a_later_success_are_both_told():
    """What was changed, and that it helped."""
    failures = Failures([Failure(text="a.py:3: error: no", source="make test")])
    failures.end("", ["src/a.py"])
    failures.end("make test | tail -3", [])
    assert [one.fix for one in failures.all()] == ["changed src/a.py; passed later"]


def test_an_error_that_comes_back_is_open_again():
    """A fix that did not last is none."""
    failures = Failures([Failure(text="no", source="make", fix="passed later")])
    failures.add(Failure(text="no", source="make"))
    assert [one.fix for one in failures.all()] == [""]
