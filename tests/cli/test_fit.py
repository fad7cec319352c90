from __future__ import annotations

import json
import sys

import pytest

import windowsill
from support.cli_calls import anthropic_turns, call, openai_turns, saved
from windowsill.testing import Answer, Server

pytestmark = pytest.mark.integration


def test_what_fits_comes_back_byte_for_byte(tmp_path):
    """A list that fits is printed exactly as it came, white space inside its messages included."""
    first, second = '{"role":  "user", "content": "hi"}', '{ "content":"x", "role":"assistant" }'
    file = tmp_path / "list.json"
    file.write_text(f"[\n{first},\n{second}]")
    assert call("fit", file, "--budget", 1_000) == (0, f"[{first},{second}]\n", "")


@pytest.mark.parametrize("turns", [anthropic_turns, openai_turns])
def test_list_in_list_out_within_the_budget(tmp_path, turns):
    """A long list comes out as a shorter list that its provider accepts."""
    report = tmp_path / "report.json"
    done = call("fit", saved(tmp_path / "list.json", turns(60)), "--budget", "3k", "--report", report)
    assert done.code == 0
    assert 3 < len(done.json) < len(turns(60))
    assert windowsill.validate(done.json) == []
    told = json.loads(report.read_text())
    assert told["tokens"] <= told["limit"] == 3_000
    assert told["hidden"] > 0


def test_body_in_body_out_with_all_other_fields(tmp_path):
    """A body keeps every field it had, its own model too when another one's window was asked for."""
    body = {"model": "my-model", "max_tokens": 99, "system": "Be brief.", "metadata": {"user_id": "u"}}
    file = saved(tmp_path / "body.json", {**body, "messages": anthropic_turns(60)})
    done = call("fit", file, "--model", "claude-opus-4-6", "--budget", 3_000)
    assert {key: value for key, value in done.json.items() if key != "messages"} == body
    assert windowsill.validate(done.json) == []


def test_no_cache_marks_are_added(tmp_path):
    """What did not have to change stays as it came, even where a cache mark could be set."""
    body = {"model": "claude-opus-4-6", "max_tokens": 99, "system": "rule " * 6_000, "messages": anthropic_turns(3)}
    assert call("fit", saved(tmp_path / "body.json", body)).json == body


def test_body_without_a_model_stays_without(tmp_path):
    """Nothing is put into a body that was not there."""
    file = saved(tmp_path / "body.json", {"messages": [{"role": "user", "content": "hi"}]})
    assert call("fit", file, "--model", "gpt-4o").json == {"messages": [{"role": "user", "content": "hi"}]}


def test_the_bodys_model_decides_when_nothing_is_stated(tmp_path):
    """A body that names a known model needs no option."""
    file = saved(tmp_path / "body.json", {"model": "gpt-4o", "messages": openai_turns(2)})
    assert call("fit", file).json["messages"] == openai_turns(2)


def test_unknown_model_with_a_budget_is_fine(tmp_path):
    """A stated size is enough for a model nobody knows."""
    file = saved(tmp_path / "body.json", {"model": "home-made", "messages": openai_turns(60)})
    done = call("fit", file, "--budget", 3_000)
    assert (done.code, done.json["model"]) == (0, "home-made")


def test_standard_input():
    """`-` reads standard input."""
    assert call("fit", "-", "--budget", 100, input=b'[{"role":"user","content":"hi"}]').json == [
        {"role": "user", "content": "hi"}
    ]


def test_leading_system_message_of_a_list_is_not_lost():
    """Where the format keeps the system prompt apart, a list still shows it."""
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]
    done = call("fit", "-", "--format", "anthropic", "--budget", 1_000, input=json.dumps(messages).encode())
    assert done.json[0]["role"] == "system"
    assert "Be brief." in json.dumps(done.json[0]["content"])
    assert done.json[1:] == messages[1:]


def test_room_for_the_answer_that_the_body_asks_for(tmp_path):
    """A body that asks for a long answer leaves that much of the window free."""
    report = tmp_path / "report.json"
    body = {"model": "m", "max_tokens": 6_000, "messages": anthropic_turns(3)}
    call("fit", saved(tmp_path / "body.json", body), "--window", 10_000, "--report", report)
    assert json.loads(report.read_text())["limit"] <= 4_000


def test_what_was_hidden_is_said(tmp_path):
    """Standard error says how much was hidden and why; where nothing was, only a person is told so."""
    file = saved(tmp_path / "list.json", anthropic_turns(60))
    first, *folds = call("fit", file, "--budget", 3_000).err.splitlines()
    assert "of 122 messages hidden" in first
    assert folds[0].startswith("windowsill: condense of ")
    assert call("fit", file, "--budget", 90_000).err == ""
    assert "no message hidden" in call("fit", file, "--budget", 90_000, terminal=True).err


def test_stated_tokenizer_counts(tmp_path):
    """`--tokenizer` counts with that vocabulary and no calibration."""
    report = tmp_path / "report.json"
    file = saved(tmp_path / "body.json", {"model": "claude-opus-4-6", "messages": anthropic_turns(5)})
    call("fit", file, "--tokenizer", "o200k_base", "--report", report)
    plain = json.loads(report.read_text())["tokens"]
    call("fit", file, "--report", report)
    assert json.loads(report.read_text())["tokens"] > plain


def test_strategy_from_the_current_folder(tmp_path, monkeypatch):
    """A dotted path finds a plug-in beside the call."""
    (tmp_path / "own_plan.py").write_text(
        "from windowsill import Plan, Strategy\n\n\nclass Lazy(Strategy):\n    name = 'lazy'\n\n"
        "    def plan(self, view, budget):\n        return Plan(notes=('nothing planned',))\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    done = call(
        "fit", saved(tmp_path / "list.json", anthropic_turns(60)), "--budget", 3_000, "--strategy", "own_plan:Lazy"
    )
    assert (done.code, windowsill.validate(done.json)) == (0, [])


def reported(tmp_path, *options):
    """Return what `fit` says of a conversation of some 20,000 tokens, with room for 30,000."""
    file = saved(tmp_path / "body.json", anthropic_turns(60))
    report = tmp_path / "report.json"
    done = call("fit", file, "--budget", 30_000, "--report", report, *options)
    assert done.code == 0, done.err
    return json.loads(report.read_text())


@pytest.mark.parametrize("high", ["50%", "0.5", "15k"])
def test_the_marks_are_options(tmp_path, high):
    """Above the high one it is reduced down to the low one, although all of it would fit."""
    assert reported(tmp_path)["hidden"] == 0
    told = reported(tmp_path, "--high", high, "--low", "25%")
    assert told["hidden"] > 0
    assert told["tokens"] <= 15_000


def test_the_marks_may_stand_in_a_settings_file(tmp_path, monkeypatch):
    """As every setting may; what is typed wins."""
    (tmp_path / "windowsill.toml").write_text("high = 0.5\nlow = 0.25\n")
    monkeypatch.chdir(tmp_path)
    assert reported(tmp_path)["hidden"] > 0
    assert reported(tmp_path, "--high", "100%")["hidden"] == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--high", "2.0"), "setting 'high' is '2.0'; give a whole number of tokens"),
        (("--high", "much"), "setting 'high' is 'much'"),
        (("--low", "120%"), "setting 'low' is '120%'; give at most 100%"),
        (("--writer", "nobody:m"), "no provider 'nobody' for a model"),
    ],
)
def test_marks_and_writers_that_are_none_are_told(tmp_path, options, said):
    """In one line, with what is allowed."""
    done = call("fit", saved(tmp_path / "body.json", anthropic_turns(2)), "--budget", 4_000, *options)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_a_file_without_messages_is_named(tmp_path):
    """An empty list is a mistake in the file, like any other."""
    file = saved(tmp_path / "empty.json", [])
    done = call("fit", file, "--budget", 4_000)
    assert (done.code, done.err) == (1, f"windowsill: {file}: there is no message in it; add one from the user\n")


def test_a_model_that_writes_is_asked_and_waited_for(tmp_path, monkeypatch):
    """Once, and its words stand in what is printed: there is no later request that could use them."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    file = saved(tmp_path / "body.json", openai_turns(60))
    with Server(lambda _: Answer(text="<summary>All was looked at twice.</summary>")) as server:
        writer = f"openai:gpt-5-mini@{server.url}/v1"
        done = call("fit", file, "--budget", "30k", "--high", "50%", "--strategy", "condense", "--writer", writer)
    assert done.code == 0, done.err
    assert "All was looked at twice." in done.out
    assert len(server.seen) == 1
