from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from support.cli_calls import anthropic_turns, call, saved
from windowsill import errors
from windowsill.cli.main import explain

pytestmark = pytest.mark.integration

COMMAND = str(Path(sys.executable).with_name("windowsill"))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (click.UsageError("no"), 2),
        (errors.SettingError("budget", -1, "tokens above 0"), 2),
        (errors.InputError("no"), 2),
        (errors.UnknownModelError("no window"), 2),
        (errors.NotFoundError("no", strategy="x"), 2),
        (errors.NotFoundError("no", session="x"), 1),
        (errors.FormatError("no"), 1),
        (errors.DamagedError("no"), 1),
        (errors.BudgetError("no", wanted=2, available=1, parts={}), 1),
        (FileNotFoundError(2, "No such file", "x"), 1),
        (RecursionError("too deep"), 1),
        (ZeroDivisionError("oops"), 1),
    ],
)
def test_exit_code_tells_a_wrong_call_from_failed_work(error, code):
    """A wrong call is 2, failed work is 1."""
    assert explain(error)[1] == code


def test_error_names_what_and_remedy():
    """The line is what went wrong, then what to do."""
    assert explain(errors.StoreError("the disk is full", remedy="free some space"))[0] == (
        "the disk is full; free some space"
    )


def test_file_error_names_the_file_and_what_to_do():
    """An error of the system names the path and ends with a remedy."""
    assert explain(IsADirectoryError(21, "Is a directory", "some/folder"))[0] == (
        "some/folder: is a directory; give a file, not a folder"
    )


@pytest.mark.parametrize(
    "arguments", [["nope"], ["fit"], ["fit", "x", "--budget"], ["replay", "x", "--window", "many"]]
)
def test_wrong_call_is_one_line_and_exit_code_2(arguments):
    """Every wrong call says where help is, on one line of standard error."""
    done = call(*arguments)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("windowsill: ")
    assert "--help`" in done.err


def test_no_command_shows_the_help():
    """`windowsill` alone says what it can do."""
    done = call()
    assert done.code == 0
    assert "Commands:" in done.out


def test_unforeseen_error_has_no_traceback(monkeypatch, tmp_path):
    """An error nobody thought of is one line too, and says how to see more."""
    monkeypatch.setattr("windowsill.providers.read_request", lambda *_, **__: 1 / 0)
    done = call("fit", saved(tmp_path / "x.json", []), "--budget", 100)
    assert done.code == 1
    assert done.err == (
        "windowsill: ZeroDivisionError: division by zero; "
        "this is a fault of windowsill: WINDOWSILL_DEBUG=1 shows where\n"
    )


def test_debug_shows_the_traceback(monkeypatch, tmp_path):
    """With WINDOWSILL_DEBUG set, the error itself comes out."""
    monkeypatch.setenv("WINDOWSILL_DEBUG", "1")
    with pytest.raises(FileNotFoundError):
        call("fit", tmp_path / "missing", "--budget", 100)


def test_module_is_the_same_command():
    """`python -m windowsill` is `windowsill`."""
    done = subprocess.run([sys.executable, "-m", "windowsill", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == "windowsill 0.1.0\n"


def test_help_loads_nothing_but_click():
    """Asking for help imports neither the library's rooms nor what they need."""
    code = (
        "import sys\nfrom windowsill.cli.main import run\nrun(['--help'])\n"
        "heavy = {'msgspec', 'rich', 'sqlite3', 'splintr', 'windowsill.session', 'windowsill.providers'}\n"
        "sys.exit(str(heavy & sys.modules.keys()) if heavy & sys.modules.keys() else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_closed_pipe_is_quiet(tmp_path, unbuffered):
    """A reader that stops reading ends the command without a word."""
    file = saved(tmp_path / "long.json", anthropic_turns(1_000))
    command = [COMMAND, "fit", str(file), "--window", "1000000"]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as running:
        running.stdout.read(10)
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 1


def test_pipe_closed_before_a_short_output_is_quiet():
    """Output that is still in a buffer when the reader is gone makes no noise either."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([COMMAND, "--version"], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, b"")


def test_interrupt_ends_with_130(tmp_path):
    """Ctrl-C ends a command with the code that shells expect, without a traceback."""
    os.mkfifo(tmp_path / "never.json")
    with subprocess.Popen(
        [COMMAND, "fit", str(tmp_path / "never.json"), "--budget", "100"], stderr=subprocess.PIPE
    ) as running:
        writer = os.open(tmp_path / "never.json", os.O_WRONLY)  # returns when the command has opened it to read
        time.sleep(0.2)
        running.send_signal(signal.SIGINT)
        running.wait(60)
        os.close(writer)
        assert b"Traceback" not in running.stderr.read()
    assert running.returncode == 130


def test_terminal_of_few_characters_shows_escapes(tmp_path):
    """A terminal that cannot show a character gets its escape, not an error."""
    file = saved(tmp_path / "x.json", [{"role": "窓", "content": "x"}])
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run([COMMAND, "validate", str(file)], capture_output=True, env=environment, check=False)
    assert done.returncode == 1
    assert b"role '\\u7a93'" in done.stdout


def test_library_arguments_are_named_as_options(tmp_path):
    """What the library calls `format=` is `--format` on the command line."""
    done = call("validate", saved(tmp_path / "x.json", {"neither": "this", "nor": "that"}))
    assert "format=" not in done.err
    assert "pass --format, one of " in done.err
