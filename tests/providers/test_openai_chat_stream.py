"""OpenAI's stream gives the message that the call without streaming would have given."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

from support.conversations import any_text, call, calls
from support.pieces import cut, seeds
from windowsill import providers
from windowsill.messages import Text, ToolUse, Usage
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
DONE = b"data: [DONE]\n\n"
USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13, "prompt_tokens_details": {"cached_tokens": 3}}

beside = st.sampled_from([{}, {}, {}, {"reasoning_content": "hm"}, {"refusal": "no"}, {"name": "bot"}, {"x": [1]}])
messages = st.builds(
    lambda content, asked, more: {"role": "assistant", "content": content, **asked, **more},
    st.one_of(st.none(), any_text),
    st.one_of(st.just({}), calls.map(lambda found: {"tool_calls": found})),
    beside,
)


def response(message: dict[str, Any]) -> dict[str, Any]:
    """A whole response, as the call without streaming gives it."""
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 7, "model": "gpt-x"}
    return {**head, "choices": [choice], "usage": USAGE}


def chunk(delta: dict[str, Any], reason: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 7, "model": "gpt-x"}
    return {**head, "choices": [choice], **more}


def call_deltas(calls: list[dict[str, Any]], chance: random.Random) -> list[dict[str, Any]]:
    deltas = []
    for index, each in enumerate(calls):
        function = {"name": each["function"]["name"], "arguments": ""}
        deltas.append({"index": index, "id": each["id"], "type": "function", "function": function})
        pieces = cut(each["function"]["arguments"], chance)
        deltas += [{"index": index, "function": {"arguments": piece}} for piece in pieces]
    return [{"tool_calls": [delta]} for delta in deltas]


def chunks(message: dict[str, Any], chance: random.Random) -> list[dict[str, Any]]:
    """The chunks of a response with this message."""
    first = {"role": "assistant", "content": None if message["content"] is None else ""}
    deltas = [first, *({"content": piece} for piece in cut(message["content"] or "", chance))]
    for key, value in message.items():
        if key == "tool_calls":
            deltas += call_deltas(value, chance)
        elif key in {"refusal", "reasoning_content"}:
            deltas += [{key: piece} for piece in cut(value, chance)]
        elif key not in first:
            deltas.append({key: value})
    usage = {**chunk({}), "choices": [], "usage": USAGE}
    return [*(chunk(delta, usage=None, obfuscation="xyz") for delta in deltas), chunk({}, "stop"), usage]


def wire(sent: list[dict[str, Any]]) -> bytes:
    return b": keep-alive\n\n".join(b"data: " + dumps(each) + b"\n\n" for each in sent)


def after(*deltas: dict[str, Any]) -> tuple[streams.Stream, list[streams.Event]]:
    """A stream that was fed these deltas, and what was heard."""
    stream = streams.stream("openai")
    return stream, stream.feed(wire([chunk(delta) for delta in deltas]))


def native(stream: streams.Stream) -> dict[str, Any]:
    return msgspec.json.decode(stream.body())["choices"][0]["message"]


@given(messages, seeds)
def test_stream_gives_the_same_as_the_whole_response(message, chance):
    """Torn anywhere, the stream ends with the response of the other call, byte for byte, and the same reply."""
    stream = streams.stream("openai")
    for piece in cut(wire(chunks(message, chance)) + DONE, chance):
        stream.feed(piece)
    whole = dumps(response(message))
    assert stream.body() == whole
    assert stream.reply() == providers.get("openai").read_reply(whole)
    assert not stream.partial


@given(messages, seeds)
def test_listener_hears_all_of_it(message, chance):
    """The deltas, joined, are the words and the arguments of the calls."""
    stream = streams.stream("openai")
    heard = stream.feed(wire(chunks(message, chance)) + DONE)
    blocks = stream.reply().message.blocks
    said = "".join(event.text for event in heard if isinstance(event, TextDelta))
    assert said == "".join(block.text for block in blocks if isinstance(block, Text))
    for index, block in enumerate(stream.reply().message.calls):
        own = [event for event in heard if isinstance(event, CallStarted | CallDelta) and event.index == index]
        assert own[0] == CallStarted(block.id, block.name, index)
        assert "".join(event.arguments for event in own[1:]) == block.arguments
    assert heard[-2:] == [Finished("stop"), UsageSeen(Usage(input=6, cache_read=3, output=4))]


@given(messages, seeds, st.floats(0, 1), st.booleans())
def test_aborted_stream_keeps_what_arrived(message, chance, share, closed):
    """Cut off at any byte nothing is raised, words and arguments are beginnings, and the message says so."""
    sent = wire(chunks(message, chance)) + DONE
    stream = streams.stream("openai")
    for piece in cut(sent[: int(len(sent) * share)], chance):
        stream.feed(piece)
    if closed:
        stream.close()
    reply = stream.reply()
    whole = providers.get("openai").read_reply(dumps(response(message))).message
    assert stream.failure is None
    assert stream.partial is (reply.message.metadata == {"partial": True})
    assert whole.text.startswith(reply.message.text)
    assert len(reply.message.calls) <= len(whole.calls)
    for ours, full in zip(reply.message.calls, whole.calls, strict=False):
        assert (ours.id, ours.name) == (full.id, full.name)
        assert full.arguments.startswith(ours.arguments)


@given(messages, seeds)
def test_official_accumulator_agrees(message, chance):
    """OpenAI's own SDK makes the same message out of the same chunks."""
    sent = chunks(message, chance)
    state = ChatCompletionStreamState()
    for each in sent:
        state.handle_chunk(ChatCompletionChunk.model_validate(each))
    official = state.current_completion_snapshot.model_dump(mode="json", exclude_unset=True, warnings=False)
    stream = streams.stream("openai")
    stream.feed(wire(sent))
    theirs = official["choices"][0]["message"]
    for each in theirs.get("tool_calls") or ():
        del each["index"]
        each["function"].pop("parsed_arguments", None)
    # Theirs sets every field it knows to null; a null says the same as none.
    assert {**dict.fromkeys(theirs), **native(stream)} == theirs
    ours = msgspec.json.decode(stream.body())
    assert (ours["usage"], ours["model"]) == (official["usage"], official["model"])
    assert ours["choices"][0]["finish_reason"] == official["choices"][0]["finish_reason"]


def test_reasoning_is_heard_and_kept():
    """Reasoning beside the content, as DeepSeek sends it, is reasoning."""
    stream, heard = after(
        {"role": "assistant", "content": None, "reasoning_content": ""},
        {"content": None, "reasoning_content": "so"},
        {"content": None, "reasoning_content": "!"},
        {"content": "Yes", "reasoning_content": None},
    )
    assert heard == [ReasoningDelta("so"), ReasoningDelta("!"), TextDelta("Yes")]
    assert native(stream) == {"role": "assistant", "content": "Yes", "reasoning_content": "so!"}


def test_cut_off_call_keeps_its_text():
    """Arguments that end in the middle stay the text they are."""
    stream, _ = after({"tool_calls": [{"index": 0, **call("c1", arguments='{"pa')}]})
    assert stream.partial
    (block,) = stream.reply().message.calls
    assert (block.id, block.name, block.arguments) == ("c1", "read", '{"pa')


def test_call_that_has_not_said_its_name():
    """A call of which only the number arrived is still a call."""
    stream, _ = after({"tool_calls": [{"index": 0}]})
    assert [(each.id, each.name, each.arguments) for each in stream.reply().message.calls] == [("", "", "")]


@pytest.mark.parametrize("indexes", [(0, 0), (None, None)])
def test_another_id_is_another_call(indexes):
    """Servers that give all calls the same index, or none, are understood."""
    stream, _ = after(
        *({"tool_calls": [{"index": index, **call(id)}]} for index, id in zip(indexes, ("a", "b"), strict=True))
    )
    assert [each.id for each in stream.reply().message.calls] == ["a", "b"]


def test_repeated_id_and_name_are_not_doubled():
    """Servers that repeat who is called with each piece are understood."""
    stream, heard = after(*({"tool_calls": [{"index": 0, **call("c1", arguments=half)}]} for half in ('{"a"', ":1}")))
    stream.feed(wire([chunk({"tool_calls": [{"index": 0, "id": "", "type": "", "function": {"name": ""}}]})]))
    assert native(stream)["tool_calls"] == [call("c1", arguments='{"a":1}')]
    assert heard == [CallStarted("c1", "read"), CallDelta('{"a"'), CallDelta(":1}")]


def test_id_that_comes_late_is_taken():
    """A call may begin before it has its id."""
    stream, _ = after(
        {"tool_calls": [{"index": 0, **call("", arguments="")}]}, {"tool_calls": [{"index": 0, **call("c1")}]}
    )
    assert native(stream)["tool_calls"] == [call("c1")]


def test_arguments_as_an_object_stay_one():
    """Servers that write the arguments as an object are understood, an empty piece after them included."""
    whole = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": {"a": 1}}}
    stream, _ = after(
        {"tool_calls": [{"index": 0, **whole}]}, {"tool_calls": [{"index": 0, "function": {"arguments": ""}}]}
    )
    assert native(stream)["tool_calls"] == [whole]


def test_one_delta_may_say_several_things():
    """Words, reasoning and a piece of a call in one chunk are all taken."""
    piece = {"tool_calls": [{"index": 0, "function": {"arguments": "1"}}]}
    stream, heard = after(
        {"content": "a", "reasoning_content": "x", "tool_calls": [{"index": 0, **call("c1", arguments="")}]},
        {"content": "b", **piece},
        {"content": "c", "reasoning_content": "y"},
        {"reasoning_content": "z", **piece},
    )
    assert (native(stream)["content"], native(stream)["reasoning_content"]) == ("abc", "xyz")
    assert native(stream)["tool_calls"] == [call("c1", arguments="11")]
    assert len(heard) == 9


def test_what_is_repeated_empty_changes_nothing():
    """An empty role, a null where there was a value and a second end say nothing new."""
    stream = streams.stream("openai")
    stream.feed(wire([chunk({"role": "assistant", "content": "a"}, system_fingerprint="fp")]))
    heard = stream.feed(wire([chunk({"role": ""}, "stop", system_fingerprint=None), chunk({"role": ""}, "length")]))
    assert heard == [Finished("stop")]
    body = msgspec.json.decode(stream.body())
    assert body["system_fingerprint"] == "fp"
    assert (stream.reply().message.text, stream.reply().stop_reason) == ("a", "stop")


def test_name_in_pieces_is_joined():
    """A name that comes in two pieces is one name."""
    stream, _ = after(
        {"tool_calls": [{"index": 0, **call("c1", "re", "")}]},
        {"tool_calls": [{"index": 0, "function": {"name": "ad"}}]},
    )
    assert stream.reply().message.calls[0].name == "read"


def test_custom_tool_is_a_call():
    """A call with free text keeps its kind."""
    stream, heard = after(
        {"tool_calls": [{"index": 0, "id": "c1", "type": "custom", "custom": {"name": "sh", "input": "l"}}]},
        {"tool_calls": [{"index": 0, "custom": {"input": "s"}}]},
    )
    assert native(stream)["tool_calls"] == [{"id": "c1", "type": "custom", "custom": {"name": "sh", "input": "ls"}}]
    assert heard[1:] == [CallDelta("l"), CallDelta("s")]


def test_function_call_of_old_is_a_call():
    """The form before tool calls is put together too."""
    stream, heard = after(
        {"role": "assistant", "content": None, "function_call": {"name": "read", "arguments": ""}},
        {"function_call": {"arguments": '{"a"'}},
        {"function_call": {"arguments": ":1}"}},
    )
    assert stream.reply().message.blocks == (ToolUse(id="read", name="read", arguments='{"a":1}'),)
    assert heard == [CallStarted("read", "read"), CallDelta('{"a"'), CallDelta(":1}")]


def test_unknown_fields_survive():
    """Fields of other servers and newer versions grow in the message, in its calls and in the response."""
    stream, heard = after(
        {"content": "a", "mood": "ca", "notes": [{"index": 0, "type": "t", "text": "x"}]},
        {"content": "b", "mood": "lm", "notes": [{"index": 0, "type": "t", "text": "y"}, {"index": 1, "type": "t"}]},
        {"tool_calls": [{"index": 0, **call("c1"), "extra_content": {"google": {"thought_signature": "s"}}}]},
    )
    message = native(stream)
    assert (message["content"], message["mood"]) == ("ab", "calm")
    assert message["notes"] == [{"index": 0, "type": "t", "text": "xy"}, {"index": 1, "type": "t"}]
    assert message["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "s"}}
    assert [type(event) for event in heard] == [TextDelta, Raw, TextDelta, Raw, CallStarted, CallDelta]


def test_parts_and_text_make_one_list():
    """Content that changes from parts to text, as Mistral sends it, stays a list of parts."""
    part = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    stream, _ = after({"role": "assistant", "content": ""}, {"content": [part]}, {"content": "a"}, {"content": "b"})
    assert native(stream)["content"] == [part, {"type": "text", "text": "ab"}]


def test_unknown_event_is_passed_on():
    """What is no chunk is given as it came and harms nothing."""
    stream, _ = after({"content": "a"})
    assert stream.feed(b'event: weather\ndata: {"sky":"blue"}\n\n') == [Raw("weather", b'{"sky":"blue"}')]
    assert stream.reply().message.text == "a"


def test_other_choices_are_passed_on():
    """The message is the first choice, as without streaming; the others are heard as they came."""
    stream, _ = after({"content": "a"})
    other = chunk({"content": "b"})
    other["choices"][0]["index"] = 1
    assert stream.feed(wire([other])) == [Raw("", dumps(other))]
    assert stream.reply().message.text == "a"


def test_logprobs_are_collected():
    """What a choice says beside its message is in the response."""
    stream = streams.stream("openai")
    for word in ("a", "b"):
        sent = chunk({"content": word})
        sent["choices"][0]["logprobs"] = {"content": [{"token": word}], "refusal": None}
        stream.feed(wire([sent]))
    logprobs = msgspec.json.decode(stream.body())["choices"][0]["logprobs"]
    assert logprobs == {"content": [{"token": "a"}, {"token": "b"}], "refusal": None}


@pytest.mark.parametrize(
    ("error", "kind", "what"),
    [
        ({"message": "slow down", "type": "rate_limit"}, "rate_limit", "slow down"),
        ({"message": "gone", "type": None, "code": 502}, "502", "gone"),
        ("boom", "error", "boom"),
    ],
)
def test_error_in_mid_stream_keeps_what_arrived(error, kind, what):
    """The provider's error is told, and the words before it stay."""
    stream, _ = after({"content": "half"})
    (failed,) = stream.feed(b"data: " + dumps({"error": error}) + b"\n\n")
    assert (failed.kind, failed.what) == (kind, what)
    assert stream.failure == failed
    assert (stream.reply().message.text, stream.reply().message.metadata) == ("half", {"partial": True})


@pytest.mark.parametrize("data", [b"{", b"[1]", b"nonsense"])
def test_event_that_cannot_be_read_leaves_a_hole(data):
    """It is told, and the message counts as partial even when its end came."""
    stream, _ = after({"content": "a"})
    assert stream.feed(b"data: " + data + b"\n\n") == [Failed("an event that cannot be read", "malformed", data)]
    stream.feed(DONE)
    assert stream.partial


def test_halves_of_a_character_become_one():
    """A surrogate pair torn over two chunks is whole in the message; a half left alone is a replacement character."""
    stream, _ = after({"role": "assistant", "content": ""})
    for half in (b"\\ud83d", b"\\ude00", b"\\ud83d"):
        stream.feed(b'data: {"choices":[{"index":0,"delta":{"content":"' + half + b'"}}]}\n\n')
    assert stream.reply().message.text == "😀\ufffd"


def test_end_without_done_or_reason():
    """Either sign of the end will do: some servers leave out the one, some the other."""
    stream, _ = after({"content": "a"})
    assert stream.partial
    assert stream.feed(DONE) == [Finished(None)]
    assert not stream.partial
    other, _ = after({"content": "a"})
    assert other.feed(wire([chunk({}, "length")])) == [Finished("length")]
    assert (other.partial, other.reply().stop_reason) == (False, "length")


def test_nothing_arrived():
    """A stream that never began gives an empty message."""
    reply = streams.stream("chat").reply()
    assert (reply.message.blocks, reply.message.role, reply.usage) == ((), "assistant", None)
