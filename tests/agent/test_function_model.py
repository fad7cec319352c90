"""Models behind a function: what it is given, what it may give back, and what becomes of its errors."""

from __future__ import annotations

import json
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import anthropic
import anyio
import httpx2
import openai
import pytest
from google.genai import errors as google
from google.genai import types

from support.agent_models import FORMATS, NAMES, QUESTION, SPECS, ask, asking, fault, spent, talking, told
from support.model_writers import KEY
from windowsill.agent.models import Delta, FunctionModel, HttpModel, Model, ModelError, model
from windowsill.errors import InputError
from windowsill.providers.wire import any_decoder
from windowsill.testing import Answer, Call, Scripted, Server

pytestmark = pytest.mark.integration

REQUEST = httpx2.Request("POST", "http://127.0.0.1/")


def refused(status: int, said: str = "no", **headers: str) -> openai.APIStatusError:
    response = httpx2.Response(status, headers=headers, request=REQUEST)
    return openai.APIStatusError(said, response=response, body=None)


def raising(error: BaseException) -> Any:
    def function(_: dict[str, Any]) -> str:
        raise error

    return function


@pytest.mark.parametrize("format", FORMATS)
def test_text(format: str) -> None:
    """A text is an answer of the format, which a session takes and a listener hears."""
    heard: list[Delta] = []
    session = talking(format)
    answer = ask(FunctionModel(lambda _: "Three.", format=format), asking(session, format=format), heard)
    session.add(answer.body, format=format)
    assert told(answer.body, format) == [("text", "Three.")]
    assert [message.text for message in session.messages()] == [QUESTION, "Three."]
    assert (heard, spent(session)) == ([Delta("text", "Three.")], [])


@pytest.mark.parametrize("format", FORMATS)
def test_request(format: str) -> None:
    """The function gets the whole request, decoded, with the limit of the answer and nothing of streams."""
    seen: list[dict[str, Any]] = []
    ask(
        FunctionModel(lambda request: seen.append(request) or "ok", format=format), asking(format=format, max_output=77)
    )
    (request,) = seen
    assert QUESTION in json.dumps(request)
    assert "77" in json.dumps({key: value for key, value in request.items() if "max" in key or "generation" in key})
    assert "stream" not in request
    assert request.get("model", NAMES[format]) == NAMES[format]


def test_name() -> None:
    """The name that is given is that of the request, too."""
    seen: list[str] = []
    named = FunctionModel(lambda request: seen.append(request["model"]) or "ok", name="my-model")
    ask(named)
    assert (named.name, seen) == ("my-model", ["my-model"])


def test_sync_function_runs_in_a_thread() -> None:
    """It does not hold up the loop."""
    threads: list[threading.Thread] = []
    ask(FunctionModel(lambda _: threads.append(threading.current_thread()) or "ok"))
    assert threads[0] is not threading.main_thread()


class Caller:
    async def __call__(self, request: dict[str, Any]) -> str:
        return f"{len(request['messages'])} messages"


async def answering(_: dict[str, Any], words: str = "ok") -> str:
    return words


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (answering, "ok"),
        (partial(answering, words="fine"), "fine"),
        (Caller(), "2 messages"),
        (lambda request: answering(request, "later"), "later"),
    ],
)
def test_async_functions(function: Any, text: str) -> None:
    """Whatever is awaited is awaited: functions, partial ones, objects, and functions that give something to await."""
    assert told(ask(FunctionModel(function)).body, "openai") == [("text", text)]


CALL = Answer(text="I look.", calls=(Call("read", {"path": "a"}, id="call_a"),))
SAID = [("text", "I look."), ("call", "call_a", "read", '{"path":"a"}')]


@contextmanager
def sdk(format: str, server: Server) -> Iterator[Any]:
    """A function as users write it: one call of the provider's SDK."""
    if format == "anthropic":
        with anthropic.Anthropic(base_url=server.url, api_key="none") as client:
            yield lambda request: client.messages.create(**request)
        return
    with openai.OpenAI(base_url=server.url + "/v1", api_key="none") as chat:
        make = chat.responses if format == "responses" else chat.chat.completions
        yield lambda request: make.create(**request)


@pytest.mark.parametrize("format", ["anthropic", "openai", "responses"])
def test_objects_of_an_sdk(format: str) -> None:
    """The request is what an SDK takes, and its answer is one, with its usage."""
    session = talking(format)
    with Server(lambda _: CALL) as server, sdk(format, server) as function:
        answer = ask(FunctionModel(function, format=format), asking(session, format=format))
    session.add(answer.body, format=format)
    assert told(answer.body, format) == SAID
    assert [used.prompt for used in spent(session)] == [server.seen[0].tokens]


def test_object_of_google() -> None:
    """Google's objects are answers too."""
    part = types.Part(function_call=types.FunctionCall(id="call_a", name="read", args={"path": "a"}))
    content = types.Content(role="model", parts=[types.Part(text="I look."), part])
    given = types.GenerateContentResponse(candidates=[types.Candidate(content=content)])
    assert told(ask(FunctionModel(lambda _: given, format="gemini")).body, "gemini") == SAID


WHOLE = b'{"choices":[{"message":{"role":"assistant","content":"Three."},"finish_reason":"stop"}]}'


@pytest.mark.parametrize("given", [json.loads(WHOLE), WHOLE, json.loads(WHOLE)["choices"][0]])
def test_plain_answers(given: Any) -> None:
    """A dictionary, bytes, or a choice alone are answers."""
    session = talking("openai")
    answer = ask(FunctionModel(lambda _: given), asking(session))
    session.add(answer.body, format="openai")
    assert told(answer.body, "openai") == [("text", "Three.")]
    assert [message.text for message in session.messages()] == [QUESTION, "Three."]


@pytest.mark.parametrize(
    ("format", "message"),
    [
        ("anthropic", {"role": "assistant", "content": [{"type": "text", "text": "Three."}]}),
        ("openai", {"role": "assistant", "content": "Three."}),
        ("deepseek", {"role": "assistant", "content": "Three."}),
        ("responses", {"role": "assistant", "content": "Three."}),
        ("gemini", {"role": "model", "parts": [{"text": "Three."}]}),
    ],
)
def test_message_alone(format: str, message: dict[str, Any]) -> None:
    """A message without the response around it is one, too."""
    session = talking(format)
    answer = ask(FunctionModel(lambda _: message, format=format), asking(session, format=format))
    session.add(answer.body, format=format)
    assert told(answer.body, format) == [("text", "Three.")]
    assert [each.text for each in session.messages()] == [QUESTION, "Three."]


@pytest.mark.parametrize(
    "given",
    [None, 7, [], [{"role": "assistant"}], {}, {"role": "user", "content": "x"}, b"\xff", object(), {"a": object()}],
)
def test_no_answer(given: Any) -> None:
    """What is no answer is told, and is no better the next time."""
    found = fault(FunctionModel(lambda _: given))
    assert (found.kind, found.passing) == ("malformed", False)


def test_answer_of_another_format() -> None:
    """An answer in another format than was stated is told."""
    given = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "x"}], "usage": None}
    assert fault(FunctionModel(lambda _: given, format="openai")).kind == "malformed"


@pytest.mark.parametrize(
    ("error", "kind", "passing"),
    [
        (refused(429), "rate-limited", True),
        (refused(500), "server", True),
        (refused(529), "server", True),
        (refused(401), "no-key", False),
        (refused(404), "refused", False),
        (refused(400, "maximum context length is 8192 tokens"), "overflow", False),
        (ValueError("prompt is too long: 9 tokens > 8 maximum"), "overflow", False),
        (google.ServerError(503, {"error": {"message": "busy"}}), "server", True),
        (google.ClientError(429, {"error": {"message": "slow"}}), "rate-limited", True),
        (openai.APIConnectionError(request=REQUEST), "unreachable", True),
        (openai.APITimeoutError(request=REQUEST), "timeout", True),
        (httpx2.ConnectError("no"), "unreachable", True),
        (ConnectionResetError(), "unreachable", True),
        (TimeoutError(), "timeout", True),
        (RuntimeError("mine"), "refused", False),
        (KeyError("choices"), "refused", False),
    ],
)
def test_errors(error: Exception, kind: str, passing: bool) -> None:  # noqa: FBT001 a column of the table
    """What a function raises is told by its kind: by the status of an SDK's error, by its words, by its class."""
    found = fault(FunctionModel(raising(error)))
    assert (found.kind, found.passing) == (kind, passing)


def test_words_of_an_error() -> None:
    """What was raised is named, and its words are those that a session learns a window from."""
    found = fault(FunctionModel(raising(ValueError("This model's maximum context length is 8192 tokens."))))
    assert str(found) == "function raised ValueError: This model's maximum context length is 8192 tokens."
    assert found.provider_message == "This model's maximum context length is 8192 tokens."


def test_pause_of_an_error() -> None:
    """The pause that a provider asks for is told."""
    assert fault(FunctionModel(raising(refused(429, **{"retry-after": "7"})))).retry_after == 7.0


def test_own_model_errors_pass() -> None:
    """A function that knows what went wrong can say so."""
    error = ModelError("rate-limited", "busy", retry_after=3.0)
    assert fault(FunctionModel(raising(error))) is error


def test_no_key_is_told() -> None:
    """What looks like a key does not come out of an error, nor of its trace."""
    found = fault(FunctionModel(raising(RuntimeError(f"bad key {KEY}"))))
    assert KEY not in "".join([str(found), repr(vars(found)), *traceback.format_exception(found)])


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
def test_the_end_of_the_program_passes(error: BaseException) -> None:
    """Whoever ends the program ends it."""

    async def function(_: dict[str, Any]) -> str:
        raise error

    with pytest.raises(type(error)):
        ask(FunctionModel(function))


def test_cancelled() -> None:
    """A function that is waited for is cancelled."""
    left: list[str] = []

    async def run() -> None:
        with anyio.CancelScope() as scope:

            async def function(_: dict[str, Any]) -> str:
                scope.cancel()
                try:
                    await anyio.sleep_forever()
                finally:
                    left.append("left")
                return ""

            await FunctionModel(function).ask(asking(), lambda _: None)
        assert scope.cancelled_caught

    anyio.run(run)
    assert left == ["left"]


def test_cancelled_in_a_thread() -> None:
    """Whoever is cancelled does not wait for a thread that does not end."""
    go = threading.Event()

    async def run() -> None:
        with anyio.move_on_after(0.1) as scope:
            await FunctionModel(lambda _: str(go.wait(60))).ask(asking(), lambda _: None)
        assert scope.cancelled_caught
        go.set()

    anyio.run(run)
    assert go.is_set()


@pytest.mark.parametrize("spec", SPECS.values())
def test_model_by_name(spec: str) -> None:
    """A text names an endpoint."""
    found = model(spec, environment={}, stream=False)
    assert isinstance(found, HttpModel)
    assert found.name == spec.partition(":")[2]


def test_model_of_a_function() -> None:
    """A function is a model."""
    found = model(lambda _: "ok", format="anthropic", name="mine")
    assert (type(found), found.format, found.name) == (FunctionModel, "anthropic", "mine")


def test_model_that_is_one() -> None:
    """A model is taken as it is, and has no settings here."""
    own = Scripted(["ok"])
    assert model(own) is own
    with pytest.raises(InputError, match="takes no settings"):
        model(own, stream=False)


@pytest.mark.parametrize("what", [None, 7, {}])
def test_no_model(what: Any) -> None:
    """Anything else is an error that says what may be given."""
    with pytest.raises(InputError, match="is not a model"):
        model(what)


def test_every_model_fits_the_seam() -> None:
    """All kinds are models."""
    made: list[Any] = [HttpModel("openai:m", environment={}), FunctionModel(len), Scripted([])]
    assert [isinstance(each, Model) for each in made] == [True, True, True]


def test_usage_of_a_text_is_not_made_up() -> None:
    """Nobody counted it."""
    body = any_decoder.decode(ask(FunctionModel(lambda _: "ok", format="anthropic")).body)
    assert "usage" not in body
