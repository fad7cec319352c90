"""Everything the official SDKs declare as input: it survives, it is weighed, it is accepted, and it crosses over."""

from __future__ import annotations

import msgspec
import pytest
from anthropic.types import ToolUnionParam
from anthropic.types.beta import BetaContentBlockParam, BetaToolUnionParam
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolUnionParam
from openai.types.responses import ResponseInputItemParam, ToolParam

from support.sdk_samples import variants
from windowsill import providers
from windowsill.history.repair import repair
from windowsill.tokens import Scale, counter, framing, image_rule

pytestmark = pytest.mark.unit

SCALE = Scale(counter("chars/4"), framing=framing("generic"), images=image_rule("generic"))

ASKED = {"role": "user", "content": "look at it"}
SPOKEN = {"type": "text", "text": "so it is"}
USERS = {"text", "image", "document", "search_result", "tool_result", "container_upload"}
SYSTEMS = {"tool_addition", "tool_removal"}
USE = {"type": "tool_use", "id": "id_1", "name": "look", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "id_1", "content": "seen"}
CALL = {"id": "id_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
OUTPUTS = {"function_call_output", "custom_tool_call_output", "computer_call_output", "shell_call_output"}
OUTPUTS |= {"local_shell_call_output", "apply_patch_call_output"}


def anthropic(block):
    """A conversation around a block: what must stand before and after it, and whose it is."""
    kind = block["type"]
    if kind == "tool_use":
        return [ASKED, {"role": "assistant", "content": [block]}, {"role": "user", "content": [RESULT]}]
    if kind == "tool_result":
        return [ASKED, {"role": "assistant", "content": [USE]}, {"role": "user", "content": [block]}]
    if kind in SYSTEMS:
        return [ASKED, {"role": "system", "content": [block]}]
    if kind in USERS:
        return [{"role": "user", "content": [block]}]
    return [ASKED, {"role": "assistant", "content": [block, SPOKEN]}, ASKED]


def responses(item):
    """A list of items around one: a call gets its output, an output its call, reasoning what follows it."""
    kind = item.get("type", "message")
    if kind in OUTPUTS:
        call = {"type": kind.removesuffix("_output"), "call_id": "id_1", "name": "look"}
        return [ASKED, {**call, "arguments": "{}", "input": "x"}, item]
    output = f"{kind}_output"
    if output in OUTPUTS:
        given = [{"type": "input_text", "text": "seen"}] if kind == "shell_call" else "seen"
        answer = {"type": output, "call_id": "id_1", "id": "id_1", "status": "completed", "output": given}
        return [ASKED, item, answer]
    return [ASKED, item, {"role": "assistant", "content": "so it is"}]


def chat(message):
    """A conversation around a message."""
    if message["role"] == "tool":
        asked = {"role": "assistant", "content": None, "tool_calls": [CALL]}
        return [ASKED, asked, {**message, "tool_call_id": "id_1"}]
    if message["role"] == "function":
        return [ASKED, {"role": "assistant", "function_call": {"name": "look", "arguments": "{}"}}, message]
    return [message if message["role"] != "assistant" else {"content": "so it is", **message}]


def checked(messages, source):
    """Byte for byte the same, accepted, weighed; and accepted by every other provider after it crossed."""
    raws = [msgspec.json.format(msgspec.json.encode(each), indent=1) for each in messages]
    request = providers.read_request(b"[" + b",".join(raws) + b"]", format=source)
    own = providers.get(source)
    assert [each for message in request.messages for each in own.render_message(message)] == raws
    assert own.validate(messages) == []
    assert all(SCALE.tokens(SCALE.weigh(message)) > SCALE.framing.message for message in request.messages)
    for name in providers.names():
        format = providers.get(name)
        mended = repair(request.messages, format.rules)
        chunks = [chunk for message in mended.messages for chunk in format.render_message(message)]
        assert (name, format.validate([msgspec.json.decode(chunk) for chunk in chunks])) == (name, [])


@pytest.mark.parametrize("block", variants(BetaContentBlockParam))
def test_every_block_of_anthropic(block):
    """Each kind of block that a request to Anthropic may hold."""
    checked(anthropic(block), "anthropic")


@pytest.mark.parametrize("item", variants(ResponseInputItemParam))
def test_every_item_of_responses(item):
    """Each kind of item that the input of OpenAI Responses may hold."""
    checked(responses(item), "responses")


@pytest.mark.parametrize("message", variants(ChatCompletionMessageParam))
def test_every_message_of_chat(message):
    """Each kind of message and part that a chat of OpenAI's may hold."""
    checked(chat(message), "openai")


@pytest.mark.parametrize(
    ("tool", "source"),
    [
        *((param.values[0], "anthropic") for param in variants(BetaToolUnionParam) + variants(ToolUnionParam)),
        *((param.values[0], "openai") for param in variants(ChatCompletionToolUnionParam)),
        *((param.values[0], "responses") for param in variants(ToolParam)),
    ],
)
def test_every_tool(tool, source):
    """Each kind of tool definition is kept, told apart, and accepted where it came from."""
    raw = msgspec.json.encode(tool)
    read = providers.get(source).read_tool(raw, "tools[0]")
    assert providers.get(source).render_tool(read) == raw
    assert providers.read_tool(tool).format == source
    under = providers.get(source).spec.messages_field
    body = {"model": "m", "max_tokens": 9, under: [ASKED], "tools": [tool]}
    assert providers.validate(body, source) == []
