"""The agent loop: a task from its first word to its end."""

import anyio
import msgspec
import pytest
from anyio.lowlevel import checkpoint

from engines import FORMATS, Shop, engine, results
from sessions import opened
from windowsill.engine import Engine, tool
from windowsill.engine.words import CANCELLED
from windowsill.errors import InputError, LockedError, SettingError
from windowsill.state.projection import Narrow
from windowsill.store.memory import MemoryStore
from windowsill.testing import Answer as ServerAnswer
from windowsill.testing import Call, Scripted, Server

pytestmark = pytest.mark.integration


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
            Call("finish", {"done": True, "result": "Everything is mended."}),
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


def test_phases_without_anything_to_do_cost_no_call():
    """A question is planned and answered."""
    running = engine(["Nothing to plan.", "42"], phases=("planning", "executing", "reflecting", "verifying"))
    assert (running.run_sync("What is 6 x 7?").text, len(running.model.requests)) == ("42", 2)


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


def test_a_tool_that_was_not_shown_is_refused_and_the_rule_is_told():
    """By phase, by permission, and one that does not exist; the decision is recorded."""
    running = engine(
        [[Call("put", {"path": "a"}), Call("shell", {"command": "ls"}), Call("fly")], "planned", "done"],
        phases=("planning", "executing"),
    )
    running.run_sync("Go.")
    refused = {name: said for name, said, is_error in results(running.session) if is_error}
    assert "planning" in refused["put"]
    assert "planning" in refused["shell"]
    assert "no such tool" in refused["fly"]
    first, second = running.session.tool_decisions
    assert {(hidden.name, hidden.rule) for hidden in first.hidden} >= {("put", "phase"), ("shell", "phase")}
    assert {(hidden.name, hidden.rule) for hidden in second.hidden} == {("shell", "permission")}
    shown = [{each["name"] for each in request["tools"]} for request in running.model.requests]
    assert "put" not in shown[0]
    assert "put" in shown[2]
    assert "shell" not in shown[2]


def test_masked_tools_stay_in_every_request_and_are_refused_when_called():
    """The definitions never change, so the provider's cache stays warm."""
    running = engine(
        [Call("put", {"path": "a"}), "planned", Call("put", {"path": "b"}), "done"],
        phases=("planning", "executing"),
        tool_mode="mask",
    )
    shop_calls = running.run_sync("Go.").tool_calls
    assert len({str(request["tools"]) for request in running.model.requests}) == 1
    assert shop_calls == 1
    assert [is_error for _, _, is_error in results(running.session)] == [True, False]


def test_narrowed_arguments_are_enforced_when_called():
    """In production, a parameter that may only be one of a few."""
    shop = Shop()
    running = engine(
        [Call("shell", {"command": "rm -rf ."}), Call("shell", {"command": "make test"}), "ok"],
        shop=shop,
        rules=[Narrow(tool="shell", parameter="command", allow=("make test",))],
    )
    running.session.state.grant("execute")
    running.session.state.set_environment("production")
    running.run_sync("Test it.")
    assert shop.did == ["shell make test"]
    assert "make test" in results(running.session)[0][1]


def test_forbidden_paths_and_missing_approval_are_refused():
    """Code enforces the hard policies of the state; only an explicit yes lets a call through."""
    shop, asked = Shop(), []
    script = [Call("look", {"path": "/etc/passwd"}), Call("wipe", {"path": "a"}), "ok"]
    running = engine(script, shop=shop)
    running.run_sync("Go.")
    said = [words for _, words, _ in results(running.session)]
    assert "/etc" in said[0]
    assert "approval" in said[1]
    assert shop.did == []
    allowed = engine(script, shop=shop, approve=lambda approval: asked.append(approval.tool) or True)
    allowed.run_sync("Go.")
    assert (shop.did, asked) == (["wipe a"], ["wipe"])


def test_errors_and_time_outs_of_tools_become_results():
    """They are counted as failures of the state, and the run goes on."""
    running = engine([[Call("broken"), Call("slow")], "I see."])
    assert running.run_sync("Go.").ok
    assert results(running.session) == [
        ("broken", "Error: ValueError: it is broken", True),
        ("slow", "Error: it took longer than 0.05 seconds and may still be at work", True),
    ]
    assert [(each.tool, each.retries) for each in running.session.state.value.runtime.failures] == [
        ("broken", 0),
        ("slow", 0),
    ]


def test_arguments_that_do_not_fit_are_told_with_the_parameter():
    """Missing, of another type, unknown, or no JSON at all."""
    running = engine(
        [
            [Call("look", {}), Call("look", {"path": 3}), Call("look", {"path": "a", "mode": "x"})],
            "ok",
        ]
    )
    running.run_sync("Go.")
    said = [words for _, words, is_error in results(running.session) if is_error]
    assert len(said) == 3
    assert all("path" in words or "mode" in words for words in said)


def test_calls_that_may_run_at_the_same_time_do_and_the_others_wait_their_turn():
    """Neighbours that are declared parallel; results keep the order of the calls."""
    order = []

    @tool(category="read", parallel=True)
    async def both(name: str) -> str:
        order.append(f"+{name}")
        await anyio.sleep(0.02 if name == "a" else 0.0)
        order.append(f"-{name}")
        return name

    @tool(category="read")
    async def alone(name: str) -> str:
        order.append(f"+{name}")
        await checkpoint()
        order.append(f"-{name}")
        return name

    calls = [
        Call("both", {"name": "a"}),
        Call("both", {"name": "b"}),
        Call("alone", {"name": "c"}),
        Call("alone", {"name": "d"}),
    ]
    running = Engine(
        opened(budget=60_000),
        model=Scripted([calls, "ok"], format="anthropic"),
        tools=[both, alone],
        phases=("executing",),
    )
    running.run_sync("Go.")
    assert order == ["+a", "+b", "-b", "-a", "+c", "-c", "+d", "-d"]
    assert [words for _, words, _ in results(running.session)] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("system.constraints.max_tool_calls", 2, "2 tool calls"),
        ("task.limits.max_cost", 0.000001, "dollars"),
        ("task.limits.max_seconds", 0.0, "seconds"),
    ],
)
def test_limits_of_the_state_end_a_run(path, value, said):
    """The result names the limit; raised, the same run goes on."""
    shop = Shop()
    calls = [Call("put", {"path": str(number)}) for number in range(5)]
    running = engine([*calls, "done"], shop=shop)
    running.session.state.set(path, value)
    result = running.run_sync("Go.")
    assert result.status == "limit"
    assert said in result.error
    assert path in result.error
    running.session.state.set(path, None)
    assert running.run_sync().status == "completed"
    assert sorted(set(shop.did)) == sorted(shop.did)


def test_one_run_has_a_limit_of_model_calls():
    """Raise it, or run it again."""
    running = engine([Call("look", {"path": str(number)}) for number in range(4)] + ["done"], max_turns=2)
    assert [running.run_sync("Go.").status for _ in range(3)] == ["limit", "limit", "completed"]


def test_a_model_that_goes_round_in_circles_is_told_and_then_stopped():
    """The same call with the same result, and a circle of two."""
    for circle in ([Call("look", {"path": "a"})], [Call("look", {"path": "a"}), Call("look", {"path": "b"})]):
        running = engine(circle * 20)
        result = running.run_sync("Go.")
        assert result.status == "stuck"
        assert "look" in result.error
        assert result.turns == 6 * len(circle)
        assert "time in a row" in str(running.model.requests[-1]["messages"])


def test_the_same_call_with_other_results_is_no_circle():
    """Waiting for something is work."""
    ticks = iter(range(100))

    @tool(category="read")
    def clock() -> int:
        return next(ticks)

    running = Engine(
        opened(budget=60_000),
        model=Scripted([Call("clock")] * 12 + ["done"], format="anthropic"),
        tools=[clock],
        phases=("executing",),
    )
    assert running.run_sync("Wait.").status == "completed"


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
    assert running.session.items() == []


def test_an_engine_that_runs_keeps_others_out():
    """The second is told who holds the session; when the first is done it may run."""
    store = MemoryStore()
    session = opened(store, budget=60_000)
    other = engine(["no"], session=opened(store, budget=60_000))

    @tool(category="read")
    def intrude() -> str:
        with pytest.raises(LockedError, match="is locked by"):
            other.run_sync("Mine!")
        return "kept out"

    running = Engine(
        session, model=Scripted([Call("intrude"), "ok"], format="anthropic"), tools=[intrude], phases=("executing",)
    )
    assert running.run_sync("Go.").ok
    assert results(session)[0][1] == "kept out"
    assert session.lock is None
    assert other.run_sync("Mine!").text == "no"


def test_a_cancelled_run_is_told_to_the_model_and_goes_on_later():
    """What was at work when it was cancelled may have taken effect."""

    @tool(category="execute")
    async def stop() -> str:
        running.cancel()
        await anyio.sleep(30)
        return "never"

    running = Engine(
        opened(budget=60_000),
        model=Scripted([Call("stop"), "done"], format="anthropic"),
        tools=[stop],
        phases=("executing",),
    )
    result = running.run_sync("Go.")
    assert (result.status, result.phase, result.turns) == ("cancelled", "executing", 1)
    assert results(running.session) == [("stop", CANCELLED, True)]
    assert running.run_sync("Go.").text == "done"


def test_from_another_thread_a_run_is_cancelled_after_the_step_at_hand():
    """What the step did is recorded."""

    @tool(category="execute")
    def stop() -> str:
        running.cancel()
        return "stopped"

    running = Engine(
        opened(budget=60_000),
        model=Scripted([Call("stop"), "done"], format="anthropic"),
        tools=[stop],
        phases=("executing",),
    )
    assert running.run_sync("Go.").status == "cancelled"
    assert results(running.session) == [("stop", "stopped", False)]
    assert running.run_sync().text == "done"


def test_a_cancellation_from_outside_is_passed_on_and_loses_nothing():
    """The session can be taken up where it was."""

    async def go():
        begun = anyio.Event()

        @tool(category="execute")
        async def hang() -> str:
            begun.set()
            await anyio.sleep(30)
            return "never"

        running = Engine(
            opened(budget=60_000),
            model=Scripted([Call("hang"), "done"], format="anthropic"),
            tools=[hang],
            phases=("executing",),
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(running.run, "Go.")
            await begun.wait()
            tasks.cancel_scope.cancel()
        return running

    running = anyio.run(go)
    assert results(running.session) == [("hang", CANCELLED, True)]
    assert running.session.lock is None
    assert running.run_sync("Go.").text == "done"


def test_whoever_listens_cannot_break_the_run(caplog):
    """An error there is logged."""

    def listen(event):
        raise RuntimeError(event.kind)

    assert engine(["ok"], listen=listen).run_sync("Go.").ok
    assert "a listener of the engine failed" in caplog.text


def test_tools_are_functions_with_a_signature():
    """Schema, description and checks come from it."""

    def greet(name: str, times: int = 1) -> str:
        """Say hello."""
        return "hello " * times + name

    running = Engine(
        opened(budget=60_000),
        model=Scripted([Call("greet", {"name": "Ada", "times": 2}), "ok"], format="anthropic"),
        tools=[greet],
        phases=("executing",),
    )
    running.run_sync("Greet.")
    definition = next(each for each in running.model.requests[0]["tools"] if each["name"] == "greet")
    assert definition["description"] == "Say hello."
    assert definition["input_schema"]["required"] == ["name"]
    assert definition["input_schema"]["properties"]["times"] == {"type": "integer", "default": 1}
    assert results(running.session) == [("greet", "hello hello Ada", False)]


def test_the_system_prompt_holds_the_callers_words_and_the_policies_and_stays_the_same():
    """Byte for byte, while the first layer does not change."""
    running = engine([Call("look", {"path": "a"}), "ok"], system="You are Bob.")
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
    done = Call("finish", {"done": True, "result": "Mended."})
    running = engine([done, done], phases=("executing", "verifying"))
    result = running.run_sync("Mend it.", criteria=["it works"])
    assert (result.status, result.turns) == ("completed", 2)
    assert "it works" in results(running.session)[0][1]


def test_what_the_model_remembers_is_told_whatever_its_words():
    """A fact that shares no word with the goal is still what the model wanted to keep."""
    fact = Call("remember", {"kind": "fact", "text": "The port is 8080", "source": "app.conf"})
    running = engine([fact, "ok"])
    running.run_sync("Mend the login page.")
    assert "The port is 8080</fact>" in str(running.model.requests[1]["messages"])


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


def test_two_calls_of_one_id_in_one_answer_are_both_answered():
    """Some models give every call the same id."""
    shop = Shop()
    running = engine([[Call("put", {"path": "a"}, id="x"), Call("put", {"path": "b"}, id="x")], "ok"], shop=shop)
    assert running.run_sync("Go.").ok
    assert shop.did == ["put a", "put b"]
    assert running.session.open_calls() == []


def test_a_call_is_judged_when_what_comes_before_it_is_done():
    """Somebody is asked about the second call when the first has taken effect."""
    shop, seen = Shop(), []
    running = engine(
        [[Call("put", {"path": "a"}), Call("wipe", {"path": "a"})], "ok"],
        shop=shop,
        approve=lambda _: seen.append(list(shop.did)) or True,
    )
    running.run_sync("Go.")
    assert seen == [["put a"]]
    assert shop.did == ["put a", "wipe a"]


def test_a_tool_may_give_the_ref_of_what_it_kept_itself():
    """An output that never was in memory as a whole."""
    session = opened(budget=60_000)

    @tool(category="read")
    def stream() -> object:
        return session.outputs.keep(f"line {number}\n" for number in range(50_000))

    running = Engine(
        session, model=Scripted([Call("stream"), "ok"], format="anthropic"), tools=[stream], phases=("executing",)
    )
    assert running.run_sync("Go.").ok
    assert results(session)[0][1].startswith("line 0\n")
    ref = next(message.results[0].ref for message in session.messages() if message.results)
    assert ref.lines == 50_000


def test_folds_are_heard_of_and_other_categories_can_be_shown():
    """With what they saved; a phase shows what its setting says."""
    heard = []
    session = opened(budget=9_000)
    for number in range(40):
        session.add({"role": "user", "content": f"Question {number}. " + "word " * 150})
        session.add({"role": "assistant", "content": f"Answer {number}. " + "word " * 150})
    running = engine(["ok"], session=session, listen=heard.append, shown={"executing": ("delete",)})
    running.run_sync("Go.")
    (folded, *_) = [event for event in heard if event.kind == "folded"]
    assert folded.data["before"] > folded.data["after"]
    shown = {each["name"] for each in running.model.requests[0]["tools"]}
    assert "wipe" in shown
    assert "put" not in shown
