"""Tasks and recordings repeated under configurations, and compared with the last time."""

import json
import tomllib

import msgspec
import pytest

from support.cli_calls import anthropic_turns, call
from support.sessions import opened
from windowsill.agent import Engine, tool
from windowsill.config import Settings
from windowsill.errors import InputError
from windowsill.evaluation import (
    Evaluation,
    EvaluationTask,
    RunRecord,
    Suite,
    evaluate,
    find_regressions,
    last_evaluation,
    read_suite,
    record_evaluation,
    run_of_engine,
    take_over,
    winner,
)
from windowsill.replay import ReplayOptions
from windowsill.testing import Call, Scripted

pytestmark = pytest.mark.integration

PORT = EvaluationTask(
    name="port",
    task="Write the port of app.conf to answer.txt.",
    files={"app.conf": "port = 8080"},
    script=(
        {"tool": "read_file", "arguments": {"path": "app.conf"}},
        {"tool": "write_file", "arguments": {"path": "answer.txt", "text": "8080"}},
        "It is 8080.",
    ),
    expect="8080",
    expect_files={"answer.txt": "8080"},
)
SMALL = {"small": ReplayOptions(window=6_000), "marks": ReplayOptions(window=6_000, high=0.6, low=0.3)}


def recording(folder, name="rec"):
    """A recording of an agent that reads files."""
    messages = [*anthropic_turns(25, words=80), {"role": "assistant", "content": "done"}]
    line = {"id": name, "model": "claude-sonnet-4-5", "format": "anthropic", "messages": messages}
    file = folder / f"{name}.jsonl"
    file.write_text(json.dumps(line), "utf-8")
    return file


def test_tasks_and_recordings_are_repeated_under_each_configuration(tmp_path):
    """Success, calls, tokens, cost, kept values and folds are recorded for each."""
    suite = Suite(task=(PORT,), recordings=(str(recording(tmp_path)),), configurations=SMALL)
    made = evaluate(suite, clock=lambda: 7.0)
    assert made.at == 7.0
    assert list(made.runs) == ["small", "marks"]
    for runs in made.runs.values():
        assert [(run.kind, run.name, run.success) for run in runs] == [
            ("recording", "rec", True),
            ("task", "port", True),
        ]
        replayed, worked = runs
        assert replayed.folds > 0
        assert replayed.cost > 0
        assert replayed.kept is not None
        assert worked.calls == 3
    assert made.total("small").successes == 2


def test_a_task_that_ends_otherwise_than_expected_does_not_succeed():
    """Whatever the model says about it."""
    wrong = msgspec.structs.replace(PORT, expect_files={"answer.txt": "9090"})
    (run,) = evaluate(Suite(task=(wrong,))).runs["default"]
    assert (run.success, run.error) == (False, "answer.txt does not have '9090'")
    modelless = msgspec.structs.replace(PORT, script=())
    (run,) = evaluate(Suite(task=(modelless,))).runs["default"]
    assert "has no model" in run.error
    (run,) = evaluate(Suite(task=(modelless,)), model=lambda _: Scripted(["8080"], then="8080")).runs["default"]
    assert run.status == "completed"


def test_readings_that_a_fold_made_necessary_are_counted():
    """A call that was made before, whose result a fold hid; and the rounds until new work begins."""

    @tool(category="read", repeatable=True)
    def read_file(path: str) -> str:
        """Read a file."""
        return f"{path}\n" + "some words " * 300

    session = opened(budget=5_000)
    calls = [Call("read_file", {"path": f"{place}.py"}) for place in range(14)]
    engine = Engine(
        session,
        model=Scripted([*calls, calls[0], "Done."], format="anthropic"),
        tools=[read_file],
        phases=("executing",),
    )
    record = run_of_engine(session, engine.run_sync("Read."), name="reads")
    assert session.folds
    assert (record.rereads, record.success, record.calls) == (1, True, 16)


def evaluated(**changes):
    """An evaluation of one run."""
    fields = {"calls": 9, "tokens": 1_000, "cost": 1.0, "kept": 0.9, "rereads": 2, "criteria": {"warm": "met"}}
    run = RunRecord(name="a", kind="task", success=True, **{**fields, **changes.pop("run", {})})
    run = msgspec.structs.replace(run, **changes)
    return Evaluation(at=1.0, configurations={"c": ReplayOptions()}, runs={"c": (run,)})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"success": False}, "task 'a' no longer succeeds"),
        ({"criteria": {"warm": "unknown"}}, "no longer meets 'warm'"),
        ({"faults": 1}, "1 faults, not 0"),
        ({"kept": 0.85}, "85.0% of the values are kept, not 90.0%"),
        ({"cost": 1.2}, "it costs 1.2, not 1"),
        ({"rereads": 4}, "repeated readings: 4, not 2"),
        ({"cost": 1.04, "kept": 0.899, "tokens": 1_049}, ""),
        ({"cost": 0.5, "kept": 1.0}, ""),
    ],
)
def test_what_got_worse_is_named(change, words):
    """Beyond the tolerance, and nothing that got better."""
    worse = find_regressions(evaluated(), evaluated(**change))
    assert worse == [] if not words else any(words in line for line in worse)


def test_the_last_evaluation_with_the_same_runs_is_compared(tmp_path):
    """Others may stand between; other options are another configuration."""
    file = tmp_path / "record.jsonl"
    assert last_evaluation(file, evaluated()) is None
    first, other = evaluated(), evaluated(run={}, name="b")
    record_evaluation(file, first)
    record_evaluation(file, other)
    assert last_evaluation(file, evaluated(cost=3.0)) == first
    changed = msgspec.structs.replace(evaluated(), configurations={"c": ReplayOptions(window=5)})
    assert last_evaluation(file, changed) is None
    file.write_text("nonsense\n", "utf-8")
    with pytest.raises(InputError, match="line 1, is not an evaluation"):
        last_evaluation(file, first)


def test_the_winner_succeeds_keeps_most_and_costs_least():
    """In this order."""

    def of(**runs):
        made = {name: (msgspec.structs.replace(evaluated().runs["c"][0], **change),) for name, change in runs.items()}
        return Evaluation(at=0.0, configurations=dict.fromkeys(made, ReplayOptions()), runs=made)

    assert winner(of(a={"success": False, "cost": 0.1}, b={})) == "b"
    assert winner(of(a={"kept": 0.8, "cost": 0.1}, b={})) == "b"
    assert winner(of(a={"cost": 0.1}, b={})) == "a"


def test_the_numbers_of_the_winner_become_a_profile(tmp_path):
    """In a settings file that has other tables; once more replaces them."""
    file = tmp_path / "windowsill.toml"
    file.write_text('strategy = "condense"\n\n[profiles.other]\nkeep = 9\n', "utf-8")
    options = ReplayOptions(strategy="condense:keep=5", high=0.8, low=0.4)
    take_over(file, "claude-sonnet-4-5", msgspec.structs.replace(options, high="60%"))
    take_over(file, "claude-sonnet-4-5", options)
    read = tomllib.loads(file.read_text("utf-8"))
    assert read["profiles"] == {
        "other": {"keep": 9},
        "claude-sonnet-4-5": {"threshold": 80.0, "goal": 0.5, "keep": 5},
    }
    assert msgspec.convert(read, Settings).profiles == read["profiles"]
    with pytest.raises(InputError, match="states no number"):
        take_over(file, "m", ReplayOptions())


SUITE = """
recordings = ["rec.jsonl"]

[[task]]
name = "port"
task = "Write the port."
script = [{tool = "write_file", arguments = {path = "a.txt", text = "8080"}}, "Done."]
expect_files = {"a.txt" = "WORDS"}

[configurations.small]
window = 6000
"""


def test_the_command_fails_when_something_got_worse(tmp_path, monkeypatch):
    """The exit code says so, and the line names it; without a last time there is nothing to compare."""
    monkeypatch.chdir(tmp_path)
    recording(tmp_path)
    (tmp_path / "suite.toml").write_text(SUITE.replace("WORDS", "8080"), "utf-8")
    first = call("evaluate", "suite.toml")
    assert first.code == 0, first.err
    assert "compared with this one" in first.out
    assert "Nothing got worse" in call("evaluate", "suite.toml").out
    (tmp_path / "suite.toml").write_text(SUITE.replace("WORDS", "9090"), "utf-8")
    third = call("evaluate", "suite.toml", "--json")
    assert third.code == 1
    assert "no longer succeeds" in third.json["regressions"][0]
    assert len((tmp_path / "windowsill-evaluations.jsonl").read_text("utf-8").splitlines()) == 3


@pytest.mark.parametrize(("worth", "stated", "used"), [(1, (), 2), (10**9, (), 1), (1, ("--workers", 1), 1)])
def test_much_is_evaluated_on_all_processors(tmp_path, monkeypatch, worth, stated, used):
    """Each processor has a process if there is much to replay and nobody says how many."""
    seen = []

    def watched(*given, **more):
        seen.append(more["workers"])
        return evaluate(*given, **more | {"workers": 1})

    monkeypatch.setattr("windowsill.cli.evaluate.evaluate", watched)
    monkeypatch.setattr("windowsill.cli.options.WORTH_PROCESSES", worth)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.chdir(tmp_path)
    assert call("evaluate", recording(tmp_path), *stated).code == 0
    assert seen == [used]


def test_a_suite_that_is_wrong_is_refused(tmp_path):
    """With the file and what is wrong in it."""
    file = tmp_path / "suite.toml"
    for text, words in (
        ("x = [", "is not a suite"),
        ("tasks = []", "is not a suite"),
        (2 * '[[task]]\nname = "a"\ntask = "t"\n', "has two tasks 'a'"),
    ):
        file.write_text(text, "utf-8")
        with pytest.raises(InputError, match=words):
            read_suite(file)
    with pytest.raises(InputError, match="nothing to evaluate"):
        evaluate(Suite())
