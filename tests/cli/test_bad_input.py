"""Whatever a user passes, the answer is one clear line and an exit code."""

from __future__ import annotations

import gzip
import sqlite3

import pytest

from support.cli_calls import anthropic_turns, call, saved
from windowsill import Session

pytestmark = pytest.mark.integration

BAD = {
    "not JSON": (b"hello", "not JSON at byte 0"),
    "nothing": (b"", "it is empty"),
    "cut off": (b'[{"role":"user","content":"hi"', "it ends too early"),
    "a number": (b"3", "neither a request body nor a message list"),
    "no messages": (b"{}", "neither a request, a message nor a reply"),
    "a list of numbers": (b"[1]", "[0]: "),
    "wrong role": (b'[{"role":"wizard","content":"x"}]', "no such role as 'wizard'"),
    "a result without an id": (b'[{"role":"tool","content":"x"}]', "tool_call_id"),
    "a NUL byte": (b'[{"role":"user","content":"a\0b"}]', "not JSON at byte"),
    "another encoding": (b'[{"role":"user","content":"\xe9"}]', "not UTF-8 at byte 27"),
    "deep nesting": (b'[{"role":"user","content":' + b"[" * 100_000 + b"]" * 100_000 + b"}]", "nested too deeply"),
}

COMMANDS = {
    "fit": ("fit", "--budget", "1000"),
    "replay": ("replay", "--window", "1000"),
    "import": ("sessions", "import", "--id", "x", "--window", "1000"),
}


def assert_one_line(done, code, *parts):
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1)
    assert done.err.startswith("windowsill: ")
    assert "Traceback" not in done.err
    for part in parts:
        assert part in done.err


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("WINDOWSILL_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_content_that_cannot_be_used(tmp_path, command, bad):
    """A file that is no conversation is named, with what is wrong in it."""
    file = tmp_path / "bad.json"
    file.write_bytes(bad[0])
    told = "not JSON" if command[0] == "replay" and not bad[0] else bad[1]
    assert_one_line(call(*command, file), 1, "bad.json: ", told)


@pytest.mark.parametrize("bad", ["not JSON", "nothing", "deep nesting", "a number"])
def test_content_that_cannot_be_judged(tmp_path, bad):
    """`validate` needs JSON; what is no JSON is an error rather than a list of problems."""
    file = tmp_path / "bad.json"
    file.write_bytes(BAD[bad][0])
    assert_one_line(call("validate", file), 1, "bad.json: ", BAD[bad][1])


@pytest.mark.parametrize("command", [*COMMANDS.values(), ("validate",)], ids=[*COMMANDS, "validate"])
def test_missing_file_and_folder(tmp_path, command):
    """A path that is not there, or is a folder where only files go, is told with the path."""
    assert_one_line(call(*command, tmp_path / "missing"), 1, f"{tmp_path / 'missing'}: no such file", "check the path")
    told = (
        "there is no session in it"
        if command[0] in {"replay", "sessions"}
        else f"{tmp_path}: is a directory; give a file"
    )
    assert_one_line(call(*command, tmp_path), 1, told)


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_twenty_megabytes_in_one_line(tmp_path, command):
    """One huge message is handled like any other."""
    file = tmp_path / "big.json"
    file.write_bytes(b'[{"role":"user","content":"' + b"word " * 4_000_000 + b'"}]')
    done = call(*command, file)
    assert done.code == 0
    assert "Traceback" not in done.err


@pytest.mark.parametrize("depth", [300, 700, 950])
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_arguments_nested_deeply(tmp_path, command, depth):
    """Deep arguments are carried along, or refused in one line where Python's own limit is near."""
    text = saved(tmp_path / "x.json", anthropic_turns(1)).read_text()
    (tmp_path / "x.json").write_text(text.replace('"cave-0.txt"', "[" * depth + '"cave-0.txt"' + "]" * depth))
    done = call(*command, tmp_path / "x.json")
    if depth == 300 or not done.code:
        assert done.code == 0
        assert "Traceback" not in done.err
    else:
        assert_one_line(done, 1, "nested too deeply")


def test_deep_arguments_can_be_kept(tmp_path):
    """What can be read can be stored: a fingerprint of deep arguments does not run out of stack."""
    text = saved(tmp_path / "x.json", anthropic_turns(1)).read_text()
    (tmp_path / "x.json").write_text(text.replace('"cave-0.txt"', "[" * 700 + '"cave-0.txt"' + "]" * 700))
    assert call("sessions", "import", tmp_path / "x.json", "--id", "x", "--window", 900).code == 0


def test_escaped_nul_is_text(tmp_path):
    """A NUL that JSON can express is text like any other."""
    message = [{"role": "user", "content": "a\0b"}]
    assert call("fit", saved(tmp_path / "x.json", message), "--budget", 100).json == message


@pytest.mark.parametrize(
    ("option", "value"),
    [("--budget", "-5"), ("--budget", "0"), ("--budget", "lots"), ("--budget", "300%"), ("--window", "-1")],
)
def test_size_out_of_range(tmp_path, option, value):
    """A size that is none is a wrong call that names the value."""
    assert_one_line(call("fit", saved(tmp_path / "x.json", []), option, value), 2, value)


@pytest.mark.parametrize("option", [("--strategy", "nope"), ("--tokenizer", "nope"), ("--format", "nope")])
@pytest.mark.parametrize("command", [("fit",), ("replay", "--window", "500")])
def test_name_that_is_not_known(tmp_path, command, option):
    """A name that means nothing is a wrong call that lists what there is."""
    assert_one_line(
        call(*command, saved(tmp_path / "x.json", anthropic_turns(1)), *option, *["--model", "gpt-4o"]), 2, "nope"
    )


def test_strategy_with_a_wrong_setting(tmp_path):
    """A strategy's setting out of range is a wrong call."""
    file = saved(tmp_path / "x.json", anthropic_turns(1))
    assert_one_line(call("fit", file, "--budget", "900", "--strategy", "sliding-window:keep=-1"), 2, "keep")


def test_budget_smaller_than_the_system_prompt(tmp_path):
    """What is never cut and too large is told with its size and the room there is."""
    body = {"model": "claude-opus-4-6", "max_tokens": 9, "system": "rule " * 500, "messages": anthropic_turns(1)}
    assert_one_line(call("fit", saved(tmp_path / "x.json", body), "--budget", "100"), 1, "system prompt", "100")


def test_answer_as_long_as_the_window(tmp_path):
    """A body that leaves no room for itself is told, not crashed on."""
    body = {"model": "m", "max_tokens": 5_000, "messages": anthropic_turns(1)}
    assert_one_line(call("fit", saved(tmp_path / "x.json", body), "--window", "5000"), 2, "max_output")


def test_report_that_cannot_be_written(tmp_path):
    """A report in a folder that does not exist is told, and nothing half is printed."""
    file = saved(tmp_path / "x.json", anthropic_turns(1))
    where = tmp_path / "no" / "report.json"
    assert_one_line(call("fit", file, "--budget", "900", "--report", where), 1, str(where), "check the path")


def test_dump_that_cannot_be_written(tmp_path):
    """A dump in a folder that does not exist is told before any work."""
    file = saved(tmp_path / "x.json", anthropic_turns(1))
    where = tmp_path / "no" / "dump.jsonl"
    assert_one_line(call("replay", file, "--window", "900", "--dump", where), 1, str(where))


def test_file_that_is_not_gzip(tmp_path):
    """A name that ends in .gz promises gzip."""
    file = tmp_path / "x.json.gz"
    file.write_bytes(b"plain")
    assert_one_line(call("fit", file, "--budget", "900"), 1, "not a whole gzip file")
    file.write_bytes(gzip.compress(b"[]" * 5_000)[:-9])
    assert_one_line(call("fit", file, "--budget", "900"), 1, "not a whole gzip file")


def test_store_below_a_file(tmp_path):
    """A store that cannot be made there says so."""
    (tmp_path / "file").write_text("x")
    talk = saved(tmp_path / "x.json", anthropic_turns(1))
    done = call("sessions", "import", talk, "--id", "t", "--window", 900, "--store", tmp_path / "file" / "below")
    assert_one_line(done, 1, "file")


def test_database_of_something_else(tmp_path):
    """A file that is no database, or another program's, is left as it is."""
    place = tmp_path / "x.db"
    place.write_bytes(b"this is no database at all, but long enough to look at" * 50)
    assert_one_line(call("sessions", "list", "--store", place), 1, "not a SQLite database")
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE theirs (x)")
    db.close()
    assert_one_line(call("sessions", "list", "--store", other), 1, "another program")


def test_damaged_database(tmp_path):
    """A database with overwritten pages is told as damaged, or its problems are listed; never a traceback."""
    with Session.open("s", window=9_000, store=tmp_path / "x.db") as session:
        session.extend(anthropic_turns(30))
    data = bytearray((tmp_path / "x.db").read_bytes())
    data[4096 : len(data)] = b"\xff" * (len(data) - 4096)
    (tmp_path / "x.db").write_bytes(data)
    for command in (["verify"], ["show", "s"], ["list"]):
        done = call("sessions", *command, "--store", tmp_path / "x.db")
        assert (done.code, "Traceback" in done.err) == (1, False)
        assert "damaged" in done.err + done.out


def test_newer_schema(tmp_path):
    """A database of a newer Windowsill is refused with the remedy."""
    with Session.open("s", window=9_000, store=tmp_path / "x.db"):
        pass
    with sqlite3.connect(tmp_path / "x.db") as db:
        db.execute("PRAGMA user_version = 999")
    db.close()
    assert_one_line(
        call("sessions", "list", "--store", tmp_path / "x.db"), 1, "schema version 999", "upgrade windowsill"
    )


def test_damaged_settings(tmp_path):
    """A session whose settings cannot be read is listed, and verify says why it cannot be opened."""
    with Session.open("s", window=9_000, store=tmp_path / "x.db") as session:
        session.add("hi")
    with sqlite3.connect(tmp_path / "x.db") as db:
        db.execute("UPDATE session SET settings = x'00'")
    db.close()
    assert call("sessions", "list", "--store", tmp_path / "x.db").code == 0
    done = call("sessions", "verify", "--store", tmp_path / "x.db")
    assert (done.code, "settings of session 's' are damaged" in done.out) == (1, True)
    shown = call("sessions", "show", "s", "--store", tmp_path / "x.db")
    assert_one_line(shown, 1, "settings of session 's' are damaged")


@pytest.mark.parametrize("command", [["validate"], ["fit", "--budget", "900"], ["replay"], ["sessions", "import"]])
@pytest.mark.parametrize("name", ["x.json.gz", "x.jsonl.gz"])
def test_file_that_unpacks_without_end(tmp_path, monkeypatch, command, name):
    """A small file that unpacks to far more than any conversation is refused before it fills the memory."""
    monkeypatch.setattr("windowsill.replay.recordings.LEAST_UNPACKED", 1_000_000)
    file = tmp_path / name
    file.write_bytes(gzip.compress(b"\0" * 5_000_000))
    done = call(*command, file, *(["--store", tmp_path / "s"] if "import" in command else []))
    assert_one_line(done, 1, "it unpacks to more than 1,000,000 bytes")
    assert "gzip -d" in done.err
