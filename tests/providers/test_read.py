"""What a program may add: text, messages, SDK objects, responses, lists of these."""

from __future__ import annotations

import msgspec
import pytest
from anthropic.types import Message as AnthropicMessage
from openai.types.chat import ChatCompletion

from support.conversations import call, text_block, use
from windowsill import providers
from windowsill.errors import FormatError
from windowsill.messages import text_message

pytestmark = pytest.mark.unit

ANTHROPIC = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-5",
    "content": [text_block("I look"), use("c0")],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 2},
}
OPENAI = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-5",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {"role": "assistant", "content": "I look", "tool_calls": [call("c0")]},
        }
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
}


def summary(added):
    (message,) = added.messages
    return message.format, message.text, [each.id for each in message.calls]


@pytest.mark.parametrize(
    ("source", "format"),
    [
        (ANTHROPIC, "anthropic"),
        (AnthropicMessage.model_validate(ANTHROPIC), "anthropic"),
        (msgspec.json.encode(ANTHROPIC), "anthropic"),
        (OPENAI, "openai"),
        (ChatCompletion.model_validate(OPENAI), "openai"),
    ],
    ids=["anthropic dict", "anthropic object", "anthropic bytes", "openai dict", "openai object"],
)
def test_response_is_taken_with_its_usage(source, format):
    """A whole response gives the message, its usage and its model."""
    added = providers.read_added(source)
    assert summary(added) == (format, "I look", ["c0"])
    assert (added.usage.input, added.usage.output) == (3, 2)
    assert added.model == source["model"] if isinstance(source, dict) else added.model


def test_message_with_the_usage_of_its_response_is_taken_as_the_response():
    """A program that kept role, content and usage is believed, and sends nothing back that a provider refuses."""
    usage = {"input_tokens": 5_000, "output_tokens": 3}
    added = providers.read_added({"role": "assistant", "content": "Done.", "usage": usage, "stop_reason": "end_turn"})
    assert added.usage.input == 5_000
    assert msgspec.json.decode(added.messages[0].raw) == {"role": "assistant", "content": "Done."}


def test_choice_and_message_objects_are_taken():
    """What people pass on from a response: the choice, or its message."""
    completion = ChatCompletion.model_validate(OPENAI)
    for part in (completion.choices[0], completion.choices[0].message, OPENAI["choices"][0]):
        assert summary(providers.read_added(part)) == ("openai", "I look", ["c0"])


def test_sdk_blocks_inside_a_dictionary_are_taken():
    """`{"role": "assistant", "content": reply.content}` is how the SDK's own examples go on."""
    reply = AnthropicMessage.model_validate(ANTHROPIC)
    added = providers.read_added({"role": "assistant", "content": reply.content})
    assert summary(added) == ("anthropic", "I look", ["c0"])
    assert msgspec.json.decode(added.messages[0].raw) == {"role": "assistant", "content": ANTHROPIC["content"]}


def test_text_is_said_by_the_user():
    """A plain string is a user message."""
    assert providers.read_added("hi").messages == [text_message("user", "hi")]


def test_list_is_added_in_order():
    """Each element may be anything that can be added alone."""
    added = providers.read_added(["hi", ANTHROPIC, text_message("user", "go on")])
    assert [message.text for message in added.messages] == ["hi", "I look", "go on"]
    assert added.usage.output == 2


@pytest.mark.parametrize("source", [7, None, {"a": 1}, [7], object()])
def test_anything_else_is_refused(source):
    """What is no message is an error with a remedy."""
    with pytest.raises(FormatError) as raised:
        providers.read_added(source)
    assert raised.value.remedy
