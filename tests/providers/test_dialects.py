"""What servers write that imitate a provider, and what they take."""

from __future__ import annotations

import itertools
import json

import openai
import pytest

import windowsill
from support.sessions import opened
from windowsill import fit, providers
from windowsill.errors import FormatError
from windowsill.messages import Usage
from windowsill.providers.streams import stream
from windowsill.testing import Answer, Server

pytestmark = pytest.mark.unit


def event(value: object) -> bytes:
    return b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"


# Streams


@pytest.mark.parametrize("format", ["responses", "anthropic", "gemini"])
def test_sign_of_a_gateway_at_the_end_breaks_no_stream(format):
    """Gateways end the streams of all formats with `[DONE]`: the answer is as whole as without it."""
    reply = providers.get(format).render_reply(windowsill.Message(role="assistant"), model="m")
    ends = {
        "responses": [{"type": "response.completed", "response": json.loads(reply)}],
        "anthropic": [{"type": "message_start", "message": json.loads(reply)}, {"type": "message_stop"}],
        "gemini": [json.loads(reply)],
    }
    answer = stream(format)
    for each in (*ends[format], b"[DONE]"):
        answer.feed(event(each))
    answer.close()
    assert answer.failure is None
    assert not answer.partial


def test_sign_of_a_gateway_alone_does_not_make_a_stream_whole():
    """Without its own last event an answer of Responses stays partial."""
    answer = stream("responses")
    answer.feed(event(b"[DONE]"))
    assert answer.failure is None
    assert answer.partial


def test_usage_that_groq_puts_beside_the_choices_is_read():
    """The last chunk says it under a name of Groq's own."""
    answer = stream("openai")
    answer.feed(event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": "hi"}}]}))
    usage = {"prompt_tokens": 12, "completion_tokens": 3}
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "x_groq": {"id": "r", "usage": usage}}
    answer.feed(event(last))
    assert answer.reply().usage == Usage(input=12, output=3)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (
            {
                "inputTokens": 10,
                "outputTokens": 2,
                "totalTokens": 42,
                "cacheReadInputTokens": 20,
                "cacheWriteInputTokens": 10,
            },
            Usage(input=10, output=2, cache_write=10, cache_read=20),
        ),
        ({"prompt_eval_count": 26, "eval_count": 298, "total_duration": 1}, Usage(input=26, output=298)),
        (
            {"billed_units": {"input_tokens": 5}, "tokens": {"input_tokens": 9, "output_tokens": 4}},
            Usage(input=9, output=4),
        ),
        ({"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8}, Usage(input=7, output=1)),
        (Usage(input=3), Usage(input=3)),
    ],
    ids=["bedrock", "ollama", "cohere", "mistral", "own"],
)
def test_usage_of_other_providers_is_read(usage, expected):
    """A usage that can be told by its fields counts."""
    assert providers.read_usage(usage) == expected


@pytest.mark.parametrize("usage", [{"tokens_in": 5}, {}, 7])
def test_usage_that_is_not_known_is_an_error_and_not_zero(usage):
    """A count that would be wrong is refused with the fields that are known."""
    with pytest.raises(FormatError) as raised:
        providers.read_usage(usage)
    assert raised.value.remedy


# Text for content


def sent(model: str, messages: list[dict]) -> dict:
    """The request that a wrapped client sends."""
    with Server(lambda _body: Answer(text="ok")) as server:
        session = opened(model=model, window=100_000, budget=None)
        client = windowsill.wrap(openai.OpenAI(base_url=f"{server.url}/v1", api_key="none"), session)
        client.chat.completions.create(model=model, messages=messages)
        return server.seen[-1].body


@pytest.mark.parametrize("model", ["deepseek-chat", "some-local-model"])
def test_two_system_messages_are_sent_as_text(model):
    """Servers that take nothing but text for content are sent text."""
    messages = [
        {"role": "system", "content": "a"},
        {"role": "system", "content": "b"},
        {"role": "user", "content": "c"},
    ]
    body = sent(model, messages)
    assert [each["content"] for each in body["messages"]] == ["a\n\nb", "c"]


@pytest.mark.parametrize("format", ["deepseek", "openai"])
def test_blocks_of_text_are_rendered_as_text(format):
    """Another provider's blocks become a list of parts only where there is more than text."""
    session = opened()
    session.add(
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, format="anthropic"
    )
    system = [{"type": "text", "text": "s"}, {"type": "text", "text": "t"}]
    messages = session.compose_sync(system=system).to(format)["messages"]
    assert [each["content"] for each in messages] == ["s\n\nt", "a\n\nb"]


def test_parts_of_text_are_text_for_deepseek():
    """DeepSeek refuses a list even where the program wrote one; OpenAI gets it as it came."""
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    session = opened(model="deepseek-chat")
    session.add({"role": "user", "content": parts}, format="openai")
    payload = session.compose_sync()
    assert payload.to("deepseek")["messages"][0]["content"] == "a\n\nb"
    assert payload.to("openai")["messages"][0]["content"] == parts


# Answers that only their servers write


@pytest.mark.parametrize("function", [{"name": "f"}, {"name": "f", "arguments": None}, {"name": "f", "arguments": {}}])
def test_call_without_text_for_arguments_goes_back_with_it(function):
    """Some servers leave the arguments of a call out, or write the object: it goes back as OpenAI wants it."""
    call = {"id": "c1", "type": "function", "function": function, "extra": 1}
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
    ]
    found = fit(messages, budget=1_000, format="openai").messages
    assert found[1]["tool_calls"] == [{**call, "function": {"name": "f", "arguments": "{}"}}]
    assert providers.validate(found, "openai") == []


def test_empty_list_of_calls_does_not_go_back():
    """A server sends an empty list where there are no calls; OpenAI refuses it."""
    messages = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "ok", "tool_calls": []}]
    found = fit([*messages, messages[0]], budget=1_000, format="openai").messages
    assert found[1] == {"role": "assistant", "content": "ok"}
    assert [each.rule for each in providers.validate(messages, "openai")] == ["openai.tool-calls"]


# Requests that are taken as they are


@pytest.mark.parametrize(
    ("format", "messages"),
    [
        ("anthropic", [{"role": "user", "content": "a"}, {"role": "user", "content": [{"type": "text", "text": "b"}]}]),
        ("anthropic", [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}] * 2),
        ("gemini", [{"role": "user", "parts": [{"text": "a"}]}, {"role": "user", "parts": [{"text": "b"}]}]),
        (
            "gemini",
            [
                {"role": "user", "parts": [{"text": "a"}]},
                {"role": "user", "parts": [{"text": "b"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "x"}}}]},
                {"role": "user", "parts": [{"text": "c"}]},
            ],
        ),
    ],
)
def test_what_fits_comes_back_unchanged(format, messages):
    """Neighbours of one role, which the provider takes, are not joined."""
    payload = fit(messages, budget=10_000, format=format)
    assert payload.messages == messages
    assert payload.report.repairs == ()
    assert providers.validate(payload.messages, format) == []


@pytest.mark.parametrize("before", [[], [[{"text": "b"}]], [[{"text": "b"}], [{"text": "bb"}]]])
@pytest.mark.parametrize("after", [[], [{"text": "c"}], [{"functionCall": {"name": "g", "args": {}}}]])
def test_gemini_gets_a_call_with_what_the_model_said_beside_it_in_one_content(before, after):
    """The API wants a call right behind the user's content, and its response right behind the call."""
    called = [{"functionCall": {"name": "f", "args": {}}}]
    contents = [{"role": "model", "parts": parts} for parts in (*before, called, after) if parts]
    names = [part["functionCall"]["name"] for part in called + after if "functionCall" in part]
    answers = [{"functionResponse": {"name": name, "response": {"output": "x"}}} for name in names]
    messages = [{"role": "user", "parts": [{"text": "a"}]}, *contents, {"role": "user", "parts": answers}]
    found = fit(messages, budget=10_000, format="gemini").messages
    assert found == [
        messages[0],
        {"role": "model", "parts": [*itertools.chain(*before), *called, *after]},
        messages[-1],
    ]


def test_gemini_request_without_tools_gains_none():
    """No empty list of tools is added."""
    session = opened(model="gemini-2.5-pro")
    session.add("hi")
    assert "tools" not in session.compose_sync(tools=[]).to("gemini")


def test_gemini_tools_may_be_one_object():
    """A single entry without its list is read, and goes out as it came."""
    tools = {"functionDeclarations": [{"name": "f", "description": "d"}]}
    body = {"contents": [{"role": "user", "parts": [{"text": "a"}]}], "tools": tools}
    request = providers.read_request(body)
    assert [tool.name for tool in request.tools] == ["f"]
    assert json.loads(providers.render_request(request))["tools"] == tools


# Mistral


MISTRAL = {
    "model": "mistral-large-latest",
    "messages": [{"role": "user", "content": "hi"}],
    "tools": [{"function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}}],
}


def test_tools_without_a_type_are_those_of_a_chat():
    """Mistral's definitions need no type: the body is told as a chat, and is valid."""
    assert providers.read_request(MISTRAL).format == "openai"
    assert providers.validate(MISTRAL) == []
    assert [each.rule for each in providers.validate({**MISTRAL, "model": "gpt-5"})] == ["openai.tool-type"]


def test_search_for_tools_that_the_program_runs_may_be_answered_as_a_function():
    """OpenAI takes a function's output for such a call."""
    call = {"type": "tool_search_call", "call_id": "x", "execution": "client", "arguments": {"q": "a"}}
    items = [{"role": "user", "content": "hi"}, call, {"type": "function_call_output", "call_id": "x", "output": "f"}]
    assert providers.validate(items, "responses") == []


@pytest.mark.parametrize(
    "answer",
    [
        {"type": "function_call_output", "call_id": "x", "output": "found a"},
        {
            "type": "tool_search_output",
            "call_id": "x",
            "execution": "client",
            "tools": [{"type": "function", "name": "a"}],
        },
    ],
)
def test_search_for_tools_that_the_program_runs_keeps_its_shape(answer):
    """The call and its answer are sent as they came, whichever item answers it, and belong together."""
    call = {"type": "tool_search_call", "call_id": "x", "execution": "client", "arguments": {"q": "a"}}
    items = [{"role": "user", "content": "hi"}, call, answer, {"role": "user", "content": "go on"}]
    session = opened(model="gpt-5", format="responses", budget=50_000)
    session.extend(items)
    payload = session.compose_sync()
    assert payload.to("responses")["input"] == items
    assert payload.report.repairs == ()
    assert payload.to("anthropic")["messages"][1]["content"][0]["name"] == "tool_search"
