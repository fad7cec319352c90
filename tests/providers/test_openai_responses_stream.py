"""The stream of OpenAI Responses gives the items that the call without streaming would have given."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.conversations import ids, names, spoken
from support.pieces import cut, seeds
from windowsill.messages import Reasoning, Text, Usage
from windowsill.providers import streams
from windowsill.providers.openai_responses.items import Responses
from windowsill.providers.streams import (
    CallDelta,
    CallStarted,
    Failed,
    Finished,
    Raw,
    ReasoningDelta,
    TextDelta,
    UsageSeen,
)

pytestmark = pytest.mark.unit

dumps = msgspec.json.encode
USAGE = {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13, "input_tokens_details": {"cached_tokens": 3}}
LAST = ("response.completed", "response.output_item.done", "response.content_part.done")


def said(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "annotations": [], "text": text}
    return {"id": "m1", "type": "message", "status": "completed", "content": [part], "role": "assistant"}


def thought(text: str) -> dict[str, Any]:
    return {"id": "r1", "type": "reasoning", "summary": [{"type": "summary_text", "text": text}]}


def called(id: str, name: str, text: str) -> dict[str, Any]:
    fields = {"call_id": id, "name": name, "arguments": dumps({"path": text}).decode()}
    return {"id": "f1", "type": "function_call", "status": "completed", **fields}


def asked(id: str, text: str) -> dict[str, Any]:
    return {"id": "t1", "type": "custom_tool_call", "status": "completed", "call_id": id, "name": "sh", "input": text}


unknown = st.just({"id": "h1", "type": "hologram", "depth": 3})
items = st.one_of(
    st.builds(said, spoken),
    st.builds(thought, spoken),
    st.builds(called, ids, names, spoken),
    st.builds(asked, ids, spoken),
    unknown,
)
outputs = st.lists(items, min_size=1, max_size=4)


def response(output: list[Any], status: str = "completed", **more: Any) -> dict[str, Any]:
    head = {"id": "resp_1", "object": "response", "status": status, "model": "gpt-x"}
    return {**head, "output": output, "usage": USAGE, **more}


def grown(type: str, place: dict[str, int], text: str, chance: random.Random) -> list[dict[str, Any]]:
    return [{"type": type, "item_id": "i", **place, "delta": piece, "logprobs": []} for piece in cut(text, chance)]


def item_events(index: int, item: dict[str, Any], chance: random.Random) -> list[dict[str, Any]]:
    at, began, deltas = {"output_index": index}, dict(item), []
    if "status" in item:
        began["status"] = "in_progress"
    if item["type"] == "message":
        began["content"], part, place = [], item["content"][0], {**at, "content_index": 0}
        deltas = [
            {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
            *grown("response.output_text.delta", place, part["text"], chance),
            {"type": "response.output_text.done", **place, "text": part["text"]},
            {"type": "response.content_part.done", **place, "part": part},
        ]
    elif item["type"] == "reasoning":
        began["summary"], part, place = [], item["summary"][0], {**at, "summary_index": 0}
        deltas = [
            {"type": "response.reasoning_summary_part.added", **place, "part": {**part, "text": ""}},
            *grown("response.reasoning_summary_text.delta", place, part["text"], chance),
        ]
    elif item["type"] == "function_call":
        began["arguments"] = ""
        deltas = grown("response.function_call_arguments.delta", at, item["arguments"], chance)
    elif item["type"] == "custom_tool_call":
        began["input"] = ""
        deltas = grown("response.custom_tool_call_input.delta", at, item["input"], chance)
    return [
        {"type": "response.output_item.added", **at, "item": began},
        *deltas,
        {"type": "response.output_item.done", **at, "item": item},
    ]


def events(output: list[Any], chance: random.Random) -> list[dict[str, Any]]:
    began = response([], "in_progress", usage=None)
    return [
        {"type": "response.created", "response": began},
        {"type": "response.in_progress", "response": began},
        *(each for index, item in enumerate(output) for each in item_events(index, item, chance)),
        {"type": "response.completed", "response": response(output)},
    ]


def wire(sent: list[dict[str, Any]]) -> bytes:
    return b"".join(b"event: " + each["type"].encode() + b"\ndata: " + dumps(each) + b"\n\n" for each in sent)


def decoded(stream: streams.Stream) -> Any:
    return msgspec.json.decode(stream.body())


@given(outputs, seeds)
def test_stream_gives_the_same_as_the_whole_response(output, chance):
    """Torn anywhere, the stream ends with the response of the other call, byte for byte, and the same reply."""
    stream = streams.stream("responses")
    heard = [event for piece in cut(wire(events(output, chance)), chance) for event in stream.feed(piece)]
    assert stream.body() == dumps(response(output))
    assert stream.reply() == Responses().read_reply(dumps(response(output)))
    assert heard[-2:] == [UsageSeen(Usage(input=6, cache_read=3, output=4)), Finished("completed")]


@given(outputs, seeds)
def test_items_alone_are_enough(output, chance):
    """Without the last event, and without the ends of the items, the deltas give the same items, marked as cut."""
    sent = [each for each in events(output, chance) if each["type"] not in LAST]
    stream = streams.stream("responses")
    stream.feed(wire(sent))
    assert decoded(stream)["output"] == [
        {**item, "status": "incomplete"} if "status" in item else item for item in output
    ]
    assert stream.partial


@given(outputs, seeds)
def test_items_that_ended_are_whole(output, chance):
    """Cut before the last event, the items that ended are as they came."""
    stream = streams.stream("responses")
    stream.feed(wire(events(output, chance)[:-1]))
    assert decoded(stream)["output"] == output


@given(outputs, seeds, st.floats(0, 1))
def test_aborted_stream_keeps_what_arrived(output, chance, share):
    """Cut off at any byte nothing is raised, each item is a beginning, and the messages say so."""
    sent = wire(events(output, chance))
    stream = streams.stream("openai-responses")
    for piece in cut(sent[: int(len(sent) * share)], chance):
        stream.feed(piece)
    stream.close()
    reply, whole = stream.reply(), Responses().read_reply(dumps(response(output)))
    assert stream.failure is None
    for ours, full in zip((reply.message, *reply.more), (whole.message, *whole.more), strict=False):
        assert stream.partial is (ours.metadata == {"partial": True})
        for block, complete in zip(ours.blocks, full.blocks, strict=False):
            if isinstance(block, Text | Reasoning):
                assert complete.text.startswith(block.text)
        for block, complete in zip(ours.calls, full.calls, strict=True) if ours.blocks else ():
            assert complete.arguments.startswith(block.arguments)


def test_listener_hears_each_kind():
    """Words, reasoning and calls are told apart."""
    output = [thought("hm"), said("Yes"), called("c1", "read", "a"), asked("c2", "ls"), {"type": "hologram"}]
    heard = streams.stream("responses").feed(wire(events(output, random.Random(1))))
    assert "".join(event.text for event in heard if isinstance(event, ReasoningDelta)) == "hm"
    assert "".join(event.text for event in heard if isinstance(event, TextDelta)) == "Yes"
    assert [each for each in heard if isinstance(each, CallStarted)] == [
        CallStarted("c1", "read", 2),
        CallStarted("c2", "sh", 3),
    ]
    pieces = [each.arguments for each in heard if isinstance(each, CallDelta)]
    assert "".join(pieces) == '{"path":"a"}ls'
    assert [type(each) for each in heard].count(Raw) == 1


def test_response_without_its_output_is_filled():
    """A server whose last event leaves out the items is understood."""
    sent = events([said("Yes")], random.Random(0))
    sent[-1]["response"] = response([])
    stream = streams.stream("responses")
    stream.feed(wire(sent))
    assert (stream.partial, decoded(stream)["output"]) == (False, [said("Yes")])


def test_incomplete_is_an_end():
    """An answer that met its limit is whole as the provider sees it, and says why it stopped."""
    short = response([said("Ye")], "incomplete", incomplete_details={"reason": "max_output_tokens"})
    stream = streams.stream("responses")
    heard = stream.feed(wire([{"type": "response.incomplete", "response": short}]))
    assert heard[-1] == Finished("max_output_tokens")
    assert (stream.partial, stream.reply().stop_reason) == (False, "max_output_tokens")


@pytest.mark.parametrize(
    "last",
    [
        {"type": "error", "code": "server_error", "message": "boom"},
        {"type": "error", "error": {"code": "server_error", "message": "boom"}},
        {
            "type": "response.failed",
            "response": response([], "failed", usage=None, error={"code": "server_error", "message": "boom"}),
        },
    ],
)
def test_error_in_mid_stream_keeps_what_arrived(last):
    """The provider's error is told, and the words before it stay."""
    stream = streams.stream("responses")
    stream.feed(wire(events([said("half")], random.Random(0))[:-2]))
    (failed,) = stream.feed(wire([last]))
    assert (failed.kind, failed.what, stream.failure) == ("server_error", "boom", failed)
    assert (stream.reply().message.text, stream.partial) == ("half", True)


def test_unknown_event_is_passed_on():
    """An event of a newer API is given as it came, also one with a delta."""
    stream = streams.stream("responses")
    for news in (
        {"type": "response.weather", "sky": "blue"},
        {"type": "response.weather.delta", "delta": "b", "output_index": 0},
    ):
        assert stream.feed(wire([news])) == [Raw(news["type"], dumps(news))]
    assert stream.failure is None


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[1]",
        b'{"type":"response.output_text.delta","delta":"lost","output_index":7}',
        b'{"type":"response.output_item.added"}',
        b'{"type":"response.content_part.added","part":{},"output_index":7}',
        b'{"type":"response.completed","response":1}',
    ],
)
def test_event_that_cannot_be_read_leaves_a_hole(data):
    """It is told, and the answer counts as partial."""
    stream = streams.stream("responses")
    assert stream.feed(b"data: " + data + b"\n\n") == [Failed("an event that cannot be read", "malformed", data)]
    assert stream.partial


def test_halves_of_a_character_become_one():
    """A surrogate pair torn over two events is whole in the message."""
    stream = streams.stream("responses")
    stream.feed(wire(events([said("")], random.Random(0))[:4]))
    for half in (b"\\ud83d", b"\\ude00"):
        data = b'{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"' + half + b'"}'
        stream.feed(b"data: " + data + b"\n\n")
    assert stream.reply().message.text == "😀"


def test_part_that_was_not_announced_is_made():
    """Deltas without the event that begins their part are not lost."""
    stream = streams.stream("responses")
    sent = events([said("Yes"), thought("hm")], random.Random(0))
    stream.feed(wire([each for each in sent if "part" not in each["type"] and each["type"] not in LAST]))
    assert decoded(stream)["output"][1] == thought("hm")
    assert stream.reply().message.text == "Yes"


def test_nothing_arrived():
    """A stream that never began gives an empty message."""
    reply = streams.stream("responses").reply()
    assert (reply.message.blocks, reply.message.role, reply.usage) == ((), "assistant", None)
