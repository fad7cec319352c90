"""How a call ended."""

import pytest

from windowsill.summaries.collect import Outcome, outcome, refused

pytestmark = pytest.mark.unit

TRACE = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    g()\nValueError: no such thing: 3\n'


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (TRACE, "ValueError: no such thing: 3"),
        ("building\nerror: cannot find crate `x`\nmore", "error: cannot find crate `x`"),
        ("src/a.c:3:5: error: expected ';'", "src/a.c:3:5: error: expected ';'"),
        ("bash: foo: command not found", "bash: foo: command not found"),
        ("=== RUN TestX\n--- FAIL: TestX (0.00s)", "--- FAIL: TestX (0.00s)"),
        ("fatal: not a git repository", "fatal: not a git repository"),
        ("[lint] ERROR task failed", "[lint] ERROR task failed"),
        ("エラー: ファイルがありません", "エラー: ファイルがありません"),
    ],
)
def test_a_failure_is_seen_and_its_line_kept(text, line):
    """Tracebacks, compilers, shells and test runners, English and Japanese."""
    assert outcome(text, is_error=False, shows_files=False) == Outcome(failed=True, exit=None, said=line)


@pytest.mark.parametrize(
    ("text", "code"), [("oops\nExit code: 2", 2), ('{"exit_code": 1}', 1), ("Process exited with code 127", 127)]
)
def test_exit_codes_are_read(text, code):
    """An exit code is kept as a number."""
    end = outcome(text, is_error=False, shows_files=False)
    assert (end.failed, end.exit) == (True, code)


def test_an_exit_code_of_nothing_is_success_whatever_the_words():
    """The program's own word counts more than what it printed."""
    end = outcome("error: ignored\nexit code: 0", is_error=False, shows_files=False)
    assert (end.failed, end.exit) == (False, 0)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("....\n12 passed in 0.3s\n", "12 passed in 0.3s"),
        ("[main 1a2b3c4] Mend it\n 1 file changed", "[main 1a2b3c4] Mend it"),
        ("a\nb\nlast", "last"),
        ("0 errors found", "0 errors found"),
    ],
)
def test_of_a_success_the_telling_line_is_kept(text, line):
    """Test counts and commits, else the last line."""
    assert outcome(text, is_error=False, shows_files=False) == Outcome(failed=False, exit=None, said=line)


def test_words_in_a_file_are_no_error():
    """A file may well be about errors."""
    assert not outcome("error: this is documentation", is_error=False, shows_files=True).failed


def test_what_the_provider_marks_as_an_error_is_one():
    """Even when the text does not look like it."""
    assert outcome("User said no.", is_error=True, shows_files=True) == Outcome(failed=True, said="User said no.")


def test_a_refusal_is_seen_in_a_short_answer_only():
    """The contents of a long file are not searched for it."""
    assert refused("<tool_use_error>File has not been read</tool_use_error>")
    assert not refused("was rejected " + "x" * 10_000)


@pytest.mark.parametrize(
    ("text", "code"), [("exit code -1", -1), ("exit code: 4294967295", 4294967295), ("終了コード: 2", 2)]
)
def test_exit_codes_of_other_systems_are_read(text, code):
    """Signs, Windows' large numbers and Japanese."""
    assert outcome(text, is_error=False, shows_files=False) == Outcome(failed=True, exit=code, said=text)


@pytest.mark.parametrize(
    "line",
    [
        "make: *** [Makefile:3: all] Error 2",
        "npm ERR! code ELIFECYCLE",
        "test result: FAILED. 1 passed",
        "1 failed, 3 passed",
    ],
)
def test_failures_of_builds_and_test_runs_are_seen(line):
    """Where no exit code is shown, the line that reports the failure tells."""
    assert outcome(f"start\n{line}", is_error=False, shows_files=False) == Outcome(failed=True, said=line)


def test_a_run_without_failures_is_none():
    """A count of nothing is no failure."""
    assert not outcome("5 passed, 0 failed\ntest result: ok. 0 failed", is_error=False, shows_files=False).failed
