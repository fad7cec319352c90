"""Models over the network: requests as each provider takes them, answers as a session reads them."""

from __future__ import annotations

from typing import Any

import pytest

from support.agent_models import FORMATS, NAMES, SPECS, TOOL, ask, asking, fault, remote, spent, talking, told
from support.model_writers import ENVIRONMENT, KEY
from windowsill import providers
from windowsill.agent.models import Delta, HttpModel
from windowsill.errors import InputError, NotFoundError
from windowsill.testing import Answer, Call, Server

pytestmark = pytest.mark.integration

CALLS = (Call("read", {"path": "a.py"}, id="call_a"), Call("read", {"path": "ü/b.py", "n": [1]}, id="call_b"))
WHOLE = Answer(reasoning="Let me think.", text="I look at both files.", calls=CALLS)
REASONS = frozenset({"anthropic", "responses", "gemini", "deepseek"})


def answered(format: str, answer: Answer = WHOLE, **settings: Any) -> tuple[Any, Any, list[Delta]]:
    """An answer, the request that the server saw, and what was heard meanwhile."""
    heard: list[Delta] = []
    with Server(lambda _: answer) as server:
        given = ask(remote(server, format, **settings), heard=heard)
    return given, server.seen[0], heard


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("stream", [True, False])
def test_sound_request(format: str, stream: bool) -> None:  # noqa: FBT001 a column of the table
    """What is sent is accepted by a strict provider, names the model and streams when it shall."""
    answer, seen, _ = answered(format, stream=stream)
    assert (seen.status, seen.format, seen.model, answer.partial) == (200, format, NAMES[format], False)
    streamed = seen.path.endswith(":streamGenerateContent") if format == "gemini" else seen.body.get("stream", False)
    assert streamed is stream


@pytest.mark.parametrize("format", FORMATS)
def test_streamed_is_the_same_as_not_streamed(format: str) -> None:
    """The answer is read alike both ways: words, calls, signed reasoning, usage, model and why it ended."""
    streamed, whole = answered(format)[0].body, answered(format, stream=False)[0].body
    read = providers.get(format).read_reply
    first, second = read(streamed), read(whole)
    assert told(streamed, format) == told(whole, format)
    assert ("call", "call_a", "read", '{"path":"a.py"}') in told(streamed, format)
    assert [first.usage, first.model, first.stop_reason] == [second.usage, second.model, second.stop_reason]
    assert first.usage is not None


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("stream", [True, False])
def test_a_session_takes_the_answer(format: str, stream: bool) -> None:  # noqa: FBT001 a column of the table
    """Words, calls and usage arrive in the session, and the next request is sound."""
    session = talking(format)
    with Server(lambda _: WHOLE) as server:
        model = remote(server, format, stream=stream)
        session.add(ask(model, asking(session, format=format)).body, format=model.format)
        for call in CALLS:
            session.add(result_of(format, call), format=format)
        ask(model, asking(session, format=format))
    calls = [call.id for message in session.messages() for call in message.calls]
    assert (calls, [seen.status for seen in server.seen]) == (["call_a", "call_b"], [200, 200])


def result_of(format: str, call: Call) -> dict[str, Any]:
    """The result of a call as each provider has it."""
    match format:
        case "anthropic":
            return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "x = 1"}]}
        case "responses":
            return {"type": "function_call_output", "call_id": call.id, "output": "x = 1"}
        case "gemini":
            part = {"functionResponse": {"id": call.id, "name": call.name, "response": {"output": "x = 1"}}}
            return {"role": "user", "parts": [part]}
        case _:
            return {"role": "tool", "tool_call_id": call.id, "content": "x = 1"}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("stream", [True, False])
def test_usage_arrives_in_the_session(format: str, stream: bool) -> None:  # noqa: FBT001 a column of the table
    """What the provider says a call used is what the session knows of it."""
    session = talking(format)
    with Server(lambda _: Answer(text="three")) as server:
        session.add(ask(remote(server, format, stream=stream), asking(session, format=format)).body, format=format)
    assert [(used.prompt, used.output) for used in spent(session)] == [(server.seen[0].tokens, 1)]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("stream", [True, False])
def test_a_listener_hears_everything(format: str, stream: bool) -> None:  # noqa: FBT001 a column of the table
    """Words, reasoning, and each call as its name with its arguments behind it, in pieces or as a whole."""
    _, _, heard = answered(format, stream=stream)

    def said(kind: str) -> str:
        return "".join(delta.text for delta in heard if delta.kind == kind)

    assert said("text") == "I look at both files."
    assert said("tool_call") == 'read{"path":"a.py"}read{"path":"ü/b.py","n":[1]}'
    assert said("reasoning") == ("Let me think." if format in REASONS else "")


def test_words_come_in_pieces() -> None:
    """A stream is heard while it comes."""
    _, _, heard = answered("openai", Answer(text="word " * 10))
    assert len(heard) > 3


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("format", FORMATS)
def test_empty_answer(format: str, stream: bool) -> None:  # noqa: FBT001 a column of the table
    """An answer without words is one all the same."""
    answer, _, heard = answered(format, Answer(text=""), stream=stream)
    assert (answer.partial, heard) == (False, [])


@pytest.mark.parametrize(
    ("spec", "format"),
    [
        ("openai:gpt-5", "openai"),
        ("openai:deepseek-reasoner@https://example.test", "deepseek"),
        ("openai:some-local-model", "openai"),
        ("responses:gpt-5", "responses"),
        ("google:gemini-2.5-pro", "gemini"),
        ("anthropic", "anthropic"),
    ],
)
def test_format(spec: str, format: str) -> None:
    """The format is the provider's; of the dialects of one the model's name tells which."""
    assert HttpModel(spec, environment={}).format == format


def test_stated_format() -> None:
    """A dialect can be stated; another provider's format cannot."""
    assert HttpModel("openai:my-reasoner", format="deepseek", environment={}).format == "deepseek"
    with pytest.raises(InputError, match="anthropic does not speak 'openai'"):
        HttpModel("anthropic:claude-sonnet-5", format="openai", environment={})


def test_unknown_provider() -> None:
    """A provider nobody knows is an error that names those there are."""
    with pytest.raises(NotFoundError, match="anthropic, gemini, openai, responses"):
        HttpModel("acme:model", environment={})


@pytest.mark.parametrize("format", FORMATS)
def test_model_of_the_request(format: str) -> None:
    """A provider without a model asks the one the request is for."""
    provider = SPECS[format].partition(":")[0]
    with Server() as server:
        url = server.url + ("/v1" if provider in {"openai", "responses"} else "")
        model = HttpModel(
            f"{provider}:@{url}", environment=ENVIRONMENT, format="deepseek" if format == "deepseek" else ""
        )
        ask(model, asking(format=format))
    assert (model.name, server.seen[0].model) == ("", NAMES[format])


def test_headers_of_the_payload() -> None:
    """What a strategy needs the provider to be told goes with the request, and the key stays in its header."""
    asked = asking(format="anthropic")
    asked.payload.headers["anthropic-beta"] = "compact-2026-01-12"
    with Server() as server:
        ask(remote(server, "anthropic"), asked)
    assert server.seen[0].headers["anthropic-beta"] == "compact-2026-01-12"
    assert KEY.encode() not in server.seen[0].raw


@pytest.mark.parametrize("spec", ["anthropic:claude-haiku-4-5", "openai:gpt-5-mini", "gemini:gemini-2.5-flash"])
def test_no_key(spec: str) -> None:
    """Without a key the provider is not asked, and the variable to set is named."""
    found = fault(HttpModel(spec, environment={}))
    assert (found.kind, found.passing) == ("no-key", False)
    assert "_API_KEY" in found.remedy


def test_tools_reach_the_model() -> None:
    """The definitions of the request are those that were composed."""
    _, seen, _ = answered("openai")
    assert seen.body["tools"][0]["function"]["name"] == TOOL["name"]
