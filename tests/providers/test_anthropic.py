"""Anthropic Messages: read and rendered."""

from __future__ import annotations

import msgspec
import pytest
from anthropic.types import Message as SdkMessage

from support.conversations import bare, call, result, text_block, thinking, tool, use
from windowsill import providers
from windowsill.errors import FormatError
from windowsill.messages import Document, Image, Message, Reasoning, Text, ToolResult, ToolUse, Unknown

pytestmark = pytest.mark.unit

FORMAT = providers.get("anthropic")


def read(message):
    return FORMAT.read_message(msgspec.json.encode(message), "messages[0]")


def render(message):
    return [msgspec.json.decode(each) for each in FORMAT.render_message(message)]


def from_openai(*messages):
    return [
        each for message in providers.read_request(list(messages), format="openai").messages for each in render(message)
    ]


def test_blocks_of_every_kind_are_read():
    """Each kind of block becomes its neutral form."""
    source = {"type": "base64", "media_type": "image/png", "data": "AA=="}
    content = [
        text_block("hi"),
        thinking("hm"),
        {"type": "redacted_thinking", "data": "opaque"},
        use("c0", "read"),
        result("c0", [text_block("out"), {"type": "image", "source": source}], is_error=True),
        {"type": "document", "title": "notes", "source": {"type": "text", "media_type": "text/plain", "data": "page"}},
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
    ]
    output = ToolResult(tool_use_id="c0", content=(), is_error=True)
    blocks = read({"role": "user", "content": content}).blocks
    assert bare(blocks[4].content) == [Text(text="out"), Image(media_type="image/png", data="AA==")]
    assert bare([*blocks[:4], msgspec.structs.replace(blocks[4], content=()), *blocks[5:]]) == [
        Text(text="hi"),
        Reasoning(text="hm", signature="sig"),
        Reasoning(data="opaque"),
        ToolUse(id="c0", name="read", arguments='{"path":"a.py"}'),
        output,
        Document(media_type="text/plain", text="page", title="notes"),
        Image(url="file_1"),
    ]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "search_result", "source": "here", "title": "t", "content": [text_block("x")]},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": {"type": "error", "error_code": "x"}},
        {"type": "hologram", "text": {"deep": 1}, "id": 7},
    ],
)
def test_unknown_block_is_kept_as_it_came(block):
    """A kind this version does not know passes through, whatever its fields are."""
    message = read({"role": "assistant", "content": [block]})
    assert message.blocks == (Unknown(type=block["type"], raw=msgspec.json.encode(block)),)


def test_block_keeps_its_exact_bytes():
    """White space, field order and number spelling of a slice stay as they were."""
    raw = b'{"role": "assistant", "content": [ {"type":"tool_use", "id":"c0","name":"n","input":{"x": 1.0e2} } ]}'
    message = FORMAT.read_message(raw, "")
    assert message.raw == raw
    assert message.blocks[0].raw == b'{"type":"tool_use", "id":"c0","name":"n","input":{"x": 1.0e2} }'
    assert message.blocks[0].arguments == '{"x": 1.0e2}'


def test_edited_message_keeps_what_stands_around_its_blocks():
    """Unknown fields of a message and of its untouched blocks survive an edit."""
    cached = {**text_block("a"), "cache_control": {"type": "ephemeral"}}
    message = read({"role": "user", "content": [cached, text_block("b")], "tag": [1]})
    edited = msgspec.structs.replace(message, blocks=(message.blocks[0], Text(text="c")), edited=True)
    assert render(edited) == [{"role": "user", "content": [cached, text_block("c")], "tag": [1]}]


def test_body_is_taken_apart_and_put_together():
    """System, tools, model and the rest of a body come back equal."""
    body = {
        "model": "claude-sonnet-5",
        "max_tokens": 10,
        "metadata": {"user_id": "u"},
        "tools": [{"name": "read", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}],
        "system": [text_block("be brief")],
        "messages": [{"role": "user", "content": "hi"}],
    }
    request = providers.read_request(body)
    assert (request.format, request.model, request.system.text, request.tools[0].name) == (
        "anthropic",
        "claude-sonnet-5",
        "be brief",
        "read",
    )
    assert msgspec.json.decode(providers.render_request(request)) == body


def test_reply_becomes_a_message_that_may_be_sent_again():
    """Of a response only role and content go back; usage and model are told apart."""
    reply = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "content": [text_block("hi")],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 3,
            "output_tokens": 2,
            "cache_read_input_tokens": 5,
            "cache_creation_input_tokens": 1,
        },
    }
    SdkMessage.model_validate(reply)
    read = FORMAT.read_reply(msgspec.json.encode(reply))
    assert render(read.message) == [{"role": "assistant", "content": [text_block("hi")]}]
    assert (read.usage.prompt, read.usage.output, read.model, read.stop_reason) == (9, 2, "claude-sonnet-5", "end_turn")


def test_openai_call_and_result_cross_over():
    """A call becomes a tool_use, a tool message a tool_result."""
    assistant = {"role": "assistant", "content": None, "tool_calls": [call("c0", "read", '{"path": "a.py"}')]}
    assert from_openai(assistant, tool("c0", "out")) == [
        {"role": "assistant", "content": [use("c0", "read")]},
        {"role": "user", "content": [result("c0", "out")]},
    ]


@pytest.mark.parametrize("arguments", ["", "not json", "[1]", '"text"'])
def test_arguments_that_are_no_object_are_kept_as_text(arguments):
    """Anthropic's input is an object: what the model wrote stands in it under `_text`."""
    (message,) = from_openai({"role": "assistant", "tool_calls": [call("c0", "read", arguments)]})
    assert message["content"][0]["input"] == {"_text": arguments}


def test_ids_and_names_are_spelled_in_allowed_characters():
    """Different ids stay different, the same id stays the same."""
    calls = [call("a.b", "fs.read"), call("a:b", "fs.read")]
    assistant, answer = from_openai({"role": "assistant", "tool_calls": calls}, tool("a.b"))
    first, second = assistant["content"]
    assert first["name"] == "fs_read"
    assert first["id"] != second["id"]
    assert answer["content"][0]["tool_use_id"] == first["id"]


def test_data_url_becomes_base64_and_other_addresses_stay():
    """Pictures cross in the form Anthropic takes; a type it refuses becomes words."""
    urls = ["data:image/png;base64,AA==", "https://example.com/a.png", "data:image/bmp;base64,AA=="]
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    (message,) = from_openai({"role": "user", "content": parts})
    assert message["content"] == [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
        text_block("(image image/bmp)"),
    ]


def test_reasoning_of_another_provider_is_dropped_but_not_the_message():
    """Foreign reasoning means nothing here; what is left is never empty."""
    (message,) = from_openai({"role": "assistant", "content": None, "reasoning_content": "hm"})
    assert message == {"role": "assistant", "content": [text_block("(empty message)")]}


def test_signed_reasoning_of_another_provider_is_dropped():
    """A signature from elsewhere would be refused here."""
    blocks = (Reasoning(text="hm", signature="theirs"), Text(text="hi"))
    assert render(Message(role="assistant", blocks=blocks, format="elsewhere")) == [
        {"role": "assistant", "content": [text_block("hi")]}
    ]


def test_refusal_crosses_as_its_words():
    """What stands beside the content in one format is said in the other."""
    (message,) = from_openai({"role": "assistant", "content": None, "refusal": "I will not"})
    assert message["content"] == [text_block("I will not")]


def test_system_prompts_are_joined():
    """Several system messages become one list; a single native one is sent as it came."""
    native = FORMAT.read_system("be brief")
    other = providers.get("openai").read_system("be kind")
    assert FORMAT.render_system([native]) == b'"be brief"'
    assert msgspec.json.decode(FORMAT.render_system([native, other])) == [text_block("be brief"), text_block("be kind")]
    assert FORMAT.render_system([]) is None


def test_system_message_inside_the_conversation_is_said_by_the_user():
    """A system message of another format is marked as what it was."""
    assert render(Message(role="system", blocks=(Text(text="be brief"),))) == [
        {"role": "user", "content": "<system>\nbe brief\n</system>"}
    ]


@pytest.mark.parametrize(
    ("message", "where", "what"),
    [
        ({"role": "tool", "content": "x"}, "messages[0].role", "no such role as 'tool'"),
        ({"role": "user", "content": 7}, "messages[0].content", "Expected str | array | null, got int"),
        ({"role": "user", "content": ["x"]}, "messages[0].content[0]", "Expected object, got str"),
        ({"role": "user", "content": [{"text": "x"}]}, "messages[0].content[0]", "missing required field type"),
        (
            {"role": "user", "content": [{"type": "tool_result", "content": "x"}]},
            "messages[0].content[0]",
            "tool_use_id",
        ),
        (
            {"role": "user", "content": [text_block("x"), {"type": "text", "text": 1}]},
            "messages[0].content[1].text",
            "str",
        ),
        ({"content": "x"}, "messages[0]", "missing required field role"),
    ],
)
def test_what_is_no_message_is_refused_with_its_place(message, where, what):
    """The error names the place, what is wrong, and a remedy."""
    with pytest.raises(FormatError) as raised:
        read(message)
    assert raised.value.where == where
    assert what in str(raised.value)
    assert raised.value.remedy


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"type": "content", "content": "page"}, Document(text="page")),
        ({"type": "content", "content": [text_block("page"), {"type": "image"}]}, Document(text="page\n(image)")),
        ({"type": "url", "url": "https://a.b/c.pdf"}, Document(url="https://a.b/c.pdf")),
        ({"type": "file", "file_id": "file_1"}, Document(url="file_1")),
    ],
)
def test_documents_of_every_source_are_read(source, expected):
    """A document made of blocks has their words, so that another provider can be told them."""
    assert bare(read({"role": "user", "content": [{"type": "document", "source": source}]}).blocks) == [expected]


def test_set_of_tools_goes_by_its_type():
    """What the provider gets from elsewhere has no name of its own."""
    raw = b'{"type":"mcp_toolset","mcp_server_name":"git"}'
    tool = FORMAT.read_tool(raw, "tools[0]")
    assert (tool.name, FORMAT.render_tool(tool)) == ("mcp_toolset", raw)
    with pytest.raises(FormatError, match="without a name"):
        FORMAT.read_tool(b'{"description":"x"}', "tools[0]")


def test_request_may_begin_with_a_compaction():
    """Everything before it is in it, so no user message needs to stand there."""
    compacted = {"role": "assistant", "content": [{"type": "compaction", "content": "so far"}]}
    assert providers.validate([compacted, {"role": "user", "content": "go on"}], "anthropic") == []


def test_fields_of_a_body_pass_untouched():
    """Containers, servers, choices of tools and context management are the provider's business."""
    body = {
        "model": "claude-sonnet-5",
        "max_tokens": 9,
        "container": {"id": "c"},
        "mcp_servers": [{"type": "url", "name": "git", "url": "https://a.b"}],
        "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
        "tool_choice": {"type": "tool", "name": "read", "disable_parallel_tool_use": True},
        "tools": [{"name": "read", "strict": True, "input_schema": {"type": "object"}}],
        "messages": [{"role": "user", "content": "hi"}],
    }
    raw = msgspec.json.encode(body)
    assert providers.render_request(providers.read_request(raw)) == raw
    assert providers.validate(raw, "anthropic") == []
