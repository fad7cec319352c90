"""Gemini's generateContent: contents, bodies, replies and tools as they are read."""

from __future__ import annotations

import msgspec
import pytest
from google.genai import types

from support.conversations import bare
from support.gemini_contents import (
    ARGUMENTS,
    FORMAT,
    HI,
    HOLOGRAM,
    OK,
    PICTURE,
    SIGNATURE,
    answer,
    call,
    model,
    read,
    render,
    text,
    user,
)
from windowsill import providers
from windowsill.errors import FormatError
from windowsill.history.repair import repair
from windowsill.messages import Document, Image, Reasoning, Text, ToolResult, ToolUse, Unknown

pytestmark = pytest.mark.unit


def body_of(request, **more):
    return msgspec.json.decode(providers.render_request(providers.read_request(request, format="gemini"), **more))


def test_parts_of_every_kind_are_read():
    """Each kind of part becomes its neutral form; an unknown one is kept."""
    parts = [
        text("hi"),
        PICTURE,
        {"inlineData": {"mimeType": "audio/wav", "data": "AA==", "displayName": "a.wav"}},
        {"fileData": {"mimeType": "image/png", "fileUri": "https://example.com/a.png"}},
        {"fileData": {"fileUri": "files/1"}, "videoMetadata": {"fps": 1}},
        answer("read", "c0", output="out"),
        HOLOGRAM,
    ]
    message = read(user(*parts))
    assert bare(message.blocks) == [
        Text(text="hi"),
        Image(media_type="image/png", data="iVBORw0KGgo="),
        Document(media_type="audio/wav", data="AA==", title="a.wav"),
        Image(media_type="image/png", url="https://example.com/a.png"),
        Document(url="files/1"),
        ToolResult(tool_use_id="c0", content=(Text(text="out"),), name="read"),
        Unknown(type="hologram"),
    ]
    assert [msgspec.json.decode(block.raw) for block in message.blocks] == parts


def test_model_content_is_read():
    """Thoughts are reasoning, with or without proof; what the model drew or ran is kept as it is."""
    message = read(
        model(
            text("hm", thought=True),
            text("", thoughtSignature=SIGNATURE),
            text("I look", thoughtSignature=SIGNATURE),
            call(id="c0", signature=SIGNATURE),
            {"executableCode": {"language": "PYTHON", "code": "1"}},
            PICTURE,
        )
    )
    assert message.role == "assistant"
    assert bare(message.blocks) == [
        Reasoning(text="hm"),
        Reasoning(text="", signature=SIGNATURE),
        Text(text="I look"),
        ToolUse(id="c0", name="read", arguments=ARGUMENTS, signature=SIGNATURE),
        Unknown(type="executableCode"),
        Unknown(type="inlineData"),
    ]


def test_dictionaries_of_the_sdk_are_read():
    """The spelling with underscores means the same, and goes out as it came."""
    content = user(
        {"inline_data": {"mime_type": "image/png", "data": "AA==", "display_name": None}, "text": None},
        {"function_response": {"name": "read", "response": {"result": "out"}}},
    )
    message = read(content)
    assert bare(message.blocks) == [
        Image(media_type="image/png", data="AA=="),
        ToolResult(tool_use_id="read#0", content=(Text(text="out"),), name="read"),
    ]
    assert render(message) == content


def test_calls_without_ids_are_told_apart_by_name_and_place():
    """A call and the response at the same place among those of its tool get the same id."""
    asked = read(model(call("read"), call("write"), call("read")))
    answered = read(user(answer("read"), answer("read"), answer("write")))
    assert [use.id for use in asked.calls] == ["read#0", "write#0", "read#1"]
    assert [result.tool_use_id for result in answered.results] == ["read#0", "read#1", "write#0"]


@pytest.mark.parametrize(
    ("response", "words", "failed"),
    [
        ({"output": "out"}, "out", False),
        ({"error": "bad"}, "bad", True),
        ({"output": {"a": [1]}}, '{"a":[1]}', False),
        ({"rows": [1], "error": None}, '{"rows":[1],"error":null}', False),
        ({"output": ""}, None, False),
    ],
)
def test_response_is_read_for_its_words(response, words, failed):
    """The documented field, or else the whole object as JSON."""
    (block,) = read(user(answer(**response))).results
    assert block.content == (() if words is None else (Text(text=words),))
    assert block.is_error is failed


def test_stream_of_calls_is_tied_to_its_responses():
    """One content for each call, all responses in one: read as a whole they pair in order, and go out as one turn."""
    contents = [HI, model(call()), model(call()), user(answer(output="a"), answer(output="b"))]
    messages = providers.read_request(contents, format="gemini").messages
    assert [use.id for message in messages for use in message.calls] == ["read#0", "read#1"]
    mended = repair(messages, FORMAT.rules)
    assert [render(each) for each in mended.messages] == [HI, model(call(), call()), contents[-1]]


@pytest.mark.parametrize("whole", [True, False])
def test_response_that_lacks_the_id_of_its_call_finds_it_by_name(whole):
    """An id the client did not send back is not invented; the neutral pair is tied when the whole is seen."""
    contents = [HI, model(call("read", "a"), call("write", "b")), user(answer("read"), answer("write"))]
    messages = (
        providers.read_request(contents, format="gemini").messages if whole else [read(content) for content in contents]
    )
    assert [result.tool_use_id for result in messages[2].results] == (["a", "b"] if whole else ["read#0", "write#0"])
    mended = repair(messages, FORMAT.rules)
    assert mended.repairs == ()
    assert [render(each) for each in mended.messages] == contents


def test_same_tool_in_every_turn_is_paired_turn_by_turn():
    """Ids made here repeat from turn to turn: a response answers the call right before it."""
    contents = [HI, model(call()), user(answer(output="a")), model(call()), user(answer(output="b"))]
    result = providers.repair(contents, format="gemini")
    assert (result.messages, result.repairs) == (contents, ())
    asked_twice = [HI, model(call()), HI, model(call()), user(answer(output="b"))]
    mended = providers.repair(asked_twice, format="gemini").messages
    assert mended[2] == user(answer(error="no result was recorded for this call"), text("hi"))
    assert mended[3:] == asked_twice[3:]


def test_body_is_taken_apart_and_put_together():
    """System prompt, declarations and contents find their place; all else stays, the model stands in the address."""
    config = {"temperature": 0.5, "thinkingConfig": {"includeThoughts": True}}
    body = {
        "model": "models/gemini-3-pro",
        "contents": [HI],
        "systemInstruction": {"parts": [text("be brief")]},
        "tools": [
            {"googleSearch": {}},
            {"functionDeclarations": [{"name": "read", "behavior": "BLOCKING"}], "codeExecution": {}},
            {"functionDeclarations": [{"name": "write"}]},
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
        "generationConfig": config,
        "newField": 1,
    }
    request = providers.read_request(body, format="gemini")
    assert (request.model, request.system.text) == ("gemini-3-pro", "be brief")
    assert [each.name for each in request.tools] == ["read", "write"]
    del body["model"]
    assert msgspec.json.decode(providers.render_request(request)) == body
    for entry in body["tools"]:
        types.Tool.model_validate(entry)


@pytest.mark.parametrize(
    ("contents", "expected"), [("hi", [HI]), (HI, [HI]), (["hi", OK], [HI, OK]), ([HI, OK], [HI, OK])]
)
def test_contents_as_the_sdk_takes_them(contents, expected):
    """Text and a single content go out as the API takes them."""
    assert body_of({"contents": contents})["contents"] == expected


@pytest.mark.parametrize("system", ["be brief", ["be brief"], text("be brief"), {"parts": [text("be brief")]}])
def test_system_prompts_as_the_sdk_takes_them(system):
    """Text, parts and a content are one thing."""
    body = {"contents": [HI], "system_instruction": system}
    assert body_of(body)["systemInstruction"] == {"parts": [text("be brief")]}
    assert FORMAT.render_system([FORMAT.read_system(system)]) == b'{"parts":[{"text":"be brief"}]}'


def test_reply_brings_its_usage():
    """Cached tokens are told apart from fresh ones; thoughts are output, what a tool of Google's read is input."""
    reply = {
        "candidates": [{"content": model(text("hi", thoughtSignature=SIGNATURE)), "finishReason": "STOP"}],
        "usageMetadata": {
            "promptTokenCount": 10,
            "cachedContentTokenCount": 6,
            "candidatesTokenCount": 2,
            "thoughtsTokenCount": 3,
            "toolUsePromptTokenCount": 5,
            "totalTokenCount": 20,
        },
        "modelVersion": "gemini-3-pro",
    }
    found = FORMAT.read_reply(msgspec.json.encode(reply))
    assert render(found.message) == reply["candidates"][0]["content"]
    assert (found.model, found.stop_reason) == ("gemini-3-pro", "STOP")
    usage = providers.read_usage(reply["usageMetadata"])
    assert found.usage == usage
    assert (usage.input, usage.cache_read, usage.output, usage.total) == (9, 6, 5, 20)
    assert providers.read_usage({"prompt_token_count": 4, "candidates_token_count": None}).total == 4


def test_reply_of_the_sdk_is_added():
    """The SDK's own response object brings the message, what was used and the model, bytes of signatures included."""
    reply = types.GenerateContentResponse.model_validate(
        {
            "candidates": [{"content": model(call(signature=SIGNATURE))}],
            "usageMetadata": {"promptTokenCount": 7},
            "modelVersion": "m",
        }
    )
    added = providers.read_added(reply)
    assert [render(message) for message in added.messages] == [model(call(signature=SIGNATURE))]
    assert (added.usage.total, added.model) == (7, "m")
    content = types.Content(role="user", parts=[types.Part.from_bytes(data=b"\xff\xfe", mime_type="image/png")])
    assert bare(providers.read_added(content).messages[0].blocks) == [Image(media_type="image/png", data="__4=")]


@pytest.mark.parametrize("candidate", [{"finishReason": "MAX_TOKENS"}, {"content": {"role": "model"}}, {"content": {}}])
def test_reply_that_was_cut_short_is_an_empty_message(candidate):
    """Nothing said is nothing wrong."""
    message = FORMAT.read_reply(msgspec.json.encode({"candidates": [candidate]})).message
    assert (message.role, message.blocks) == ("assistant", ())


def test_blocked_reply_is_refused():
    """There is nothing to add: the error says where the reason is."""
    with pytest.raises(FormatError, match="promptFeedback"):
        FORMAT.read_reply(b'{"promptFeedback":{"blockReason":"SAFETY"}}')


def test_tools_are_read_one_by_one():
    """A declaration in either dialect has a standard schema; other entries go out again as they came."""
    own = {
        "name": "read",
        "description": "reads",
        "parameters": {
            "type": "OBJECT",
            "properties": {
                "type": {"type": "STRING", "nullable": True},
                "all": {"type": "ARRAY", "items": {"type": "INTEGER"}},
            },
        },
    }
    standard = {
        "type": "object",
        "properties": {"type": {"type": ["string", "null"]}, "all": {"type": "array", "items": {"type": "integer"}}},
    }
    assert providers.read_tool(own).schema == standard
    assert providers.read_tool({"function_declarations": [own]}).schema == standard
    assert providers.read_tool({"name": "read", "parametersJsonSchema": standard}).schema == standard
    several = [{"functionDeclarations": [own, {"name": "b"}]}, {"googleSearch": {}}]
    tools = [providers.read_tool(entry) for entry in [own, *several]]
    assert [each.format for each in tools] == ["gemini"] * 3
    body = FORMAT.render_body(
        messages=[], system=None, tools=[FORMAT.render_tool(each) for each in tools], model=None, rest={}
    )
    assert msgspec.json.decode(body)["tools"] == [{"functionDeclarations": [own]}, *several]


@pytest.mark.parametrize(
    ("content", "where", "what"),
    [
        ({"role": "assistant", "parts": []}, "contents[0].role", "no such role as 'assistant'"),
        ({"role": "user", "content": "x"}, "contents[0]", "a content without parts"),
        ({"text": "x"}, "contents[0]", "a content without parts"),
        (user({"functionCall": {"args": {}}}), "contents[0].parts[0].functionCall", "missing required field name"),
        (user({"text": 1}), "contents[0].parts[0].text", "got int"),
        (user({"inlineData": {}}), "contents[0].parts[0].inlineData", "inlineData without its data"),
        ({"role": "user", "parts": ["x"]}, "contents[0].parts[0]", "got str"),
    ],
)
def test_what_is_no_content_is_refused_with_its_place(content, where, what):
    """The error names the place, what is wrong, and a remedy."""
    with pytest.raises(FormatError) as raised:
        read(content)
    assert raised.value.where == where
    assert what in str(raised.value)
    assert raised.value.remedy


@pytest.mark.parametrize(
    ("value", "is_gemini"),
    [
        ({"contents": "hi"}, True),
        ([HI], True),
        (OK, True),
        ({"candidates": []}, True),
        ({"usage_metadata": {}}, True),
        ({"messages": [], "contents": []}, False),
        ([{"role": "user", "content": "hi"}], False),
        ({"role": "user", "parts": [{"type": "text", "text": "hi"}]}, False),
        ({"role": "assistant", "parts": [text("hi")]}, False),
        ("hi", False),
    ],
)
def test_format_is_told(value, is_gemini):
    """Told by what only Gemini has."""
    assert FORMAT.detects(value) is is_gemini


@pytest.mark.parametrize(
    "response",
    [
        {"output": "a", "error": "b"},
        {"output": "a", "result": "b"},
        {"result": "a", "error": "b"},
        {"output": "a", "result": "a"},
        {"output": "a", "more": 1},
    ],
)
def test_response_of_several_fields_is_told_whole(response):
    """Only a field that stands alone is the words of the tool."""
    raw = msgspec.json.encode(user(answer("read", **response)))
    (result,) = FORMAT.read_message(raw, "").results
    assert (result.is_error, msgspec.json.decode(result.content[0].text)) == (False, response)
