import contextlib
import io
import itertools
import os
import subprocess
import sys
from pathlib import Path

import click.testing
import msgspec
import pytest
from rich.console import Console

import windowsill
from windowsill import models
from windowsill.cli.demo import choose, claim_name, conclude, demo, run_demo
from windowsill.cli.demo.agent import TASK, Moment, Run, Tally, Turn, Workbench, in_words, script
from windowsill.cli.demo.picture import (
    Check,
    Picture,
    Result,
    check,
    closer,
    explained,
    fits,
    quoted,
    read_back,
    valid,
    whole,
)
from windowsill.compose.payload import FoldMade, Report
from windowsill.errors import InputError
from windowsill.models.prices import prices
from windowsill.store.memory import MemoryStore

pytestmark = pytest.mark.integration

SOURCE = Path(windowsill.__file__).parent
COMMAND = [sys.executable, "-c", "from windowsill.cli import main; main()", "demo"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of 40 calls that ended, the moments it showed, and its session opened again."""
    place = tmp_path_factory.mktemp("store")
    moments: list[Moment] = []
    with windowsill.Session.open("demo", model="claude-sonnet-5", budget=8_000, store=place) as session:
        run = Run(session, Workbench(SOURCE), 40)
        run.go(moments.append)
    with windowsill.Session.open("demo", store=place) as again:
        yield run, moments, again


def _played(folder: Path, calls: int) -> list[Turn]:
    """Every turn of the agent over a folder, its calls really made."""
    bench = Workbench(folder)
    turns = script(bench.files, bench.size, calls)
    played = [next(turns)]
    with contextlib.suppress(StopIteration):
        while True:
            played.append(turns.send([bench.use(call.tool, call.input) for call in played[-1].calls]))
    return played


@pytest.fixture
def folder(tmp_path):
    """A package of three files, one of which raises without a remedy."""
    (tmp_path / "errors.py").write_text('"""Errors."""\n')
    (tmp_path / "good.py").write_text('raise ValueError("no", remedy="yes")\n')
    (tmp_path / "bad.py").write_text('x = 1\nraise ValueError("no")\n')
    return tmp_path


# The whole command


def test_demo_in_a_folder_with_its_own_store(tmp_path):
    """40 calls in a pipe end with code 0, every check kept, and the session is in `.windowsill/` of the folder."""
    (tmp_path / ".windowsill").mkdir()
    done = subprocess.run([*COMMAND, "--calls", "40", "--json"], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    report = msgspec.json.decode(done.stdout)
    assert [each["ok"] for each in report["checks"]] == [True] * 6
    assert (report["tool_calls"], report["session"]) == (40, "demo")
    assert report["with_windowsill"]["peak_tokens"] <= 8_000 < report["sending_everything"]["peak_tokens"]
    assert report["messages"]["hidden"] > 0
    assert windowsill.open_store(tmp_path / ".windowsill").info("demo") is not None


def test_report_in_a_pipe_has_no_control_characters(tmp_path):
    """Without a terminal there is no picture: only the report, with folds in words and the commands to look closer."""
    done = subprocess.run(
        [*COMMAND, "--calls", "30", "--store", "kept"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert "truncate: 1 message, " in done.stdout
    assert "windowsill sessions verify demo --store kept" in done.stdout


def test_colour_alone_does_not_bring_the_picture(tmp_path):
    """A pipe that wants colour gets a coloured report, not a moving picture."""
    environment = {**os.environ, "FORCE_COLOR": "1"}
    done = subprocess.run(
        [*COMMAND, "--calls", "3", "--store", "kept"], cwd=tmp_path, env=environment, capture_output=True, check=False
    )
    assert b"the window:" not in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_picture_on_a_terminal(tmp_path):
    """On a terminal the window is painted while the agent works."""
    ours, theirs = os.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
    process = subprocess.Popen(
        [*COMMAND, "--calls", "10", "--store", "kept"], cwd=tmp_path, env=environment, stdout=theirs
    )
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):  # Linux says so when the other side is closed
        while chunk := os.read(ours, 65_536):
            seen += chunk
    os.close(ours)
    assert process.wait() == 0
    assert "the window:" in seen.decode()
    assert "What was checked" in seen.decode()


def test_window_too_small_is_a_wrong_call(tmp_path):
    """A window that the system prompt alone nearly fills is refused with the range that works."""
    done = click.testing.CliRunner().invoke(demo, ["--window", "100", "--store", str(tmp_path)])
    assert done.exit_code == 2
    assert "4000" in done.output


def test_failed_check_gives_exit_code_1(finished, capsys):
    """One broken promise fails the command and is named."""
    run, _, session = finished
    kept = check(run, session, 8_000)
    assert conclude(Result(run, kept, "kept", 8_000, 1.0), as_json=True) == 0
    broken = (*kept, Check("nothing is lost", ok=False, seen="one is gone"))
    assert conclude(Result(run, broken, "kept", 8_000, 1.0), as_json=False) == 1
    assert "FAILED  nothing is lost" in capsys.readouterr().out


@pytest.mark.parametrize("calls", [1, 3])
def test_demo_shorter_than_the_window(tmp_path, calls):
    """A run that never fills the window keeps its promises too."""
    result = run_demo(calls=calls, window=32_000, store=str(tmp_path), picture=False)
    assert result.ok
    assert (result.run.tally.tools, result.run.tally.folds) == (calls, [])


# The agent


def test_agent_is_deterministic(folder):
    """The same source gives the same words and calls."""
    assert _played(folder, 60) == _played(folder, 60)


@pytest.mark.parametrize("calls", [1, 2, 7, 40, 90])
def test_agent_makes_the_calls_it_was_asked_for(folder, calls):
    """The script has exactly as many tool calls as wanted, one to three a turn, and ends with an answer."""
    *turns, last = _played(folder, calls)
    assert sum(len(turn.calls) for turn in turns) == calls
    assert {len(turn.calls) for turn in turns if not turn.wish} <= {1, 2, 3}
    assert (last.calls, last.wish) == ((), "")


def test_agent_answers_from_what_the_tools_said(folder):
    """The answer names the file that raises without a remedy, with the line, found by the real script."""
    assert _played(folder, 30)[-1].says.splitlines() == [
        "bad.py needs work first: line 2.",
        "- bad.py: 1",
        "I looked at 3 files with 2 raised errors.",
    ]


def test_run_has_an_error_and_a_giant_result(finished):
    """A failed tool call and a result larger than the window are part of every demo."""
    run, _, _ = finished
    assert any(b'"is_error":true' in message.raw for message in run.added)
    assert any(fold.before > 8_000 and "one message is larger" in fold.reason for fold in run.tally.folds)


# The tools


@pytest.mark.parametrize(
    ("tool", "input", "text"),
    [
        ("list_files", {"pattern": "*.py"}, "    2  bad.py\n    1  errors.py\n    1  good.py"),
        ("read_file", {"path": "bad.py", "first": 2}, '   2  raise ValueError("no")'),
        ("grep", {"pattern": "raise", "limit": 1}, 'bad.py:2: raise ValueError("no")\n... and 1 more'),
        ("run_python", {"code": "print(6 * 7)"}, "42"),
    ],
)
def test_tools_are_real(folder, tool, input, text):
    """Each tool answers from the folder."""
    outcome = Workbench(folder).use(tool, input)
    assert (outcome.text, outcome.failed) == (text, False)


@pytest.mark.parametrize(
    ("tool", "input"),
    [
        ("read_file", {"path": "../outside.py"}),
        ("run_python", {"code": "raise SystemExit(3)"}),
        ("grep", {"pattern": "("}),
        ("no_such_tool", {}),
    ],
)
def test_tool_that_fails_answers_with_an_error(folder, tool, input):
    """What goes wrong is a result with its error flag, never an exception; nothing outside the folder is read."""
    (folder.parent / "outside.py").write_text("secret")
    outcome = Workbench(folder).use(tool, input)
    assert outcome.failed
    assert "secret" not in outcome.text


# The checks


def test_untouched_session_keeps_every_promise(finished):
    """What was added is what is read back."""
    run, _, session = finished
    assert [each.ok for each in check(run, session, 8_000)] == [True] * 6


def test_tampered_messages_are_noticed(finished):
    """A changed, missing, added or exchanged message is a loss."""
    run, _, session = finished
    found = list(session.messages())
    changed = msgspec.structs.replace(found[5], raw=found[5].raw.replace(b"a", b"b", 1))
    assert read_back(run.added, found).ok
    for tampered in (
        [*found[:5], changed, *found[6:]],
        found[:-1],
        [*found, found[-1]],
        [found[1], found[0], *found[2:]],
    ):
        assert not read_back(run.added, tampered).ok


def test_each_check_can_fail(finished):
    """A request too large, a refused one, a broken hash and a lost word are each noticed."""
    run, _, _ = finished
    assert not fits(run.tally, run.tally.fitted.peak - 1).ok
    assert not whole(["entry 3 is not what was written"]).ok
    assert not quoted([TASK, "never said"], run.last.body().decode()).ok
    refused = Tally(run.session.model)
    refused.problems.append("request 1: messages[0]: two user messages in a row")
    assert not valid(refused).ok


def test_hidden_message_that_reads_differently_is_noticed(finished):
    """The explained message must be the one that was added."""
    run, _, session = finished
    assert explained(run.added, session).ok
    assert not explained([msgspec.structs.replace(each, raw=b"{}") for each in run.added], session).ok


# The totals


def test_sending_everything_only_grows(finished):
    """Without Windowsill every request holds the one before; with it, the largest stays within the window."""
    run, moments, _ = finished
    assert run.tally.fitted.sent == sum(moment.report.tokens for moment in moments)
    assert run.tally.whole.peak > run.tally.fitted.peak
    assert run.tally.ratio < 1


def _report(tokens: int, stable: int) -> Report:
    return Report(tokens=tokens, parts={}, limit=8_000, window=8_000, messages=1, hidden=0, stable=stable)


def test_cost_counts_caches_on_both_sides():
    """What was sent before is read from the cache and the rest written to it; a prefix too short is not cached."""
    model = models.find("claude-sonnet-5")
    tally, price = Tally(model), prices(model)
    tally.request(_report(2_000, 0), whole=2_000)
    tally.request(_report(2_500, model.cache_minimum - 1), whole=3_000)
    assert (tally.fitted.cached, tally.whole.cached) == (0, 2_000)
    assert tally.fitted.cost == pytest.approx(4_500 * price.cache_write)
    assert tally.whole.cost == pytest.approx(3_000 * price.cache_write + 2_000 * price.cache_read)


def test_fold_in_words():
    """A fold is told with what it hid and what that saved."""
    fold = FoldMade(id="f41", kind="truncate", strategy="s", reason="r", messages=46, before=5_912, after=611)
    assert in_words(fold) == "f41 truncate: 46 messages, 5,912 -> 611 tokens"


# The place


def test_place_is_never_the_users_own(tmp_path, monkeypatch):
    """Without `.windowsill/` here, the session goes to a new folder, whatever the default place is."""
    monkeypatch.setenv("WINDOWSILL_HOME", str(tmp_path / "mine"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    chosen = Path(choose(None, tmp_path))
    assert (chosen.parent, chosen.name.startswith("windowsill-demo-")) == (tmp_path, True)
    (tmp_path / ".windowsill").mkdir()
    assert choose(None, tmp_path) == str(tmp_path / ".windowsill")


def test_memory_is_no_place(tmp_path):
    """A store that forgets cannot show that nothing is lost."""
    with pytest.raises(InputError, match="give --store a folder"):
        choose(":memory:", tmp_path)


def test_names_are_counted_on():
    """A second demo in the same store does not write into the first."""
    store = MemoryStore()
    assert [claim_name(store, at=0.0) for _ in range(3)] == ["demo", "demo-2", "demo-3"]


def test_commands_can_be_copied():
    """A place with a space in it is quoted."""
    assert closer("demo", "/a b", "f3")[-1] == "windowsill sessions unfold demo f3 --store '/a b'"


# The picture


def _lines(console: Console, moment: Moment) -> list[str]:
    with console.capture() as captured:
        console.print(Picture(console, 40).paint(moment))
    return captured.get().splitlines()


def test_picture_fits_a_small_terminal_and_never_jumps(finished):
    """At 80 by 24 every moment has the same height and no line is too long."""
    _, moments, _ = finished
    console = Console(width=80, height=24, file=io.StringIO(), force_terminal=False)
    painted = [_lines(console, moment) for moment in moments]
    assert {len(lines) for lines in painted} == {len(painted[0])}
    assert len(painted[0]) < 24
    assert max(len(line) for line in itertools.chain(*painted)) <= 80


def test_bar_shows_what_fills_the_window(finished):
    """The parts of the bar are as wide as their share of the window."""
    _, moments, _ = finished
    console = Console(width=84, file=io.StringIO(), no_color=True)
    report = moments[-1].report
    bar = next(line for line in _lines(console, moments[-1]) if line.strip().startswith("SS"))
    assert len(bar.strip()) == 82
    assert abs(bar.count(".") - 82 * (report.limit - report.tokens) / report.limit) <= 1
    assert abs(bar.count("#") - 82 * report.parts["messages"] / report.limit) <= 1
