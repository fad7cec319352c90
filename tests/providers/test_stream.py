"""What every stream does, whatever its format."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from windowsill.errors import FormatError, NotFoundError
from windowsill.providers import streams

pytestmark = pytest.mark.unit


def chunk(text: str) -> bytes:
    return b'data: {"choices":[{"index":0,"delta":{"content":"' + text.encode() + b'"}}]}\n\n'


def test_last_chunk_torn_is_left_out_at_close():
    """A chunk cut in the middle is no failure of the provider."""
    stream = streams.stream("openai")
    stream.feed(chunk("a"))
    stream.feed(b'data: {"choices":[{"index":0,"delta":{"con')
    assert stream.close() == []
    assert stream.failure is None
    assert stream.reply().message.text == "a"


def test_format_without_streams():
    """The error names those there are."""
    with pytest.raises(NotFoundError, match="anthropic, deepseek, gemini, openai, responses"):
        streams.stream("telegraph")


def test_limit_is_that_of_the_stream():
    """An event above it is an error, and what arrived before stays."""
    stream = streams.stream("openai", limit=300)
    stream.feed(chunk("a"))
    with pytest.raises(FormatError, match="300 bytes"):
        stream.feed(chunk("b" * 300))
    assert stream.reply().message.text == "a"


START: dict[str, list[Any]] = {
    "anthropic": [
        {"type": "message_start", "message": {"role": "assistant", "content": [], "usage": {"output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "a", "name": "b"}},
        {"type": "content_block_start", "index": 2, "content_block": {"type": "thinking", "thinking": ""}},
    ],
    "openai": [{"id": "c", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}],
    "responses": [
        {"type": "response.created", "response": {"id": "r", "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "content": []}},
        {"type": "response.output_item.added", "output_index": 1, "item": {"type": "function_call", "call_id": "a"}},
    ],
    "gemini": [],
}

UNKNOWN = {"type": "response.other", "object": "other"}
"""An event that no format knows."""


def openai(delta: Any, **more: Any) -> Any:
    choice = {"index": more.pop("place", 0), "delta": delta, "finish_reason": more.pop("reason", None)}
    return {"id": "c", "created": 1, "choices": [choice], **more}


def gemini(part: Any, **more: Any) -> Any:
    usage = {"candidatesTokenCount": sum(map(ord, part.get("text", ""))), "x": part}
    return {"candidates": [{"content": {"parts": [part], "role": "model"}, **more}], "usageMetadata": usage}


def call(**function: Any) -> Any:
    return {"tool_calls": [{"index": 0, "function": function}]}


DELTAS: dict[str, list[Any]] = {
    "anthropic": [
        lambda text: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        lambda text: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text, "x": 1}},
        lambda text: {"type": "content_block_delta", "index": 9, "delta": {"type": "text_delta", "text": text}},
        lambda text: {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": text},
        },
        lambda text: {"type": "content_block_delta", "index": 2, "delta": {"type": "thinking_delta", "thinking": text}},
        lambda text: {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": text}},
        lambda _: {"type": "message_stop"},
    ],
    "openai": [
        lambda text: openai({"content": text}),
        lambda text: openai({"content": text}, obfuscation=text),
        lambda text: openai({"content": text}, model=text),
        lambda text: openai({"content": text}, usage={"prompt_tokens": 1}),
        lambda text: openai({"content": text}, place=1),
        lambda text: openai({"content": text}, reason="stop"),
        lambda text: openai({"content": text, "refusal": None}),
        lambda text: openai({"content": None, "reasoning_content": text}),
        lambda text: openai({"content": "both", "reasoning_content": text}),
        lambda text: openai({"content": [{"type": "text", "text": text}]}),
        lambda text: openai(call(arguments=text)),
        lambda text: openai(call(arguments=text, name="n")),
        lambda text: openai({"tool_calls": [{"index": 0, "id": text, "function": {"arguments": text}}]}),
    ],
    "responses": [
        lambda text: {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": text},
        lambda text: {"type": "response.output_text.delta", "output_index": 0, "content_index": 1, "delta": text},
        lambda text: {"type": "response.output_text.delta", "output_index": 7, "content_index": 0, "delta": text},
        lambda text: {"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": text},
        lambda text: {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": text},
        lambda text: {
            "type": "response.content_part.added",
            "output_index": 0,
            "content_index": 0,
            "part": {"type": "output_text", "text": text},
        },
    ],
    "gemini": [
        lambda text: gemini({"text": text}),
        lambda text: gemini({"text": text, "thought": True}),
        lambda text: gemini({"text": text, "thoughtSignature": "s"}),
        lambda text: gemini({"text": text}, finishReason="STOP"),
        lambda text: gemini({"text": text}, index=1),
        lambda text: gemini({"functionCall": {"name": "n", "args": {"a": text}}}),
        lambda text: {**gemini({"text": text}), "modelVersion": text},
        lambda text: {"candidates": gemini({"text": text})["candidates"]},
        lambda text: {**gemini({"text": text}), "usageMetadata": None},
    ],
}


@pytest.mark.parametrize("format", sorted(DELTAS))
def test_more_text_is_added_as_by_itself(format: str):
    """An event that is like the one before but for its text does what it does behind any other event."""
    for first, second in itertools.product(DELTAS[format], repeat=2):
        texts = [(first, "a"), (first, "a"), (second, "b"), (second, "c"), (second, "d\ud83d"), (second, "\ude00")]
        texts += [(first, ""), (first, "e"), (first, "e"), (first, "f")]
        events = [*START[format], *(kind(text) for kind, text in texts)]
        together, apart = streams.stream(format), streams.stream(format)
        heard = together.feed(b"".join(map(wire, events)))
        behind = apart.feed(b"".join(wire(event) + wire(UNKNOWN) for event in events))
        assert heard == [event for event in behind if event != streams.Raw("", value(UNKNOWN))]
        assert together.body() == apart.body()


def wire(event: Any) -> bytes:
    return b"data: " + value(event) + b"\n\n"


def value(event: Any) -> bytes:
    return json.dumps(event).encode()
