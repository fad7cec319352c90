"""Replay as a program calls it."""

from __future__ import annotations

import json

import msgspec
import pytest

import windowsill
from support.cli_calls import anthropic_turns, call, saved
from windowsill.errors import BudgetError, FormatError, UnknownModelError, WindowsillError
from windowsill.messages import Usage
from windowsill.replay import Replay, ReplayOptions, compare, cross, replay
from windowsill.replay.recordings import parse, read_recordings
from windowsill.transcripts import Charge

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


def test_several_processes_report_the_same_as_one(file):
    """Session for session and in their order; only the time it took differs."""
    untimed = {"median_ms": None, "p95_ms": None}
    one, two = (
        [
            msgspec.structs.replace(each, figures=msgspec.structs.replace(each.figures, **untimed))
            for report in compare(file, cross(["economy", "mask"], [2_000]), workers=workers).values()
            for each in report.sessions
        ]
        for workers in (1, 2)
    )
    assert [each.session for each in two] == ["a", "b", "a", "b"]
    assert one == two


@pytest.mark.parametrize(
    ("model", "options", "error"),
    [("home-made", {}, UnknownModelError), ("gpt-5", {"window": 900, "overhead": 2_000}, BudgetError)],
)
def test_error_of_another_process_is_the_same_error(tmp_path, model, options, error):
    """As if the session had been replayed here, with all that the error carries."""
    path = saved(tmp_path / "x.json", {"model": model, "messages": anthropic_turns(2)})
    found = []
    for workers in (1, 2):
        with pytest.raises(error) as raised:
            replay(path, ReplayOptions(**options), workers=workers)
        found.append((str(raised.value), vars(raised.value)))
    assert found[0] == found[1]


def test_process_that_dies_is_told_with_the_remedy(file, tmp_path, monkeypatch):
    """A session that takes all memory ends a process, not the sense of the report."""
    (tmp_path / "deadly.py").write_text(
        "import os\nfrom windowsill.strategies import Strategy\n"
        "class Deadly(Strategy):\n    def plan(self, view, budget):\n        os._exit(9)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(WindowsillError, match="one worker"):
        replay(file, ReplayOptions(window=900, strategy="deadly:Deadly"), workers=2)


def test_each_strategy_is_crossed_with_each_window():
    """By a name for people; what is left out stays as it is."""
    found = cross(["mask:keep=2", None], [30_000, None], ReplayOptions(strategy="condense", overhead=7))
    assert list(found) == ["mask:keep=2 at 30,000", "mask:keep=2", "condense at 30,000", "condense"]
    assert found["condense at 30,000"] == ReplayOptions(strategy="condense", window=30_000, overhead=7)


def test_each_call_is_paid_once(file):
    """A call that a branch, a fork or another file repeats is known by its key; calls without one all count."""
    charges = tuple(Charge(usage=Usage(input=10), model="claude-opus-4-6", key=key) for key in ("x", "x", None, None))
    found = [msgspec.structs.replace(each, charges=charges) for each in read_recordings([str(file)])]
    report = Replay(found, SMALL).report()
    assert [each.recorded.calls for each in report.sessions] == [3, 2]
    assert (report.total.recorded.calls, report.total.recorded.tokens) == (5, 50)


def test_report_has_the_requests_and_where_they_were_folded(file):
    """Tokens of each request, with and without reduction, for a plot."""
    session = replay(file, SMALL, limit=1).sessions[0]
    assert (len(session.tokens), max(session.tokens)) == (21, session.figures.peak_tokens)
    assert all(sent <= whole for sent, whole in zip(session.tokens, session.everything, strict=True))
    assert 0 < len(session.folded) <= session.figures.folds
    first = session.folded[0]
    assert session.tokens[:first] == session.everything[:first]
    assert session.tokens[first] < session.everything[first]


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
