"""A response of OpenAI's as the events it streams."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from windowsill.testing.protocols.pieces import event, pieces

Step = tuple[str, dict[str, Any]]


def events(response: dict[str, Any]) -> Iterator[bytes]:
    """From `response.created` to `response.completed`, numbered through."""
    for number, (name, fields) in zip(count(), _steps(response), strict=False):
        kind = f"response.{name}"
        yield event(kind, {"type": kind, "sequence_number": number, **fields})


def _steps(response: dict[str, Any]) -> Iterator[Step]:
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    yield "created", {"response": begun}
    yield "in_progress", {"response": begun}
    for index, item in enumerate(response["output"]):
        place = {"output_index": index}
        yield "output_item.added", {**place, "item": _empty(item)}
        for name, fields in _filling(item):
            yield name, {"item_id": item["id"], **place, **fields}
        yield "output_item.done", {**place, "item": item}
    yield "completed", {"response": response}


def _empty(item: dict[str, Any]) -> dict[str, Any]:
    """An item as it starts."""
    match item["type"]:
        case "message":
            return {**item, "status": "in_progress", "content": []}
        case "function_call":
            return {**item, "status": "in_progress", "arguments": ""}
        case "reasoning":
            return {**item, "summary": []}
        case _:
            return item


def _filling(item: dict[str, Any]) -> Iterator[Step]:
    """What comes between the start and the end of an item."""
    match item["type"]:
        case "message":
            for index, part in enumerate(item["content"]):
                yield from _text(part, {"content_index": index})
        case "reasoning":
            for index, part in enumerate(item["summary"]):
                yield from _summary(part, {"summary_index": index})
        case "function_call":
            for piece in pieces(item["arguments"]):
                yield "function_call_arguments.delta", {"delta": piece}
            yield "function_call_arguments.done", {"name": item["name"], "arguments": item["arguments"]}
        case _:
            return


def _text(part: dict[str, Any], place: dict[str, Any]) -> Iterator[Step]:
    yield "content_part.added", {**place, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield "output_text.delta", {**place, "delta": piece, "logprobs": []}
    yield "output_text.done", {**place, "text": part["text"], "logprobs": []}
    yield "content_part.done", {**place, "part": part}


def _summary(part: dict[str, Any], place: dict[str, Any]) -> Iterator[Step]:
    yield "reasoning_summary_part.added", {**place, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield "reasoning_summary_text.delta", {**place, "delta": piece}
    yield "reasoning_summary_text.done", {**place, "text": part["text"]}
    yield "reasoning_summary_part.done", {**place, "part": part}
