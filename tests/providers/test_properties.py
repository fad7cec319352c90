"""What holds for every conversation, whichever format it came in and goes out as."""

from __future__ import annotations

import msgspec
import pytest
from anthropic.types import MessageParam
from google.genai.types import Content
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

from support.conversations import broken_anthropic, broken_openai, sound_anthropic, sound_openai
from support.examples import examples
from windowsill import providers
from windowsill.history.repair import repair

pytestmark = pytest.mark.unit

ADAPTERS = {
    "anthropic": TypeAdapter(list[MessageParam]),
    "deepseek": TypeAdapter(list[ChatCompletionMessageParam]),
    "gemini": TypeAdapter(list[Content]),
    "openai": TypeAdapter(list[ChatCompletionMessageParam]),
    "responses": TypeAdapter(list[ResponseInputItemParam]),
}
broken = st.one_of(
    broken_anthropic.map(lambda messages: (messages, "anthropic")),
    broken_openai.map(lambda messages: (messages, "openai")),
    broken_openai.map(lambda messages: (messages, "deepseek")),
)
names = st.sampled_from(providers.names())


def rendered(messages, name):
    """The mended messages as the caller would send them: leading system messages where the format has them."""
    format = providers.get(name)
    mended = list(repair(messages, format.rules).messages)
    systems = []
    apart = format.rules.system_apart and not format.rules.system_inside
    while apart and mended and mended[0].role == "system":
        systems.append(mended.pop(0))
    body = format.render_body(
        messages=[each for message in mended for each in format.render_message(message)],
        system=format.render_system(systems),
        tools=[],
        model="m",
        rest={"max_tokens": msgspec.Raw(b"9")},
    )
    return msgspec.json.decode(body)


@settings(max_examples=examples(2))
@given(broken, names)
def test_mended_conversation_is_accepted(conversation, target):
    """Whatever was broken, and wherever it came from, the provider's validator finds nothing."""
    messages, source = conversation
    request = providers.read_request(messages, format=source)
    assert providers.get(target).validate(rendered(request.messages, target)) == []


@given(st.tuples(broken_anthropic, broken_openai), names)
def test_mixed_conversation_is_accepted(both, target):
    """A conversation whose parts came from two providers can go to either."""
    mixed = providers.read_request(both[0], format="anthropic").messages
    mixed += providers.read_request(both[1], format="openai").messages
    assert providers.get(target).validate(rendered(mixed, target)) == []


@given(
    st.one_of(
        sound_anthropic().map(lambda value: (value, "anthropic")), sound_openai().map(lambda value: (value, "openai"))
    ),
    names,
)
def test_official_types_take_what_is_rendered(conversation, target):
    """The provider's own SDK types accept a sound conversation from either side."""
    messages, source = conversation
    known = [
        {**each, "content": [block for block in each["content"] if block["type"] != "hologram"]}
        if isinstance(each["content"], list)
        else each
        for each in messages
    ]
    request = providers.read_request(known, format=source)
    ADAPTERS[target].validate_python(rendered(request.messages, target)[providers.get(target).spec.messages_field])


@given(broken)
def test_unchanged_messages_are_the_same_bytes(conversation):
    """Reading and rendering without mending gives every message back byte for byte, broken or not."""
    messages, source = conversation
    source = "openai" if source == "deepseek" else source
    raws = [msgspec.json.format(msgspec.json.encode(each), indent=1) for each in messages]
    request = providers.read_request(b"[" + b" , ".join(raws) + b"]", format=source)
    format = providers.get(source)
    assert [each for message in request.messages for each in format.render_message(message)] == raws


@given(broken, names)
def test_nothing_is_rendered_empty(conversation, target):
    """Rendering to another format without mending never raises and never makes an empty message."""
    messages, source = conversation
    format = providers.get(target)
    for message in providers.read_request(messages, format=source).messages:
        assert format.render_message(message)


@given(broken)
def test_public_repair_gives_native_messages_that_validate(conversation):
    """The two public functions agree with each other."""
    messages, source = conversation
    assert providers.validate(providers.repair(messages, format=source).messages, format=source) == []
