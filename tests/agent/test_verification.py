"""Whether a task is done: what validators and tools have shown, and not what a model says."""

import pytest

from support.agents import Shop, engine, over, results
from windowsill.testing import Call

pytestmark = pytest.mark.integration

ALL = ("planning", "executing", "reflecting", "verifying")
LOOK = Call("look", {"path": "a"})
SHOWN = {"criterion": "1", "met": True, "evidence": "contents of a"}


def finish(*claims, done=True, **more):
    return Call("finish", {"done": done, "result": "Done.", "criteria": list(claims), **more})


def verdicts(result):
    return [(each.status, each.checked_by, each.evidence) for each in result.criteria]


@pytest.mark.parametrize("said", ["The tests are NOT passing; not done.", "All tests pass.", "1. met"])
def test_text_alone_meets_nothing(said):
    """Whatever the model says, nothing has shown that the criterion holds, and the result says so."""
    running = engine(["Here is the fix.", said, said], phases=ALL)
    result = running.run_sync("Fix it.", criteria=["all tests pass"])
    assert (result.status, result.ok, result.phase) == ("unverified", False, "verifying")
    assert "all tests pass" in result.error
    assert verdicts(result) == [("unknown", "", "")]


def test_a_criterion_is_met_by_words_of_a_tool_result():
    """The result names the tool and the words."""
    running = engine(["Here is the fix.", LOOK, finish(SHOWN)], phases=ALL)
    result = running.run_sync("Fix it.", criteria=["a is there"])
    assert (result.status, result.text) == ("completed", "Done.")
    assert verdicts(result) == [("met", "look", "contents of a")]
    assert running.session.state.value.task.success_criteria == result.criteria


def test_a_run_that_was_not_verified_goes_on_where_it_was():
    """The next run asks for evidence once more, and can complete the task."""
    running = engine(["Fixed.", "It is.", "It is!", LOOK, finish(SHOWN)], phases=ALL)
    assert running.run_sync("Fix it.", criteria=["a is there"]).status == "unverified"
    running.session.add("Please look.")
    assert running.run_sync().status == "completed"


@pytest.mark.parametrize(
    "evidence",
    ["contents of b", "a", "", "Here is the fix.", "The plan has 1 steps"],
)
def test_words_that_no_tool_said_are_no_evidence(evidence):
    """Nor are words of the model, of the engine's own tools, or so few that they stand everywhere."""
    plan = Call("update_plan", {"steps": [{"description": "x", "status": "completed"}]})
    claim = finish({"criterion": "a is there", "met": True, "evidence": evidence})
    running = engine([plan, "Planned.", "Here is the fix.", LOOK, claim, claim], phases=ALL)
    result = running.run_sync("Fix it.", criteria=["a is there"])
    assert (result.status, verdicts(result)) == ("unverified", [("unknown", "", "")])


def test_what_was_seen_before_the_last_change_is_stale():
    """A file may look different after it was written."""
    shop = Shop()
    early = [LOOK, Call("put", {"path": "a"}), finish(SHOWN)]
    running = engine([*early, LOOK, finish(SHOWN)], phases=("executing", "verifying"), shop=shop)
    result = running.run_sync("Fix it.", criteria=["a is there"])
    assert (result.status, result.turns) == ("completed", 5)
    assert "a is there" in results(running.session)[2][1]


def test_while_verifying_there_are_tools_that_read_and_none_that_change():
    """So that a model can do what it is told to."""
    running = engine(["Fixed.", LOOK, finish(SHOWN)], phases=ALL)
    running.run_sync("Fix it.", criteria=["a is there"])
    names = {each["name"] for each in running.model.requests[1]["tools"]}
    assert {"look", "slow", "finish"} <= names
    assert not names & {"put", "wipe", "shell", "broken"}


def test_a_criterion_that_is_not_met_is_worked_on_and_fails_in_the_end():
    """The model may say so itself; what it said is in the verdict."""
    unmet = {"criterion": "1", "met": False, "evidence": "two tests fail"}
    running = engine(
        ["Fixed.", finish(unmet, done=False, missing=["two tests"]), *["Fixed.", finish(unmet)] * 3], phases=ALL
    )
    result = running.run_sync("Fix it.", criteria=["all tests pass"])
    assert (result.status, result.phase) == ("failed", "failed")
    assert verdicts(result) == [("unmet", "model", "all tests pass: two tests fail")]
    assert "two tests fail" in result.error


def test_a_validator_and_a_tool_may_share_the_work():
    """The result says which criterion was checked by what; a validator is not talked past."""
    running = engine(
        ["no", "42", LOOK, finish(SHOWN, {"criterion": "2", "met": True, "evidence": "contents of a"}, result="42")],
        phases=ALL,
        validators={"it says 42": lambda text: "42" in text},
    )
    result = running.run_sync("Say it.", criteria=["a is there", "it says 42"])
    assert (result.status, result.text) == ("completed", "42")
    assert verdicts(result) == [("met", "look", "contents of a"), ("met", "validator", "")]


def test_without_a_phase_for_it_nothing_is_verified_by_itself():
    """A plain loop ends with what it knows; a validator is enough."""
    assert engine(["Done."]).run_sync("Go.", criteria=["it works"]).status == "unverified"
    checked = engine(["Done."], validators={"it works": lambda _: True})
    assert checked.run_sync("Go.", criteria=["it works"]).status == "completed"


def test_a_short_result_is_quoted_whole():
    """A line of its own."""
    running = over(lambda: "ok\n42", [Call("work"), finish({"criterion": "1", "met": True, "evidence": "42"})])
    assert running.run_sync("Go.", criteria=["it is 42"]).status == "completed"
