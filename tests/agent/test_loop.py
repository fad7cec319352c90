"""The agent loop: a task from its first word to its end."""

import msgspec
import pytest

from support.agents import FORMATS, Shop, engine, results
from support.sessions import opened
from windowsill.agent import Tuning
from windowsill.errors import InputError, SettingError
from windowsill.state import State
from windowsill.testing import Answer as ServerAnswer
from windowsill.testing import Call, Server

pytestmark = pytest.mark.integration

SEEN = {"criterion": "it works", "met": True, "evidence": "contents of a"}


@pytest.mark.parametrize("format", FORMATS)
def test_a_task_is_run_until_the_model_answers(format):
    """Calls are run and answered, in every wire format, and every request is one its provider takes."""
    shop = Shop()
    running = engine(
        [
            [Call("look", {"path": "a"}), Call("look", {"path": "b"})],
            Call("put", {"path": "c", "text": "x"}),
            "All done.",
        ],
        shop=shop,
        format=format,
    )
    result = running.run_sync("Write c.")
    assert (result.status, result.text, result.turns, result.tool_calls) == ("completed", "All done.", 3, 3)
    assert sorted(shop.did) == ["look a", "look b", "put c"]
    assert results(running.session) == [
        ("look", "contents of a", False),
        ("look", "contents of b", False),
        ("put", "wrote 1 characters", False),
    ]
    assert result.phase == running.session.state.value.runtime.phase == "completed"
    assert result.used.model_calls == 3
    assert running.session.verify() == []


def test_all_four_phases_are_gone_through_where_there_is_something_to_do():
    """A plan, the work, a look back after a failure, and the criteria."""
    heard = []
    running = engine(
        [
            Call("update_plan", {"steps": [{"description": "look"}]}),
            "There is a plan.",
            Call("broken"),
            "I think that is it.",
            "It holds.",
            Call("look", {"path": "a"}),
            Call("finish", {"done": True, "result": "Everything is mended.", "criteria": [SEEN]}),
        ],
        phases=("planning", "executing", "reflecting", "verifying"),
        listen=lambda event: heard.append((event.kind, event.text)),
    )
    result = running.run_sync("Mend it.", criteria=["it works"])
    assert [text for kind, text in heard if kind == "phase"] == ["planning", "executing", "reflecting", "verifying"]
    assert (result.status, result.text, result.phase) == ("completed", "Everything is mended.", "completed")
    asked = [str(request["messages"]) for request in running.model.requests]
    assert "it works" in asked[-1]
    assert "1 tool calls failed" in asked[4]
    assert ("ended", "Everything is mended.") in heard


def test_an_answer_at_once_costs_one_call():
    """A question needs no plan; who has looked around first is told to carry the task out."""
    running = engine(["42"], phases=("planning", "executing", "reflecting", "verifying"))
    result = running.run_sync("What is 6 x 7?")
    assert (result.status, result.text, result.phase, result.turns) == ("completed", "42", "completed", 1)
    running = engine([Call("look", {"path": "a"}), "I see.", "It is a."], phases=("planning", "executing"))
    assert running.run_sync("What is in a?").turns == 3


def test_the_planning_instruction_names_no_tool_that_is_not_there():
    """Without the engine's own tools there is no update_plan."""
    for own in (True, False):
        running = engine(["42"], phases=("planning", "executing"), own_tools=own)
        running.run_sync("What is 6 x 7?")
        assert ("update_plan" in str(running.model.requests[0])) is own


def test_what_the_model_plans_and_remembers_becomes_state():
    """Together with the result of its call."""
    running = engine(
        [
            Call("update_plan", {"steps": [{"description": "a", "status": "in_progress"}, {"description": "b"}]}),
            [
                Call("remember", {"kind": "fact", "text": "The port is 80", "source": "a.conf"}),
                Call("remember", {"kind": "decision", "text": "Use TLS", "reason": "safe"}),
                Call("remember", {"kind": "milestone", "text": "It starts"}),
                Call("remember", {"kind": "hypothesis", "text": "It is DNS"}),
            ],
            "done",
        ]
    )
    running.run_sync("Go.")
    state = running.session.state.value
    assert [(step.id, step.status) for step in state.work.plan.steps] == [("1", "in_progress"), ("2", "pending")]
    assert state.work.plan.current == "1"
    assert (state.memory.semantic.facts[0].content, state.memory.semantic.facts[0].source) == (
        "The port is 80",
        "a.conf",
    )
    assert state.memory.episodic.decisions[0].rationale == "safe"
    assert state.memory.episodic.milestones[0].event == "It starts"
    assert state.work.hypotheses[0].description == "It is DNS"


def test_a_plan_that_makes_no_sense_is_answered_not_raised():
    """The model reads what is wrong with it."""
    circle = [
        {"id": "a", "description": "a", "dependencies": ["b"]},
        {"id": "b", "description": "b", "dependencies": ["a"]},
    ]
    running = engine([Call("update_plan", {"steps": circle}), "ok"])
    assert running.run_sync("Go.").ok
    ((_, said, is_error),) = results(running.session)
    assert is_error
    assert "a > b > a" in said
    assert running.session.state.value.work.plan.steps == ()


def test_criteria_that_code_can_check_are_checked_and_work_goes_on_until_they_hold():
    """A validator says what is missing; the model reads it."""
    running = engine(["done", "done now: 42"], validators={"it says 42": lambda text: "42" in text or "there is no 42"})
    result = running.run_sync("Say 42.", criteria=["it says 42"])
    assert (result.status, result.text) == ("completed", "done now: 42")
    assert "it says 42: there is no 42" in str(running.model.requests[1]["messages"])


def test_a_task_whose_criteria_never_hold_fails_and_says_which():
    """After a few rounds; also where a validator breaks."""
    for validator in (lambda _: False, lambda _: 1 / 0):
        running = engine(["done"] * 9, validators={"it works": validator})
        result = running.run_sync("Do it.", criteria=["it works"])
        assert (result.status, result.phase) == ("failed", "failed")
        assert "it works" in result.error
        assert result.turns == 4


def test_a_finish_that_is_not_true_is_not_believed():
    """Validators have the last word; a model that says that it is not done goes on."""
    running = engine(
        [
            Call("finish", {"done": True, "result": "no"}),
            Call("finish", {"done": False, "result": "hm", "missing": ["the cellar"]}),
            Call("finish", {"done": True, "result": "yes"}),
        ],
        validators={"it says yes": lambda text: text == "yes"},
    )
    result = running.run_sync("Say yes.", criteria=["it says yes"])
    assert (result.status, result.text) == ("completed", "yes")
    said = [words for _, words, _ in results(running.session)]
    assert "it says yes" in said[0]
    assert "the cellar" in said[1]
    assert said[2] == "Done."


def test_a_result_has_the_form_that_the_task_demands():
    """JSON that fits its schema, with or without a fence around it."""
    running = engine(["It is 3.", '{"n": "three"}', '```json\n{"n": 3}\n```'])
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    running.session.state.set("task.output_format", {"type": "json", "schema": schema})
    result = running.run_sync("How many?")
    assert (result.status, result.turns) == ("completed", 3)
    asked = [str(request["messages"]) for request in running.model.requests]
    assert "has to be JSON" in asked[1]
    assert "does not fit its schema at $.n" in asked[2]


def test_a_second_task_in_the_same_session_begins_anew_and_a_word_in_between_does_not():
    """The goal, the plan and what was used are those of the task; the conversation goes on."""
    session = opened(budget=60_000)
    first = engine(
        [Call("update_plan", {"steps": [{"description": "a", "status": "completed"}]}), "one"], session=session
    )
    first.run_sync("Task one.")
    second = engine(["two"], session=session)
    result = second.run_sync("Task two.")
    state = session.state.value
    assert (result.text, state.task.goal, state.work.plan.steps) == ("two", "Task two.", ())
    assert result.used.model_calls == 1
    assert "Task one." in str(second.model.requests[0]["messages"])


def test_there_must_be_a_task():
    """An empty one, none at all, and a validator for nothing are mistakes of the caller."""
    running = engine(["x"])
    with pytest.raises(InputError, match="no task to go on with"):
        running.run_sync()
    with pytest.raises(InputError, match="the task is empty"):
        running.run_sync("  ")
    with pytest.raises(InputError, match="no criterion 'fast'"):
        engine(["x"], validators={"fast": bool}).run_sync("Go.")
    with pytest.raises(SettingError, match="phases"):
        engine(["x"], phases=("dancing",))
    with pytest.raises(SettingError, match="max_turns"):
        engine(["x"], max_turns=0)
    assert running.session.view.items == []


def test_the_system_prompt_holds_the_callers_words_and_the_policies_and_stays_the_same():
    """Byte for byte, while the first layer does not change."""
    session = opened(budget=60_000)
    session.state.load(State.coding_assistant())
    running = engine([Call("look", {"path": "a"}), "ok"], system="You are Bob.", session=session)
    running.run_sync("Go.")
    prompts = {str(request["system"]) for request in running.model.requests}
    assert len(prompts) == 1
    (prompt,) = prompts
    assert "You are Bob." in prompt
    assert "Never expose sensitive credentials" in prompt
    assert "Never expose" not in str(running.model.requests[0]["messages"])


@pytest.mark.parametrize("provider", ["anthropic", "openai", "responses", "gemini"])
def test_over_the_network_every_request_is_the_one_that_is_recorded(provider):
    """The bytes that a real server gets, streamed, are those that the session can show again."""
    shop = Shop()
    answers = [
        ServerAnswer(calls=(Call("look", {"path": "a"}), Call("put", {"path": "b"}))),
        ServerAnswer(text="All done."),
    ]
    with Server(lambda _: answers.pop(0)) as server:
        model = {"anthropic": "claude-sonnet-4-5", "gemini": "gemini-2.5-pro"}.get(provider, "gpt-4o")
        address = server.url if provider in ("anthropic", "gemini") else f"{server.url}/v1"
        session = opened(budget=60_000, model=model)
        result = engine(f"{provider}:{model}@{address}", session=session, shop=shop).run_sync("Go.")
        assert (result.status, result.text, shop.did) == ("completed", "All done.", ["look a", "put b"])
        assert [seen.problems for seen in server.seen] == [(), ()]
        sent = [seen.body for seen in server.seen]
    assert [msgspec.json.decode(session.request(call.id)) for call in session.calls] == sent
    assert result.used.input + result.used.cached > 0


def test_work_that_is_said_to_be_done_is_verified_first():
    """Where there are criteria and that phase is gone through."""
    done = Call("finish", {"done": True, "result": "Mended.", "criteria": [SEEN]})
    running = engine(
        [Call("finish", {"done": True, "result": "Mended."}), Call("look", {"path": "a"}), done],
        phases=("executing", "verifying"),
    )
    result = running.run_sync("Mend it.", criteria=["it works"])
    assert (result.status, result.turns) == ("completed", 3)
    assert "it works" in results(running.session)[0][1]


def test_what_the_model_remembers_is_told_whatever_its_words():
    """A fact that shares no word with the goal is still what the model wanted to keep."""
    fact = Call("remember", {"kind": "fact", "text": "The port is 8080", "source": "app.conf"})
    reads = [Call("look", {"path": f"{place}-" + "x" * 2_000}) for place in range(20)]
    running = engine([fact, *reads, "ok"], session=opened(budget=9_000))
    running.run_sync("Mend the login page.")
    assert running.session.folds
    assert "The port is 8080</fact>" in str(running.model.requests[-1]["messages"])


def test_making_an_engine_changes_nothing_for_others_who_use_the_session():
    """Only its own requests tell the state."""
    running = engine(["ok"])
    running.run_sync("Go.")
    running.session.add("And then?")
    assert b"<context" not in running.session.compose_sync().body().split(b"And then?")[1]


def test_snapshots_need_a_folder():
    """Said when the engine is made, not at its first checkpoint."""
    with pytest.raises(InputError, match="is kept in no folder; give the folder for snapshots"):
        engine(["ok"], snapshots=True)


def test_the_numbers_of_a_run_are_settings():
    """Fewer rounds after a check that failed; wrong numbers are refused by name."""
    running = engine(["no", "no", "no"], validators={"it says 42": lambda _: "no 42"}, tuning=Tuning(rounds=1))
    assert running.run_sync("Say 42.", criteria=["it says 42"]).status == "failed"
    assert len(running.model.requests) == 2
    same = [Call("look", {"path": "a"}) for _ in range(4)]
    assert engine(same, tuning=Tuning(warn_after=2, stuck_after=3)).run_sync("Look.").status == "stuck"
    for wrong in ({"forced": 0.0}, {"rounds": -1}, {"stuck_after": 0}):
        with pytest.raises(SettingError, match=f"tuning.{next(iter(wrong))}"):
            Tuning(**wrong)


def test_a_permission_may_bring_others_with_it():
    """By a setting; none does by itself."""
    session = opened(budget=60_000)
    session.state.grant("admin")
    running = engine([Call("shell", {"command": "ls"}), "done"], session=session, implied={"admin": ("execute",)})
    running.run_sync("Go.")
    assert results(session)[0][2] is False


def test_a_task_may_ask_for_a_share_of_its_criteria():
    """Two of three are enough where that is stated; the result still says which is not met."""
    session = opened(budget=60_000)
    session.state.set("task.limits.min_quality", 0.6)
    held = {"a": lambda _: True, "b": lambda _: True, "c": lambda _: False}
    result = engine(["done"], session=session, validators=held).run_sync("Go.", criteria=list(held))
    assert (result.status, [each.status for each in result.criteria]) == ("completed", ["met", "met", "unmet"])
