"""Gemini: what holds for every conversation, from and to the other formats."""

from __future__ import annotations

import msgspec
import pytest
from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st

from support.conversations import broken_anthropic, broken_openai, sound_anthropic, sound_openai
from support.examples import examples
from support.gemini_contents import broken_gemini, sound_gemini
from windowsill import providers
from windowsill.history.repair import repair
from windowsill.providers.gemini import PLACEHOLDER
from windowsill.providers.gemini.messages import Gemini

pytestmark = pytest.mark.unit

foreign = st.one_of(
    broken_anthropic.map(lambda messages: (messages, "anthropic")),
    broken_openai.map(lambda messages: (messages, "openai")),
)
sound = st.one_of(
    sound_anthropic().map(lambda messages: (messages, "anthropic")),
    sound_openai().map(lambda messages: (messages, "openai")),
)


def body(messages, format):
    """The mended messages as a decoded request body."""
    mended = list(repair(messages, format.rules).messages)
    systems = []
    while format.rules.system_apart and mended and mended[0].role == "system":
        systems.append(mended.pop(0))
    return msgspec.json.decode(
        format.render_body(
            messages=[each for message in mended for each in format.render_message(message)],
            system=format.render_system(systems),
            tools=[],
            model="m",
            rest={"max_tokens": msgspec.Raw(b"9")},
        )
    )


def typed(contents):
    return [types.Content.model_validate(content) for content in contents]


@settings(max_examples=examples(2))
@given(broken_gemini())
def test_mended_conversation_is_accepted(contents):
    """Whatever was broken, the validator finds nothing after mending."""
    request = providers.read_request(contents, format="gemini")
    assert Gemini().validate(body(request.messages, Gemini())) == []


@given(broken_gemini())
def test_contents_added_one_by_one_are_accepted(contents):
    """The same holds when nobody saw the conversation as a whole."""
    messages = [Gemini().read_message(msgspec.json.encode(content), "") for content in contents]
    assert Gemini().validate(body(messages, Gemini())) == []


@given(foreign)
def test_foreign_conversation_is_accepted(conversation):
    """What another provider's conversation becomes, Gemini takes."""
    messages, source = conversation
    request = providers.read_request(messages, format=source)
    assert Gemini().validate(body(request.messages, Gemini())) == []


@given(broken_gemini(), st.sampled_from(["anthropic", "openai"]))
def test_gemini_conversation_is_accepted_elsewhere(contents, target):
    """What a Gemini conversation becomes, the others take."""
    request = providers.read_request(contents, format="gemini")
    format = providers.get(target)
    assert format.validate(body(request.messages, format)) == []


@given(broken_gemini(), foreign)
def test_mixed_conversation_is_accepted(contents, conversation):
    """A conversation that changed its provider goes to Gemini, with a placeholder for the calls it did not sign."""
    mixed = providers.read_request(contents, format="gemini").messages
    mixed += providers.read_request(conversation[0], format=conversation[1]).messages
    assert Gemini().validate(body(mixed, Gemini(signature=PLACEHOLDER))) == []
    for target in ("anthropic", "openai"):
        assert providers.get(target).validate(body(mixed, providers.get(target))) == []


@given(sound_gemini())
def test_sound_conversation_needs_no_mending(contents):
    """Nothing is found in it, nothing is mended, every content stays the same object, and the SDK's types take it."""
    assert providers.validate(contents, format="gemini") == []
    messages = providers.read_request(contents, format="gemini").messages
    mended = repair(messages, Gemini().rules)
    assert mended.repairs == ()
    assert all(one is other for one, other in zip(mended.messages, messages, strict=True))
    typed(contents)


@given(sound)
def test_official_types_take_foreign_conversations(conversation):
    """The SDK's own types, which allow no field they do not know, accept what is rendered."""
    messages, source = conversation
    request = providers.read_request(messages, format=source)
    typed(body(request.messages, Gemini())["contents"])


@given(broken_gemini())
def test_unchanged_contents_are_the_same_bytes(contents):
    """Reading and rendering gives every content back byte for byte, broken or not."""
    raws = [msgspec.json.format(msgspec.json.encode(each), indent=1) for each in contents]
    request = providers.read_request(b"[" + b" , ".join(raws) + b"]", format="gemini")
    assert [each for message in request.messages for each in Gemini().render_message(message)] == raws


@given(broken_gemini())
def test_edited_contents_keep_the_bytes_of_their_parts(contents):
    """A content that is put together anew has every part exactly as it came, signatures included."""
    for message in providers.read_request(contents, format="gemini").messages:
        (rendered,) = Gemini().render_message(msgspec.structs.replace(message, edited=True))
        raws = [block.raw for block in message.blocks]
        assert b",".join(raws) in rendered


@given(foreign)
def test_nothing_is_rendered_empty(conversation):
    """Rendering without mending never raises and never makes an empty content."""
    for message in providers.read_request(conversation[0], format=conversation[1]).messages:
        for rendered in Gemini().render_message(message):
            assert msgspec.json.decode(rendered)["parts"]
