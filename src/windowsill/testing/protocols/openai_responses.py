"""OpenAI Responses: answers, what was stored, compaction and counting."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import msgspec

from windowsill.messages import Block, Reasoning, Usage
from windowsill.testing.protocols.base import Dialect, Proof, RefusedError, Route, Told, event, is_kind, pieces
from windowsill.testing.protocols.openai_chat import openai_error
from windowsill.testing.provider_rules import Compacting, Edit, Managed, Place, Signer, Verdict

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


PATH = "/v1/responses"
COMPACT, COUNT = f"{PATH}/compact", f"{PATH}/input_tokens"


class OpenAIResponses(Dialect):
    """`POST /v1/responses`, `/v1/responses/compact` and `/v1/responses/input_tokens`; it keeps what it answered."""

    name = "responses"

    def __init__(self, signer: Signer) -> None:
        self._signer = signer
        self._stored: dict[str, list[dict[str, Any]]] = {}

    def route(self, path: str) -> Route | None:
        """Three paths; the body says whether to stream."""
        return {PATH: Route("answer"), COMPACT: Route("compact"), COUNT: Route("count")}.get(path)

    def format(self, model: str) -> str:
        """The same for every model."""
        del model
        return "responses"

    def whole(self, body: dict[str, Any]) -> dict[str, Any]:
        """The input behind what the response before it was about."""
        if body.get("conversation"):
            raise RefusedError("Conversation not found.", status=404, param="conversation")
        before = body.get("previous_response_id")
        if before is None:
            return body
        if before not in self._stored:
            raise RefusedError(
                f"Previous response with id '{before}' not found.",
                code="previous_response_not_found",
                param="previous_response_id",
            )
        rest = {key: value for key, value in body.items() if key != "previous_response_id"}
        return {**rest, "input": [*self._stored[before], *_items(body.get("input"))]}

    def edits(self, body: dict[str, Any]) -> tuple[Edit, ...]:
        """The compaction that `context_management` asks for."""
        wishes = body.get("context_management") or ()
        limits = [wish.get("compact_threshold") for wish in wishes if wish.get("type") == "compaction"]
        return tuple(Compacting(tokens=limit) for limit in limits if limit is not None)

    def closes(self, block: Block) -> bool:
        """A compaction item does."""
        return is_kind(block.raw, "compaction")

    def proof(self, block: Block, thoughts: str) -> Proof | None:
        """What is encrypted proves itself, and the summary beside it where that came too."""
        del thoughts
        if self.closes(block):
            content = msgspec.json.decode(block.raw or b"{}").get("encrypted_content")
            forged = not isinstance(content, str) or not self._signer.wrapped(self.name, content)
            return Proof("") if forged else None
        if isinstance(block, Reasoning) and block.data is not None:
            return Proof(block.data, block.text or None)
        return None

    def unproven(self, place: Place, block: Block, verdict: Verdict) -> RefusedError:
        """As OpenAI words it."""
        id = msgspec.json.decode(block.raw or b"{}").get("id", f"input[{place[0]}]")
        why = "follows another conversation" if verdict == "moved" else "could not be decrypted or parsed"
        return RefusedError(
            f"The encrypted content for item {id} could not be verified. Reason: Encrypted content {why}.",
            code="invalid_encrypted_content",
        )

    def compaction(self, summary: str, number: int) -> dict[str, Any]:
        """An item that nobody but the provider reads."""
        content = self._signer.wrap(self.name, summary)
        return {"id": f"cmp_{number}", "type": "compaction", "encrypted_content": content}

    def compacted(self, told: Told) -> dict[str, Any]:
        """The user's messages, and then the compaction."""
        said = [
            {"id": f"msg_{told.number}_{index}", "status": "completed", **item, "type": "message", "content": _in(item)}
            for index, item in enumerate(_items(self.whole(told.body).get("input")))
            if item.get("role") == "user"
        ]
        output = [*said, told.compaction or {}]
        id = f"resp_{told.number}"
        self._stored[id] = output
        return {
            "id": id,
            "object": "response.compaction",
            "created_at": told.number,
            "output": output,
            "usage": _usage(told.compaction_usage, 0),
        }

    def reply(self, told: Told) -> dict[str, Any]:
        """A response; its items are stored unless the request says otherwise."""
        body, id, output = told.body, f"resp_{told.number}", _output(told)
        if body.get("store") is not False:
            self._stored[id] = [*_items(self.whole(body).get("input")), *output]
        return {
            "id": id,
            "object": "response",
            "created_at": told.number,
            "status": "completed",
            "error": None,
            "incomplete_details": None,
            "instructions": body.get("instructions"),
            "metadata": body.get("metadata") or {},
            "model": told.model,
            "output": output,
            "parallel_tool_calls": True,
            "previous_response_id": body.get("previous_response_id"),
            "store": body.get("store") is not False,
            "temperature": 1.0,
            "text": body.get("text") or {"format": {"type": "text"}},
            "tool_choice": body.get("tool_choice") or "auto",
            "tools": body.get("tools") or [],
            "top_p": 1.0,
            "truncation": "disabled",
            "usage": _usage(told.usage, told.reasoning_tokens) if told.answer.usage else None,
        }

    def stream(self, told: Told) -> Iterator[bytes]:
        """The same response in events."""
        return events(self.reply(told))

    def counted(self, managed: Managed) -> dict[str, Any]:
        """The tokens, with the kind of object they are in."""
        return {"object": "response.input_tokens", "input_tokens": managed.tokens}

    def error(self, refused: RefusedError) -> dict[str, Any]:
        """An error with its code."""
        return openai_error(refused)

    def overflow(self, tokens: int, window: int) -> RefusedError:
        """As OpenAI words it here: without the numbers."""
        del tokens, window
        return RefusedError(
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
            code="context_length_exceeded",
            param="input",
        )


def _items(given: Any) -> list[dict[str, Any]]:
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return list(given or ())


def _in(message: dict[str, Any]) -> Any:
    """The content of a message in parts, as it is answered."""
    content = message.get("content")
    return [{"type": "input_text", "text": content}] if isinstance(content, str) else content


def _output(told: Told) -> list[dict[str, Any]]:
    answer, number = told.answer, told.number
    items = [] if told.compaction is None else [told.compaction]
    if answer.reasoning:
        summary = [{"type": "summary_text", "text": answer.reasoning}]
        items.append(
            {"id": f"rs_{number}", "type": "reasoning", "summary": summary, "encrypted_content": told.signature}
        )
    if answer.text or not answer.calls:
        part = {"type": "output_text", "annotations": [], "logprobs": [], "text": answer.text}
        message = {"id": f"msg_{number}", "type": "message", "status": "completed", "role": "assistant"}
        items.append({**message, "content": [part]})
    for index, call in enumerate(answer.calls):
        item = {"id": f"fc_{number}_{index}", "type": "function_call", "status": "completed", "call_id": call.id}
        items.append({**item, "name": call.name, "arguments": msgspec.json.encode(call.input).decode()})
    return items


def _usage(usage: Usage, reasoning: int) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt,
        # Nothing is billed for writing to this cache.
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": usage.total,
    }
