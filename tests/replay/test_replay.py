"""Replay as a program calls it."""

from __future__ import annotations

import json

import pytest

import windowsill
from support.cli_calls import anthropic_turns, call, saved
from windowsill.errors import FormatError
from windowsill.replay import Replay, ReplayOptions, compare, replay
from windowsill.replay.recordings import parse, read_recordings

pytestmark = pytest.mark.integration

SMALL = ReplayOptions(window=2_000, tokenizer="o200k_base")


@pytest.fixture
def file(tmp_path):
    """Two recorded sessions."""
    sessions = [{"id": id, "model": "claude-opus-4-6", "messages": anthropic_turns(20)} for id in ("a", "b")]
    path = tmp_path / "sessions.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in sessions))
    return path


def test_report_is_the_one_that_the_command_writes(file):
    """The same figures, but for the time it took."""
    timed = {"median_ms": None, "p95_ms": None}
    report = replay(file, SMALL)
    printed = call("replay", file, "--window", 2_000, "--tokenizer", "o200k_base", "--json").json
    for session, other in zip(report.sessions, printed["sessions"], strict=True):
        figures = json.loads(json.dumps({name: getattr(session.figures, name) for name in other["figures"]}))
        assert figures | timed == other["figures"] | timed
    assert (report.total.sessions, report.total.calls) == (2, 42)


def test_files_are_given_one_or_several_as_text_or_path(file):
    """A folder too; and only so many sessions."""
    assert replay(str(file), SMALL).total.sessions == 2
    assert replay([file, str(file)], SMALL).total.sessions == 4
    assert replay(file.parent, SMALL, limit=1).total.sessions == 1


def test_variants_are_compared_over_the_same_sessions(file):
    """A report for each, under the name it was given."""
    wide = ReplayOptions(window=100_000, tokenizer="o200k_base")
    found = compare(file, {"small": SMALL, "wide": wide}, limit=1)
    assert list(found) == ["small", "wide"]
    assert found["small"].total.folds > 0 == found["wide"].total.folds
    assert found["small"].total.calls == found["wide"].total.calls == 21


def test_calls_come_as_they_are_made_and_the_report_after_them(file):
    """Each request is valid; the rest is replayed when the report is asked for."""
    run = Replay(read_recordings([str(file)]), SMALL)
    first = next(run.calls())
    assert (first.session, first.turn) == ("a", 1)
    assert windowsill.validate(json.loads(first.body), format="anthropic") == []
    assert run.report().total.calls == 42


def test_conversation_in_memory_needs_no_file():
    """What was parsed can be replayed."""
    recording = parse(json.dumps(anthropic_turns(3)).encode(), "mine")
    assert Replay([recording], SMALL).report().sessions[0].session == "mine"


def test_nothing_to_replay_is_an_error(tmp_path):
    """As on the command line."""
    with pytest.raises(FormatError, match="no messages"):
        replay(saved(tmp_path / "empty.json", []), SMALL)
