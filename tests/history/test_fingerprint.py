"""The fingerprint of a conversation: the same words give the same chain, other words another."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.conversations import result, sound_anthropic, text_block, thinking, use
from windowsill import providers
from windowsill.history.entries import START, extend, extend_exactly, pieces

pytestmark = pytest.mark.unit

PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
PAGE = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "page"}}
STRANGE = {"type": "hologram", "depth": 3, "data": {"x": 1, "y": 2}}


def chain_of(messages, format="anthropic"):
    """The chain of a list of native messages, or of its JSON."""
    link = START
    for message in providers.read_request(messages, format=format).messages:
        link = extend_exactly(link, message)
    return link


def said(*blocks, role="user"):
    return [{"role": role, "content": list(blocks)}]


def backwards(value):
    """The same value with the keys of every object in the other order."""
    if isinstance(value, dict):
        return {key: backwards(value[key]) for key in reversed(value)}
    return [backwards(inner) for inner in value] if isinstance(value, list) else value


def with_markers(value):
    """The same messages with a cache marker on every block."""
    return [
        {
            **message,
            "content": [{**block, "cache_control": {"type": "ephemeral"}} for block in message["content"]]
            if isinstance(message["content"], list)
            else message["content"],
        }
        for message in value
    ]


@given(sound_anthropic())
def test_the_spelling_of_the_json_does_not_count(messages):
    """Key order, white space and cache markers differ between clients that send the same words."""
    spaced = msgspec.json.format(msgspec.json.encode(backwards(messages)), indent=2)
    assert chain_of(spaced) == chain_of(messages) == chain_of(with_markers(messages))


def test_the_arguments_of_a_call_are_compared_as_values():
    """A model's own spelling of them is not part of what was said."""
    calls = [
        [{"role": "assistant", "content": None, "tool_calls": [{"id": "a", "type": "function", "function": function}]}]
        for function in (
            {"name": "run", "arguments": '{"a":1,"b":[2]}'},
            {"name": "run", "arguments": '{ "b": [2], "a": 1 }'},
        )
    ]
    assert chain_of(calls[0], "openai") == chain_of(calls[1], "openai")


def test_a_plain_string_and_one_text_block_are_the_same_words():
    """Clients rewrite one into the other."""
    assert chain_of([{"role": "user", "content": "hi"}]) == chain_of(said(text_block("hi")))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (said(text_block("a")), said(text_block("b"))),
        (said(text_block("a")), said(text_block("a"), role="assistant")),
        (said(text_block("a"), text_block("b")), said(text_block("ab"))),
        (said(text_block("a"), text_block("b")), said(text_block("b"), text_block("a"))),
        (said(use("a"), role="assistant"), said(use("b"), role="assistant")),
        (said(use("a"), role="assistant"), said(use("a", "write"), role="assistant")),
        (said(use("a"), role="assistant"), said({**use("a"), "input": {"path": "b.py"}}, role="assistant")),
        (said(result("a")), said(result("b"))),
        (said(result("a")), said(result("a", "other"))),
        (said(result("a")), said(result("a", is_error=True))),
        (said(thinking("a"), role="assistant"), said(thinking("b"), role="assistant")),
        (said(thinking("a"), role="assistant"), said(thinking("a", signature="other"), role="assistant")),
        (said(PICTURE), said({**PICTURE, "source": {**PICTURE["source"], "data": "AAAA"}})),
        (said(PICTURE), said({**PICTURE, "source": {**PICTURE["source"], "media_type": "image/jpeg"}})),
        (said(PICTURE), said({**PICTURE, "source": {"type": "url", "url": "https://example.com/a.png"}})),
        (said(PAGE), said({**PAGE, "source": {**PAGE["source"], "data": "another page"}})),
        (said(PAGE), said({**PAGE, "title": "a title that the model reads"})),
        (said(STRANGE), said({**STRANGE, "depth": 4})),
        (said(STRANGE), said({**STRANGE, "type": "smell"})),
        (said(text_block("a")) * 2, said(text_block("a"))),
        (said(text_block("a")) + said(text_block("b")), said(text_block("b")) + said(text_block("a"))),
    ],
)
def test_other_content_gives_another_chain(one, other):
    """Each part that a model can see counts."""
    assert chain_of(one) != chain_of(other)


@given(st.lists(sound_anthropic(), min_size=2, max_size=2, unique_by=repr))
def test_two_conversations_that_differ_have_different_chains(pair):
    """Whatever they hold."""
    assert (chain_of(pair[0]) == chain_of(pair[1])) is (pair[0] == pair[1])


def test_a_marker_inside_an_argument_is_an_argument():
    """A tool whose input has a field `cache_control` was called with it: that is content, not a marker."""
    calls = [
        said({**use("a"), "input": {"path": "a", **more}}, role="assistant") for more in ({}, {"cache_control": 1})
    ]
    assert chain_of(calls[0]) != chain_of(calls[1])


def thread_of(messages, format="anthropic"):
    """The fingerprint of a conversation as a client may send it again."""
    link = START
    for message in providers.read_request(messages, format=format).messages:
        link = extend(link, message.role, pieces(message))
    return link


@given(sound_anthropic())
def test_a_thread_does_not_depend_on_reasoning(messages):
    """Clients give answers back with some of it left out."""
    echoed = []
    for message in messages:
        blocks = message["content"] if isinstance(message["content"], list) else [text_block(message["content"])]
        told = [block for block in blocks if block["type"] not in {"thinking", "redacted_thinking"}]
        echoed.append({**message, "content": told})
    assert thread_of(echoed) == thread_of(messages)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (said(text_block("a")), said(text_block("b"))),
        (said(text_block("a")), said(text_block("a"), role="assistant")),
        (said(use("a"), role="assistant"), said(use("a", "write"), role="assistant")),
        (said(result("a", "x")), said(result("a", "y"))),
        (said(result("a", "x")), said(result("b", "x"))),
        (said(result("a", "x")), said(result("a", "x", is_error=True))),
        (said(PICTURE), said(PAGE)),
        (said(STRANGE), said({**STRANGE, "depth": 4})),
        (said(text_block("a")), said(text_block("a")) * 2),
    ],
)
def test_other_words_give_another_thread(one, other):
    """What was said, by whom and how often counts."""
    assert thread_of(one) != thread_of(other)


def test_a_leading_system_prompt_is_not_part_of_a_thread_and_a_later_one_is():
    """The first holds the time of day; a later one was said at its place."""
    hour = {"role": "system", "content": "It is nine."}
    user = {"role": "user", "content": "hi"}
    assert thread_of([hour, user], "openai") == thread_of([user], "openai")
    assert thread_of([user, hour], "openai") != thread_of([user], "openai")
