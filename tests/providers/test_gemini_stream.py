"""Gemini's stream gives the response that the call without streaming would have given, in both ways it is written."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from support.conversations import spoken
from support.gemini_contents import HOLOGRAM, PICTURE, SIGNATURE, call, ids, names, text
from support.pieces import cut, seeds
from windowsill import providers
from windowsill.errors import FormatError
from windowsill.messages import Message, Reasoning, Text, ToolUse, Usage
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
USAGE = {"promptTokenCount": 9, "candidatesTokenCount": 4, "totalTokenCount": 16, "thoughtsTokenCount": 3}
HEAD = {"modelVersion": "gemini-x", "responseId": "r1"}

parts = st.lists(
    st.one_of(
        st.builds(text, spoken),
        st.builds(lambda words: text(words, thought=True), spoken),
        st.builds(lambda words: text(words, thoughtSignature=SIGNATURE), spoken),
        st.just(text("", thoughtSignature=SIGNATURE)),
        st.builds(call, names, ids, st.sampled_from([None, SIGNATURE])),
        st.sampled_from([HOLOGRAM, PICTURE, {"executableCode": {"language": "PYTHON", "code": "1"}}]),
    ),
    min_size=1,
    max_size=5,
).filter(lambda found: not any(joins(one, other) for one, other in pairwise(found)))
ways = st.sampled_from(["sse", "list"])


def joins(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Tell whether two parts would be one without streaming: text of the same kind, neither signed."""
    plain = [each.keys() <= {"text", "thought"} for each in (one, other)]
    return all(plain) and one.get("thought") == other.get("thought")


def response(content: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A whole response, as the call without streaming gives it."""
    candidate = {"content": {"parts": content, "role": "model"}, "index": 0, "finishReason": "STOP"}
    return {"candidates": [{**candidate, **more}], "usageMetadata": USAGE, **HEAD}


def chunk(*said: dict[str, Any], **more: Any) -> dict[str, Any]:
    candidate = {"content": {"parts": list(said), "role": "model"}, "index": 0}
    usage = {"promptTokenCount": 9, "totalTokenCount": 9}
    return {"candidates": [{**candidate, **more}], "usageMetadata": usage, **HEAD}


def chunks(content: list[dict[str, Any]], chance: random.Random) -> list[dict[str, Any]]:
    """The chunks of a response with these parts; some hold several parts."""
    said: list[dict[str, Any]] = []
    for part in content:
        in_pieces = part.keys() <= {"text", "thought"}
        said += [{**part, "text": piece} for piece in cut(part["text"], chance)] if in_pieces else [part]
    sent = []
    while said:
        size = chance.choice([1, 1, 1, 2, 3])
        sent.append(chunk(*said[:size]))
        said = said[size:]
    return [*sent, {**chunk(text(""), finishReason="STOP"), "usageMetadata": USAGE}]


def wire(sent: list[dict[str, Any]], way: str = "sse") -> bytes:
    if way == "list":
        return b"[" + b"\n,\r\n".join(msgspec.json.format(dumps(each)) for each in sent) + b"\n]\r\n"
    return b": keep-alive\r\n\r\n".join(b"data: " + dumps(each) + b"\r\n\r\n" for each in sent)


def after(*said: dict[str, Any]) -> tuple[streams.Stream, list[streams.Event]]:
    """A stream that was fed a chunk for each of these parts, and what was heard besides the usage."""
    stream = streams.stream("gemini")
    heard = stream.feed(wire([chunk(part) for part in said]))
    return stream, [event for event in heard if not isinstance(event, UsageSeen)]


def words(message: Message) -> str:
    return "".join(block.text for block in message.blocks if isinstance(block, Text))


def native(stream: streams.Stream) -> list[dict[str, Any]]:
    return msgspec.json.decode(stream.body())["candidates"][0]["content"]["parts"]


@given(parts, seeds, ways)
def test_stream_gives_the_same_as_the_whole_response(content, chance, way):
    """Torn anywhere, in either way, it ends with the response of the other call, byte for byte, and the same reply."""
    stream = streams.stream("gemini")
    for piece in cut(wire(chunks(content, chance), way), chance):
        stream.feed(piece)
    whole = dumps(response(content))
    assert dumps(msgspec.json.decode(stream.body())) == whole
    if way == "sse":
        assert stream.body() == whole
        assert stream.reply() == providers.get("gemini").read_reply(whole)
    assert not stream.partial


@pytest.mark.parametrize("way", ["sse", "list"])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_stream_torn_at_every_byte(way, size):
    """Escapes, brackets in text and line ends cut in two change nothing."""
    content = [text('a "{[\\', thought=True), text("b]}\r\n\\u00e9 é"), call(), text("", thoughtSignature=SIGNATURE)]
    sent = b"\xef\xbb\xbf" + wire(chunks(content, random.Random(1)), way)
    stream = streams.stream("google")
    for place in range(0, len(sent), size):
        stream.feed(sent[place : place + size])
    assert native(stream) == content
    assert not stream.partial


@given(parts, seeds, ways)
def test_listener_hears_all_of_it(content, chance, way):
    """The deltas, joined, are the words, the thoughts and the arguments of the calls, under the ids of the reply."""
    stream = streams.stream("gemini")
    heard = stream.feed(wire(chunks(content, chance), way))
    message = stream.reply().message
    said = "".join(event.text for event in heard if isinstance(event, TextDelta))
    assert said == words(message)
    thought = "".join(event.text for event in heard if isinstance(event, ReasoningDelta))
    assert thought == "".join(block.text for block in message.blocks if isinstance(block, Reasoning))
    for index, block in enumerate(message.blocks):
        if isinstance(block, ToolUse):
            own = [event for event in heard if isinstance(event, CallStarted | CallDelta) and event.index == index]
            assert own == [CallStarted(block.id, block.name, index), CallDelta(block.arguments, index)]
    assert heard[-2:] == [Finished("STOP"), UsageSeen(Usage(input=9, output=7))]


@given(parts, seeds, st.floats(0, 1), st.booleans(), ways)
def test_aborted_stream_keeps_what_arrived(content, chance, share, closed, way):
    """Cut off at any byte nothing is raised, words and calls are beginnings, and the message says so."""
    sent = wire(chunks(content, chance), way)
    stream = streams.stream("gemini")
    for piece in cut(sent[: int(len(sent) * share)], chance):
        stream.feed(piece)
    if closed:
        stream.close()
    reply = stream.reply()
    whole = providers.get("gemini").read_reply(dumps(response(content))).message
    assert stream.failure is None
    assert stream.partial is (reply.message.metadata == {"partial": True})
    assert words(whole).startswith(words(reply.message))
    ours = [(each.id, each.name) for each in reply.message.calls]
    assert ours == [(each.id, each.name) for each in whole.calls][: len(ours)]


@given(parts, seeds)
def test_official_types_take_the_response(content, chance):
    """Google's own types read what was put together."""
    stream = streams.stream("gemini")
    stream.feed(wire(chunks([part for part in content if part is not HOLOGRAM] or [text("a")], chance)))
    types.GenerateContentResponse.model_validate_json(stream.body())


def test_words_and_thoughts_join_with_their_own_kind():
    """Text goes on until the other kind or a call comes."""
    stream, heard = after(text("so", thought=True), text("!", thought=True), text("Ye"), text("s"), call(), text("a"))
    assert native(stream) == [text("so!", thought=True), text("Yes"), call(), text("a")]
    assert heard == [
        ReasoningDelta("so", 0),
        ReasoningDelta("!", 0),
        TextDelta("Ye", 1),
        TextDelta("s", 1),
        CallStarted("read#0", "read", 2),
        CallDelta('{"path":"a.py"}', 2),
        TextDelta("a", 3),
    ]


def test_signature_stays_on_its_own_part():
    """It is not joined with text before or after it; on empty text at the end it is proof of the reasoning."""
    stream, _ = after(text("a"), text("b", thoughtSignature="x"), text("c"), text("", thoughtSignature=SIGNATURE))
    assert native(stream) == [
        text("a"),
        text("b", thoughtSignature="x"),
        text("c"),
        text("", thoughtSignature=SIGNATURE),
    ]
    assert [block.signature for block in stream.reply().message.blocks if isinstance(block, Reasoning)] == [SIGNATURE]


def test_calls_of_one_tool_are_told_apart():
    """Without ids of their own they are numbered as in the reply."""
    stream, heard = after(call(), call(), call("write", "own"))
    assert [event.id for event in heard if isinstance(event, CallStarted)] == ["read#0", "read#1", "own"]
    assert [each.id for each in stream.reply().message.calls] == ["read#0", "read#1", "own"]


def test_arguments_stay_as_the_model_wrote_them():
    """Numbers and spaces are not written anew."""
    part = b'{"functionCall": {"name": "f", "args": {"n": 1.50e1, "big": 123456789012345678901234567890}}}'
    stream = streams.stream("gemini")
    stream.feed(b'data: {"candidates": [{"content": {"parts": [' + part + b"]}}]}\n\n")
    assert stream.reply().message.calls[0].arguments == '{"n": 1.50e1, "big": 123456789012345678901234567890}'


def test_arguments_in_pieces_become_one_call():
    """Each value goes to its path, text grows, and the call has the form it has without streaming."""

    def piece(path: str, **value: Any) -> dict[str, Any]:
        return {"functionCall": {"partialArgs": [{"jsonPath": path, **value}], "willContinue": True}}

    stream, heard = after(
        {"functionCall": {"name": "book", "willContinue": True}, "thoughtSignature": SIGNATURE},
        piece("$.city", stringValue="New ", willContinue=True),
        piece("$.city", stringValue="York"),
        piece("$.guests[0].name", stringValue="Ada"),
        piece("$.guests[1]['full name']", stringValue=""),
        piece("$.nights", numberValue=2),
        piece("$.late", boolValue=False),
        piece("$.note", nullValue="NULL_VALUE"),
        {"functionCall": {}},
        {"functionCall": {}},
        text("done"),
    )
    args = {
        "city": "New York",
        "guests": [{"name": "Ada"}, {"full name": ""}],
        "nights": 2,
        "late": False,
        "note": None,
    }
    asked = {"functionCall": {"name": "book", "args": args}, "thoughtSignature": SIGNATURE}
    assert native(stream) == [asked, text("done")]
    assert heard == [CallStarted("book#0", "book", 0), CallDelta(dumps(args).decode(), 0), TextDelta("done", 1)]


@pytest.mark.parametrize("path", ["", "city", "$", "$[0]", "$.a[99999999]", "$..a", None])
def test_argument_without_a_place_is_passed_on(path):
    """It is heard as it came, and the call keeps what else it has."""
    piece = {"functionCall": {"name": "f", "partialArgs": [{"jsonPath": path, "stringValue": "x"}]}}
    stream, heard = after(piece)
    assert [type(event) for event in heard] == [CallStarted, CallDelta, Raw]
    assert native(stream)[0]["functionCall"]["name"] == "f"


def test_empty_text_is_an_answer_only_alone():
    """A last chunk of empty text adds no part; where nothing else came it is what the other call gives."""
    assert native(after(call(), text(""))[0]) == [call()]
    assert native(after(text(""))[0]) == [text("")]


def test_usage_of_the_last_chunk_counts():
    """It is heard with the beginning and the end; what runs along with more text is kept, should the end not come."""
    stream = streams.stream("gemini")
    first = {**chunk(text("a")), "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 1}}
    running = {**first, "usageMetadata": {**USAGE, "cachedContentTokenCount": 5}}
    heard = stream.feed(wire([first, first, running]))
    assert [event.usage for event in heard if isinstance(event, UsageSeen)] == [Usage(input=9, output=1)]
    assert stream.reply().usage == Usage(input=4, cache_read=5, output=7)
    assert msgspec.json.decode(stream.body())["usageMetadata"] == running["usageMetadata"]
    last = {**chunk(finishReason="STOP"), "usageMetadata": USAGE}
    assert stream.feed(wire([last])) == [Finished("STOP"), UsageSeen(Usage(input=9, output=7))]
    assert stream.reply().usage == Usage(input=9, output=7)


def test_unknown_fields_and_parts_survive():
    """Fields of the response, the candidate, the content and a part that this version does not know are kept."""
    stream = streams.stream("gemini")
    stream.feed(wire([chunk(text("a"))]))
    newer = chunk(text("b", mood="calm"), HOLOGRAM, groundingMetadata={"q": [1]}, safetyRatings=[{"blocked": False}])
    newer["candidates"][0]["content"]["tone"] = "warm"
    heard = stream.feed(wire([{**newer, "weather": {"sky": "blue"}}, chunk(text("c"), groundingMetadata={"s": 2})]))
    assert [type(event) for event in heard] == [TextDelta, Raw, TextDelta]
    body = msgspec.json.decode(stream.body())
    (candidate,) = body["candidates"]
    assert candidate["content"]["parts"] == [text("a"), text("b", mood="calm"), HOLOGRAM, text("c")]
    assert (candidate["content"]["tone"], body["weather"]) == ("warm", {"sky": "blue"})
    assert candidate["groundingMetadata"] == {"q": [1], "s": 2}
    assert candidate["safetyRatings"] == [{"blocked": False}]


def test_unknown_event_is_passed_on():
    """What is no chunk is given as it came and harms nothing."""
    stream, _ = after(text("a"))
    assert stream.feed(b'data: {"sky":"blue"}\n\n') == [Raw("", b'{"sky":"blue"}')]
    assert stream.reply().message.text == "a"


def test_other_candidates_are_passed_on():
    """The message is the first candidate; the others are heard as they came."""
    stream, _ = after(text("a"))
    other = chunk(text("b"), index=1)
    assert stream.feed(wire([other])) == [Raw("", dumps(other))]
    assert stream.reply().message.text == "a"


def test_logprobs_are_collected():
    """Each chunk has those of its own words."""
    stream = streams.stream("gemini")
    for word in ("a", "b"):
        stream.feed(wire([chunk(text(word), logprobsResult={"chosenCandidates": [{"token": word}]})]))
    (candidate,) = msgspec.json.decode(stream.body())["candidates"]
    assert candidate["logprobsResult"] == {"chosenCandidates": [{"token": "a"}, {"token": "b"}]}


@pytest.mark.parametrize("way", ["sse", "list"])
def test_blocked_prompt_is_a_failure(way):
    """The reason is told, the body is that of the other call, and the reply is an empty message."""
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 9}}
    stream = streams.stream("gemini")
    failed, seen = stream.feed(wire([blocked], way))
    assert (failed.kind, failed.what) == ("SAFETY", "the prompt was blocked: SAFETY")
    assert seen == UsageSeen(Usage(input=9))
    assert msgspec.json.decode(stream.body()) == blocked
    assert (stream.reply().message.blocks, stream.reply().message.metadata) == ((), {"partial": True})


ERROR = {"error": {"code": 503, "message": "try later", "status": "UNAVAILABLE"}}


@pytest.mark.parametrize(
    "sent",
    [
        b"data: " + dumps(ERROR) + b"\n\n",
        b"data: [" + dumps(ERROR) + b"]\r\n\r\n",
        msgspec.json.format(dumps(ERROR)) + b"\n",
    ],
)
def test_error_in_mid_stream_keeps_what_arrived(sent):
    """As an event, as a list of one and as plain JSON between the events it is told, and the words before it stay."""
    stream, _ = after(text("half"))
    found = [event for place in range(len(sent)) for event in stream.feed(sent[place : place + 1])]
    assert [(event.kind, event.what) for event in found] == [("UNAVAILABLE", "try later")]
    assert (stream.reply().message.text, stream.reply().message.metadata) == ("half", {"partial": True})


@pytest.mark.parametrize("sent", [dumps(ERROR), dumps([ERROR]), b"[" + dumps(chunk(text("a"))) + b"," + dumps(ERROR)])
def test_error_in_place_of_a_stream(sent):
    """A response that is nothing but an error, or a list that ends with one, is understood."""
    stream = streams.stream("gemini")
    heard = stream.feed(sent)
    assert (heard[-1].kind, heard[-1].what) == ("UNAVAILABLE", "try later")
    assert stream.partial


@pytest.mark.parametrize(("error", "kind", "what"), [("boom", "error", "boom"), ({"code": 500}, "500", "an error")])
def test_error_of_another_form(error, kind, what):
    """It is told as far as it says anything."""
    stream, _ = after(text("a"))
    (failed,) = stream.feed(wire([{"error": error}]))
    assert (failed.kind, failed.what) == (kind, what)


@pytest.mark.parametrize("data", [b"{", b"[1]", b"nonsense", b"[]"])
def test_event_that_cannot_be_read_leaves_a_hole(data):
    """It is told, and the message counts as partial even when its end came."""
    stream, _ = after(text("a"))
    assert stream.feed(b"data: " + data + b"\n\n") == [Failed("an event that cannot be read", "malformed", data)]
    stream.feed(wire([chunk(finishReason="STOP")]))
    assert stream.partial


@pytest.mark.parametrize("value", [{"candidates": 1}, {"candidates": [1]}, {"candidates": [{"content": 1}]}])
def test_chunk_of_another_form_harms_nothing(value):
    """A field that is not what it should be is no reason to lose the others."""
    stream, _ = after(text("a"))
    stream.feed(wire([{**value, "usageMetadata": 1}, chunk(text("b"))]))
    assert stream.reply().message.text == "ab"


def test_halves_of_a_character_become_one():
    """A surrogate pair torn over two chunks is whole in the message; a half left alone is a replacement character."""
    stream = streams.stream("gemini")
    for half in (b"\\ud83d", b"\\ude00", b"\\ud83d"):
        stream.feed(b'data: {"candidates":[{"content":{"parts":[{"text":"' + half + b'"}]}}]}\n\n')
    assert stream.reply().message.text == "😀\ufffd"


def test_last_event_without_its_end_is_read_at_close():
    """A server that hangs up early loses nothing; what is torn in the middle is left out."""
    whole, _ = after(text("a"))
    whole.feed(wire([chunk(text("b"), finishReason="STOP")]).rstrip())
    assert whole.partial
    whole.close()
    assert (whole.partial, whole.reply().message.text) == (False, "ab")
    torn = streams.stream("gemini")
    torn.feed(wire([chunk(text("a")), chunk(text("b"))], "list")[:-20])
    assert torn.close() == []
    assert (torn.failure, torn.reply().message.text) == (None, "a")


def test_reason_that_comes_with_every_chunk():
    """Models that name a reason each time are understood; another one is heard, and the last one counts."""
    stream = streams.stream("gemini")
    sent = [chunk(text(word), finishReason=why) for word, why in (("a", "STOP"), ("b", "STOP"), ("c", "MAX_TOKENS"))]
    heard = stream.feed(wire(sent))
    assert [event.stop_reason for event in heard if isinstance(event, Finished)] == ["STOP", "MAX_TOKENS"]
    assert (stream.reply().message.text, stream.reply().stop_reason) == ("abc", "MAX_TOKENS")


def test_event_above_the_limit_is_an_error():
    """Of a list as of events."""
    for start in (b"[{", b"data: {"):
        stream = streams.stream("gemini", limit=300)
        with pytest.raises(FormatError, match="300 bytes"):
            stream.feed(start + b'"a":"' + b"b" * 300)


def test_nothing_arrived():
    """A stream that never began gives an empty message."""
    stream = streams.stream("gemini")
    assert stream.close() == []
    reply = stream.reply()
    assert (reply.message.blocks, reply.message.role, reply.usage) == ((), "assistant", None)
