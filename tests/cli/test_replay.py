from __future__ import annotations

import gzip
import json
import re

import pytest

import windowsill
from support.cli_calls import anthropic_turns, call, openai_turns, saved
from windowsill.replay.summary import LEGEND
from windowsill.testing import Answer, Server

pytestmark = pytest.mark.integration

BOTH = "condense:keep=20,room=0.15,economy"
COUNTED = ("--tokenizer", "o200k_base")


def recorded(path, *sessions):
    path.write_text("".join(json.dumps(each) + "\n" for each in sessions))
    return path


def dumped(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def session(id="s", turns=None, **fields):
    messages = anthropic_turns(40) if turns is None else turns
    return {"id": id, "format": "anthropic", "model": "claude-opus-4-6", "messages": messages, **fields}


def test_one_call_before_each_assistant_message(tmp_path):
    """Each assistant message is the answer to one request, made of what stood before it."""
    dump = tmp_path / "d.jsonl"
    file = recorded(tmp_path / "x.jsonl", session(turns=anthropic_turns(2)))
    done = call("replay", file, "--window", 8_000, "--dump", dump, "--json", *COUNTED)
    assert (done.code, done.json["total"]["calls"]) == (0, 3)
    lines = dumped(dump)
    assert [line["turn"] for line in lines] == [1, 3, 5]
    assert [line["session"] for line in lines] == ["s"] * 3
    last = anthropic_turns(2)[:5]
    assert _without_markers(lines[2]["request"]["messages"]) == last


def _without_markers(messages):
    text = json.dumps(messages).replace(', "cache_control": {"type": "ephemeral"}', "")
    return json.loads(text)


@pytest.mark.parametrize(
    "recording",
    [session(), session(format="openai", model="gpt-4o", turns=openai_turns(40))],
    ids=["anthropic", "openai"],
)
def test_small_window_holds_and_nothing_is_lost(tmp_path, recording):
    """In a small window every request fits and is valid, folds are made, and the history stays whole."""
    dump = tmp_path / "d.jsonl"
    file = recorded(tmp_path / "x.jsonl", recording)
    total = call("replay", file, "--window", 2_000, "--dump", dump, "--json", *COUNTED).json["total"]
    assert (total["invalid"], total["over"], total["lost"]) == (0, 0, 0)
    assert total["folds"] > 0
    assert total["peak_tokens"] <= 2_000
    lines = dumped(dump)
    assert len(lines) == 41
    assert all(line["tokens"] <= 2_000 for line in lines)
    assert all(windowsill.validate(line["request"], format=recording["format"]) == [] for line in lines)
    assert sum(len(line["folds"]) for line in lines) == total["folds"]


def test_wide_window_changes_nothing(tmp_path):
    """Where everything fits, everything is kept, and it costs what sending everything costs."""
    file = recorded(tmp_path / "x.jsonl", session())
    total = call("replay", file, "--window", 100_000, "--json", *COUNTED).json["total"]
    assert (total["kept"], total["kept_from_outputs"], total["cost_ratio"], total["folds"]) == (1.0, 1.0, 1.0, 0)
    assert total["values_needed"] == 40
    assert total["cache_hit_share"] > 0.9


def test_overhead_counts_in_every_request(tmp_path):
    """Tokens for what was not recorded are part of each request."""
    file = recorded(tmp_path / "x.jsonl", session(turns=anthropic_turns(2)))
    plain = call("replay", file, "--window", 9_000, "--json", *COUNTED).json["total"]
    more = call("replay", file, "--window", 9_000, "--overhead", 5_000, "--json", *COUNTED).json["total"]
    assert more["tokens_sent"] - plain["tokens_sent"] == 3 * 5_000


def test_system_and_tools_of_a_body_are_sent(tmp_path):
    """A request body is replayed with all its parts."""
    dump = tmp_path / "d.jsonl"
    tools = [{"name": "read", "input_schema": {"type": "object"}}]
    body = {"model": "claude-opus-4-6", "max_tokens": 7, "system": "Be brief.", "tools": tools}
    file = saved(tmp_path / "body.json", {**body, "messages": anthropic_turns(1)})
    assert call("replay", file, "--dump", dump).code == 0
    sent = dumped(dump)[-1]["request"]
    assert (sent["max_tokens"], sent["model"]) == (7, "claude-opus-4-6")
    assert "Be brief." in json.dumps(sent["system"])
    assert sent["tools"][0]["name"] == "read"


def test_each_dumped_request_is_one_line(tmp_path):
    """A recording with line breaks between its values still gives one line per request."""
    file, dump = tmp_path / "x.json", tmp_path / "d.jsonl"
    file.write_text(json.dumps(anthropic_turns(3), indent=1))
    call("replay", file, "--window", 9_000, "--dump", dump)
    assert [line["turn"] for line in dumped(dump)] == [1, 3, 5, 7]


def test_dump_is_compressed_by_its_name_and_the_same_each_time(tmp_path):
    """A dump that ends in .gz is gzip, and two replays write the same bytes."""
    file = recorded(tmp_path / "x.jsonl", session())
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        call("replay", file, "--window", 2_000, "--dump", tmp_path / name)
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()
    assert len(gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes()).splitlines()) == 41


def test_assistant_message_at_the_start_is_no_call(tmp_path):
    """There was nothing to send before the first message."""
    greeting = [{"role": "assistant", "content": "Hello!"}, {"role": "user", "content": "Hi."}]
    file = saved(tmp_path / "x.json", [*greeting, {"role": "assistant", "content": "What now?"}])
    assert call("replay", file, "--window", 1_000, "--json").json["total"]["calls"] == 1


def test_broken_transcripts_are_repaired_and_counted(tmp_path):
    """A result without a call is mended in the request, counted once, and nothing is lost."""
    orphan = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "gone", "content": "x"}]}
    turns = anthropic_turns(3)
    turns[3:3] = [orphan]
    total = call("replay", saved(tmp_path / "x.json", turns), "--window", 9_000, "--json").json["total"]
    assert (total["invalid"], total["lost"]) == (0, 0)
    assert total["repairs"]["orphan_told"] == 1


def test_report_has_each_session_and_the_total(tmp_path):
    """The report file says the same as --json, with the time per turn."""
    report = tmp_path / "r.json"
    file = recorded(tmp_path / "x.jsonl", session("a"), session("b", turns=anthropic_turns(3)))
    done = call("replay", file, "--window", 2_000, "--report", report, "--json")
    told = json.loads(report.read_text())
    assert told == done.json
    assert [each["session"] for each in told["sessions"]] == ["a", "b"]
    assert [each["figures"]["calls"] for each in told["sessions"]] == [41, 4]
    assert (told["total"]["sessions"], told["total"]["calls"]) == (2, 45)
    assert told["total"]["median_ms"] > 0


def test_text_report_is_words_then_a_table_then_what_it_means(tmp_path):
    """In a pipe too, as plain aligned text; every column is explained."""
    done = call("replay", recorded(tmp_path / "x.jsonl", session()), "--window", 2_000)
    words, table, legend = (part.splitlines() for part in done.out.split("\n\n"))
    assert words[0].startswith("With ")
    assert table[0].split()[:3] == ["session", "calls", "peak"]
    assert [line.split()[:2] for line in table[1:]] == [["s", "41"], ["total", "41"]]
    assert [line.partition(":")[0] for line in legend] == table[0].split()[1:]


def test_losses_are_listed_with_their_places(tmp_path):
    """One line each where it was asked for, and in the report; without it no text of the conversation is told."""
    early = "secret-of-the-first-cave"
    turns = anthropic_turns(40)
    turns[2]["content"][0]["content"] += early
    turns[-3]["content"][0]["input"]["path"] = early
    file = recorded(tmp_path / "x.jsonl", session(turns=turns))
    arguments = ("replay", file, "--window", 2_000, "--strategy", "mask:keep=2", *COUNTED)
    assert "--losses lists what was not in view." in call(*arguments).out
    page = tmp_path / "p.html"
    assert early not in call(*arguments, "--json", "--html", page).out + page.read_text()
    assert "listed with <code>--losses</code>" in page.read_text()
    (line,) = [line for line in call(*arguments, "--losses").out.splitlines() if early in line]
    assert line.startswith(f"s: value '{early}': stood in message 2, output of read; needed by read in message 79; ")
    (loss,) = [
        loss for loss in call(*arguments, "--losses", "--json").json["sessions"][0]["losses"] if loss["text"] == early
    ]
    assert (loss["stood_in"], loss["stood_as"], loss["needed_in"], loss["kind"]) == (2, "output of read", 79, "value")


def test_strategies_and_windows_are_compared_side_by_side(tmp_path):
    """A row for each, words for the best, an object by name as JSON, and a page."""
    file, page = recorded(tmp_path / "x.jsonl", session()), tmp_path / "p.html"
    arguments = ("replay", file, "--compare", BOTH, "--window", "2k,3000", *COUNTED)
    done = call(*arguments, "--html", page)
    words, table, _ = done.out.split("\n\n")
    names = [
        f"{name} at {window}" for name in ("condense:keep=20,room=0.15", "economy") for window in ("2,000", "3,000")
    ]
    assert " costs least" in words
    assert [" at ".join(line.split()[:2]) for line in table.splitlines()[1:]] == names
    found = call(*arguments, "--json").json
    assert list(found) == names
    assert [each["options"]["window"] for each in found.values()] == [2_000, 3_000, 2_000, 3_000]
    assert page.read_text().startswith("<!doctype html>")


def test_comparison_fits_a_narrow_terminal(tmp_path, monkeypatch):
    """A row is one line of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    turns = anthropic_turns(20)
    usage = [{"input_tokens": 70_000, "output_tokens": 4} if each["role"] == "assistant" else None for each in turns]
    file = recorded(tmp_path / "x.jsonl", session(turns=turns, usage=usage))
    out = re.sub(r"\x1b\[\d+m", "", call("replay", file, "--compare", BOTH, "--window", "2k", terminal=True).out)
    assert max(map(len, out.splitlines())) <= 80
    rows = [line for line in out.splitlines() if line.strip().startswith(("economy", "condense"))]
    assert len([line for line in rows if "$" in line and line.split()[-1].startswith("$")]) == 2


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--compare", "nope"), "'nope'"),
        (("--compare", "mask:nope=1"), "nope"),
        (("--window", "60,000"), "60k"),
        (("--window", "50%"), "60k"),
        (("--window", "2k,3k", "--dump", "d.jsonl"), "--dump"),
    ],
)
def test_what_cannot_be_compared_is_a_wrong_call(tmp_path, arguments, part):
    """In one line, before any work."""
    done = call("replay", recorded(tmp_path / "x.jsonl", session()), *arguments)
    assert (done.code, done.out, done.err.count("\n"), part in done.err) == (2, "", 1, True)


def test_several_processes_dump_what_one_does(tmp_path):
    """The same requests in the same order."""
    file = recorded(tmp_path / "x.jsonl", session("a"), session("b"), session("c"))
    for workers in (1, 2):
        dump = tmp_path / f"{workers}.jsonl"
        assert call("replay", file, "--window", 2_000, "--workers", workers, "--dump", dump).code == 0
    assert (tmp_path / "1.jsonl").read_bytes() == (tmp_path / "2.jsonl").read_bytes()


def test_help_explains_every_column():
    """Whoever asks before the first replay finds them too."""
    text = call("replay", "--help").out
    assert all(f"\n  {title} " in text for title in LEGEND)


def test_terminal_gets_a_table_and_a_bar(tmp_path):
    """On a terminal the report is a drawn table, and progress goes to standard error."""
    done = call("replay", recorded(tmp_path / "x.jsonl", session()), "--window", 2_000, terminal=True)
    assert "─" in done.out
    assert "replaying" in done.err


def test_limit_takes_the_first_sessions(tmp_path):
    """`--limit` stops after so many sessions."""
    file = recorded(tmp_path / "x.jsonl", session("a"), session("b"), session("c"))
    done = call("replay", file, "--window", 9_000, "--limit", 2, "--json")
    assert [each["session"] for each in done.json["sessions"]] == ["a", "b"]


def test_broken_lines_are_reported_and_not_fatal(tmp_path):
    """A line that cannot be read is counted; the others are replayed."""
    file = recorded(tmp_path / "x.jsonl", session(turns=anthropic_turns(2)))
    file.write_text("{broken\n" + file.read_text())
    done = call("replay", file, "--window", 9_000, "--json")
    assert (done.code, done.json["total"]["broken"], done.json["total"]["calls"]) == (0, 1, 3)
    assert done.json["broken"][0]["where"] == f"{file} line 1"


def test_nothing_readable_is_a_failure(tmp_path):
    """When no line can be read there is nothing to report."""
    file = tmp_path / "x.jsonl"
    file.write_text("{broken\nalso broken\n")
    done = call("replay", file, "--window", 9_000)
    assert (done.code, done.out) == (1, "")
    assert f"{file} line 1: not JSON" in done.err
    assert "and 1 more" in done.err


def test_unknown_model_needs_a_window(tmp_path):
    """A recording of a model nobody knows says which option is missing; with it, it works."""
    file = recorded(tmp_path / "x.jsonl", session(model="home-made"))
    done = call("replay", file)
    assert (done.code, "--window N" in done.err) == (2, True)
    assert call("replay", file, "--window", 9_000).code == 0


def test_stated_model_wins(tmp_path):
    """`--model` is the model of every recording, in the requests too."""
    dump = tmp_path / "d.jsonl"
    file = recorded(tmp_path / "x.jsonl", session(model="home-made", turns=anthropic_turns(1)))
    assert call("replay", file, "--model", "claude-sonnet-5", "--dump", dump).code == 0
    assert {line["request"]["model"] for line in dumped(dump)} == {"claude-sonnet-5"}


def test_overhead_that_fills_the_window_fails_with_the_sizes(tmp_path):
    """What is never cut and does not fit is told, part by part."""
    done = call("replay", recorded(tmp_path / "x.jsonl", session()), "--window", 1_000, "--overhead", 2_000)
    assert (done.code, "stated overhead 2,000 tokens" in done.err) == (1, True)


def test_session_that_fails_does_not_stop_the_others(tmp_path):
    """One session without a known model is listed with its error; the rest is replayed."""
    file = recorded(tmp_path / "x.jsonl", session("a", model="home-made"), session("b"))
    done = call("replay", file, "--json")
    assert (done.code, done.json["total"]["failed"]) == (0, 1)
    assert "no window is known" in done.json["sessions"][0]["error"]
    assert done.json["sessions"][1]["error"] is None


def test_same_error_of_many_sessions_is_told_once(tmp_path):
    """With the first of them, so that it does not hide another."""
    large = [{"role": "system", "content": "rule " * 3_000}, *openai_turns(2)[1:]]
    broken = [session(id, format="openai", model="gpt-4o", turns=large) for id in ("a", "b", "c")]
    out = call("replay", recorded(tmp_path / "x.jsonl", *broken, session("d")), "--window", 2_000, *COUNTED).out
    (line,) = [line for line in out.splitlines() if "may have 2,000" in line]
    assert line.startswith("a: ")
    assert line.endswith("(and 2 more like this)")
    assert "3 of 4 sessions not replayed to the end" in out


def test_marks_and_writer_are_options(tmp_path):
    """They are in the report, and have their effect: less is sent with lower marks."""
    file = recorded(tmp_path / "x.jsonl", session())
    plain = call("replay", file, "--window", 4_000, "--json", *COUNTED).json
    marked = call(
        "replay", file, "--window", 4_000, "--high", "0.5", "--low", "25%", "--writer", "offline", "--json", *COUNTED
    ).json
    wanted = {"high": 0.5, "low": "25%", "writer": "offline"}
    assert {name: marked["options"][name] for name in wanted} == wanted
    assert marked["total"]["folds"] > plain["total"]["folds"]


def test_a_settings_file_does_not_make_a_replay_ask_a_model(tmp_path, monkeypatch):
    """Hundreds of recorded turns would be paid for again; a writer that is typed is asked."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    file = recorded(tmp_path / "x.jsonl", session())
    with Server(lambda _: Answer(text="<summary>All was looked at.</summary>")) as server:
        writer = f"openai:gpt-5-mini@{server.url}/v1"
        (tmp_path / "windowsill.toml").write_text(f"writer = '{writer}'\nstrategy = 'condense'\n")
        assert call("replay", file, "--window", 2_000, "--json", *COUNTED).code == 0
        assert server.seen == []
        done = call("replay", file, "--window", 2_000, "--writer", writer, "--json", *COUNTED)
        assert (done.code, done.json["total"]["over"]) == (0, 0)
        assert server.seen


def test_exports_and_stored_sessions_are_replayed(tmp_path):
    """With the same figures as the conversation they hold; the store's own folds play no part."""
    turns = anthropic_turns(20)
    recorded = saved(tmp_path / "x.json", {"id": "s", "model": "claude-opus-4-6", "messages": turns})
    with windowsill.Session.open("s", model="claude-opus-4-6", budget=2_000, store=tmp_path / "store") as session:
        for message in turns:
            session.add(message)
            session.compose_sync()
        assert session.folds
    (tmp_path / "e.jsonl").write_text(call("sessions", "export", "s", "--store", tmp_path / "store").out)
    wanted = call("replay", recorded, "--window", 3_000, "--json").json["total"]
    for source in ([tmp_path / "e.jsonl"], ["--session", "s", "--store", tmp_path / "store"]):
        done = call("replay", *source, "--window", 3_000, "--json")
        assert [each["session"] for each in done.json["sessions"]] == ["s"]
        same = ("calls", "peak_tokens", "tokens_sent", "folds", "kept", "lost", "invalid")
        assert {key: done.json["total"][key] for key in same} == {key: wanted[key] for key in same}


def test_replay_needs_something_to_replay():
    """Neither files nor stored sessions are a wrong call."""
    done = call("replay")
    assert (done.code, "--session" in done.err) == (2, True)


def test_damaged_export_is_reported(tmp_path):
    """As a broken file, in one line."""
    head = {"windowsill": "session", "version": 1, "id": "x", "created": 1.0, "entries": 3, "settings": {}}
    done = call("replay", saved(tmp_path / "e.jsonl", head))
    assert (done.code, "ends after 0 of 3 entries" in done.err) == (1, True)
