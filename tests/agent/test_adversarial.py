"""What tools, models, people and disks do to an engine that nobody planned for."""

import json
import threading
from types import SimpleNamespace

import anyio
import msgspec
import pytest

from support.agents import Shop, engine, over, results, sound
from support.sessions import opened
from windowsill.agent import Engine, ModelError, limits, tool
from windowsill.agent.calls import BROKEN_CALL, CANCELLED, TOO_MANY
from windowsill.agent.knowledge import MAX_GOAL_CHARACTERS, goal_of
from windowsill.agent.loop import DECLINED
from windowsill.agent.models import Answer
from windowsill.errors import InputError, SettingError
from windowsill.session.audit import open_calls
from windowsill.testing import Call, Scripted

pytestmark = pytest.mark.integration


def said(content, stop="end_turn"):
    """An answer in the words of the provider."""
    body = {"type": "message", "role": "assistant", "content": content, "stop_reason": stop}
    return Answer(body=msgspec.json.encode(body))


def called(*calls):
    """An answer with these calls: id, name, input."""
    return said([{"type": "tool_use", "id": id, "name": name, "input": input} for id, name, input in calls], "tool_use")


# Engines


def test_an_engine_inside_its_own_tool_is_told_no():
    """The same one, and another one on the same session."""

    async def work() -> str:
        return (await running.run("again")).text

    running = over(work)
    assert running.run_sync("Go.").ok
    assert "this engine is running already" in results(running.session)[0][1]

    def another() -> str:
        return over(lambda: "", ["x"], session=session).run_sync("again").text

    session = opened(budget=60_000)
    outer = over(another, session=session)
    assert outer.run_sync("Go.").ok
    assert "is locked by" in results(session)[0][1]


def test_two_engines_in_one_loop_do_not_meet():
    """Each has its own session, and may be run from inside a loop."""

    async def go():
        async def one(name):
            async def work() -> str:
                await anyio.sleep(0.01)
                return name

            ended[name] = await over(work, [Call("work"), name], session=opened(budget=60_000, id=name)).run("Go.")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one, "a")
            tasks.start_soon(one, "b")
        return over(lambda: "x").run_sync("Go.").text

    ended = {}
    assert anyio.run(go) == "done"
    assert {name: result.text for name, result in ended.items()} == {"a": "a", "b": "b"}


def test_a_tool_may_have_the_name_of_one_that_is_switched_off():
    """Without the engine's own tools, `finish` is whatever its owner says."""
    mine = tool(name="finish", category="read")(lambda: "mine")
    model = Scripted([Call("finish"), "done"], format="anthropic")
    running = Engine(opened(budget=60_000), model=model, tools=[mine], phases=("executing",), own_tools=False)
    assert running.run_sync("Go.").text == "done"
    assert results(running.session) == [("finish", "mine", False)]


# Calls


@pytest.mark.parametrize("name", ["look", "put"])
def test_call_ids_that_repeat_are_calls_all_the_same(name):
    """In one answer and in the next ones, in parallel and one after the other."""
    shop = Shop()
    script = [
        called(("a", name, {"path": "1"}), ("a", name, {"path": "2"})),
        called(("a", name, {"path": "3"})),
        called(("", name, {"path": "4"})),
        "done",
    ]
    running = engine(Scripted(script, format="anthropic"), shop=shop)
    assert running.run_sync("Go.").ok
    assert sorted(shop.did) == [f"{name} {number}" for number in (1, 2, 3, 4)]
    assert sound(running.session)


def test_of_two_hundred_calls_in_one_answer_a_hundred_are_run():
    """The others are told why not."""
    shop = Shop()
    calls = [(f"c{number}", "put", {"path": str(number)}) for number in range(200)]
    running = engine(Scripted([called(*calls), "done"], format="anthropic"), shop=shop)
    running.session.state.set("system.constraints.max_tool_calls", None)
    assert running.run_sync("Go.").ok
    assert len(shop.did) == 100
    assert [words for _, words, _ in results(running.session)][100:] == [TOO_MANY.format(most=100)] * 100


@pytest.mark.parametrize(
    "arguments",
    ["null", "[1]", "3", '"x"', '{"path":', '{"path": "\\ud800"}', "[" * 100_000, '{"a":' * 5_000],
)
def test_arguments_that_are_no_object_are_answered(arguments):
    """However they are broken; nothing is run."""
    call = {"type": "function", "id": "c", "function": {"name": "put", "arguments": arguments}}
    body = {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [call]}}]}
    shop = Shop()
    running = engine(Scripted([Answer(body=json.dumps(body).encode()), "done"], format="openai"), shop=shop)
    assert running.run_sync("Go.").ok
    assert shop.did == []
    ((_, words, is_error),) = results(running.session)
    assert is_error
    assert "Make the call again." in words
    assert words != BROKEN_CALL


def test_a_plan_keeps_every_step():
    """A step without an id never takes that of another; two that share one are refused."""
    steps = [{"id": "2", "description": "first"}, {"description": "second"}, {"description": "third"}]
    running = engine([Call("update_plan", {"steps": steps}), "done"])
    running.run_sync("Go.")
    kept = [(step.id, step.description) for step in running.session.state.value.work.plan.steps]
    assert kept == [("2", "first"), ("2.2", "second"), ("3", "third")]
    twice = [{"id": "a", "description": "one"}, {"id": "a", "description": "two"}]
    running = engine([Call("update_plan", {"steps": twice}), "done"])
    running.run_sync("Go.")
    assert "two steps have the id 'a'" in results(running.session)[0][1]


def test_after_a_finish_that_was_not_true_circles_are_still_seen():
    """The model that says that it is not done is watched as before."""
    script = [Call("finish", {"done": False, "result": "no"}), *[Call("look", {"path": "a"})] * 30]
    result = engine(script).run_sync("Go.")
    assert (result.status, result.turns) == ("stuck", 7)


def test_a_task_that_is_never_done_fails_with_what_was_missing():
    """In the model's own words."""
    script = [Call("finish", {"done": False, "result": f"no {number}"}) for number in range(9)]
    result = engine(script).run_sync("Go.")
    assert (result.status, result.error, result.turns) == ("failed", "the task failed: no 3", 4)


def test_calls_beside_a_finish():
    """Before it they are run, after it the task is over; of two the last one counts."""
    shop = Shop()
    done = {"done": True, "result": "one"}
    script = [called(("a", "put", {"path": "1"}), ("b", "finish", done), ("c", "put", {"path": "2"}))]
    result = engine(Scripted(script, format="anthropic"), shop=shop).run_sync("Go.")
    assert (result.status, result.text, shop.did) == ("completed", "one", ["put 1"])
    script = [called(("a", "finish", done), ("b", "finish", {"done": True, "result": "two"}))]
    assert engine(Scripted(script, format="anthropic")).run_sync("Go.").text == "two"


def test_failures_of_one_answer_are_counted_each():
    """The same one again is a retry, also at the same time."""

    def work() -> str:
        raise ValueError("broken")

    running = over(work, [[Call("work"), Call("work")], Call("work"), "done"], tool={"parallel": True})
    running.run_sync("Go.")
    assert [(each.tool, each.retries) for each in running.session.state.value.runtime.failures] == [("work", 2)]


# Limits


async def forever(request=None):
    """Hang, as a model, a tool or a check."""
    del request
    await anyio.sleep(60)


def test_time_that_is_up_ends_a_model_that_hangs():
    """At once, with the limit's name; the same run goes on when it is raised."""
    session = opened(budget=60_000)
    session.state.set("task.limits.max_seconds", 0.2)
    result = Engine(session, model=forever, phases=("executing",)).run_sync("Go.")
    assert (result.status, result.seconds < 30) == ("limit", True)
    assert "task.limits.max_seconds" in result.error
    session.state.set("task.limits.max_seconds", None)
    assert engine(["fine"], session=session).run_sync("Go.").text == "fine"


def test_time_that_is_up_ends_a_tool_and_a_check_that_hang():
    """What the tool did is told as uncertain."""
    session = opened(budget=60_000)
    session.state.set("task.limits.max_seconds", 0.2)
    assert over(forever, session=session).run_sync("Go.").status == "limit"
    assert results(session) == [("work", CANCELLED, True)]
    session = opened(budget=60_000)
    session.state.set("task.limits.max_seconds", 0.2)
    running = engine(["fine"], session=session, validators={"it holds": forever})
    assert running.run_sync("Go.", criteria=["it holds"]).status == "limit"


def test_a_thread_that_hangs_in_a_check_does_not_keep_the_run():
    """It is left behind."""
    released = threading.Event()
    session = opened(budget=60_000)
    session.state.set("task.limits.max_seconds", 0.2)
    running = engine(["fine"], session=session, validators={"it holds": lambda _: released.wait(60)})
    result = running.run_sync("Go.", criteria=["it holds"])
    released.set()
    assert result.status == "limit"


def test_the_time_that_a_task_takes_is_counted_whole(monkeypatch):
    """Also that of checks and of asking somebody; time between two runs is not the task's."""
    now = [0.0]
    monkeypatch.setattr(limits, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def approve(_):
        now[0] += 10
        return True

    def check(text):
        now[0] += 100
        return text == "fine"

    session = opened(budget=60_000)
    settings = {"session": session, "approve": approve, "validators": {"it holds": check}}
    calls = [Call("wipe", {"path": "a"}), Call("wipe", {"path": "b"})]
    script = Scripted([calls, "not yet", ModelError("refused", "no")], format="anthropic")
    assert engine(script, **settings).run_sync("Go.", criteria=["it holds"]).used.seconds == 120
    now[0] += 1_000
    assert engine(["again", ModelError("refused", "no")], **settings).run_sync("Go.").used.seconds == 220


def test_without_any_calls_allowed_a_model_may_still_answer():
    """Its calls are refused."""
    shop = Shop()
    session = opened(budget=60_000)
    session.state.set("system.constraints.max_tool_calls", 0)
    result = engine([Call("put", {"path": "a"}), "done"], session=session, shop=shop).run_sync("Go.")
    assert (result.status, result.text, shop.did) == ("completed", "done", [])


def test_a_limit_reached_among_parallel_calls_refuses_the_rest():
    """Exactly so many are run."""
    shop = Shop()
    session = opened(budget=60_000)
    session.state.set("system.constraints.max_tool_calls", 3)
    calls = [Call("look", {"path": str(number)}) for number in range(5)]
    result = engine([calls, "done"], session=session, shop=shop).run_sync("Go.")
    assert (result.status, len(shop.did)) == ("limit", 3)
    assert open_calls(session.journal) == []


def test_a_limit_of_cost_that_cannot_hold_is_told():
    """Where nobody knows the model's prices; and the price is that of the model that is asked."""
    session = opened(budget=60_000, model="my-own-model", window=100_000)
    session.state.set("task.limits.max_cost", 0.01)
    result = engine(["done"], session=session).run_sync("Go.")
    assert result.notes == ("nobody knows what 'my-own-model' costs: the limit of cost does not hold",)
    named = {name: engine(Scripted(["done"], format="openai", name=name)) for name in ("gpt-5-nano", "gpt-5")}
    cheap, dear = (each.run_sync("Go.").used.cost for each in named.values())
    assert 0 < cheap * 10 < dear


# Answers


def test_a_refusal_is_no_result():
    """In the words of each provider; another run asks once more."""
    refusing = {
        "anthropic": {
            "role": "assistant",
            "type": "message",
            "content": [{"type": "text", "text": "I cannot."}],
            "stop_reason": "refusal",
        },
        "openai": {"choices": [{"message": {"role": "assistant", "content": None, "refusal": "No."}}]},
        "gemini": {"candidates": [{"content": {"role": "model", "parts": []}, "finishReason": "SAFETY"}]},
    }
    for format, answer in refusing.items():
        running = engine(Scripted([Answer(body=json.dumps(answer).encode()), "fine"], format=format))
        result = running.run_sync("Go.")
        assert (result.status, result.turns) == ("failed", 1)
        assert "declined to answer" in result.error
        again = running.run_sync("Go.")
        assert (again.text, again.notes) == ("fine", (DECLINED,))
        assert sound(running.session, format)


def test_a_paused_answer_is_asked_to_go_on_as_it_is():
    """Nothing is said in between."""
    paused = said([{"type": "text", "text": "I search."}], "pause_turn")
    running = engine(Scripted([paused, "found"], format="anthropic"))
    assert running.run_sync("Go.").text == "found"
    assert [message.role for message in running.session.messages()] == ["user", "user", "assistant", "assistant"]


# Tasks


def test_a_huge_task_is_sent_once():
    """Its goal is its beginning; the same task is known again, another one is not."""
    task = "Mend every page. " + "word " * 40_000
    session = opened(budget=190_000)
    running = engine(Scripted([ModelError("refused", "no"), "fine"], format="anthropic"), session=session)
    running.run_sync(task)
    assert session.calls[0].tokens < 45_000
    assert session.state.value.task.goal == goal_of(task)
    assert len(goal_of(task)) < MAX_GOAL_CHARACTERS + 100
    assert running.run_sync(task).text == "fine"
    assert sum(message.text == task for message in session.messages()) == 1
    assert goal_of(task[:-1] + "!") != goal_of(task)
    assert goal_of("short") == "short"


def test_a_criterion_may_be_given_alone():
    """A text is one criterion, not its letters."""
    running = engine(["done"])
    running.run_sync("Go.", criteria="it works")
    assert [each.description for each in running.session.state.value.task.success_criteria] == ["it works"]


def test_what_makes_no_sense_is_said_before_anything_is_paid_for():
    """A schema that is none, settings out of their range."""
    session = opened(budget=60_000)
    session.state.set("task.output_format", {"type": "json", "schema": {"type": "nope"}})
    with pytest.raises(InputError, match="is not a JSON Schema"):
        engine(["{}"], session=session).run_sync("Go.")
    for setting in ({"layers": 0}, {"layers": 1.5}, {"max_output": -1}, {"max_turns": 0}):
        with pytest.raises(SettingError, match=next(iter(setting))):
            engine(["x"], **setting)


def test_a_schema_that_points_elsewhere_is_no_errand(monkeypatch):
    """Nothing is fetched, and the result says what is wrong."""
    fetched = []
    monkeypatch.setattr("urllib.request.urlopen", fetched.append)
    session = opened(budget=60_000)
    session.state.set("task.output_format", {"type": "json", "schema": {"$ref": "http://127.0.0.1:9/schema"}})
    result = engine(["{}"] * 5, session=session).run_sync("Go.")
    assert result.status == "failed"
    assert "the schema of the result cannot be used" in result.error
    assert fetched == []


def test_a_session_too_small_for_the_engine_says_what_is_too_large():
    """With the sizes, as a result."""
    result = engine(["x"], session=opened(budget=400)).run_sync("Go.")
    assert result.status == "failed"
    assert "tool definitions" in result.error
    assert "400" in result.error


# Others at work on the same session
