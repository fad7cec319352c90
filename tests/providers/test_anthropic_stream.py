"""Anthropic's stream gives the message that the call without streaming would have given."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from anthropic._streaming import SSEDecoder
from anthropic.lib.streaming._messages import accumulate_event
from hypothesis import given
from hypothesis import strategies as st

from support.conversations import anthropic_assistant, sound_anthropic, thinking, use
from support.pieces import cut, seeds
from windowsill import providers
from windowsill.messages import Reasoning, Text, ToolUse, Usage
from windowsill.providers import streams
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
START_USAGE = {"input_tokens": 12, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 5, "output_tokens": 1}
STREAMED = {"text": ("text", "text_delta", "text"), "thinking": ("thinking", "thinking_delta", "thinking")}

contents = st.one_of(
    anthropic_assistant,
    sound_anthropic().map(lambda messages: messages[-3]["content"] if len(messages) > 2 else [use("c1")]),
)


def response(content: list[Any]) -> dict[str, Any]:
    """A whole response, as the call without streaming gives it."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": content,
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {**START_USAGE, "output_tokens": 42},
    }


def block_events(index: int, block: dict[str, Any], chance: random.Random) -> list[dict[str, Any]]:
    began, deltas = dict(block), []
    if block["type"] in STREAMED:
        field, type, name = STREAMED[block["type"]]
        began[field] = ""
        deltas = [{"type": type, name: piece} for piece in cut(block[field], chance)]
    if block["type"] == "thinking" and "signature" in block:
        began["signature"] = ""
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    if block["type"] == "tool_use":
        began["input"] = {}
        deltas = [{"type": "input_json_delta", "partial_json": ""}] * chance.randint(0, 1)
        deltas += [
            {"type": "input_json_delta", "partial_json": piece} for piece in cut(dumps(block["input"]).decode(), chance)
        ]
    return [
        {"type": "content_block_start", "index": index, "content_block": began},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def events(body: dict[str, Any], chance: random.Random) -> list[dict[str, Any]]:
    """The events of a response."""
    began = {**body, "content": [], "stop_reason": None, "usage": START_USAGE}
    ended = {"stop_reason": body["stop_reason"], "stop_sequence": body["stop_sequence"]}
    return [
        {"type": "message_start", "message": began},
        {"type": "ping"},
        *(each for index, block in enumerate(body["content"]) for each in block_events(index, block, chance)),
        {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 42}},
        {"type": "message_stop"},
    ]


def wire(sent: list[dict[str, Any]]) -> bytes:
    return b"".join(b"event: " + each["type"].encode() + b"\ndata: " + dumps(each) + b"\n\n: hm\n\n" for each in sent)


def after(*middle: dict[str, Any], stop: bool = True) -> tuple[streams.Stream, list[streams.Event]]:
    """A stream that was fed a start, these events and an end, and what was heard of these events."""
    stream = streams.stream("anthropic")
    stream.feed(wire(events(response([]), random.Random(0))[:2]))
    heard = stream.feed(wire(list(middle)))
    if stop:
        stream.feed(wire(events(response([]), random.Random(0))[2:]))
    return stream, heard


def started(block: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
    ]


@given(contents, seeds)
def test_stream_gives_the_same_as_the_whole_response(content, chance):
    """Torn anywhere, the stream ends with the response of the other call, byte for byte, and the same reply."""
    body = response(content)
    stream = streams.stream("anthropic")
    heard = [event for chunk in cut(wire(events(body, chance)), chance) for event in stream.feed(chunk)]
    assert stream.body() == dumps(body)
    assert stream.reply() == providers.get("anthropic").read_reply(dumps(body))
    assert not stream.partial
    assert heard[-1] == Finished("end_turn")


@given(contents, seeds)
def test_listener_hears_all_of_it(content, chance):
    """The deltas of a block, joined, are the block."""
    stream = streams.stream("anthropic")
    heard = stream.feed(wire(events(response(content), chance)))
    for index, block in enumerate(stream.reply().message.blocks):
        own = [event for event in heard if getattr(event, "index", None) == index]
        if isinstance(block, Text):
            assert "".join(event.text for event in own if isinstance(event, TextDelta)) == block.text
        elif isinstance(block, Reasoning):
            assert "".join(event.text for event in own if isinstance(event, ReasoningDelta)) == block.text
        elif isinstance(block, ToolUse):
            assert own[0] == CallStarted(block.id, block.name, index)
            assert "".join(event.arguments for event in own[1:] if isinstance(event, CallDelta)) == block.arguments


@given(contents, seeds, st.floats(0, 1), st.booleans())
def test_aborted_stream_keeps_what_arrived(content, chance, share, closed):
    """Cut off at any byte nothing is raised; each block is a beginning of the whole one, and the message says so."""
    body = response(content)
    sent = wire(events(body, chance))
    sent = sent[: int(len(sent) * share)]
    stream = streams.stream("anthropic")
    for chunk in cut(sent, chance):
        stream.feed(chunk)
    if closed:
        stream.close()
    reply = stream.reply()
    assert stream.failure is None
    assert stream.partial is (reply.message.metadata == {"partial": True})
    assert len(reply.message.blocks) <= len(content)
    whole = providers.get("anthropic").read_reply(dumps(body)).message.blocks
    for block, full in zip(reply.message.blocks, whole, strict=False):
        assert type(block) is type(full)
        if isinstance(block, Text | Reasoning):
            assert full.text.startswith(block.text)
        elif isinstance(block, ToolUse):
            text = block.input.get("_text", "")
            assert (block.id, block.name) == (full.id, full.name)
            assert full.arguments.startswith(text)
            assert text or block.arguments in {"{}", full.arguments}


@given(contents, seeds)
def test_official_accumulator_agrees(content, chance):
    """Anthropic's own SDK makes the same message out of the same bytes."""
    known = [block for block in content if block["type"] != "hologram"]
    chunks = cut(wire(events(response(known), chance)), chance)
    snapshot, buffers = None, {}
    for sent in SSEDecoder().iter_bytes(iter(chunks)):
        if sent.event != "ping" and sent.data:
            snapshot = accumulate_event(event=sent.json(), current_snapshot=snapshot, json_bufs=buffers)
    stream = streams.stream("anthropic")
    for chunk in chunks:
        stream.feed(chunk)
    official = snapshot.model_dump(mode="json", exclude_unset=True, warnings=False)
    ours = msgspec.json.decode(stream.body())
    assert ours["content"] == official["content"]
    assert {key: official["usage"][key] for key in ours["usage"]} == ours["usage"]
    assert (ours["stop_reason"], ours["model"]) == (official["stop_reason"], official["model"])


def test_usage_comes_twice():
    """What the start said of the prompt survives the end, which only counts the answer."""
    stream = streams.stream("anthropic")
    heard = stream.feed(wire(events(response([]), random.Random(0))))
    assert heard[0] == UsageSeen(Usage(input=12, cache_read=5, output=1))
    assert heard[1] == UsageSeen(Usage(input=12, cache_read=5, output=42))
    assert stream.reply().usage == Usage(input=12, cache_read=5, output=42)


def test_null_in_the_last_usage_says_nothing():
    """A figure that the end leaves open is the one of the start."""
    stream, _ = after({"type": "message_delta", "delta": {}, "usage": {"input_tokens": None, "output_tokens": 42}})
    assert stream.reply().usage == Usage(input=12, cache_read=5, output=42)


def test_content_of_the_start_is_kept():
    """Blocks that the start already holds stand before those that follow."""
    stream = streams.stream("anthropic")
    stream.feed(wire([{"type": "message_start", "message": response([{"type": "text", "text": "so "}])}]))
    delta = {"type": "text_delta", "text": "far"}
    stream.feed(wire([{"type": "content_block_delta", "index": 0, "delta": delta}]))
    assert stream.reply().message.text == "so far"


def test_error_in_mid_stream_keeps_what_arrived():
    """The provider's error is told, and the words before it stay."""
    stream, heard = after(
        *started({"type": "text", "text": ""}, {"type": "text_delta", "text": "half"}),
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        stop=False,
    )
    assert heard[0] == TextDelta("half")
    assert (heard[1].kind, heard[1].what) == ("overloaded_error", "Overloaded")
    assert stream.failure == heard[1]
    assert stream.reply().message.text == "half"
    assert stream.reply().message.metadata == {"partial": True}


def test_cut_off_call_is_kept_as_text():
    """Arguments that end in the middle are text under `_text`, an object as Anthropic demands."""
    block = {"type": "tool_use", "id": "c1", "name": "read", "input": {}}
    stream, _ = after(*started(block, {"type": "input_json_delta", "partial_json": '{"path": "a'}), stop=False)
    (call,) = stream.reply().message.calls
    assert call.input == {"_text": '{"path": "a'}


def test_arguments_stay_as_the_model_wrote_them():
    """White space in the arguments is not lost."""
    block = {"type": "tool_use", "id": "c1", "name": "read", "input": {}}
    stream, _ = after(*started(block, {"type": "input_json_delta", "partial_json": '{"path":  "a"}'}))
    assert stream.reply().message.calls[0].arguments == '{"path":  "a"}'


def test_reasoning_cut_off_has_no_empty_signature():
    """Without its proof reasoning says so, and repair can leave it out."""
    stream, _ = after(*started(thinking("", signature=""), {"type": "thinking_delta", "thinking": "hm"}), stop=False)
    (block,) = stream.reply().message.blocks
    assert (block.text, block.signature) == ("hm", None)


def test_citations_are_collected():
    """Each citation is one more in the list of its block."""
    stream, heard = after(
        *started(
            {"type": "text", "text": "", "citations": []},
            {"type": "citations_delta", "citation": {"cited_text": "a"}},
            {"type": "text_delta", "text": "so"},
            {"type": "citations_delta", "citation": {"cited_text": "b"}},
        )
    )
    assert msgspec.json.decode(stream.body())["content"] == [
        {"type": "text", "text": "so", "citations": [{"cited_text": "a"}, {"cited_text": "b"}]}
    ]
    assert [type(event) for event in heard] == [Raw, TextDelta, Raw]


def test_compaction_is_set():
    """A compaction's summary replaces the empty one it began with."""
    stream, _ = after(
        *started({"type": "compaction", "content": None}, {"type": "compaction_delta", "content": "all of it"})
    )
    assert msgspec.json.decode(stream.body())["content"] == [{"type": "compaction", "content": "all of it"}]


def test_unknown_block_and_delta_survive():
    """A block of a newer kind grows by its own deltas: text and lists get longer, the rest is replaced."""
    stream, heard = after(
        *started(
            {"type": "hologram", "depth": 1, "caption": "a"},
            {"type": "hologram_delta", "caption": "b", "depth": 2, "layers": [1]},
            {"type": "hologram_delta", "caption": "c", "layers": [2], "light": {"hue": "re"}},
            {"type": "hologram_delta", "light": {"hue": "d"}},
        )
    )
    (block,) = stream.reply().message.blocks
    assert block.type == "hologram"
    assert msgspec.json.decode(stream.body())["content"][0] == {
        "type": "hologram",
        "depth": 2,
        "caption": "abc",
        "layers": [1, 2],
        "light": {"hue": "red"},
    }
    assert [type(event) for event in heard] == [Raw] * 4


def test_unknown_fields_survive():
    """Fields of a newer API in the message, its blocks, its end and its usage are in the response."""
    stream, _ = after(
        *started({"type": "text", "text": "", "mood": "calm"}),
        {"type": "message_delta", "delta": {"verdict": 1}, "usage": {"output_tokens": 1, "sparks": 9}},
    )
    body = msgspec.json.decode(stream.body())
    assert body["content"] == [{"type": "text", "text": "", "mood": "calm"}]
    assert (body["verdict"], body["usage"]["sparks"]) == (1, 9)


def test_unknown_event_is_passed_on():
    """An event of a newer API is given as it came and harms nothing."""
    news = {"type": "weather", "sky": "blue"}
    stream, heard = after(news)
    assert heard == [Raw("weather", dumps(news))]
    assert not stream.partial


def test_a_hint_beside_known_text_is_heard_and_not_kept():
    """A progress figure in a delta is no field of the block: sent back it would be refused."""
    delta = {"type": "thinking_delta", "thinking": "hm", "estimated_tokens": 50}
    stream, heard = after(*started(thinking(""), delta))
    assert msgspec.json.decode(stream.body())["content"] == [thinking("hm")]
    assert [type(event) for event in heard] == [ReasoningDelta, Raw]


def test_halves_of_a_character_become_one():
    """A surrogate pair torn over two events is whole in the message; a half left alone is a replacement character."""
    stream, _ = after(*started({"type": "text", "text": ""}), stop=False)
    for half in (b"\\ud83d", b"\\ude00", b"\\ud83d"):
        data = b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"' + half + b'"}}'
        stream.feed(b"data: " + data + b"\n\n")
    assert stream.reply().message.text == "😀\ufffd"


@pytest.mark.parametrize(
    "data",
    [
        b"{not json",
        b"[1]",
        b'{"type":"content_block_start"}',
        b'{"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":"lost"}}',
        b'{"type":"content_block_delta","index":0,"delta":{}}',
        b'{"type":"message_start","message":[]}',
        b'{"type":"message_delta","delta":3}',
    ],
)
def test_event_that_cannot_be_read_leaves_a_hole(data):
    """It is told, and the message counts as partial even when its end came."""
    stream, _ = after(stop=False)
    heard = stream.feed(b"data: " + data + b"\n\n")
    stream.feed(wire([{"type": "message_stop"}]))
    assert heard == [Failed("an event that cannot be read", "malformed", data)]
    assert stream.partial
    assert stream.reply().message.metadata == {"partial": True}


def test_nothing_arrived():
    """A stream that never began gives an empty message."""
    reply = streams.stream("anthropic").reply()
    assert (reply.message.blocks, reply.message.role, reply.usage) == ((), "assistant", None)


def test_last_event_without_its_blank_line_counts():
    """A server that hangs up after its last line has ended its answer."""
    stream, _ = after(stop=False)
    stream.feed(b'data: {"type":"message_stop"}')
    assert stream.partial
    assert stream.close() == [Finished(None)]
    assert not stream.partial


def test_what_was_done_to_the_context_is_kept():
    """It stands beside the delta at the end, and is part of the message of the call without streaming."""
    stream = streams.stream("anthropic")
    done = {"applied_edits": [{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 2, "cleared_input_tokens": 9}]}
    start = {"type": "message_start", "message": {"role": "assistant", "content": [], "model": "m"}}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "context_management": done}
    for event in (start, end, {"type": "message_stop"}):
        stream.feed(b"data: " + msgspec.json.encode(event) + b"\n\n")
    assert msgspec.json.decode(stream.body())["context_management"] == done
    assert stream.reply().cleared.uses == 2
