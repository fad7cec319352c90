"""A model that plays a script: the same answers in every format, and a record of what it was asked."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import windowsill.testing
from support.agent_models import FORMATS, QUESTION, ask, asking, fault, spent, talking, told
from support.sdk_types import SDK
from windowsill import providers
from windowsill.agent.models import Answer, Delta, ModelError
from windowsill.errors import InputError
from windowsill.testing import Call, Scripted

pytestmark = pytest.mark.contract

ITEMS: list[Any] = [
    "words",
    Call("read", {"path": "a"}, id="call_1"),
    ("read", {"path": "ü"}),
    ["both", Call("read", {"path": "a"}), ("grep", {"for": "x"})],
    ("read", '{"path": '),
]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("item", ITEMS, ids=str)
def test_answers_are_valid(format: str, item: Any) -> None:
    """The provider's own SDK reads every answer, and so does a session, whose next request is sound."""
    session = talking(format)
    answer = ask(Scripted([item], format), asking(session, format=format))
    SDK[format].model_validate_json(answer.body)
    session.add(answer.body, format=format)
    session.add("Go on.")
    payload = session.compose_sync(format=format, tools=[])
    problems = providers.validate({"model": "m", "max_tokens": 5, **payload.to(format)}, format)
    assert (problems, answer.partial) == ([], False)


@pytest.mark.parametrize("format", FORMATS)
def test_several_in_one_answer(format: str) -> None:
    """A list is one answer with words and calls, in order."""
    item = ["I look.", Call("read", {"path": "a"}, id="call_1"), Call("read", {"path": "b"}, id="call_2")]
    assert told(ask(Scripted([item], format)).body, format) == [
        ("text", "I look."),
        ("call", "call_1", "read", '{"path":"a"}'),
        ("call", "call_2", "read", '{"path":"b"}'),
    ]


@pytest.mark.parametrize("format", FORMATS)
def test_in_order_with_usage(format: str) -> None:
    """One answer after the other, each with what it used."""
    session, model = talking(format), Scripted(["one", "two"], format)
    asked = [asking(session, format=format)]
    session.add(ask(model, asked[0]).body, format=format)
    session.add("And?")
    asked.append(asking(session, format=format))
    session.add(ask(model, asked[1]).body, format=format)
    assert [message.text for message in session.messages()] == [QUESTION, "one", "And?", "two"]
    assert [used.prompt for used in spent(session)] == [each.payload.tokens for each in asked]


def test_listener() -> None:
    """It is heard like any model."""
    heard: list[Delta] = []
    ask(Scripted([["I look.", ("read", {})]]), heard=heard)
    assert heard == [Delta("text", "I look."), Delta("tool_call", "read"), Delta("tool_call", "{}")]


def test_requests() -> None:
    """It remembers what it was asked, with the limit of the answer."""
    model = Scripted(["one", "two"])
    ask(model, asking(max_output=77))
    assert (len(model.requests), model.left) == (1, 1)
    assert model.requests[0]["messages"][-1] == {"role": "user", "content": QUESTION}
    assert model.requests[0]["max_completion_tokens"] == 77


def test_end_of_the_script() -> None:
    """Whoever asks once more than there are answers is told so."""
    model = Scripted(["one"])
    ask(model)
    with pytest.raises(InputError, match="the script has 1 answers and is asked for number 2; give it more"):
        ask(model)


def test_what_comes_after_the_script() -> None:
    """It can be said what comes from then on."""
    model = Scripted(["one"], then="more")
    assert [told(ask(model).body, "openai") for _ in range(3)] == [
        [("text", "one")],
        [("text", "more")],
        [("text", "more")],
    ]


def test_function_of_the_request() -> None:
    """An answer may depend on the request."""
    model = Scripted([lambda request: ("read", {"seen": len(request["messages"])})])
    assert told(ask(model).body, "openai")[0][2:] == ("read", '{"seen":2}')


def test_errors() -> None:
    """Errors are raised: models' own as they are, others as those of a function."""
    own = ModelError("rate-limited", "busy", retry_after=3.0)

    def broken(_: dict[str, Any]) -> str:
        raise TimeoutError

    model = Scripted([own, ValueError("prompt is too long: 9 tokens > 8 maximum"), broken, "fine"])
    assert fault(model) is own
    assert [fault(model).kind, fault(model).kind] == ["overflow", "timeout"]
    assert told(ask(model).body, "openai") == [("text", "fine")]


def test_end_of_the_program() -> None:
    """What ends a program does."""
    with pytest.raises(KeyboardInterrupt):
        ask(Scripted([KeyboardInterrupt()]))


def test_answer_as_it_is() -> None:
    """An answer of the seam is given as it is, such as part of one."""
    body = ask(Scripted(["Half of"])).body
    part = Answer(body=body, partial=True)
    assert ask(Scripted([part])) is part


def test_ids_are_unlike() -> None:
    """Calls of different answers have different ids, and the same script gives the same ones."""

    def ids(model: Scripted) -> list[str]:
        bodies = [ask(model).body for _ in range(2)]
        return [block[1] for body in bodies for block in told(body, "openai")]

    script = [[("read", {}), ("read", {})], ("read", {})]
    first = ids(Scripted(script))
    assert (len(set(first)), ids(Scripted(script))) == (3, first)


@pytest.mark.parametrize("item", [7, {"role": "assistant"}, ("read", 7), [["nested"]]])
def test_what_a_script_cannot_say(item: Any) -> None:
    """Anything else is an error that says what may be written."""
    with pytest.raises(InputError, match="a script cannot say"):
        ask(Scripted([item]))


def test_exported() -> None:
    """The models are found where the server is; other names are not."""
    assert windowsill.testing.Scripted is Scripted
    assert set(windowsill.testing.__all__) >= {"Chaos", "Scripted", "Server"}
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = windowsill.testing.Nothing


def test_loaded_when_used() -> None:
    """Whoever tests a client with the server loads no engine."""
    code = "import sys, windowsill.testing; print('windowsill.agent.models' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
