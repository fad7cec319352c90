from __future__ import annotations

import json
import sys

import pytest

from support.cli_calls import anthropic_turns, call, saved
from windowsill import strategies
from windowsill.strategies import registry
from windowsill.strategies.registry import Plugin

pytestmark = pytest.mark.integration


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder of its own to call from, with a conversation in it."""
    monkeypatch.chdir(tmp_path)
    saved(tmp_path / "body.json", anthropic_turns(30))
    return tmp_path


def fitted(here, *arguments):
    """Return what the report of a call says, and how it ended."""
    done = call("fit", "body.json", "--report", "report.json", *arguments)
    return done, json.loads((here / "report.json").read_text()) if done.code == 0 else {}


def test_each_strategy_has_a_line_and_its_settings_follow():
    """Names, what they do, and settings with their defaults and meanings."""
    lines = call("strategies").out.splitlines()
    heads = [line.split(":")[0] for line in lines if not line.startswith(" ")]
    assert [head.removesuffix(" (default)") for head in heads] == list(strategies.names())
    assert [head for head in heads if "default" in head] == ["economy (default)"]
    assert any(line.startswith("  keep=4 ") and line.endswith("while anything else can be.") for line in lines)


def test_one_can_be_asked_for_by_name_or_path():
    """Only that one is shown."""
    lines = call("strategies", "windowsill.strategies.sliding_window:SlidingWindow").out.splitlines()
    assert len(lines) == 3
    assert call("strategies", "nobody").code == 2


def test_json_lists_the_same():
    """`--json` has name, package, description, settings and their meanings."""
    found = {each["name"]: each for each in call("strategies", "--json").json}
    assert list(found) == list(strategies.names())
    window = found["sliding-window"]
    assert window["settings"] == strategies.settings_of("sliding-window")
    assert window["meanings"].keys() == window["settings"].keys()
    assert window["about"].endswith(".")
    assert window["package"] == "windowsill"


def test_every_setting_of_every_strategy_can_be_listed():
    """Whatever its default is."""
    for each in call("strategies", "--json").json:
        assert each["settings"].keys() == strategies.settings_of(each["name"]).keys()


def test_a_plug_in_that_cannot_be_used_is_listed_with_the_reason(monkeypatch):
    """Under its name, with its package."""
    broken = Plugin("odd", "odd-package", error="ImportError: x")
    monkeypatch.setattr(registry, "find_plugin", lambda name: broken if name == "odd" else None)
    assert call("strategies", "odd").out.splitlines() == [
        "odd (plug-in of odd-package): cannot be used: ImportError: x"
    ]
    assert call("strategies", "odd", "--json").json[0]["problem"] == "ImportError: x"


def test_fit_takes_its_settings_from_the_file(here):
    """What is typed wins."""
    (here / "windowsill.toml").write_text("budget = 2000\noverhead = 100\ntokenizer = 'bytes/4'\n")
    assert fitted(here)[1]["limit"] == 2_000
    assert fitted(here, "--budget", "3000")[1]["limit"] == 3_000


def test_fit_takes_its_settings_from_the_environment(here, monkeypatch):
    """Over the file; a variable that means nothing is told."""
    (here / "windowsill.toml").write_text("budget = 2000\n")
    monkeypatch.setenv("WINDOWSILL_BUDGET", "2500")
    monkeypatch.setenv("WINDOWSILL_BUGDET", "1")
    done, report = fitted(here)
    assert report["limit"] == 2_500
    assert "WINDOWSILL_BUGDET is not a setting" in done.err


def test_a_model_of_the_file_has_its_window(here):
    """As the error about an unknown model says."""
    (here / "windowsill.toml").write_text('[models."my-model"]\nwindow = 3000\n')
    done, report = fitted(here, "--model", "my-model")
    assert (done.code, report["window"]) == (0, 3_000)


def test_a_strategy_of_the_file_has_its_table(here):
    """Also when it is only named on the command line; a table that is wrong is refused whatever is typed."""
    (here / "windowsill.toml").write_text("budget = 2000\n[strategies.sliding-window]\nkeep = -1\n")
    done, _ = fitted(here, "--strategy", "sliding-window")
    assert done.code == 2
    assert "windowsill.toml: setting 'strategies.sliding-window.keep' is -1; give a number of messages" in done.err
    assert fitted(here, "--strategy", "sliding-window:keep=1")[0].code == 2
    (here / "windowsill.toml").write_text("budget = 2000\n[strategies.sliding-window]\nkeep = 3\n")
    assert fitted(here, "--strategy", "sliding-window:keep=1")[0].code == 0


def test_a_strategy_that_the_file_names_wrongly_is_told_with_the_file(here):
    """Its settings stand behind its name there."""
    (here / "windowsill.toml").write_text("budget = 2000\nstrategy = 'sliding-window:keep=many'\n")
    assert "windowsill.toml: setting 'sliding-window.keep' is 'many'" in fitted(here)[0].err


def test_code_in_the_folder_runs_only_for_what_was_typed(here, monkeypatch):
    """A settings file that came with the folder cannot make a call run what lies beside it."""
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    (here / "beside_it.py").write_text("raise RuntimeError('it ran')\n")
    (here / "windowsill.toml").write_text("budget = 2000\nstrategy = 'beside_it:Mine'\n")
    assert "give the name of an installed strategy here" in fitted(here)[0].err
    assert "it ran" in fitted(here, "--strategy", "beside_it:Mine")[0].err


def test_replay_takes_its_settings_from_the_file(here):
    """Room, overhead and strategy."""
    (here / "windowsill.toml").write_text(
        "budget = 2000\noverhead = 50\nstrategy = 'sliding-window'\n[strategies.sliding-window]\nkeep = 2\n"
    )
    options = call("replay", "body.json", "--json").json["options"]
    assert (options["window"], options["overhead"]) == (2_000, 50)
    assert options["strategy"] == "sliding-window:keep=2"
    typed = call("replay", "body.json", "--window", "2500", "--overhead", "0", "--json").json["options"]
    assert (typed["window"], typed["overhead"]) == (2_500, 0)


@pytest.mark.usefixtures("here")
def test_replay_takes_a_pipeline():
    """With settings for each stage."""
    line = "sliding-window:keep=8+sliding-window:keep=2"
    done = call("replay", "body.json", "--window", "2000", "--strategy", line, "--json")
    assert done.json["options"]["strategy"] == line
    assert done.json["total"]["failed"] == 0


def test_a_preset_leaves_the_room_of_a_replay_to_the_recorded_model(here):
    """Its tokens are for conversations of which nobody knows the model."""
    (here / "windowsill.toml").write_text("preset = 'balanced'\n")
    saved(here / "body.json", {"model": "claude-sonnet-4-5", "messages": anthropic_turns(3)})
    assert call("replay", "body.json", "--json").json["options"]["window"] is None
