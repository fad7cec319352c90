"""`windowsill sessions state`."""

from __future__ import annotations

import pytest

from support.cli_calls import call
from windowsill import Session, State

pytestmark = pytest.mark.integration


@pytest.fixture
def place(tmp_path):
    """A store with the session `s`, whose goal was changed."""
    with Session.open("s", model="claude-opus-4-6", store=tmp_path / "store") as made:
        made.state.set_goal("One")
        made.add("hello")
        made.state.set_goal("Two")
    return tmp_path / "store"


def test_the_state_is_printed_as_it_is_and_as_it_was(place):
    """As JSON that can be taken in again, in lines or in one."""
    now = call("sessions", "state", "s", "--store", place)
    assert State.from_json(now.out).task.goal == "Two"
    assert '\n    "goal": "Two"' in now.out
    before = call("sessions", "state", "s", "--at", "m2", "--json", "--store", place)
    assert before.json["task"]["goal"] == "One"
    assert before.out.count("\n") == 1


def test_every_change_is_listed(place):
    """With its id, to which a rewind can go."""
    assert call("sessions", "state", "s", "--changes", "--store", place).out == (
        "s1  changed task.goal\ns3  changed task.goal\n"
    )
    listed = call("sessions", "state", "s", "--changes", "--json", "--store", place).json
    assert [each["id"] for each in listed] == ["s1", "s3"]


def test_what_is_not_there_is_said(place):
    """An entry, a session, and options that exclude each other."""
    missing = call("sessions", "state", "s", "--at", "m9", "--store", place)
    assert (missing.code, "no entry 'm9'" in missing.err) == (1, True)
    assert call("sessions", "state", "x", "--store", place).code == 1
    assert call("sessions", "state", "s", "--at", "m2", "--changes", "--store", place).code == 2
