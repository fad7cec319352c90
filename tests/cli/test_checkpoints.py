"""`windowsill sessions checkpoints`, `checkpoint` and `restore`."""

from __future__ import annotations

import pytest

from support.cli_calls import anthropic_turns, call
from windowsill import Session

pytestmark = pytest.mark.integration


@pytest.fixture
def place(tmp_path):
    """A store with the session `s` of 12 messages."""
    ticks = iter(range(1, 10_000))
    with Session.open("s", model="claude-opus-4-6", store=tmp_path / "store", clock=lambda: float(next(ticks))) as made:
        made.extend(anthropic_turns(5))
    return tmp_path / "store"


def sessions(*arguments, place, **options):
    return call("sessions", *arguments, "--store", place, **options)


def test_a_checkpoint_is_made_listed_and_restored(place):
    """The whole way on the command line."""
    made = sessions("checkpoint", "s", "--name", "good", place=place)
    assert (made.code, made.out.split(":")[0]) == (0, "checkpoint good (l13)")
    with Session.open("s", store=place) as session:
        session.add("Something went wrong.")
    listed = sessions("checkpoints", "s", place=place).out.splitlines()
    assert listed[0].split() == ["checkpoint", "name", "messages", "tokens", "phase", "reason", "files", "made"]
    assert listed[1].split()[:3] == ["l13", "good", "12"]
    done = sessions("restore", "s", "good", place=place)
    assert (done.code, done.out) == (0, "restored good (l13): 12 messages; the branch that was left ends at m14\n")
    with Session.open("s", store=place) as session:
        assert len(list(session.messages())) == 12
        session.switch("m14")
        assert len(list(session.messages())) == 13


def test_everything_comes_as_json_too(place):
    """For programs."""
    made = sessions("checkpoint", "s", "--json", place=place).json
    assert (made["id"], made["name"], made["messages"], made["reason"]) == ("l13", "", 12, "manual")
    assert sessions("checkpoints", "s", "--json", place=place).json == [made]
    done = sessions("restore", "s", "l13", "--json", place=place).json
    assert (done["checkpoint"], done["left"], done["tokens"]) == (made, "l13", made["tokens"])


def test_the_newest_are_listed(place):
    """As many as asked for, ten otherwise."""
    for _ in range(12):
        sessions("checkpoint", "s", place=place)
    assert len(sessions("checkpoints", "s", "--json", place=place).json) == 10
    found = sessions("checkpoints", "s", "--limit", 2, "--json", place=place).json
    assert [each["id"] for each in found] == ["l24", "l23"]


def test_no_checkpoint_yet(place):
    """Standard error says so, standard output stays empty; a program gets an empty list."""
    assert sessions("checkpoints", "s", place=place) == (0, "", "no checkpoints yet\n")
    assert sessions("checkpoints", "s", place=place).out == ""
    assert sessions("checkpoints", "s", "--json", place=place).json == []


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (("restore", "s", "nope"), 1, "no checkpoint 'nope'; it has none yet"),
        (("restore", "s"), 2, "Missing argument 'CHECKPOINT'"),
        (("restore", "t", "x"), 1, "there is no session 't'"),
        (("checkpoint", "t"), 1, "there is no session 't'"),
        (("checkpoint", "s", "--name", "l5"), 2, "reads like the id of a checkpoint"),
        (("checkpoints", "t"), 1, "there is no session 't'"),
        (("checkpoints", "s", "--limit", "-1"), 2, "-1 is not in the range"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(place, arguments, code, why):
    """1 when there is no such thing, 2 when the call is wrong; nothing is made by mistake."""
    done = sessions(*arguments, place=place)
    assert (done.code, done.err.count("\n")) == (code, 1)
    assert why in done.err
    assert [each["id"] for each in sessions("list", "--json", place=place).json] == ["s"]
    assert sessions("checkpoints", "s", "--json", place=place).json == []


def test_a_restore_names_those_there_are(place):
    """So that the next call is right."""
    sessions("checkpoint", "s", "--name", "good", place=place)
    assert "give one of these: 'good' (l13)" in sessions("restore", "s", "bad", place=place).err


def test_checkpoints_go_through_export_and_import(place, tmp_path):
    """The copy has them, and can go back to them."""
    sessions("checkpoint", "s", "--name", "good", place=place)
    (tmp_path / "s.jsonl").write_text(sessions("export", "s", place=place).out)
    assert sessions("import", tmp_path / "s.jsonl", "--id", "copy", place=place).code == 0
    listed = [sessions("checkpoints", id, "--json", place=place).json for id in ("s", "copy")]
    assert listed[0] == listed[1]
    assert sessions("restore", "copy", "good", place=place).code == 0
    assert sessions("verify", place=place).code == 0
