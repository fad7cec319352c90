"""What a person sees who replays their own sessions."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.cli_calls import anthropic_turns, call, saved
from support.transcript_lines import (
    CODEX_HEAD,
    CODEX_MODEL,
    GEMINI_HEAD,
    SESSION,
    claude,
    codex,
    codex_says,
    gemini,
    jsonl,
    result,
    use,
)

pytestmark = pytest.mark.integration


def claude_lines(count=4, session=SESSION, model="claude-opus-4-6"):
    """A Claude Code session whose every call reported 2,000 tokens read from the cache and 500 written to it."""
    lines = [claude("u", None, "user", "Find the treasure.", sessionId=session)]
    last = "u"
    for n in range(count):
        used = {"input_tokens": 1, "cache_read_input_tokens": 2_000, "cache_creation_input_tokens": 500}
        message = {"id": f"msg_{session}_{n}", "model": model, "usage": {**used, "output_tokens": 10}}
        for uuid, parent, block in [
            (f"a{n}", last, {"type": "text", "text": "Next."}),
            (f"b{n}", f"a{n}", use(f"t{n}", path=f"cave-{n}")),
        ]:
            lines.append(claude(uuid, parent, "assistant", [block], message=message, sessionId=session))
        lines.append(claude(f"r{n}", f"b{n}", "user", [result(f"t{n}", f"cave-{n + 1} " * 60)], sessionId=session))
        last = f"r{n}"
    return lines


TOTAL = {"input_tokens": 900, "cached_input_tokens": 600, "output_tokens": 40, "total_tokens": 940}
CODEX = [
    CODEX_HEAD,
    CODEX_MODEL,
    codex_says("user", "ls"),
    codex_says("assistant", "One file."),
    codex("event_msg", {"type": "token_count", "info": {"total_token_usage": TOTAL, "last_token_usage": TOTAL}}),
]
GEMINI = {
    **GEMINI_HEAD,
    "messages": [
        gemini("u", "user", "Hi"),
        gemini("g", "gemini", "Hello", model="gemini-2.5-pro", tokens={"input": 800, "output": 5, "cached": 0}),
    ],
}


def test_report_tells_what_was_paid_and_what_would_be(tmp_path):
    """Per session and in total: recorded tokens and dollars, the same calls here, and where the numbers are from."""
    file = tmp_path / "s.jsonl"
    file.write_bytes(jsonl(*claude_lines()))
    told = call("replay", file, "--window", 60_000, "--json").json
    (session,) = told["sessions"]
    assert session["recorded"] == told["total"]["recorded"]
    assert session["recorded"] == {
        "calls": 4,
        "input": 4,
        "cache_write": 2_000,
        "cache_read": 8_000,
        "output": 40,
        "tokens": 10_044,
        "dollars": pytest.approx((4 * 5 + 2_000 * 6.25 + 8_000 * 0.5 + 40 * 25) / 1_000_000),
        "unpriced": {},
    }
    assert (session["compared"]["calls"], session["compared"]["recorded_tokens"]) == (4, 10_004)
    assert session["compared"]["unrecorded"] > 2_000
    assert set(told["sources"]) == {"recorded", "compared", "figures"}


def test_figures_are_the_same_with_and_without_usage(tmp_path):
    """What was recorded stands beside what is counted here, and does not move it."""
    lines = claude_lines()
    (tmp_path / "with.jsonl").write_bytes(jsonl(*lines))
    for line in lines:
        line["message"].pop("usage", None)
    (tmp_path / "without.jsonl").write_bytes(jsonl(*lines))
    reports = [call("replay", tmp_path / f"{name}.jsonl", "--json").json for name in ("with", "without")]
    timed = {"median_ms": None, "p95_ms": None}
    figures = [each["sessions"][0]["figures"] | timed for each in reports]
    assert figures[0] == figures[1]
    assert (reports[1]["total"]["recorded"], reports[1]["total"]["compared"]) == (None, None)


def test_folder_of_all_agents_reads_like_a_bill(tmp_path):
    """One line for each session, a total, and what was paid in words."""
    folder = tmp_path / "projects" / "-home-ann-shop"
    folder.mkdir(parents=True)
    (folder / "a.jsonl").write_bytes(jsonl(*claude_lines()))
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(jsonl(*CODEX)))
    saved(folder / "c.json", GEMINI)
    done = call("replay", tmp_path, "--window", 60_000)
    words, table, rest = (part.splitlines() for part in done.out.split("\n\n"))
    assert words[0].startswith("With ")
    assert words[0].endswith(" at 60,000 tokens, your 6 calls would have cost the same, $0.0198.")
    assert [line.split()[0] for line in table] == ["session", SESSION, "c0dec", "gem", "total"]
    assert [line.split()[-2] for line in table[1:]] == ["$0.0175", "$0.0012", "$0.0010", "$0.0198"]
    assert "You paid for 6 calls: 11,789 tokens (input 1,104, cache write 2,000, " in "\n".join(rest)
    assert done.code == 0


def test_row_of_a_session_fits_a_narrow_terminal(tmp_path, monkeypatch):
    """On 80 columns too a session is one line."""
    monkeypatch.setenv("COLUMNS", "80")
    file = tmp_path / "s.jsonl"
    file.write_bytes(jsonl(*claude_lines()))
    lines = call("replay", file, terminal=True).out.splitlines()
    row = next(line for line in lines if line.strip().startswith(SESSION[:11]))
    assert [cell[0] for cell in row.split()[-2:]] == ["$", "$"]


def test_call_that_two_files_tell_of_is_paid_once(tmp_path):
    """A resumed session repeats the old one in a new file; both are replayed, the bill has each call once."""
    (tmp_path / "a.jsonl").write_bytes(jsonl(*claude_lines(2)))
    (tmp_path / "b.jsonl").write_bytes(jsonl(*claude_lines(4)))
    told = call("replay", tmp_path, "--json").json
    assert [each["recorded"]["calls"] for each in told["sessions"]] == [2, 2]
    assert [each["figures"]["calls"] for each in told["sessions"]] == [2, 4]
    assert (told["total"]["recorded"]["calls"], told["total"]["compared"]["calls"]) == (4, 4)


def test_session_that_cannot_be_replayed_was_still_paid(tmp_path):
    """A model without a known window is an error of its session, and a price that is not known."""
    (tmp_path / "a.jsonl").write_bytes(jsonl(*claude_lines(2)))
    (tmp_path / "b.jsonl").write_bytes(jsonl(*claude_lines(3, session="other", model="home-made")))
    done = call("replay", tmp_path)
    assert (done.code, "other: no window is known for the model 'home-made'" in done.out) == (0, True)
    assert "without 3 calls of home-made, for which no price is known" in done.out
    assert "Of these, 2 calls could be replayed" in done.out


def test_recorded_sessions_with_usage_are_a_bill_too(tmp_path):
    """Our own form of a recording has an entry of usage for each message."""
    turns = anthropic_turns(1)
    usage = [{"input_tokens": 700, "output_tokens": 4} if each["role"] == "assistant" else None for each in turns]
    value = {"id": "s", "format": "anthropic", "model": "claude-opus-4-6", "messages": turns, "usage": usage}
    total = call("replay", saved(tmp_path / "s.json", value), "--json").json["total"]
    assert (total["recorded"]["calls"], total["recorded"]["input"], total["compared"]["calls"]) == (2, 1_400, 2)


def test_usage_that_is_no_usage_is_left_out(tmp_path):
    """A recording is not refused for what it says besides the conversation."""
    for usage in (5, "x", [5, "x", None, {"input_tokens": "many"}], {"input_tokens": 5}):
        value = {"id": "s", "model": "claude-opus-4-6", "messages": anthropic_turns(1), "usage": usage}
        done = call("replay", saved(tmp_path / "s.json", value), "--json")
        assert (done.code, done.json["total"]["recorded"]) == (0, None)


def test_broken_lines_are_told_by_file(tmp_path):
    """The first line of each file and how many more, so that one bad file does not hide another."""
    (tmp_path / "a.jsonl").write_bytes(jsonl(*claude_lines(1), *[b"{torn"] * 30))
    (tmp_path / "b.jsonl").write_bytes(jsonl(b"{torn", *CODEX))
    out = call("replay", tmp_path).out
    first = next(line for line in out.splitlines() if line.startswith(str(tmp_path / "a.jsonl")))
    assert first.startswith(f"{tmp_path / 'a.jsonl'} line 5: not JSON")
    assert first.endswith("(and 29 more broken in this file)")
    assert f"{tmp_path / 'b.jsonl'} line 1: not JSON" in out
    assert "not replayed: broken lines 31" in out
    broken = call("replay", tmp_path, "--json").json["broken"]
    assert (broken[0]["file"], broken[0]["line"], len(broken)) == (str(tmp_path / "a.jsonl"), 5, 31)


def test_files_without_a_recording_are_not_told_one_by_one(tmp_path):
    """An agent's folder holds many of them: the first few show what they are, the rest is counted."""
    (tmp_path / "a.jsonl").write_bytes(jsonl(*claude_lines(1)))
    for n in range(9):
        saved(tmp_path / f"n{n}.meta.json", {"agentType": "explore"})
    out = call("replay", tmp_path).out
    assert [f"n{n}.meta.json" in out for n in range(5)] == [True, True, True, False, False]
    assert "files without a recording 9" in out


def test_file_of_broken_lines_only_is_told_with_the_first(tmp_path):
    """In a folder it holds no recording; alone it is a failure."""
    (tmp_path / "a.jsonl").write_bytes(jsonl(*CODEX))
    (tmp_path / "b.jsonl").write_bytes(b"{torn\n{torn\n")
    (foreign,) = call("replay", tmp_path, "--json").json["foreign"]
    assert foreign["why"].startswith("line 1: not JSON")
    assert foreign["why"].endswith("(and 1 more like this)")
    assert call("replay", tmp_path / "b.jsonl", "--window", 9_000).code == 1


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_empty_file(tmp_path, content):
    """Alone it is a failure in one line; in a folder it is counted."""
    file = tmp_path / "b.jsonl"
    file.write_bytes(content)
    alone = call("replay", file, "--window", 9_000)
    assert (alone.code, alone.out, alone.err.count("\n")) == (1, "", 1)
    (tmp_path / "a.jsonl").write_bytes(jsonl(*CODEX))
    assert call("replay", tmp_path, "--json").json["total"]["foreign"] == 1


DRESSED = {
    "byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "line ends of Windows": lambda data: data.replace(b"\n", b"\r\n"),
    "both": lambda data: b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"),
    "no last line end": lambda data: data.rstrip(b"\n"),
    "empty lines": lambda data: data.replace(b"\n", b"\n\n"),
}


@pytest.mark.parametrize("dress", DRESSED.values(), ids=DRESSED)
@pytest.mark.parametrize("lines", [claude_lines(1), CODEX], ids=["claude", "codex"])
def test_same_transcript_in_other_dress(tmp_path, dress, lines):
    """How a file was saved or packed is no part of the conversation."""
    (tmp_path / "a.jsonl").write_bytes(jsonl(*lines))
    (tmp_path / "b.jsonl").write_bytes(dress(jsonl(*lines)))
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(dress(jsonl(*lines))))
    told = [call("replay", tmp_path / name, "--json").json for name in ("a.jsonl", "b.jsonl", "c.jsonl.gz")]
    assert [each["total"]["broken"] for each in told] == [0, 0, 0]
    assert told[0]["total"]["tokens_sent"] == told[1]["total"]["tokens_sent"] == told[2]["total"]["tokens_sent"]


def test_file_that_is_still_being_written(tmp_path):
    """The last line is torn anywhere: it is told, and everything before it is replayed."""
    *whole, last = claude_lines(2)
    head, tail = jsonl(*whole), jsonl(last)
    file = tmp_path / "a.jsonl"
    for cut in range(1, len(tail) - 1, 37):
        file.write_bytes(head + tail[:cut])
        told = call("replay", file, "--json").json
        assert (told["total"]["calls"], [each["line"] for each in told["broken"]]) == (2, [7])


def test_huge_line_is_a_line(tmp_path):
    """A tool output of several megabytes is read, and cut to fit."""
    lines = claude_lines(2)
    lines[3]["message"]["content"][0]["content"] = "pebble " * 700_000
    file = tmp_path / "a.jsonl"
    file.write_bytes(jsonl(*lines))
    total = call("replay", file, "--window", 20_000, "--json").json["total"]
    assert (total["calls"], total["over"], total["invalid"], total["lost"]) == (2, 0, 0, 0)


def test_folder_with_loops_of_links(tmp_path):
    """Links that lead back, to themselves or nowhere are not followed for ever."""
    (tmp_path / "a.jsonl").write_bytes(jsonl(*CODEX))
    (tmp_path / "back").symlink_to(tmp_path)
    (tmp_path / "self.jsonl").symlink_to(tmp_path / "self.jsonl")
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    assert [each["session"] for each in call("replay", tmp_path, "--json").json["sessions"]] == ["c0dec"]


NOBODY = 65_534


@contextmanager
def as_nobody():
    """The superuser may read everything: for a while it is somebody who may not."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)


def test_file_that_may_not_be_read(monkeypatch):
    """In a folder it is counted with the reason; named, it is an error before any work."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "a.jsonl").write_bytes(jsonl(*CODEX))
        (folder / "b.jsonl").write_bytes(jsonl(*CODEX))
        (folder / "b.jsonl").chmod(0)
        monkeypatch.chdir(folder)
        with as_nobody():
            (foreign,) = call("replay", folder, "--json").json["foreign"]
        assert foreign == {"where": str(folder / "b.jsonl"), "why": "permission denied"}
        (folder / "shut").mkdir(mode=0)
        for named in ("b.jsonl", "shut"):
            with as_nobody():
                done = call("replay", folder / named)
            assert (done.code, f"{folder / named}: permission denied" in done.err) == (1, True)
        monkeypatch.undo()


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that opens and cannot be read")
def test_file_that_fails_while_it_is_read(tmp_path):
    """What a disk refuses is counted with the reason; the others are replayed."""
    (tmp_path / "a.jsonl").write_bytes(jsonl(*CODEX))
    for name in ("b.jsonl", "c.json"):
        (tmp_path / name).symlink_to("/proc/self/mem")
    told = call("replay", tmp_path, "--json").json
    assert [each["session"] for each in told["sessions"]] == ["c0dec"]
    assert [each["why"] for each in told["foreign"]] == ["input/output error"] * 2


def test_prompt_that_was_never_answered_is_no_failure(tmp_path):
    """It names no model, and there is nothing to replay in it."""
    (tmp_path / "a.jsonl").write_bytes(jsonl(claude("a", None, "user", "Hi")))
    (tmp_path / "b.jsonl").write_bytes(jsonl(*CODEX))
    told = call("replay", tmp_path, "--json").json
    assert (told["total"]["failed"], [each["figures"]["calls"] for each in told["sessions"]]) == (0, [0, 1])


def test_responses_are_replayed_call_by_call(tmp_path):
    """An answer of several items is one call, and what its calls needed is looked for in the request."""
    body = {"model": "gpt-5", "instructions": "Be brief.", "input": [{"role": "user", "content": "Read cave-0.txt"}]}
    reasoned = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "gAAAA"}
    called = {"type": "function_call", "call_id": "c", "name": "read", "arguments": '{"path": "cave-0.txt"}'}
    answered = {"type": "function_call_output", "call_id": "c", "output": "empty"}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Empty."}]}
    log = [
        {"request": body, "response": {"output": [reasoned, called], "usage": {"input_tokens": 9, "total_tokens": 12}}},
        {"request": {**body, "input": [*body["input"], reasoned, called, answered]}, "response": {"output": [said]}},
    ]
    file = tmp_path / "log.jsonl"
    file.write_bytes(jsonl(*log))
    (session,) = call("replay", file, "--json").json["sessions"]
    assert (session["messages"], session["figures"]["calls"], session["figures"]["invalid"]) == (5, 2, 0)
    assert (session["figures"]["values_needed"], session["figures"]["kept"]) == (1, 1.0)
    assert (session["recorded"]["calls"], session["compared"]["calls"]) == (1, 1)


def test_import_of_a_folder_with_copies_and_nameless_conversations(tmp_path):
    """A copy of a session gets a number, and a conversation without an id goes by its file."""
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(jsonl(*CODEX))
    shutil.copy(folder / "a.jsonl", folder / "b.jsonl")
    (folder / "talk.jsonl").write_text("\n".join(map(json.dumps, anthropic_turns(1))))
    done = call("sessions", "import", folder, "--model", "gpt-5", "--store", tmp_path / "new", "--json")
    assert [each["session"] for each in done.json] == ["c0dec", "c0dec-2", "talk"]


@pytest.mark.parametrize("command", ["replay", "fit", "validate"])
def test_a_file_that_fails_while_it_is_read_is_named(command):
    """What a system says of a failed read does not say of which file."""
    done = call(command, "/proc/self/mem")
    assert done.code == 1
    assert done.err.startswith("windowsill: /proc/self/mem: ")
