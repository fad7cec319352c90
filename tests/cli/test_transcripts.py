from __future__ import annotations

import gzip
import json

import pytest

from support.cli_calls import anthropic_turns, call, saved
from support.transcript_lines import (
    CODEX_HEAD,
    CODEX_MODEL,
    GEMINI_HEAD,
    SESSION,
    claude,
    codex_says,
    gemini,
    item,
    jsonl,
    result,
    use,
)

pytestmark = pytest.mark.integration


def claude_lines(count=3):
    """A Claude Code session with so many calls, its answers split over lines."""
    lines = [claude("u", None, "user", "Find the treasure.")]
    last = "u"
    for n in range(count):
        message = {"id": f"m{n}"}
        lines.append(claude(f"a{n}", last, "assistant", [{"type": "text", "text": "Next."}], message=message))
        lines.append(claude(f"b{n}", f"a{n}", "assistant", [use(f"t{n}", path=f"cave-{n}")], message=message))
        lines.append(claude(f"r{n}", f"b{n}", "user", [result(f"t{n}", f"cave-{n + 1} " + "pebble " * 50)]))
        last = f"r{n}"
    return [*lines, claude("z", last, "assistant", [{"type": "text", "text": "Empty."}], message={"id": "mz"})]


CODEX = [
    CODEX_HEAD,
    CODEX_MODEL,
    codex_says("user", "ls"),
    item("function_call", call_id="c", name="shell", arguments='{"command":["ls"]}'),
    item("function_call_output", call_id="c", output="a.py"),
    codex_says("assistant", "One file."),
]
GEMINI = {
    **GEMINI_HEAD,
    "messages": [gemini("u", "user", "Hi"), gemini("g", "gemini", "Hello", model="gemini-2.5-pro")],
}


def test_replay_of_a_claude_code_session(tmp_path):
    """Each answer is one call, whatever the lines; every request is valid and nothing is lost."""
    file = tmp_path / "any-name.jsonl"
    file.write_bytes(jsonl(*claude_lines()))
    done = call("replay", file, "--json")
    (session,) = done.json["sessions"]
    assert (done.code, session["session"], session["model"]) == (0, SESSION, "claude-opus-4-6")
    assert (session["messages"], session["figures"]["calls"]) == (8, 4)
    assert (session["figures"]["invalid"], session["figures"]["lost"]) == (0, 0)


def test_report_says_what_a_session_would_have_cost(tmp_path):
    """In dollars at the model's list prices; nothing is said where one of the models has no known price."""
    file = tmp_path / "x.jsonl"
    file.write_bytes(jsonl(*claude_lines()))
    total = call("replay", file, "--json").json["total"]
    assert 0 < total["dollars"] == total["dollars_everything"] < 1
    assert f"would cost the same as sending everything each time, ${total['dollars']:.4f}." in call("replay", file).out
    unknown = call("replay", file, "--model", "home-made", "--window", 9_000, "--json").json["total"]
    assert (unknown["dollars"], unknown["cost_ratio"]) == (None, 1.0)


@pytest.mark.parametrize("how", ["name", "gzip", "stdin"])
def test_transcripts_are_known_by_their_content(tmp_path, how):
    """A rollout is one whatever it is called, packed, or in a pipe."""
    data = jsonl(*CODEX)
    file = tmp_path / {"name": "rollout.txt", "gzip": "x.jsonl.gz", "stdin": "-"}[how]
    file.write_bytes(gzip.compress(data) if how == "gzip" else data)
    done = call("replay", "-" if how == "stdin" else file, "--json", input=data)
    assert [(each["session"], each["format"]) for each in done.json["sessions"]] == [("c0dec", "openai")]
    assert done.json["total"]["calls"] == 2


def test_replay_of_a_folder(tmp_path):
    """Every recording below a folder is replayed, in order; other files are counted and told."""
    below = tmp_path / "projects" / "shop"
    below.mkdir(parents=True)
    (below / "a.jsonl").write_bytes(jsonl(*claude_lines(1)))
    (below / "b.jsonl.gz").write_bytes(gzip.compress(jsonl(*CODEX)))
    saved(below / "c.json", GEMINI)
    saved(below / "settings.json", {"theme": "dark"})
    (below / "index.jsonl").write_bytes(jsonl({"a": 1}, {"b": 2}))
    (below / "notes.txt").write_text("nothing")
    done = call("replay", tmp_path, "--json")
    assert [each["session"] for each in done.json["sessions"]] == [SESSION, "c0dec", "gem"]
    assert (done.json["total"]["foreign"], done.json["total"]["broken"]) == (2, 0)
    assert [each["where"] for each in done.json["foreign"]] == [
        str(below / "index.jsonl"),
        str(below / "settings.json"),
    ]


def test_folder_without_recordings_is_a_failure(tmp_path):
    """Exit code 1 when nothing could be read."""
    saved(tmp_path / "settings.json", {"theme": "dark"})
    done = call("replay", tmp_path, "--window", 9_000)
    assert (done.code, str(tmp_path / "settings.json") in done.err) == (1, True)


def test_broken_lines_are_counted_and_told(tmp_path):
    """A torn session is replayed as far as it goes; the report says what was left out."""
    file = tmp_path / "x.jsonl"
    progress = {"type": "progress", "uuid": "p", "parentUuid": "u", "sessionId": SESSION}
    file.write_bytes(jsonl(b"{broken", progress, *claude_lines()) + b'{"parentUuid": "z", "ty')
    done = call("replay", file)
    assert done.code == 0
    assert f"{file} line 1: not JSON" in done.out
    assert "not replayed: broken lines 2; besides the conversation 1 (progress 1)" in done.out
    told = call("replay", file, "--json").json
    assert (told["total"]["broken"], told["skipped"], told["total"]["calls"]) == (2, {"progress": 1}, 4)


def test_limit_does_not_hide_broken_lines(tmp_path):
    """What could not be read is told even when the first session is enough."""
    file = tmp_path / "x.jsonl"
    file.write_bytes(jsonl(*claude_lines(), b"{torn"))
    assert call("replay", file, "--limit", 1, "--json").json["total"]["broken"] == 1


def test_damaged_gzip_gives_the_lines_before(tmp_path):
    """A transcript in a torn archive is read as far as it is whole, and the damage is told."""
    noise = [claude(f"n{n}", "z", "user", f"{hash(str(n))}") for n in range(3_000)]
    file = tmp_path / "x.jsonl.gz"
    file.write_bytes(gzip.compress(jsonl(*claude_lines(), *noise))[:-2_000])
    done = call("replay", file, "--limit", 1, "--json")
    assert (done.code, done.json["sessions"][0]["session"]) == (0, SESSION)
    assert call("replay", file, "--window", 9_000, "--json").json["broken"][-1]["why"].startswith("not a whole gzip")


def test_progress_reaches_the_end(tmp_path):
    """The bar counts the bytes of transcripts and folders too."""
    (tmp_path / "a.jsonl").write_bytes(jsonl(*claude_lines(1)))
    saved(tmp_path / "b.json", GEMINI)
    assert "100%" in call("replay", tmp_path, terminal=True).err


def test_import_of_a_transcript(tmp_path):
    """Each session of a transcript becomes one here; broken lines are told and not fatal."""
    side = [claude("s", None, "user", "search", isSidechain=True)]
    file = tmp_path / "x.jsonl"
    file.write_bytes(jsonl(*claude_lines(1), *side, *[b"{"] * 7))
    done = call("sessions", "import", file, "--model", "claude-opus-4-6", "--store", tmp_path / "new", "--json")
    assert [each["session"] for each in done.json] == [SESSION, f"{SESSION}-side-1"]
    assert done.err.count("\n") == 6
    assert "skipped 2 more" in done.err
    out = call("sessions", "export", SESSION, "--format", "anthropic", "--store", tmp_path / "new").json
    assert out[1]["content"][1] == use("t0", path="cave-0")
    shown = call("sessions", "show", SESSION, "--messages", "--json", "--store", tmp_path / "new").json
    assert shown["messages_list"][0]["at"] == 1770369879.155


def test_import_of_a_folder(tmp_path):
    """All recordings of a folder are taken in at once."""
    (tmp_path / "a.jsonl").write_bytes(jsonl(*CODEX))
    saved(tmp_path / "b.json", GEMINI)
    saved(tmp_path / "c.json", {})
    done = call("sessions", "import", tmp_path, "--store", tmp_path / "new")
    assert [line.split(":")[0] for line in done.out.splitlines()] == ["imported c0dec", "imported gem"]
    assert f"skipped {tmp_path / 'c.json'}" in done.err


def test_import_of_nothing_readable(tmp_path):
    """Exit code 1, and no store is made."""
    file = tmp_path / "x.jsonl"
    file.write_bytes(b"{\n{\n")
    done = call("sessions", "import", file, "--store", tmp_path / "new")
    assert (done.code, (tmp_path / "new").exists()) == (1, False)
    assert f"{file} line 1" in done.err


def test_plain_messages_line_by_line(tmp_path):
    """A .jsonl of messages is one session that goes by the name of its file."""
    file = tmp_path / "talk.jsonl"
    file.write_text("\n".join(map(json.dumps, anthropic_turns(2))))
    told = call("replay", file, "--window", 9_000, "--json").json
    assert [(each["session"], each["figures"]["calls"]) for each in told["sessions"]] == [("talk", 3)]
    done = call("sessions", "import", file, "--id", "t", "--window", 9_000, "--store", tmp_path / "new")
    assert (done.code, done.out.startswith("imported t: ")) == (0, True)


def test_body_in_one_line_is_no_log(tmp_path):
    """A file with one request in it is that session, and goes by the name of the file."""
    file = saved(tmp_path / "body.json", {"model": "claude-opus-4-6", "messages": anthropic_turns(1)})
    assert [each["session"] for each in call("replay", file, "--json").json["sessions"]] == ["body"]


def test_request_log_is_one_conversation(tmp_path):
    """The calls of an agent that were logged one by one are replayed as the conversation they were."""
    turns = anthropic_turns(3)
    log = [{"request": {"model": "claude-opus-4-6", "max_tokens": 9, "messages": turns[:n]}} for n in (1, 3, 5, 7)]
    file = tmp_path / "log.jsonl"
    file.write_bytes(jsonl(*log))
    (session,) = call("replay", file, "--json").json["sessions"]
    assert (session["session"], session["format"], session["messages"]) == ("log:1", "anthropic", 7)
