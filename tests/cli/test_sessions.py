from __future__ import annotations

import json
import sqlite3

import pytest

import windowsill
from support.cli_calls import anthropic_turns, call, openai_turns, saved
from windowsill import Session

pytestmark = pytest.mark.integration


@pytest.fixture
def place(tmp_path):
    """A store that holds the session `s`, folded several times."""
    folder = tmp_path / "store"
    ticks = iter(range(1, 10_000))
    with Session.open(
        "s", model="claude-opus-4-6", budget=2_000, store=folder, clock=lambda: float(next(ticks))
    ) as made:
        for message in anthropic_turns(20):
            if message["role"] == "assistant":
                made.compose_sync(system="You read files.")
            made.add(message)
    return folder


def sessions(*arguments, place, **options):
    return call("sessions", *arguments, "--store", place, **options)


def shown(place, *options):
    return sessions("show", "s", *options, "--json", place=place).json


def test_list_names_each_session(place):
    """The list has id, model, number of entries, the time of the last, and the first words of the task."""
    lines = sessions("list", place=place).out.splitlines()
    assert lines[0].split() == ["session", "model", "entries", "last", "used", "begins", "with"]
    assert lines[1].split()[:2] == ["s", "claude-opus-4-6"]
    assert lines[1].endswith("Z  Find the treasure. Start with cave-0.txt.")
    assert sessions("list", "--json", place=place).json[0]["id"] == "s"


def test_a_request_is_found_by_its_number(place):
    """Counted from the first, as the inspector counts."""
    with Session.open("s", store=place) as made:
        third = made.request(made.calls[2].id)
    assert sessions("request", "s", "3", place=place).out.strip() == third.decode()
    assert "has no call '4000'" in sessions("request", "s", "4000", place=place).err


def test_sessions_alone_lists(place, monkeypatch):
    """Without a command, `windowsill sessions` is the list of the default place."""
    monkeypatch.setenv("WINDOWSILL_HOME", str(place))
    assert call("sessions").out == sessions("list", place=place).out


def test_no_store_yet_is_an_empty_list_and_makes_nothing(tmp_path, monkeypatch):
    """Looking where nothing is creates nothing."""
    monkeypatch.setenv("WINDOWSILL_HOME", str(tmp_path / "new"))
    assert call("sessions", "list", "--json").json == []
    assert not (tmp_path / "new").exists()


def test_mistyped_store_is_told(tmp_path):
    """A stated place without sessions is an error, not a new store."""
    done = sessions("list", place=tmp_path / "typo")
    assert (done.code, (tmp_path / "typo").exists()) == (1, False)
    assert "check --store" in done.err


def test_show_sums_up(place):
    """Model, window, tokens, messages, folds with reasons and savings, branches."""
    told = shown(place)
    assert (told["model"], told["messages"]) == ("claude-opus-4-6", 42)
    assert 0 < told["hidden"] < 42
    assert told["tokens"] < 2_000
    fold = told["folds"][-1]
    assert fold["saved"] == fold["before"] - fold["after"] > 0
    assert "tokens passed" in fold["reason"]
    assert [branch["current"] for branch in told["branches"]] == [True]


def test_show_for_people(place):
    """The same in lines and columns."""
    out = sessions("show", "s", place=place).out
    assert "messages: 42\n" in out
    assert "economy" in out


def test_show_messages_says_what_is_hidden_and_by_which_fold(place):
    """Every message of the branch is listed with its state."""
    told = shown(place, "--messages")
    states = [each["state"] for each in told["messages_list"]]
    assert len(states) == 42
    assert states.count("hidden") == told["hidden"]
    assert states[0] == states[-1] == "visible"
    hidden = next(each for each in told["messages_list"] if each["state"] == "hidden")
    assert hidden["fold"] in {fold["id"] for fold in told["folds"]}
    assert "hidden by f" in sessions("show", "s", "--messages", place=place).out


@pytest.mark.parametrize(
    "command", [["show", "x"], ["export", "x"], ["unfold", "x", "f1"], ["rewind", "x", "m1"], ["verify", "x"]]
)
def test_missing_session_is_told_and_not_made(place, command):
    """A session that is not there is an error of the work, and is not created by asking."""
    done = sessions(*command, place=place)
    assert (done.code, done.err) == (
        1,
        "windowsill: there is no session 'x'; `windowsill sessions list` shows those there are\n",
    )
    assert len(sessions("list", "--json", place=place).json) == 1


def test_unfold_brings_back(place):
    """What the last fold hid is visible again, and a second time it is told."""
    fold = shown(place)["folds"][-1]["id"]
    before = shown(place)
    done = sessions("unfold", "s", fold, "--json", place=place)
    assert done.json["tokens"] > done.json["tokens_before"] == before["tokens"]
    assert shown(place)["hidden"] < before["hidden"]
    again = sessions("unfold", "s", fold, place=place)
    assert (again.code, "was removed before; `windowsill sessions show` shows" in again.err) == (1, True)


def test_unfold_says_what_still_hides_it(place):
    """An earlier fold inside a later one changes nothing that is seen."""
    with Session.open("nested", store=place, model="gpt-5") as session:
        session.extend([{"role": ("user", "assistant")[n % 2], "content": f"{n} " + "word " * 100} for n in range(8)])
        inner = session.fold("m2", "m3", text="inner")
        outer = session.fold(f"{inner}:0", "m5", text="outer")
    assert f"{outer} still hides what it hid" in sessions("unfold", "nested", inner, place=place).out


def test_show_states_the_mark_that_folds_obey(place):
    """Room for the answer that the last request allowed is not free."""
    with Session.open("small", store=place, model="gpt-5", window=8_000) as session:
        session.add("hi")
        limit = session.compose_sync(params={"max_completion_tokens": 3_000}).report.limit
    assert sessions("show", "small", "--json", place=place).json["budget"] == limit <= 5_000


def test_unfold_fit_stays_within_the_budget(place):
    """`--fit` brings back only as much as there is room for below the high mark."""
    with Session.open(
        "roomy", store=place, model="claude-opus-4-6", budget=4_000, strategy="sliding-window"
    ) as session:
        session.extend([{"role": ("user", "assistant")[n % 2], "content": f"{n} " + "word " * 100} for n in range(60)])
        session.compose_sync()
    before = sessions("show", "roomy", "--json", place=place).json
    assert sessions("unfold", "roomy", before["folds"][-1]["id"], "--fit", place=place).code == 0
    after = sessions("show", "roomy", "--json", place=place).json
    assert before["tokens"] < after["tokens"] <= 3_200


def test_unfold_takes_one_of_span_and_fit(place):
    """Both at once are a wrong call."""
    assert sessions("unfold", "s", "f1", "--span", 0, "--fit", place=place).code == 2


def test_unfold_of_a_span_that_is_not_there(place):
    """A span out of range says which there are."""
    done = sessions("unfold", "s", shown(place)["folds"][0]["id"], "--span", 7, place=place)
    assert (done.code, "has no span 7" in done.err) == (1, True)


def test_rewind_leaves_the_other_branch(place):
    """After a rewind the message is the last one, and the branch that was left is listed."""
    third = shown(place, "--messages")["messages_list"][2]["id"]
    done = sessions("rewind", "s", third, "--json", place=place)
    told = shown(place)
    assert (done.json["messages"], told["messages"], told["hidden"]) == (3, 3, 0)
    assert [branch["messages"] for branch in told["branches"]] == [3, 42]
    assert told["branches"][1]["id"] == done.json["left"]


def test_rewind_before_leaves_the_message_too(place):
    """`--before` goes one further back."""
    third = shown(place, "--messages")["messages_list"][2]["id"]
    assert sessions("rewind", "s", third, "--before", "--json", place=place).json["messages"] == 2


@pytest.mark.parametrize("when", ["{at}", "1970-01-01T00:00:{at:0>4}Z", "1970-01-01T00:00:{at:0>4}"])
def test_rewind_to_a_time(place, when):
    """A time is epoch seconds or ISO 8601; everything from then on is left."""
    at = shown(place, "--messages")["messages_list"][2]["at"]
    assert sessions("rewind", "s", "--at", when.format(at=at), "--json", place=place).json["messages"] == 2


@pytest.mark.parametrize(
    "arguments", [[], ["m1", "--at", "5"], ["--at", "soon"], ["--at", "nan"], ["--at", "5", "--before"]]
)
def test_rewind_needs_one_place_to_go_to(place, arguments):
    """No place, two places, or a time that is none are wrong calls."""
    done = sessions("rewind", "s", *arguments, place=place)
    assert (done.code, done.err.count("\n")) == (2, 1)


def test_export_and_import_give_the_same_session(place, tmp_path):
    """A session moves to another store whole, and verifies there."""
    lines = sessions("export", "s", place=place).out
    (tmp_path / "s.jsonl").write_text(lines)
    other = tmp_path / "other.db"
    assert sessions("import", tmp_path / "s.jsonl", place=other).out.startswith("imported s: ")
    assert sessions("verify", place=other) == (0, "s: sound\n", "")
    assert sessions("export", "s", place=other).out == lines


def test_import_from_standard_input_under_another_id(place):
    """`-` and `--id` copy a session beside itself."""
    lines = sessions("export", "s", place=place).out.encode()
    assert sessions("import", "-", "--id", "copy", "--json", place=place, input=lines).json[0]["session"] == "copy"
    assert sessions("verify", place=place).out == "copy: sound\ns: sound\n"


def test_existing_id_is_refused(place):
    """An import never touches a session that is there and differs."""
    lines = sessions("export", "s", place=place).out.encode()
    sessions("rewind", "s", "m1", place=place)
    other = sessions("export", "s", place=place).out.encode()
    sessions("delete", "s", "--yes", place=place)
    sessions("import", "-", place=place, input=lines)
    done = sessions("import", "-", place=place, input=other)
    assert (done.code, "there is a session 's' already" in done.err) == (2, True)


def test_damaged_export_is_refused_and_leaves_nothing(place, tmp_path):
    """A changed byte is found, its line is named, and no session is made."""
    lines = sessions("export", "s", place=place).out.splitlines()
    lines[4] = lines[4].replace('"at":', '"at":1')
    done = sessions("import", "-", place=tmp_path / "new", input="\n".join(lines).encode())
    assert (done.code, "line 5: entry" in done.err) == (1, True)
    assert sessions("list", "--json", place=tmp_path / "new").json == []


@pytest.mark.parametrize("format", ["anthropic", "openai"])
def test_export_of_messages_in_a_format(place, format):
    """`--format` gives the messages of the current branch as a list that the provider accepts."""
    messages = sessions("export", "s", "--format", format, place=place).json
    assert windowsill.validate(messages, format=format) == []
    if format == "anthropic":
        assert messages == anthropic_turns(20)


def test_import_of_a_conversation(tmp_path):
    """A message list becomes a new session under the id that was given, its messages unchanged."""
    file = saved(tmp_path / "talk.json", openai_turns(3))
    assert sessions("import", file, "--id", "talk", "--model", "gpt-4o", place=tmp_path / "new").code == 0
    assert sessions("export", "talk", "--format", "openai", place=tmp_path / "new").json == openai_turns(3)


def test_import_of_recorded_sessions(tmp_path):
    """Each line of a .jsonl file becomes a session of its own id, with the recorded times."""
    file = tmp_path / "x.jsonl"
    recordings = [{"id": id, "model": "gpt-4o", "messages": openai_turns(1), "times": [7, 8]} for id in ("a", "b")]
    file.write_text("\n".join(map(json.dumps, recordings)))
    told = sessions("import", file, "--json", place=tmp_path / "new").json
    assert [each["session"] for each in told] == ["a", "b"]
    listed = sessions("show", "a", "--messages", "--json", place=tmp_path / "new").json["messages_list"]
    assert [each["at"] for each in listed[:2]] == [7.0, 8.0]


def test_conversation_needs_an_id_and_a_size(tmp_path):
    """What the file does not say has to be stated; nothing is made before."""
    file = saved(tmp_path / "talk.json", openai_turns(1))
    assert "--id" in sessions("import", file, place=tmp_path / "new").err
    done = sessions("import", file, "--id", "t", place=tmp_path / "new")
    assert (done.code, "--window N" in done.err) == (2, True)
    assert sessions("list", "--json", place=tmp_path / "new").json == []


def test_one_id_for_many_sessions_is_a_wrong_call(tmp_path):
    """`--id` names one session."""
    file = tmp_path / "x.jsonl"
    file.write_text((json.dumps({"id": "a", "messages": openai_turns(1)}) + "\n") * 2)
    assert sessions("import", file, "--id", "t", "--window", 9_000, place=tmp_path / "new").code == 2


def test_same_id_twice_in_a_file_is_refused_before_anything_is_written(tmp_path):
    """All or nothing: the first of two sessions with one id is not kept either."""
    file = tmp_path / "x.jsonl"
    file.write_text((json.dumps({"id": "a", "model": "gpt-4o", "messages": openai_turns(1)}) + "\n") * 2)
    done = sessions("import", file, place=tmp_path / "new")
    assert (done.code, "'a'" in done.err) == (2, True)
    assert not (tmp_path / "new").exists()


def test_export_that_is_stored_already_is_skipped(place):
    """Importing it again changes nothing, is said, and is no error."""
    lines = sessions("export", "s", place=place).out.encode()
    (before,) = sessions("list", "--json", place=place).json
    assert before["entries"] > 42
    done = sessions("import", "-", place=place, input=lines)
    assert (done.code, done.out) == (0, f"skipped s: {before['entries']} entries\n")
    assert sessions("list", "--json", place=place).json == [before]
    assert sessions("export", "s", place=place).out.encode() == lines


def test_folder_can_be_imported_again(tmp_path, place):
    """What is known is skipped, what has gone on is continued, what differs stays; exports come in whole."""
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, turns in (("a", 2), ("b", 2), ("c", 2)):
        saved(folder / f"{name}.json", {"id": name, "model": "gpt-4o", "messages": openai_turns(turns)})
    (folder / "s.jsonl").write_text(sessions("export", "s", place=place).out)
    new = tmp_path / "new"
    assert {each["done"] for each in sessions("import", folder, "--json", place=new).json} == {"imported"}
    saved(folder / "b.json", {"id": "b", "model": "gpt-4o", "messages": openai_turns(2) + openai_turns(3)[-3:]})
    saved(folder / "c.json", {"id": "c", "model": "gpt-4o", "messages": openai_turns(1)})
    again = sessions("import", folder, "--json", place=new)
    told = {each["session"]: each["done"] for each in again.json}
    assert (again.code, told) == (0, {"s": "skipped", "a": "skipped", "b": "continued", "c": "skipped"})
    assert "c is stored already and differs" in again.err
    assert len(sessions("export", "b", "--format", "openai", place=new).json) == 10
    assert sessions("verify", place=new).code == 0
    with Session.open("s", store=new) as session:
        assert session.folds


def test_imported_session_is_as_old_as_the_conversation(tmp_path):
    """`created` and `last used` are the recorded times; a message without one has that of the message before."""
    messages = openai_turns(1)
    recording = {"id": "a", "model": "gpt-4o", "messages": messages, "times": [None, 100, None, 300]}
    sessions("import", saved(tmp_path / "a.json", recording), place=tmp_path / "new")
    (listed,) = sessions("list", "--json", place=tmp_path / "new").json
    assert (listed["created"], listed["updated"]) == (100.0, 300.0)
    states = sessions("show", "a", "--messages", "--json", place=tmp_path / "new").json["messages_list"]
    assert [each["at"] for each in states] == [100.0, 100.0, 100.0, 300.0, 300.0]


def test_verify_finds_a_changed_message(place):
    """A byte changed behind the store's back is found, named, and the exit code is 1."""
    with sqlite3.connect(place / "sessions.db") as db:
        db.execute("UPDATE body SET data = x'7b7d' WHERE key = (SELECT max(key) FROM body)")
    db.close()
    done = sessions("verify", place=place)
    assert (done.code, "is not what was written" in done.out) == (1, True)
    told = sessions("verify", "s", "--json", place=place)
    assert (told.code, told.json["sound"], len(told.json["sessions"]["s"])) == (1, False, 1)


def test_a_handoff_tells_how_to_go_on_without_secrets(place):
    """The task, the last words and the size; no secret unless it is asked for; not together with a format."""
    with Session.open("h", store=place, model="claude-opus-4-6") as session:
        session.add("Please mend the parser. DB_PASSWORD=hunter2hunter2")
        session.add({"role": "assistant", "content": "I shall begin with the lexer."})
    told = sessions("export", "h", "--handoff", place=place).out
    assert told.startswith("# Handoff of session h\n")
    assert "Please mend the parser" in told
    assert "I shall begin with the lexer." in told
    assert "fits the window" in told
    assert "hunter2" not in told
    assert "hunter2" in sessions("export", "h", "--handoff", "--secrets", place=place).out
    assert "exclude each other" in sessions("export", "h", "--handoff", "--format", "openai", place=place).err
