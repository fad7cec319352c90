"""OpenAI Chat Completions: read and rendered."""

from __future__ import annotations

import msgspec
import pytest
from openai.types.chat import ChatCompletion

from support.conversations import bare, call, result, text_block, thinking, tool, use
from windowsill import providers
from windowsill.errors import FormatError
from windowsill.messages import Document, Image, Reasoning, Text, ToolResult, ToolUse, Unknown

pytestmark = pytest.mark.unit

FORMAT = providers.get("openai")


def read(message):
    return FORMAT.read_message(msgspec.json.encode(message), "messages[0]")


def render(message):
    return [msgspec.json.decode(each) for each in FORMAT.render_message(message)]


def from_anthropic(*messages):
    request = providers.read_request(list(messages), format="anthropic")
    return [each for message in request.messages for each in render(message)]


def test_parts_of_every_kind_are_read():
    """Each kind of part becomes its neutral form; an unknown one is kept."""
    content = [
        text_block("hi"),
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="}},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
    ]
    assert bare(read({"role": "user", "content": content}).blocks) == [
        Text(text="hi"),
        Image(media_type="image/png", data="AA==", detail="low"),
        Document(media_type="application/pdf", data="AA==", title="a.pdf"),
        Document(url="file-1"),
        Unknown(type="input_audio"),
    ]


def test_assistant_message_is_read():
    """Reasoning, text, refusal and calls of both kinds, in this order."""
    custom = {"id": "c1", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    message = read(
        {
            "role": "assistant",
            "content": "hi",
            "reasoning_content": "hm",
            "refusal": "no",
            "tool_calls": [call("c0", "read", "{}"), custom],
        }
    )
    assert bare(message.blocks) == [
        Reasoning(text="hm"),
        Text(text="hi"),
        Unknown(type="refusal"),
        ToolUse(id="c0", name="read", arguments="{}"),
        ToolUse(id="c1", name="sql", arguments="select 1"),
    ]


@pytest.mark.parametrize("role", ["system", "developer"])
def test_instructions_are_system_messages(role):
    """Both of OpenAI's roles for instructions are one, and go out as they came."""
    message = read({"role": role, "content": "be brief"})
    assert message.role == "system"
    edited = msgspec.structs.replace(message, blocks=(Text(text="be kind"),), edited=True)
    assert render(edited) == [{"role": role, "content": "be kind"}]


def test_tool_message_is_a_user_message_with_a_result():
    """The result carries the id of its call."""
    message = read({**tool("c0", "out"), "name": "read"})
    assert (message.role, message.blocks) == ("user", (ToolResult(tool_use_id="c0", content=(Text(text="out"),)),))


def test_legacy_function_messages_pair_by_name():
    """The deprecated form passes as it came, and its name is the id."""
    asked = {"role": "assistant", "content": None, "function_call": {"name": "read", "arguments": "{}"}}
    answer = {"role": "function", "name": "read", "content": "out"}
    assert read(asked).calls[0].id == read(answer).results[0].tool_use_id == "read"
    assert providers.repair([{"role": "user", "content": "hi"}, asked, answer]).messages[1:] == [asked, answer]


def test_edited_message_keeps_what_stands_around_its_blocks():
    """Fields beside the content survive an edit, and untouched calls keep their bytes."""
    message = read(
        {
            "role": "assistant",
            "content": "a",
            "name": "bot",
            "refusal": None,
            "reasoning_content": "hm",
            "annotations": [{"x": 1}],
            "tool_calls": [{**call("c0"), "index": 0}],
        }
    )
    blocks = tuple(Text(text="b") if isinstance(block, Text) else block for block in message.blocks)
    assert render(msgspec.structs.replace(message, blocks=blocks, edited=True)) == [
        {
            "role": "assistant",
            "content": "b",
            "name": "bot",
            "reasoning_content": "hm",
            "annotations": [{"x": 1}],
            "tool_calls": [{**call("c0"), "index": 0}],
        }
    ]


def test_dropped_reasoning_leaves_its_field():
    """A view that takes the reasoning block away takes the field away."""
    message = read({"role": "assistant", "content": "a", "reasoning_content": "hm"})
    edited = msgspec.structs.replace(message, blocks=message.blocks[1:], edited=True)
    assert render(edited) == [{"role": "assistant", "content": "a"}]


def test_picture_in_a_result_follows_in_a_user_message():
    """A tool message holds text only: the picture comes after it."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    output, attached = from_anthropic({"role": "user", "content": [result("c0", [text_block("see"), image])]})
    assert output == tool("c0", "see")
    assert attached["content"] == [
        text_block("(attached to the result of tool call c0)"),
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
    ]


def test_refusal_survives_an_edit_in_its_own_field():
    """A refusal is a field of the message, not a part of its content."""
    message = read({"role": "assistant", "content": None, "refusal": "no"})
    edited = msgspec.structs.replace(message, edited=True)
    assert render(edited) == [{"role": "assistant", "content": None, "refusal": "no"}]


def test_reply_brings_its_usage():
    """Cached tokens are told apart from fresh ones."""
    reply = {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-5",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hi"}}],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 2,
            "total_tokens": 12,
            "prompt_tokens_details": {"cached_tokens": 6, "cache_write_tokens": 1},
        },
    }
    ChatCompletion.model_validate(reply)
    read = FORMAT.read_reply(msgspec.json.encode(reply))
    assert render(read.message) == [{"role": "assistant", "content": "hi"}]
    assert (read.usage.input, read.usage.cache_read, read.usage.cache_write, read.usage.output) == (3, 6, 1, 2)
    assert (read.model, read.stop_reason) == ("gpt-5", "stop")


def test_anthropic_results_become_tool_messages_in_front():
    """Results first, one message each, then what the user said; a failed one says so."""
    user = {"role": "user", "content": [result("a", "one"), result("b", "bad", is_error=True), text_block("go on")]}
    assert from_anthropic(user) == [
        tool("a", "one"),
        tool("b", "[error] bad"),
        {"role": "user", "content": "go on"},
    ]


def test_anthropic_call_crosses_with_its_arguments_as_written():
    """Thinking stays behind; the input is the text of the arguments."""
    assert from_anthropic({"role": "assistant", "content": [thinking(), text_block("I look"), use("c0")]}) == [
        {"role": "assistant", "content": "I look", "tool_calls": [call("c0", "read", '{"path":"a.py"}')]}
    ]


def test_thinking_alone_does_not_leave_an_empty_message():
    """A message never becomes empty by crossing over."""
    assert from_anthropic({"role": "assistant", "content": [thinking()]}) == [
        {"role": "assistant", "content": "(empty message)"}
    ]


def test_pictures_and_documents_cross():
    """Base64 becomes a data URL; a text document its text; what OpenAI cannot find becomes words."""
    content = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="},
            "title": "t",
        },
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "page"}},
        {"type": "hologram"},
    ]
    (message,) = from_anthropic({"role": "user", "content": content})
    assert message["content"] == [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        text_block("(image file_1)"),
        {"type": "file", "file": {"filename": "t", "file_data": "data:application/pdf;base64,AA=="}},
        text_block("page"),
        text_block("(hologram block)"),
    ]


def test_whole_request_crosses_both_ways():
    """System prompt, tools and shared settings find their place on the other side."""
    body = {
        "model": "m",
        "max_tokens": 10,
        "temperature": 0.5,
        "top_k": 3,
        "tools": [{"name": "read", "description": "reads", "input_schema": {"type": "object", "properties": {}}}],
        "system": "be brief",
        "messages": [{"role": "user", "content": "hi"}],
    }
    over = msgspec.json.decode(providers.render_request(providers.read_request(body), format="openai"))
    assert over == {
        "model": "m",
        "max_tokens": 10,
        "temperature": 0.5,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "read",
                    "description": "reads",
                    "parameters": {"type": "object", "properties": {}},
                },
            }
        ],
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}],
    }
    back = msgspec.json.decode(providers.render_request(providers.read_request(over), format="anthropic"))
    del body["top_k"]
    assert {**back, "messages": back["messages"][0]["content"]} == {
        **body,
        "system": [text_block("be brief")],
        "messages": [text_block("hi")],
    }


@pytest.mark.parametrize(
    ("message", "where", "what"),
    [
        ({"role": "human", "content": "x"}, "messages[0].role", "no such role as 'human'"),
        ({"role": "tool", "content": "x"}, "messages[0]", "a tool message without tool_call_id"),
        ({"role": "user", "content": {"a": 1}}, "messages[0].content", "got object"),
        ({"role": "assistant", "tool_calls": [{"id": "c0"}]}, "messages[0].tool_calls[0]", "neither a function"),
        ({"role": "assistant", "tool_calls": [{"function": {}}]}, "messages[0].tool_calls[0]", "missing required"),
        ({"role": "user", "content": [{"type": "image_url"}]}, "messages[0].content[0]", "without image_url"),
    ],
)
def test_what_is_no_message_is_refused_with_its_place(message, where, what):
    """The error names the place, what is wrong, and a remedy."""
    with pytest.raises(FormatError) as raised:
        read(message)
    assert raised.value.where.startswith(where)
    assert what in str(raised.value)
    assert raised.value.remedy


def test_thinking_part_of_mistral_is_reasoning():
    """It stays a part of the content through an edit, and is not told to another provider."""
    thought = {"type": "thinking", "thinking": [text_block("h"), text_block("m")]}
    message = read({"role": "assistant", "content": [thought, text_block("a")]})
    assert bare(message.blocks) == [Reasoning(text="hm"), Text(text="a")]
    blocks = (message.blocks[0], Text(text="b"))
    (edited,) = render(msgspec.structs.replace(message, blocks=blocks, edited=True))
    assert edited["content"] == [thought, text_block("b")]
    (over,) = providers.get("anthropic").render_message(message)
    assert msgspec.json.decode(over)["content"] == [text_block("a")]


def test_tools_that_a_server_runs_itself_are_accepted():
    """Other servers have kinds of tools and calls of their own."""
    called = {"id": "c0", "type": "builtin_function", "function": {"name": "$web_search", "arguments": "{}"}}
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": None, "tool_calls": [called]}]
    tools = [{"type": "builtin_function", "function": {"name": "$web_search"}}, {"type": "web_search", "x": 1}]
    body = {"model": "kimi-k2", "messages": [*messages, tool("c0")], "tools": tools}
    assert providers.validate(body, "openai") == []
    assert providers.render_request(providers.read_request(body, format="openai")) == msgspec.json.encode(
        {"model": "kimi-k2", "tools": tools, "messages": body["messages"]}
    )


def test_fields_of_a_body_and_of_messages_pass_untouched():
    """Predictions, searches, annotations, names and audio are the provider's business."""
    body = {
        "model": "gpt-5",
        "prediction": {"type": "content", "content": "a"},
        "web_search_options": {},
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}},
        "tools": [{"type": "custom", "custom": {"name": "sql", "format": {"type": "text"}}}],
        "messages": [
            {"role": "user", "content": "hi", "name": "ann"},
            {
                "role": "assistant",
                "content": "a",
                "annotations": [{"type": "url_citation"}],
                "audio": {"id": "audio_1"},
            },
        ],
    }
    raw = msgspec.json.encode(body)
    assert providers.render_request(providers.read_request(raw)) == raw
    assert providers.validate(raw, "openai") == []


def test_an_empty_list_of_calls_is_not_sent_back():
    """Some servers write it beside their words; OpenAI refuses it. The rest stays as it came."""
    said = b'{"role": "assistant",  "content": "hi", "tool_calls": [ ], "refusal": null}'
    message = FORMAT.read_message(said, "")
    assert render(message) == [{"role": "assistant", "content": "hi", "refusal": None}]
    assert message.raw == said
