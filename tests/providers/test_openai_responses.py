"""OpenAI Responses: read, with its bodies, replies, tools and usage, and told from others."""

from __future__ import annotations

import msgspec
import pytest
from openai.types.responses import Response, ResponseUsage, ToolParam
from pydantic import TypeAdapter

from support.conversations import bare, call, text_block, use
from support.response_items import (
    FILE,
    FLAT,
    FORMAT,
    HI,
    ITEMS,
    OK,
    PAIRS,
    PATCH_OUTPUT,
    PIXEL,
    RESPONSE,
    SCREEN,
    SEARCH,
    SHELL_OUTPUT,
    USED,
    edited,
    function,
    input_text,
    output,
    read,
    reasoned,
    render,
    said,
    written,
)
from windowsill import providers
from windowsill.errors import FormatError
from windowsill.messages import Document, Image, Text, ToolResult, ToolUse, Unknown
from windowsill.providers.openai_responses.items import Responses

pytestmark = pytest.mark.unit


def test_parts_of_every_kind_are_read():
    """Each kind of part becomes its neutral form; an unknown one is kept."""
    audio = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}
    by_id = {"type": "input_image", "file_id": "file-1", "detail": "auto"}
    linked = {"type": "input_file", "file_url": "https://example.com/a.pdf"}
    message = read(said(input_text("hi"), PIXEL, by_id, FILE, linked, audio))
    assert bare(message.blocks) == [
        Text(text="hi"),
        Image(media_type="image/png", data="AA==", detail="low"),
        Image(url="file-1", detail="auto"),
        Document(media_type="application/pdf", data="AA==", title="a.pdf"),
        Document(url="https://example.com/a.pdf"),
        Unknown(type="input_audio"),
    ]


def test_reply_of_the_assistant_is_read():
    """Text with its annotations is text, a refusal is kept as it is."""
    item = {**written("hello"), "content": [*written("hello")["content"], {"type": "refusal", "refusal": "no"}]}
    message = read(item)
    assert (message.role, bare(message.blocks)) == ("assistant", [Text(text="hello"), Unknown(type="refusal")])


@pytest.mark.parametrize("role", ["system", "developer"])
def test_instructions_inside_the_input_are_system_messages(role):
    """Both roles are one, and go out as they came."""
    item = {"role": role, "content": "be brief"}
    assert read(item).role == "system"
    assert render(edited(item, Text(text="be kind"))) == [{"role": role, "content": "be kind"}]


def test_call_and_output_pair_by_call_id():
    """The id of the item itself is none of a call."""
    asked, answer = read(function("c0", id="fc_1")), read(output("c0", "out", id="fco_1"))
    assert (asked.role, asked.blocks) == ("assistant", (ToolUse(id="c0", name="read", arguments='{"path": "a.py"}'),))
    assert (answer.role, answer.blocks) == ("user", (ToolResult(tool_use_id="c0", content=(Text(text="out"),)),))


@pytest.mark.parametrize(("asked", "answer"), PAIRS, ids=lambda item: item["type"])
def test_every_call_that_the_program_answers_is_a_pair(asked, answer):
    """What belongs together has one id and one kind, so that it is kept or hidden together."""
    (use,), (result,) = read(asked).calls, read(answer).results
    assert use.id == result.tool_use_id == "c0"
    assert use.type == result.type
    assert (read(asked).role, read(answer).role) == ("assistant", "user")


def test_outputs_of_other_tools_are_read():
    """What a tool printed or showed is content, and a failed patch an error."""
    assert bare(read(SCREEN).results[0].content) == [Image(media_type="image/png", data="AA==")]
    assert read(SHELL_OUTPUT).results[0].content == (Text(text="a.py"),)
    assert read(PATCH_OUTPUT).results[0].is_error
    assert bare(read(output("c0", [input_text("see"), PIXEL])).results[0].content) == [
        Text(text="see"),
        Image(media_type="image/png", data="AA==", detail="low"),
    ]


def test_reasoning_keeps_what_only_the_provider_can_read():
    """The summary is its text, the encrypted content stays byte for byte."""
    (block,) = read(reasoned()).blocks
    assert (block.text, block.data) == ("hm", "gAAA==")
    assert msgspec.json.decode(block.raw) == reasoned()


@pytest.mark.parametrize(
    ("item", "role", "type"),
    [
        (SEARCH, "assistant", "web_search_call"),
        ({"type": "compaction", "encrypted_content": "gAAA=="}, "assistant", "compaction"),
        ({"type": "mcp_call", "id": "m", "name": "n", "arguments": "{}", "server_label": "s"}, "assistant", "mcp_call"),
        ({"id": "msg_1"}, "assistant", "item_reference"),
        ({"type": "hologram", "content": 3, "summary": {}}, "assistant", "hologram"),
        (
            {"type": "mcp_approval_response", "approval_request_id": "m", "approve": True},
            "user",
            "mcp_approval_response",
        ),
        (
            {"type": "function_call_output", "id": "fco_1", "name": "read", "output": "x"},
            "user",
            "function_call_output",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_item_that_only_the_provider_understands_is_passed_on(item, role, type):
    """It is one block of its own bytes."""
    message = read(item)
    assert (message.role, bare(message.blocks)) == (role, [Unknown(type=type)])
    assert render(msgspec.structs.replace(message, edited=True)) == [item]


@pytest.mark.parametrize(
    ("item", "where", "what"),
    [
        ({"role": "tool", "content": "x"}, "input[0].role", "no such role as 'tool'"),
        ({"content": "x"}, "input[0]", "neither a message nor an item"),
        ({"type": "function_call", "name": "read"}, "input[0]", "without call_id"),
        ({"type": "function_call_output", "call_id": "a", "output": 7}, "input[0].output", "neither text nor parts"),
        ({"role": "user", "content": {"a": 1}}, "input[0].content", "got object"),
        ({"role": "user", "content": [{"type": "input_text"}]}, "input[0].content[0]", "without text"),
        ({"role": "user", "content": [{"text": "x"}]}, "input[0].content[0]", "missing required"),
        (output("a", [{"type": "input_text"}]), "input[0].output[0]", "without text"),
    ],
)
def test_what_is_no_item_is_refused_with_its_place(item, where, what):
    """The error names the place, what is wrong, and a remedy."""
    with pytest.raises(FormatError) as raised:
        read(item)
    assert raised.value.where.startswith(where)
    assert what in str(raised.value)
    assert raised.value.remedy


def test_body_is_taken_apart_and_put_together_again():
    """Instructions, tools, input and every other field come out as they came."""
    body = {
        "model": "gpt-5",
        "store": False,
        "previous_response_id": "resp_1",
        "include": ["reasoning.encrypted_content"],
        "tools": [FLAT, {"type": "web_search", "filters": {"allowed_domains": ["example.com"]}}],
        "instructions": "be brief",
        "input": [HI, reasoned(), function("c0"), output("c0")],
    }
    raw = msgspec.json.encode(body)
    request = FORMAT.read_body(raw)
    assert providers.render_request(request) == raw
    assert (request.system.text, request.model, list(request.rest)) == (
        "be brief",
        "gpt-5",
        ["store", "previous_response_id", "include"],
    )
    assert [(each.name, each.description) for each in request.tools] == [("read", "reads"), ("web_search", "")]


def test_text_as_input_is_a_message_of_the_user():
    """It is short for one item, and is written as that."""
    request = FORMAT.read_body(b'{"model":"m","input":"hi"}')
    assert providers.render_request(request) == b'{"model":"m","input":[{"role":"user","content":"hi"}]}'


def test_body_without_input_is_refused_unless_the_provider_has_it():
    """A stored prompt or an earlier response may take its place."""
    assert FORMAT.read_body(b'{"previous_response_id":"resp_1"}').messages == ()
    with pytest.raises(FormatError, match="without input"):
        FORMAT.read_body(b'{"model":"m"}')


def test_reply_brings_every_item_and_its_usage():
    """One response is several messages; cached tokens are told apart from fresh ones."""
    reply = FORMAT.read_reply(msgspec.json.encode(RESPONSE))
    items = [each for message in (reply.message, *reply.more) for each in render(message)]
    assert items == RESPONSE["output"]
    assert (reply.usage, reply.usage.total, reply.model, reply.stop_reason) == (USED, 15, "gpt-5", "completed")


def test_reply_that_was_cut_short_says_why():
    """The reason is what stopped it."""
    cut = {**RESPONSE, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    assert FORMAT.read_reply(msgspec.json.encode(cut)).stop_reason == "max_output_tokens"


def test_reply_without_output_is_refused():
    """There is nothing to add."""
    with pytest.raises(FormatError, match="without output"):
        FORMAT.read_reply(msgspec.json.encode({**RESPONSE, "output": []}))


@pytest.mark.parametrize(
    "source",
    [RESPONSE, msgspec.json.encode(RESPONSE), Response.model_validate(RESPONSE), RESPONSE["output"]],
    ids=["dict", "bytes", "object", "its output"],
)
def test_response_is_added_whole(source):
    """All items in order, whatever way the program has the response at hand."""
    added = providers.read_added(source, format=None if isinstance(source, Response) else "responses")
    assert [each for message in added.messages for each in render(message)] == RESPONSE["output"]
    assert added.usage == (None if isinstance(source, list) else USED)


def test_items_of_the_sdk_are_added_one_by_one():
    """`input += response.output` is how the SDK's own examples go on."""
    added = providers.read_added(Response.model_validate(RESPONSE).output)
    assert [message.format for message in added.messages] == ["responses"] * 3
    assert ITEMS.validate_python([render(message)[0] for message in added.messages])


def test_body_is_added_with_its_messages():
    """A whole request may be added too."""
    added = providers.read_added({"model": "m", "input": [HI, OK]}, format="responses")
    assert [message.text for message in added.messages] == ["hi", "ok"]


def test_usage_object_alone_is_read():
    """From a dictionary or the SDK's object."""
    usage = RESPONSE["usage"]
    assert providers.read_usage(usage) == providers.read_usage(ResponseUsage.model_validate(usage)) == USED


@pytest.mark.parametrize(
    ("definition", "format", "name"),
    [
        (FLAT, "responses", "read"),
        ({"type": "web_search"}, "responses", "web_search"),
        ({"type": "custom", "name": "sql"}, "responses", "sql"),
        ({"type": "function", "function": {"name": "read"}}, "openai", "read"),
        ({"type": "custom", "custom": {"name": "sql"}}, "openai", "sql"),
        ({"type": "custom", "name": "read", "input_schema": {"type": "object"}}, "anthropic", "read"),
        ({"type": "web_search_20250305", "name": "web_search"}, "anthropic", "web_search"),
    ],
)
def test_definition_is_told_apart(definition, format, name):
    """The same tool is written in three ways."""
    read = providers.read_tool(definition)
    assert (read.format, read.name) == (format, name)
    assert msgspec.json.decode(providers.get(format).render_tool(read)) == definition


def test_foreign_definition_is_not_strict():
    """Strict rules would change what another format's schema means."""
    foreign = providers.read_tool({"name": "read", "description": "reads", "input_schema": {"properties": {}}})
    rendered = msgspec.json.decode(FORMAT.render_tool(foreign))
    assert rendered == {**FLAT, "parameters": {"type": "object", "properties": {}}, "strict": False}
    TypeAdapter(ToolParam).validate_python(rendered)


@pytest.mark.parametrize(
    "value",
    [
        {"model": "m", "input": "hi"},
        {"input": [HI]},
        [HI, function("a")],
        said(input_text("hi")),
        {"role": "user", "content": [input_text("hi")]},
        {"type": "message", "role": "user", "content": "hi"},
        {"type": "message", "role": "user", "content": [{"type": "input_audio"}]},
        written("hi"),
        {"type": "new_thing_call", "id": "x"},
        RESPONSE,
        *RESPONSE["output"],
    ],
)
def test_it_is_recognised(value):
    """A body, a list, an item or a reply of this format."""
    assert Responses().detects(value)


@pytest.mark.parametrize(
    "value",
    [
        "hi",
        [HI, OK],
        {"messages": [HI]},
        {"choices": []},
        {"role": "user", "content": [text_block("x")]},
        {"type": "message", "role": "assistant", "model": "claude", "content": [text_block("x"), use("a")]},
        {"role": "assistant", "content": None, "tool_calls": [call("a")]},
    ],
)
def test_others_are_not_taken_for_it(value):
    """What another provider wrote, or what could be anyone's."""
    assert not Responses().detects(value)
