"""What holds for every conversation that is, or becomes, one of OpenAI Responses."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.conversations import (
    any_text,
    broken_anthropic,
    broken_openai,
    ids,
    sound_anthropic,
    sound_openai,
    spoken,
)
from support.examples import examples
from support.response_items import (
    FILE,
    FORMAT,
    HI,
    ITEMS,
    PAIRS,
    PIXEL,
    SEARCH,
    custom,
    custom_output,
    function,
    input_text,
    mended,
    output,
    reasoned,
    said,
    written,
)
from windowsill import providers
from windowsill.history.repair import repair

pytestmark = pytest.mark.unit


part = st.one_of(st.builds(input_text, any_text), st.sampled_from([PIXEL, FILE, {"type": "input_smell", "x": [1]}]))
spoken_item = st.one_of(
    st.builds(written, any_text),
    st.builds(lambda text: {"role": "assistant", "content": text}, any_text),
)
item = st.one_of(
    st.builds(lambda parts: said(*parts), st.lists(part, max_size=3)),
    st.builds(lambda role, text: {"role": role, "content": text}, st.sampled_from(["user", "developer"]), any_text),
    spoken_item,
    st.builds(reasoned, st.integers(0, 9)),
    st.builds(function, ids, st.just("read"), st.sampled_from(["{}", "", "not json"])),
    st.builds(custom, ids, any_text),
    st.builds(output, ids, st.one_of(any_text, st.lists(part, max_size=2))),
    st.builds(custom_output, ids, any_text),
    st.builds(
        lambda call_id, pair, side: {**pair[side], "call_id": call_id}, ids, st.sampled_from(PAIRS), st.integers(0, 1)
    ),
    st.sampled_from([SEARCH, {"type": "hologram", "depth": 3}, {"type": "compaction", "encrypted_content": "gAAA=="}]),
)
broken = st.lists(item, min_size=1, max_size=12)
conversation = st.one_of(
    broken.map(lambda items: (items, "responses")),
    broken_anthropic.map(lambda messages: (messages, "anthropic")),
    broken_openai.map(lambda messages: (messages, "openai")),
)


@st.composite
def sound(draw):
    """A conversation the provider accepts: turns of reasoning, words and parallel calls, each answered."""
    items = [draw(st.sampled_from([HI, said(input_text("hi"), PIXEL)]))]
    for turn in range(draw(st.integers(0, 4))):
        if draw(st.booleans()):
            items.append(reasoned(turn))
        items += draw(st.lists(st.builds(written, spoken), max_size=1))
        batch = [f"t{turn}_{number}" for number in range(draw(st.integers(1, 3)))]
        kinds = [draw(st.sampled_from(PAIRS)) for _ in batch]
        items += [{**asked, "call_id": id} for id, (asked, _) in zip(batch, kinds, strict=True)]
        for id, (_, answer) in zip(batch, kinds, strict=True):
            items.append({**answer, "call_id": id, "id": id} if "id" in answer else {**answer, "call_id": id})
    return [*items, written(draw(spoken))]


def requested(messages, name):
    format = providers.get(name)
    found = list(repair(messages, format.rules).messages)
    systems = []
    while format.rules.system_apart and found and found[0].role == "system":
        systems.append(found.pop(0))
    chunks = [each for message in found for each in format.render_message(message)]
    rest = {"max_tokens": msgspec.Raw(b"9")}
    system = format.render_system(systems)
    body = format.render_body(messages=chunks, system=system, tools=[], model="m", rest=rest)
    return msgspec.json.decode(body)


@settings(max_examples=examples(2))
@given(conversation, st.sampled_from(["responses", "anthropic", "openai"]))
def test_mended_conversation_is_accepted(conversation, target):
    """Whatever was broken, and wherever it came from and goes to, the provider's validator finds nothing."""
    messages, source = conversation
    if "responses" not in {source, target}:
        target = "responses"
    request = providers.read_request(messages, format=source)
    body = requested(request.messages, target)
    if target == "responses" and not body["input"]:
        # Nothing but system messages: there is nothing to send yet.
        body["input"] = "hi"
    assert providers.get(target).validate(body) == []


@given(st.tuples(broken, broken_anthropic, broken_openai), st.permutations([0, 1, 2]))
def test_mixed_conversation_is_accepted(parts, order):
    """A conversation whose parts came from three providers can go to this one."""
    names = ["responses", "anthropic", "openai"]
    read = [providers.read_request(each, format=name).messages for each, name in zip(parts, names, strict=True)]
    assert FORMAT.validate(requested([message for index in order for message in read[index]], "responses")) == []


@given(sound())
def test_sound_conversation_is_left_alone(items):
    """Nothing is found in it, nothing is mended, and the official types take it."""
    assert FORMAT.validate(items) == []
    found = mended(*items)
    assert (found.messages, found.repairs) == (items, ())
    ITEMS.validate_python(items)


@given(
    st.one_of(
        sound_anthropic().map(lambda value: (value, "anthropic")), sound_openai().map(lambda value: (value, "openai"))
    )
)
def test_official_types_take_what_is_rendered(conversation):
    """The SDK's own types accept a sound conversation from either side."""
    messages, source = conversation
    request = providers.read_request(messages, format=source)
    ITEMS.validate_python(requested(request.messages, "responses")["input"])


@given(broken)
def test_unchanged_items_are_the_same_bytes(items):
    """Reading and rendering without mending gives every item back byte for byte, broken or not."""
    raws = [msgspec.json.format(msgspec.json.encode(each), indent=1) for each in items]
    request = FORMAT.read_body(b"[" + b" , ".join(raws) + b"]")
    assert [each for message in request.messages for each in FORMAT.render_message(message)] == raws


@given(conversation)
def test_nothing_is_rendered_empty(conversation):
    """Rendering without mending never raises and never loses a message."""
    messages, source = conversation
    for message in providers.read_request(messages, format=source).messages:
        for target in ("responses", "anthropic", "openai"):
            assert providers.get(target).render_message(message)
