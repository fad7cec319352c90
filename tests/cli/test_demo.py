import contextlib
import io
import itertools
import os
import subprocess
import sys

import click.testing
import msgspec
import pytest
from rich.console import Console

import windowsill
from windowsill.cli.demo import demo
from windowsill.cli.demo.picture import commands, describe, paint
from windowsill.cli.demo.run import Run, Workbench, check, choose_place, conversation, run_demo
from windowsill.compose.payload import FoldMade
from windowsill.errors import InputError
from windowsill.replay.report import Defect
from windowsill.replay.walk import ModelCall

pytestmark = pytest.mark.integration

COMMAND = [sys.executable, "-c", "from windowsill.cli import main; main()", "demo"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of 40 calls that ended, the picture of each of its moments, and its session opened again."""
    place = tmp_path_factory.mktemp("store")
    store = windowsill.open_store(place)
    run = Run(40, 8_000, store=store)
    consoles = [Console(width=80, height=24, file=io.StringIO(), force_terminal=False)]
    consoles.append(Console(width=84, file=io.StringIO(), no_color=True))
    moments = [(moment, *(painted(console, run, moment) for console in consoles)) for moment in run.moments()]
    run.walk.session.close()
    store.close()
    with windowsill.Session.open("demo", store=place) as again:
        yield run, moments, again


def painted(console: Console, run: Run, moment: ModelCall) -> list[str]:
    """The lines of the picture at a moment."""
    with console.capture() as captured:
        console.print(paint(console, run, moment))
    return captured.get().splitlines()


@pytest.fixture
def folder(tmp_path):
    """A package of three files, two of which raise errors."""
    (tmp_path / "errors.py").write_text('raise ValueError("defined here")\n')
    (tmp_path / "good.py").write_text("x = 1\n")
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
    assert "mask: 1 message, " in done.stdout
    assert "condense: " in done.stdout
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


def test_failed_check_gives_exit_code_1(tmp_path, monkeypatch):
    """One broken promise fails the command and is named."""
    monkeypatch.setattr(windowsill.Session, "verify", lambda _: ["entry 3 is not what was written"])
    done = click.testing.CliRunner().invoke(demo, ["--calls", "2", "--store", str(tmp_path)])
    assert done.exit_code == 1
    assert "FAILED  the journal is whole" in done.output


@pytest.mark.parametrize("calls", [1, 3])
def test_demo_shorter_than_the_window(tmp_path, calls):
    """A run that never fills the window keeps its promises too."""
    data, run = run_demo(calls=calls, window=32_000, store=str(tmp_path))
    assert data["ok"]
    assert (run.tools, run.folds) == (calls, [])


# The agent


def test_agent_is_deterministic(folder):
    """The same source gives the same words and calls."""
    assert conversation(Workbench(folder), 60) == conversation(Workbench(folder), 60)


@pytest.mark.parametrize("calls", [1, 2, 7, 40, 90])
def test_agent_makes_the_calls_it_was_asked_for(folder, calls):
    """The script has exactly as many tool calls as wanted, one to three a turn, and ends with an answer."""
    task, *messages, last = conversation(Workbench(folder), calls)
    made = [len(message["content"]) - 1 for message in messages if message["role"] == "assistant"]
    wishes = [message["content"] for message in messages if isinstance(message["content"], str)]
    assert sum(made) == calls
    assert {*made} <= {0, 1, 2, 3}
    assert made.count(0) == len(wishes)
    assert (task["role"], last["role"], len(last["content"])) == ("user", "assistant", 1)


def test_agent_answers_from_what_the_tools_said(folder):
    """The answer names the file that raises most, with the line, found by the real search; errors.py is left out."""
    assert conversation(Workbench(folder), 30)[-1]["content"][0]["text"].splitlines() == [
        "bad.py comes first: lines 2.",
        "- bad.py: 1",
        "I looked at 3 files with 2 raised errors.",
    ]


def test_run_has_an_error_and_a_giant_result(finished):
    """A failed tool call and a result larger than the window are part of every demo."""
    run, _, _ = finished
    assert any(b'"is_error":true' in message.raw for message in run.messages)
    (cut,) = [fold for fold in run.folds if fold.before > 8_000]
    assert (cut.strategy, cut.messages, cut.after < 8_000) == ("outputs", 1, True)


# The tools


@pytest.mark.parametrize(
    ("tool", "input", "text"),
    [
        ("list_files", {"pattern": "*.py"}, "    2  bad.py\n    1  errors.py\n    1  good.py"),
        ("read_file", {"path": "bad.py", "first": 2}, '   2  raise ValueError("no")'),
        ("grep", {"pattern": "raise", "limit": 1}, 'bad.py:2: raise ValueError("no")\n... and 1 more'),
        ("grep", {"pattern": "no such words"}, "nothing found"),
    ],
)
def test_tools_are_real(folder, tool, input, text):
    """Each tool answers from the folder."""
    result = Workbench(folder).answer({"id": "t1", "name": tool, "input": input})
    assert result == {"type": "tool_result", "tool_use_id": "t1", "content": text}


@pytest.mark.parametrize(
    ("tool", "input"),
    [
        ("read_file", {"path": "../outside.py"}),
        ("read_file", {"file": "bad.py"}),
        ("grep", {"pattern": "("}),
        ("no_such_tool", {}),
    ],
)
def test_tool_that_fails_answers_with_an_error(folder, tool, input):
    """What goes wrong is a result with its error flag, never an exception; nothing outside the folder is read."""
    (folder.parent / "outside.py").write_text("secret")
    result = Workbench(folder).answer({"id": "t1", "name": tool, "input": input})
    assert result["is_error"]
    assert "secret" not in result["content"]


# The checks


def failures(run, session):
    """The names of the promises that were not kept."""
    return [each["name"] for each in check(run, session) if not each["ok"]]


def test_untouched_session_keeps_every_promise(finished):
    """What was added is what is read back."""
    run, _, session = finished
    assert failures(run, session) == []


def test_tampered_messages_are_noticed(finished, monkeypatch):
    """A changed, missing, added or exchanged message is a loss."""
    run, _, session = finished
    found = list(session.messages())
    changed = msgspec.structs.replace(found[5], raw=found[5].raw.replace(b"a", b"b", 1))
    for tampered in (
        [*found[:5], changed, *found[6:]],
        found[:-1],
        [*found, found[-1]],
        [found[1], found[0], *found[2:]],
    ):
        monkeypatch.setattr(windowsill.Session, "messages", lambda _, tampered=tampered: iter(tampered))
        assert failures(run, session) == ["nothing is lost"]


def test_each_check_can_fail(finished, monkeypatch):
    """A request too large, a refused one, a broken hash and a lost word are each noticed."""
    run, _, session = finished
    with monkeypatch.context() as smaller:
        smaller.setattr(run, "window", run.tally.figures().peak_tokens - 1)
        assert failures(run, session) == ["every request fits"]
    monkeypatch.setattr(run.tally, "defects", [Defect(1, 100, ("messages[0]: two user messages in a row",))])
    monkeypatch.setattr(run, "body", run.body.replace(b"Leave errors.py itself", b""))
    monkeypatch.setattr(windowsill.Session, "verify", lambda _: ["entry 3 is not what was written"])
    assert failures(run, session) == ["every request is valid", "the journal is whole", "the user's words stay"]


def test_hidden_message_that_reads_differently_is_noticed(finished, monkeypatch):
    """The explained message must be the one that was added."""
    run, _, session = finished
    others = tuple(msgspec.structs.replace(message, raw=b"{}") for message in run.messages)
    monkeypatch.setattr(run, "messages", others)
    assert "what is hidden is explained" in failures(run, session)


# The totals


def test_sending_everything_only_grows(finished):
    """Without Windowsill every request holds the one before; with it, the largest stays within the window."""
    run, _, _ = finished
    everything = [call.everything for call in run.tally.calls]
    assert everything == sorted(everything)
    assert everything[-1] > 8_000 >= run.tally.figures().peak_tokens
    assert run.tally.figures().cost_ratio < 1


def test_fold_in_words():
    """A fold is told with what it hid and what that saved."""
    fold = FoldMade(id="f41", kind="truncate", strategy="s", reason="r", messages=46, before=5_912, after=611)
    assert describe(fold) == "f41 truncate: 46 messages, 5,912 -> 611 tokens"


# The place


def test_place_is_never_the_users_own(tmp_path, monkeypatch):
    """Without `.windowsill/` here, the session is not kept, whatever the default place is, and nothing is left."""
    monkeypatch.setenv("WINDOWSILL_HOME", str(tmp_path / "mine"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    data, _ = run_demo(calls=1, window=8_000, store=None)
    assert (data["ok"], data["store"], list(tmp_path.iterdir())) == (True, None, [])
    assert commands("demo", None, [])[0].partition(" demo ")[2].startswith("--store ")
    (tmp_path / ".windowsill").mkdir()
    assert choose_place(None, tmp_path) == str(tmp_path / ".windowsill")


def test_memory_is_no_place(tmp_path):
    """A store that forgets cannot show that nothing is lost."""
    with pytest.raises(InputError, match="give --store a folder"):
        choose_place(":memory:", tmp_path)


def test_names_are_counted_on(tmp_path):
    """A second demo in the same store does not write into the first."""
    names = [run_demo(calls=1, window=8_000, store=str(tmp_path))[0]["session"] for _ in range(3)]
    assert names == ["demo", "demo-2", "demo-3"]


def test_commands_can_be_copied():
    """A place with a space in it is quoted."""
    fold = FoldMade(id="f3", kind="truncate", strategy="s", reason="r", messages=2, before=9, after=1)
    assert commands("demo", "/a b", [fold])[-1] == "windowsill sessions unfold demo f3 --store '/a b'"


# The picture


def test_picture_fits_a_small_terminal_and_never_jumps(finished):
    """At 80 by 24 every moment has the same height and no line is too long."""
    _, moments, _ = finished
    pictures = [small for _, small, _ in moments]
    assert {len(lines) for lines in pictures} == {len(pictures[0])}
    assert len(pictures[0]) < 24
    assert max(len(line) for line in itertools.chain(*pictures)) <= 80


def test_bar_shows_what_fills_the_window(finished):
    """The parts of the bar are as wide as their share of the window."""
    _, moments, _ = finished
    moment, _, lines = moments[-1]
    report = moment.report
    bar = next(line for line in lines if line.strip().startswith("SS"))
    assert len(bar.strip()) == 82
    assert abs(bar.count(".") - 82 * (report.limit - report.tokens) / report.limit) <= 1
    assert abs(bar.count("#") - 82 * report.parts["messages"] / report.limit) <= 1


def test_marks_are_those_that_folds_obey(finished):
    """Both marks stand under the bar, whole, and the upper one is what the folds say was passed."""
    run, moments, _ = finished
    (passed,) = {
        fold.reason.partition(" passed ")[2].partition(":")[0] for fold in run.folds if "passed" in fold.reason
    }
    assert all(
        f"high {passed} ^" in "\n".join(lines) and " low " in "\n".join(lines) for _, *both in moments for lines in both
    )
