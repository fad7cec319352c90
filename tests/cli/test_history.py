from __future__ import annotations

import json
import time

import pytest
from click.shell_completion import ShellComplete

import windowsill
from support.cli_calls import anthropic_turns, call
from windowsill import Session
from windowsill.cli.main import group

pytestmark = pytest.mark.integration

ESCAPE = "\x1b]0;title\x07\x1b[2J"


@pytest.fixture
def place(tmp_path):
    """A store that holds the session `work-2026`, folded several times, and `works`."""
    folder = tmp_path / "store"
    ticks = iter(range(1, 10_000))
    settings = {"model": "claude-opus-4-6", "store": folder, "clock": lambda: float(next(ticks))}
    with Session.open("work-2026", budget=2_000, **settings) as made:
        for message in anthropic_turns(20):
            if message["role"] == "assistant":
                made.compose_sync(system="You read files.")
            made.add(message)
    with Session.open("works", **settings) as other:
        other.add({"role": "user", "content": "A zebra crossed the road."}, id="msg_0123456789")
    return folder


def sessions(*arguments, place, **options):
    return call("sessions", *arguments, "--store", place, **options)


def completed(*words, incomplete=""):
    """Return what the shell offers after these words."""
    complete = ShellComplete(group, {}, "windowsill", "_WINDOWSILL_COMPLETE")
    return [item.value for item in complete.get_completions([str(word) for word in words], incomplete)]


# Ids


def test_unique_beginning_of_an_id_is_enough(place):
    """Sessions and messages go by the first characters that only they have."""
    assert sessions("show", "work-", "--json", place=place).json["session"] == "work-2026"
    assert sessions("explain", "works", "msg_", place=place).out.startswith("msg_0123456789 is in the window")


def test_whole_id_wins_over_the_beginning_of_another(place):
    """An id that is also the beginning of others means itself."""
    assert sessions("explain", "work-2", "m1", "--json", place=place).json["message"] == "m1"


def test_a_command_that_an_error_gives_can_be_typed_as_it_stands(tmp_path):
    """The id of a session may have spaces in it."""
    with Session.open("my agent", model="gpt-4o", store=tmp_path) as made:
        made.add("Hello.")
    done = sessions("explain", "my agent", "x", place=tmp_path)
    assert "`windowsill sessions log 'my agent' --all`" in done.err


def test_beginning_that_several_share_names_them(place):
    """Nothing is guessed: the error lists what begins alike."""
    done = sessions("show", "work", place=place)
    assert (done.code, done.err) == (
        1,
        "windowsill: 2 sessions begin with 'work': works, work-2026; give more of the id\n",
    )
    assert "give more of the id" in sessions("explain", "work-", "m", place=place).err


def test_shell_completes_sessions_entries_strategies_and_models(place):
    """Ids come from the store that the line names; nothing is offered where there is none."""
    assert completed("sessions", "show", "--store", place, incomplete="work-") == ["work-2026"]
    folds = [fold["id"] for fold in sessions("show", "work-", "--json", place=place).json["folds"]]
    assert completed("sessions", "unfold", "--store", place, "work-2026") == folds
    assert completed("fit", "x.json", "--strategy", incomplete="cond") == ["condense"]
    assert "gpt-5" in completed("fit", "x.json", "--model", incomplete="gpt-5")
    assert completed("sessions", "show", "--store", place / "none") == []


def test_foreign_ids_and_words_cannot_steer_the_terminal(tmp_path):
    """Escapes in ids, models and texts of an imported session are not printed."""
    head = {"windowsill": "session", "version": 1, "id": f"x{ESCAPE}", "created": 1.0, "entries": 0}
    lines = json.dumps({**head, "settings": {"model": f"m{ESCAPE}", "window": 9_000}}).encode()
    place = tmp_path / "new"
    commands = [["import", "-"], ["show", "x"], ["list"], ["log", "x"], ["branches", "x"], ["verify"]]
    for command in [*commands, ["delete", "x", "--yes"]]:
        done = sessions(*command, place=place, input=lines)
        assert (done.code, "\x1b" in done.out + done.err, "\x07" in done.out + done.err) == (0, False, False), command


# Look


def test_log_is_the_newest_first(place):
    """Messages and folds in one list; older ones are counted."""
    rows = sessions("log", "work-", "--json", "--limit", 100, place=place).json
    assert {row["kind"] for row in rows} == {"message", "fold"}
    assert rows[-1] == {
        "entry": "m1",
        "at": "1970-01-01 00:00:02Z",
        "kind": "message",
        "what": "user: Find the treasure. Start with cave-0.txt.",
    }
    out = sessions("log", "work-", "--limit", 5, place=place).out
    assert out.splitlines()[-1] == f"and {len(rows) - 5} older; --limit {len(rows)} shows all"


def test_log_tells_calls_and_results_from_words(tmp_path):
    """A call is shown beside its text, and the result of a tool is nothing that the user said."""
    with Session.open("s", model="claude-opus-4-6", store=tmp_path) as session:
        call_ = {"type": "tool_use", "id": "t", "name": "ls", "input": {"path": "src"}}
        session.add({"role": "assistant", "content": [{"type": "text", "text": "I look."}, call_]})
        session.add({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "a.py"}]})
    told = [row["what"] for row in sessions("log", "s", "--json", place=tmp_path).json]
    assert told == ["tool: a.py", 'assistant: I look. ls({"path":"src"})']


def test_log_shows_calls_and_other_branches_when_asked(place):
    """`--calls` adds the requests, `--all` what a rewind left, and says which branch it is on."""
    sessions("rewind", "work-", "m1", place=place)
    assert [row["kind"] for row in sessions("log", "work-", "--json", place=place).json] == ["rewind", "message"]
    rows = sessions("log", "work-", "--all", "--calls", "--limit", 200, "--json", place=place).json
    assert {row["kind"] for row in rows} == {"message", "fold", "call", "rewind"}
    assert {row["branch"] for row in rows} == {"current", "left"}


def test_diff_shows_what_a_fold_took_and_put_in_its_place(place):
    """Between two moments: messages that left the view, the marker that came, and both sizes."""
    fold = sessions("show", "work-", "--json", place=place).json["folds"][0]
    before = f"m{int(fold['id'][1:]) - 1}"
    done = sessions("diff", "work-", before, fold["id"], place=place).out.splitlines()
    assert done[0].startswith(f"--- {before}: ")
    assert done[1].startswith(f"+++ {fold['id']}: ")
    added = [line for line in done[2:] if line.startswith("+")]
    assert len(added) == 1
    assert added[0].startswith(f"+{fold['id']}:0 user hides {fold['spans'][0]['messages']}")
    assert len([line for line in done[2:] if line.startswith("-")]) == fold["spans"][0]["messages"]
    told = sessions("diff", "work-", before, "--json", place=place).json
    assert (told["from"], told["to"]) == (before, "now")


def test_diff_of_a_moment_with_itself(place):
    """Where nothing changed, that is what it says; a checkpoint goes by its name."""
    sessions("checkpoint", "work-", "--name", "here", place=place)
    assert sessions("diff", "work-", "here", place=place).out.startswith("no difference: ")


def test_request_is_the_exact_body_of_a_call(place):
    """The last one if none is named."""
    with Session.open("work-2026", store=place) as session:
        bodies = {each.id: session.request(each.id).decode() for each in session.calls}
    last = list(bodies)[-1]
    assert sessions("request", "work-", place=place).out == bodies[last] + "\n"
    assert sessions("request", "work-", last, place=place).out == bodies[last] + "\n"
    done = sessions("request", "works", place=place)
    assert (done.code, "has composed no request yet" in done.err) == (1, True)


def test_explain_names_the_fold_that_hides_a_message(place):
    """Now, and in the window of a past request."""
    hidden = next(
        each["id"]
        for each in sessions("show", "work-", "--messages", "--json", place=place).json["messages_list"]
        if each["state"] == "hidden"
    )
    assert (
        f"{hidden} is not in the window: hidden by condense f" in sessions("explain", "work-", hidden, place=place).out
    )
    first = sessions("log", "work-", "--calls", "--limit", 200, "--json", place=place).json
    call_id = [row["entry"] for row in first if row["kind"] == "call"][-2]
    told = sessions("explain", "work-", hidden, "--call", call_id, "--json", place=place).json
    assert (told["visible"], told["call"]) == (True, call_id)


def test_search_finds_in_every_session_what_was_said(place):
    """Hidden or not; `--session` narrows it, and finding nothing is said."""
    assert [each["session"] for each in sessions("search", "zebra", "--json", place=place).json] == ["works"]
    assert "msg_0123456789" in sessions("search", "zebra", place=place).out
    none = sessions("search", "zebra", "--session", "work-", place=place)
    assert (none.code, none.out, none.err) == (0, "", "nothing found\n")


# Change


def test_search_shows_what_stands_around_the_word(tmp_path):
    """The beginning of a long text would not tell why it was found."""
    with Session.open("s", model="claude-opus-4-6", store=tmp_path) as session:
        session.add("A long story. " * 30 + "Then a zebra crossed the road. " + "It went on. " * 30)
    (line,) = sessions("search", "zebra", place=tmp_path).out.splitlines()[1:]
    assert "…long story. Then a zebra crossed the road. It went on." in line


def test_unfold_says_that_the_next_request_is_reduced_again(place):
    """What was brought back is larger than a request may be: nobody should wonder where it went."""
    fold = sessions("show", "work-2026", "--json", place=place).json["folds"][-1]["id"]
    assert (
        "a request may have 2,000, so the next one is reduced again: --fit brings"
        in sessions("unfold", "work-2026", fold, place=place).out
    )


def test_switch_returns_to_a_branch_that_was_left(place):
    """A rewind is undone; both branches stay listed."""
    left = sessions("rewind", "work-", "m1", "--json", place=place).json["left"]
    assert [each["current"] for each in sessions("branches", "work-", "--json", place=place).json] == [True, False]
    done = sessions("switch", "work-", left, place=place)
    assert done.out.startswith(f"switched work-2026 to {left}: 42 messages")
    assert sessions("show", "work-", "--json", place=place).json["messages"] == 42


def test_pin_keeps_a_message_in_the_window(place):
    """`--off` lets it go again."""
    last = sessions("show", "work-", "--messages", "--json", place=place).json["messages_list"][-1]["id"]
    assert sessions("pin", "work-", last, place=place).out == f"pinned {last}\n"
    assert sessions("explain", "work-", last, "--json", place=place).json["why"] == "it is pinned"
    assert sessions("pin", "work-", last, "--off", place=place).out == f"unpinned {last}\n"
    assert sessions("explain", "work-", last, "--json", place=place).json["why"].startswith("no fold hides it")


def test_pin_says_that_a_message_is_hidden_already(place):
    """It comes back only when the fold is undone."""
    listed = sessions("show", "work-", "--messages", "--json", place=place).json["messages_list"]
    id, fold = next((each["id"], each["fold"]) for each in listed if each["state"] == "hidden")
    assert sessions("pin", "work-", id, place=place).out == f"pinned {id}; hidden until {fold} is unfolded\n"


def test_delete_asks_first(place):
    """Where nobody can be asked, it needs `--yes`; then the session and its snapshot files are gone."""
    with Session.open("works", store=place) as session:
        file = session.write_snapshot()
    done = sessions("delete", "works", place=place)
    assert (done.code, "--yes" in done.err, file.exists()) == (2, True, True)
    assert sessions("delete", "works", "--yes", place=place).out == "deleted works\n"
    assert not file.exists()
    assert [each["id"] for each in sessions("list", "--json", place=place).json] == ["work-2026"]


@pytest.mark.parametrize("ids", [(), ("old", "held")])
def test_sessions_that_nobody_uses_any_more_are_deleted(tmp_path, ids):
    """Of all or of the named ones, those whose last message is older than that; not one that somebody works on."""
    store = windowsill.open_store(tmp_path)
    for name, days in (("old", 31), ("held", 31), ("new", 29)):
        at = time.time() - days * 86_400
        Session.open(name, model="gpt-4o", store=store, config=False, clock=lambda at=at: at).add("hello")
    store.lock("held", "somebody", seconds=600)
    assert sessions("delete", "--unused", "30", *ids, place=tmp_path).code == 2
    assert sessions("delete", "--unused", "30", "--yes", *ids, place=tmp_path).out == "deleted old\n"
    assert sessions("delete", "--unused", "30", "--yes", place=tmp_path).out == "no session is unused for so long\n"
    assert sorted(info.id for info in store.sessions()) == ["held", "new"]
    assert "--unused DAYS" in sessions("delete", "--yes", place=tmp_path).err
    store.close()


def test_session_deletes_itself(place):
    """In code, the session is gone with its files and closed."""
    session = Session.open("works", store=place)
    file = session.write_snapshot()
    session.delete()
    assert not file.exists()
    store = windowsill.open_store(place)
    assert store.info("works") is None
    store.close()


def test_show_says_the_budget_and_which_folds_still_apply(place):
    """The budget is the session's own, not the model's window; a fold inside a later one is said to be so."""
    told = sessions("show", "work-", "--json", place=place).json
    assert (told["window"], told["budget"], told["reduced above"]) == (1_000_000, 2_000, 1_940)
    inner, last = told["folds"][0], told["folds"][-1]
    assert (bool(inner["inside"]), last["inside"]) == (True, "")
    out = sessions("show", "work-", place=place).out
    assert "budget: 2,000\n" in out
    assert f"inside {inner['inside']}" in out
