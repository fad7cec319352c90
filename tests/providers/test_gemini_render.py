"""Gemini's generateContent: what was edited or comes from another provider, rendered; and the way back."""

from __future__ import annotations

import msgspec
import pytest

from support.conversations import call as openai_call
from support.conversations import result, text_block, thinking, tool, use
from support.gemini_contents import (
    ARGUMENTS,
    FORMAT,
    HI,
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
from windowsill.history.repair import repair
from windowsill.messages import Text
from windowsill.providers.gemini import PLACEHOLDER
from windowsill.providers.gemini.messages import Gemini

pytestmark = pytest.mark.unit


def body_of(request, **more):
    return msgspec.json.decode(providers.render_request(providers.read_request(request, format="gemini"), **more))


def crossed(*messages, source="anthropic", format=FORMAT):
    mended = repair(providers.read_request(list(messages), format=source).messages, format.rules)
    return [render(message, format) for message in mended.messages]


def test_edited_call_keeps_its_signature():
    """A call that was written anew goes out with the proof it came with, and without an id that was made here."""
    message = read(model(call(signature=SIGNATURE)))
    shorter = msgspec.structs.replace(message.blocks[0], arguments="{}", raw=None)
    edited = msgspec.structs.replace(message, blocks=(shorter,), edited=True)
    assert render(edited) == model({"functionCall": {"name": "read", "args": {}}, "thoughtSignature": SIGNATURE})


def test_edited_content_keeps_what_stands_around_its_parts():
    """Fields beside the parts survive an edit, and so do untouched parts."""
    raw = b'{"role":"model","parts":[{"text":"a"}, {"new":{ "x":1}}],"newer":[1]}'
    message = FORMAT.read_message(raw, "")
    edited = msgspec.structs.replace(message, blocks=(Text(text="b"), message.blocks[1]), edited=True)
    assert FORMAT.render_message(edited) == [b'{"role":"model","parts":[{"text":"b"},{"new":{ "x":1}}],"newer":[1]}']


def test_edited_response_keeps_name_id_and_media():
    """A shortened output stays a response of the same tool, with the pictures the tool returned inside."""
    part = answer("read", "c0", output="long")
    part["functionResponse"]["parts"] = [PICTURE]
    message = read(user(part))
    shorter = msgspec.structs.replace(
        message.blocks[0], content=(Text(text="l"), *message.blocks[0].content[1:]), raw=None
    )
    part["functionResponse"]["response"] = {"output": "l"}
    assert render(msgspec.structs.replace(message, blocks=(shorter,), edited=True)) == user(part)


def test_anthropic_turn_crosses():
    """Thinking stays behind; a call keeps its id, and its result learns the name of the tool."""
    asked = {"role": "assistant", "content": [thinking(), text_block("I look"), use("c0"), use("c1", "write")]}
    answered = {"role": "user", "content": [result("c0", "one"), result("c1", "bad", is_error=True), text_block("go")]}
    assert crossed({"role": "user", "content": "hi"}, asked, answered) == [
        HI,
        model(text("I look"), call("read", "c0"), call("write", "c1")),
        user(answer("read", "c0", output="one"), answer("write", "c1", error="bad"), text("go")),
    ]


def test_openai_results_stand_in_one_content():
    """Tool messages, one each, become one content with a response for every call; a missing one is supplied."""
    asked = {"role": "assistant", "content": None, "tool_calls": [openai_call("a"), openai_call("b"), openai_call("c")]}
    messages = [{"role": "user", "content": "hi"}, asked, tool("b", "two"), tool("a", "one")]
    assert crossed(*messages, source="openai")[2] == user(
        answer("read", "b", output="two"),
        answer("read", "a", output="one"),
        answer("read", "c", error="no result was recorded for this call"),
    )


def test_media_of_a_foreign_result_follow_the_responses():
    """Older models take no pictures inside a response: they stand after all of them."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    asked = {"role": "assistant", "content": [use("c0"), use("c1")]}
    answered = {"role": "user", "content": [result("c0", [text_block("see"), image]), result("c1", "two")]}
    assert crossed({"role": "user", "content": "hi"}, asked, answered)[2] == user(
        answer("read", "c0", output="see"),
        answer("read", "c1", output="two"),
        text("(attached to the result of tool call c0)"),
        {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
    )


def test_pictures_and_documents_cross():
    """Inline data and addresses find their place; what Gemini cannot read becomes words."""
    content = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "AA=="}},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.PNG?x=1.y"}},
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "page"}},
        {"type": "hologram"},
    ]
    assert crossed({"role": "user", "content": content}) == [
        user(
            text("(image image/gif)"),
            {"fileData": {"mimeType": "image/png", "fileUri": "https://example.com/a.PNG?x=1.y"}},
            text("(image file_1)"),
            {"inlineData": {"mimeType": "application/pdf", "data": "AA=="}},
            text("page"),
            text("(hologram block)"),
        )
    ]


def test_foreign_calls_are_signed_only_when_asked_for():
    """Gemini 3 wants a signature on the first call of a step: the documented placeholder, by choice."""
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [use("c0"), use("c1")]},
        {"role": "user", "content": [result("c0"), result("c1")]},
    ]
    assert crossed(*messages)[1] == model(call(id="c0"), call(id="c1"))
    signed = crossed(*messages, format=Gemini(signature=PLACEHOLDER))[1]
    assert signed == model(call(id="c0", signature="context_engineering_is_the_way_to_go"), call(id="c1"))


def test_gemini_turn_crosses_to_the_others():
    """Calls that had no id get one each, spelled as the provider wants it, and their results follow."""
    contents = [HI, model(text("hm", thought=True), call(), call()), user(answer(output="a"), answer(error="b"))]
    messages = providers.read_request(contents, format="gemini").messages
    chat = providers.get("openai")
    mended = [
        msgspec.json.decode(raw) for each in repair(messages, chat.rules).messages for raw in chat.render_message(each)
    ]
    assert mended[1:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [openai_call("read#0", "read", ARGUMENTS), openai_call("read#1", "read", ARGUMENTS)],
        },
        tool("read#0", "a"),
        tool("read#1", "[error] b"),
    ]
    claude = providers.get("anthropic")
    asked, answered = (
        msgspec.json.decode(claude.render_message(each)[0])["content"]
        for each in repair(messages, claude.rules).messages[1:]
    )
    assert [block["id"] for block in asked] == [block["tool_use_id"] for block in answered]
    assert [block["content"] for block in answered] == ["a", "b"]


def test_whole_request_crosses():
    """System prompt, tools and shared settings find their place with Gemini, and come back."""
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    body = {
        "model": "m",
        "max_tokens": 10,
        "temperature": 0.5,
        "stream": True,
        "tools": [{"name": "read", "description": "reads", "input_schema": schema}],
        "system": "be brief",
        "messages": [{"role": "user", "content": "hi"}],
    }
    over = msgspec.json.decode(providers.render_request(providers.read_request(body), format="gemini"))
    assert over == {
        "generationConfig": {"maxOutputTokens": 10, "temperature": 0.5},
        "tools": [{"functionDeclarations": [{"name": "read", "description": "reads", "parametersJsonSchema": schema}]}],
        "systemInstruction": {"parts": [text("be brief")]},
        "contents": [HI],
    }
    assert providers.validate(over, format="gemini") == []
    back = body_of(over, format="anthropic")
    assert (back["system"], back["tools"]) == ([text_block("be brief")], body["tools"])
