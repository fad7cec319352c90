"""The dialect in which every message of the assistant carries what the model thought."""

from __future__ import annotations

import msgspec
import pytest
from openai.types.chat import ChatCompletion

from support.conversations import call, thinking, tool, use
from windowsill import providers
from windowsill.messages import Reasoning, Text

pytestmark = pytest.mark.unit

FORMAT = providers.get("deepseek")
ASKED = {"role": "user", "content": "look"}
CALLED = {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [call("c0")]}


def read(message, format="deepseek"):
    return providers.get(format).read_message(msgspec.json.encode(message), "")


def render(message, format="deepseek"):
    (raw,) = providers.get(format).render_message(message)
    return msgspec.json.decode(raw)


def edited(message, *blocks):
    return msgspec.structs.replace(message, blocks=blocks, edited=True)


def rules(*messages, **body):
    return [each.rule for each in providers.validate({"model": "m", "messages": [*messages], **body}, "deepseek")]


def test_reasoning_is_read_and_sent_back_as_it_came():
    """A reply's reasoning is a block, and its message goes out byte for byte."""
    raw = msgspec.json.format(msgspec.json.encode(CALLED), indent=1)
    message = FORMAT.read_message(raw, "")
    assert (message.format, message.blocks[0]) == ("deepseek", Reasoning(text="hm"))
    assert FORMAT.render_message(message) == [raw]


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("reasoning", "hm", Reasoning(text="hm")),
        (
            "reasoning_details",
            [{"type": "reasoning.text", "text": "hm", "signature": "s"}],
            Reasoning(text="hm", signature="s"),
        ),
        ("reasoning_details", [{"type": "reasoning.encrypted", "data": "e"}], Reasoning(data="e")),
        ("reasoning_details", [{"type": "reasoning.summary", "summary": "hm"}], Reasoning(text="hm")),
    ],
)
def test_other_names_of_reasoning_are_read(field, value, expected):
    """Servers that call it otherwise get it back under their own name, unchanged."""
    message = {"role": "assistant", "content": "a", field: value}
    for format in ("deepseek", "openai"):
        assert read(message, format).blocks == (expected, Text(text="a"))
        assert render(read(message, format), format) == message


@pytest.mark.parametrize("value", [{"x": 1}, [7], 7, ""])
def test_reasoning_of_an_unknown_kind_is_kept_unread(value):
    """What nobody understands is no error and stays where it was."""
    message = {"role": "assistant", "content": "a", "reasoning": value, "reasoning_details": value}
    assert read(message, "openai").blocks == (Text(text="a"),)
    assert render(read(message, "openai"), "openai") == message


@pytest.mark.parametrize(
    ("message", "format"),
    [
        ({"role": "assistant", "content": "I look", "tool_calls": [call("c0")]}, "openai"),
        ({"role": "assistant", "content": "I look", "tool_calls": [call("c0")]}, "deepseek"),
        ({"role": "assistant", "content": "I look", "reasoning_content": None, "tool_calls": [call("c0")]}, "deepseek"),
        ({"role": "assistant", "content": "I look", "reasoning_content": "", "tool_calls": [call("c0")]}, "deepseek"),
        ({"role": "assistant", "content": [thinking(), {"type": "text", "text": "I look"}, use("c0")]}, "anthropic"),
    ],
    ids=["openai", "own", "null", "empty", "anthropic"],
)
def test_message_without_reasoning_gets_a_space(message, format):
    """The models refuse a call without reasoning, and some take empty text for none."""
    arguments = '{"path":"a.py"}' if format == "anthropic" else '{"path": "a.py"}'
    assert render(read(message, format)) == {
        "role": "assistant",
        "content": "I look",
        "tool_calls": [call("c0", "read", arguments)],
        "reasoning_content": " ",
    }


def test_message_without_calls_gets_it_too():
    """DeepSeek wants it with every message of the assistant, and what follows must not change what was sent."""
    assert render(read({"role": "assistant", "content": "a"}, "openai"))["reasoning_content"] == " "


@pytest.mark.parametrize("message", [{"role": "user", "content": "a"}, tool("c0"), {"role": "system", "content": "a"}])
def test_other_messages_are_the_same_in_both_dialects(message):
    """Only what the assistant says differs; the bytes of all else are kept on the way from one to the other."""
    raw = msgspec.json.format(msgspec.json.encode(message), indent=1)
    for source, target in (("openai", "deepseek"), ("deepseek", "openai")):
        assert providers.get(target).render_message(providers.get(source).read_message(raw, "")) == [raw]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_details"])
def test_openai_gets_no_reasoning_of_another(field):
    """OpenAI, Groq and Mistral refuse fields they do not know, be they empty."""
    for value in ("hm", "", None):
        message = read({"role": "assistant", "content": "a", "name": "bot", field: value})
        assert render(message, "openai") == {"role": "assistant", "content": "a", "name": "bot"}


def test_openai_never_gets_an_empty_message_for_reasoning():
    """What was nothing but reasoning still says something."""
    message = read({"role": "assistant", "content": None, "reasoning_content": "hm"})
    assert render(message, "openai") == {"role": "assistant", "content": "(empty message)"}


def test_dropped_reasoning_leaves_a_space():
    """A view that takes reasoning away does not make the message one that is refused."""
    message = read(CALLED)
    assert render(edited(message, *message.blocks[1:])) == {**CALLED, "reasoning_content": " "}


def test_edited_message_keeps_its_reasoning():
    """Other blocks may change without it."""
    message = read({"role": "assistant", "content": "a", "reasoning_content": "hm"})
    assert render(edited(message, message.blocks[0], Text(text="b"))) == {
        "role": "assistant",
        "content": "b",
        "reasoning_content": "hm",
    }


def test_what_only_openai_knows_gets_its_successor():
    """The developer's role and calls by name are refused elsewhere."""
    assert render(read({"role": "developer", "content": "be brief"}, "openai")) == {
        "role": "system",
        "content": "be brief",
    }
    asked = {"role": "assistant", "content": None, "function_call": {"name": "read", "arguments": "{}"}}
    assert render(read(asked, "openai"))["tool_calls"] == [call("read", "read", "{}")]
    answer = {"role": "function", "name": "read", "content": "out"}
    assert render(read(answer, "openai")) == {"role": "tool", "name": "read", "tool_call_id": "read", "content": "out"}


@pytest.mark.parametrize(
    ("messages", "body", "expected"),
    [
        ([CALLED, tool("c0")], {}, []),
        ([{**CALLED, "reasoning_content": " "}, tool("c0")], {}, []),
        ([{**CALLED, "reasoning_content": ""}, tool("c0")], {}, ["deepseek.calls-carry-reasoning"]),
        ([{**CALLED, "reasoning_content": None}, tool("c0")], {"thinking": {"type": "disabled"}}, []),
        ([{"role": "assistant", "content": "a"}], {"model": "kimi-k2.5", "tools": [{"type": "x"}]}, []),
        ([{"role": "assistant", "content": "a"}], {"model": "deepseek-v4-pro"}, []),
        (
            [{"role": "assistant", "content": "a"}],
            {"model": "deepseek-v4-pro", "tools": [{"type": "x"}]},
            ["deepseek.reasoning-is-sent-back"],
        ),
        ([{"role": "developer", "content": "a"}], {}, ["deepseek.role"]),
        ([CALLED], {}, ["deepseek.call-has-result"]),
    ],
)
def test_rules(messages, body, expected):
    """Each rule has a name, and what is sound breaks none."""
    assert rules(ASKED, *messages, **body) == expected


def test_reply_of_a_reasoning_model_is_taken_from_the_official_client():
    """The SDK keeps fields it does not know, and the model tells which dialect it was."""
    reply = {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "deepseek-v4-pro",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": CALLED}],
    }
    completion = ChatCompletion.model_validate(reply)
    for added in (
        providers.read_added(completion),
        providers.read_added(completion.choices[0].message, default="deepseek"),
    ):
        (message,) = added.messages
        assert (message.format, render(message)) == ("deepseek", CALLED)


def test_whole_request_goes_through_unchanged():
    """Tools, settings and messages of a request come out as they came in."""
    body = {
        "model": "deepseek-v4-pro",
        "thinking": {"type": "enabled"},
        "tools": [{"type": "function", "function": {"name": "read", "strict": True, "parameters": {"type": "object"}}}],
        "messages": [ASKED, CALLED, tool("c0")],
    }
    request = providers.read_request(body)
    assert request.format == "deepseek"
    assert providers.render_request(request) == msgspec.json.encode(body)


@pytest.mark.parametrize("field", ["prompt_cache_hit_tokens", "cached_tokens"])
def test_cached_tokens_are_read_under_every_name(field):
    """Servers that do not nest them say so in a field of their own."""
    usage = providers.read_usage({"prompt_tokens": 10, "completion_tokens": 2, field: 8})
    assert (usage.input, usage.cache_read, usage.output) == (2, 8, 2)
