"""The calls of a model: what is shown, what is refused, and how the rest is run."""

import anyio
import pytest
from anyio.lowlevel import checkpoint

from support.agents import Shop, engine, results
from support.sessions import opened
from windowsill.agent import Engine, tool
from windowsill.errors import InputError
from windowsill.session.audit import open_calls, tool_decisions
from windowsill.state.tools import Narrow
from windowsill.testing import Call, Scripted

pytestmark = pytest.mark.integration


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
    first, second = tool_decisions(running.session.journal)
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
    running.session.state.set("runtime.environment", "production")
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


def test_a_declared_parameter_is_what_policies_look_at():
    """Whatever it is called; the others of the tool may say anything."""

    @tool(category="read", paths=("thing",))
    def peek(thing: str, path: str = "") -> str:
        return f"{thing} {path}"

    calls = [Call("peek", {"thing": "/etc/passwd"}), Call("peek", {"thing": "a", "path": "/etc/passwd"}), "ok"]
    running = Engine(
        opened(budget=60_000), model=Scripted(calls, format="anthropic"), tools=[peek], phases=("executing",)
    )
    running.run_sync("Go.")
    assert [is_error for _, _, is_error in results(running.session)] == [True, False]


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
    other_done = anyio.Event()

    @tool(category="read", parallel=True)
    async def both(name: str) -> str:
        order.append(f"+{name}")
        if name == "a":
            await other_done.wait()
        order.append(f"-{name}")
        other_done.set()
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
        approve=lambda _: True,
    )
    running.run_sync("Greet.")
    definition = next(each for each in running.model.requests[0]["tools"] if each["name"] == "greet")
    assert definition["description"] == "Say hello."
    assert definition["input_schema"]["required"] == ["name"]
    assert definition["input_schema"]["properties"]["times"] == {"type": "integer", "default": 1}
    assert results(running.session) == [("greet", "hello hello Ada", False)]


def test_two_calls_of_one_id_in_one_answer_are_both_answered():
    """Some models give every call the same id."""
    shop = Shop()
    running = engine([[Call("put", {"path": "a"}, id="x"), Call("put", {"path": "b"}, id="x")], "ok"], shop=shop)
    assert running.run_sync("Go.").ok
    assert shop.did == ["put a", "put b"]
    assert open_calls(running.session.journal) == []


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
    running = engine(["ok"], session=session, listen=heard.append, categories={"executing": ("delete",)})
    running.run_sync("Go.")
    (folded, *_) = [event for event in heard if event.kind == "folded"]
    assert folded.data["before"] > folded.data["after"]
    shown = {each["name"] for each in running.model.requests[0]["tools"]}
    assert "wipe" in shown
    assert "put" not in shown


def test_what_cannot_be_a_model_a_tool_or_a_phase_is_named():
    """When the engine is made, in one line."""
    for wrong, said in (
        ({"answers": 5}, "5 is not a model; give"),
        ({"categories": {"dancing": ("read",)}}, "setting 'categories': there is no phase 'dancing'; use initializing"),
    ):
        with pytest.raises(InputError) as caught:
            engine(wrong.pop("answers", ["ok"]), **wrong)
        assert str(caught.value).startswith(said)
    with pytest.raises(InputError, match="5 is not a tool; give functions"):
        Engine(opened(budget=60_000), model=Scripted(["ok"]), tools=[5])


def test_a_tool_can_still_be_called_as_a_function():
    """The decorator takes nothing away, and an engine takes what it made."""

    @tool(category="read")
    def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    assert (double(2), double(number=3)) == (4, 6)
    running = Engine(
        opened(budget=60_000),
        model=Scripted([Call("double", {"number": 4}), "done"], format="anthropic"),
        tools=[double],
        phases=("executing",),
    )
    running.run_sync("Go.")
    assert results(running.session) == [("double", "8", False)]
