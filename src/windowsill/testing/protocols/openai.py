"""OpenAI Chat Completions, also with reasoning beside the content, and Responses: answers, compaction, counting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from windowsill.messages import Block, Reasoning, Usage
from windowsill.testing.protocols.base import (
    Answer,
    Outcome,
    Proof,
    Protocol,
    RefusedError,
    Task,
    data,
    event,
    is_kind,
    pieces,
)
from windowsill.testing.provider_rules import Compacting, Edit, Managed, Place, Signer, Verdict

REASONING_MODELS = ("deepseek", "kimi")
"""Beginnings of the names of models that give their reasoning as `reasoning_content`."""


class OpenAIChat(Protocol):
    """`POST /v1/chat/completions`."""

    name = "openai"
    paths: ClassVar[Mapping[str, Task]] = {"/v1/chat/completions": "answer"}

    def format(self, model: str) -> str:
        """Return the format with reasoning for the models that have it."""
        return "deepseek" if model.startswith(REASONING_MODELS) else self.name

    def reply(self, outcome: Outcome) -> dict[str, Any]:
        """Return a completion with one choice."""
        answer = outcome.answer
        message: dict[str, Any] = {"role": "assistant", "content": answer.text or None, "refusal": None}
        if answer.reasoning and outcome.model.startswith(REASONING_MODELS):
            message["reasoning_content"] = answer.reasoning
        if answer.calls:
            message["tool_calls"] = _tool_calls(answer)
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._reason(answer)}
        used = {"usage": self.usage(outcome.usage, outcome.reasoning_tokens)} if answer.usage else {}
        return {**_head(outcome, "chat.completion"), "choices": [choice], **used}

    def stream(self, outcome: Outcome) -> Iterator[bytes]:
        """Return the same completion in chunks, the usage in the last if it was asked for."""
        answer = outcome.answer
        counts = bool((outcome.body.get("stream_options") or {}).get("include_usage")) and answer.usage
        head = _head(outcome, "chat.completion.chunk")
        tail = {"usage": None} if counts else {}

        def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
            return data({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}], **tail})

        yield chunk({"role": "assistant", "content": ""})
        for delta in _deltas(answer, reasons=outcome.model.startswith(REASONING_MODELS)):
            yield chunk(delta)
        yield chunk({}, self._reason(answer))
        if counts:
            yield data({**head, "choices": [], "usage": self.usage(outcome.usage, outcome.reasoning_tokens)})
        yield b"data: [DONE]\n\n"

    def overflow(self, tokens: int, window: int) -> RefusedError:
        """Return OpenAI's words for it."""
        return RefusedError(
            f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} "
            "tokens. Please reduce the length of the messages.",
            code="context_length_exceeded",
            param="messages",
        )

    def _reason(self, answer: Answer) -> str:
        return self.spec.stops.calls if answer.calls else self.spec.stops.done


def _head(outcome: Outcome, kind: str) -> dict[str, Any]:
    number = outcome.number
    return {"id": f"chatcmpl-{number}", "object": kind, "created": number, "model": outcome.model}


def _deltas(answer: Answer, *, reasons: bool) -> Iterator[dict[str, Any]]:
    if reasons:
        for piece in pieces(answer.reasoning):
            yield {"reasoning_content": piece}
    for piece in pieces(answer.text):
        yield {"content": piece}
    for index, call in enumerate(_tool_calls(answer)):
        function = call["function"]
        yield {"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]}
        for piece in pieces(function["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _tool_calls(answer: Answer) -> list[dict[str, Any]]:
    return [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": msgspec.json.encode(call.input).decode()},
        }
        for call in answer.calls
    ]


# Responses


Step = tuple[str, dict[str, Any]]

STARTED: dict[str, dict[str, Any]] = {
    "message": {"status": "in_progress", "content": []},
    "function_call": {"status": "in_progress", "arguments": ""},
    "reasoning": {"summary": []},
}
"""The fields of an item as it starts, by its type."""


class OpenAIResponses(Protocol):
    """`POST /v1/responses`, `/v1/responses/compact` and `/v1/responses/input_tokens`; it keeps what it answered."""

    name = "responses"
    paths: ClassVar[Mapping[str, Task]] = {
        "/v1/responses": "answer",
        "/v1/responses/compact": "compact",
        "/v1/responses/input_tokens": "count",
    }

    def __init__(self, signer: Signer) -> None:
        self._signer = signer
        self._stored: dict[str, list[dict[str, Any]]] = {}

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the input behind what the response before it was about."""
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
        """Return the compaction that `context_management` asks for."""
        wishes = body.get("context_management") or ()
        limits = [wish.get("compact_threshold") for wish in wishes if wish.get("type") == "compaction"]
        return tuple(Compacting(tokens=limit) for limit in limits if limit is not None)

    def closes(self, block: Block) -> bool:
        """Tell whether it is a compaction."""
        return is_kind(block.raw, "compaction")

    def proof(self, block: Block, thoughts: str) -> Proof | None:
        """Return what is encrypted, which proves itself, and the summary beside it where that came too."""
        if self.closes(block):
            content = msgspec.json.decode(block.raw or b"{}").get("encrypted_content")
            forged = not isinstance(content, str) or not self._signer.wrapped(self.name, content)
            return Proof("") if forged else None
        if isinstance(block, Reasoning) and block.data is not None:
            return Proof(block.data, block.text or None)
        return None

    def bad_proof(self, place: Place, block: Block, verdict: Verdict) -> RefusedError:
        """Return OpenAI's words for it."""
        id = msgspec.json.decode(block.raw or b"{}").get("id", f"input[{place[0]}]")
        why = "follows another conversation" if verdict == "moved" else "could not be decrypted or parsed"
        return RefusedError(
            f"The encrypted content for item {id} could not be verified. Reason: Encrypted content {why}.",
            code="invalid_encrypted_content",
        )

    def compaction(self, summary: str, number: int) -> dict[str, Any]:
        """Return an item that nobody but the provider reads."""
        content = self._signer.wrap(self.name, summary)
        return {"id": f"cmp_{number}", "type": "compaction", "encrypted_content": content}

    def compact_reply(self, outcome: Outcome) -> dict[str, Any]:
        """Return the user's messages, and then the compaction."""
        output = [
            {"id": f"msg_{outcome.number}_{index}", "status": "completed", **item, "type": "message"}
            for index, item in enumerate(_items(self.complete(outcome.body).get("input")))
            if item.get("role") == "user"
        ]
        for item in output:
            if isinstance(item.get("content"), str):
                item["content"] = [{"type": "input_text", "text": item["content"]}]
        output.append(outcome.compaction or {})
        id = f"resp_{outcome.number}"
        self._stored[id] = output
        return {
            "id": id,
            "object": "response.compaction",
            "created_at": outcome.number,
            "output": output,
            "usage": self._usage(outcome.compaction_usage),
        }

    def reply(self, outcome: Outcome) -> dict[str, Any]:
        """Return a response; its items are stored unless the request says otherwise."""
        body, id, output = outcome.body, f"resp_{outcome.number}", _output(outcome)
        if body.get("store") is not False:
            self._stored[id] = [*_items(self.complete(body).get("input")), *output]
        return {
            "id": id,
            "object": "response",
            "created_at": outcome.number,
            "status": "completed",
            "error": None,
            "incomplete_details": None,
            "instructions": body.get("instructions"),
            "metadata": body.get("metadata") or {},
            "model": outcome.model,
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
            "usage": self._usage(outcome.usage, outcome.reasoning_tokens) if outcome.answer.usage else None,
        }

    def stream(self, outcome: Outcome) -> Iterator[bytes]:
        """Return the same response in events, numbered through."""
        for number, (name, fields) in enumerate(_steps(self.reply(outcome))):
            kind = f"response.{name}"
            yield event(kind, {"type": kind, "sequence_number": number, **fields})

    def count_reply(self, managed: Managed) -> dict[str, Any]:
        """Return the tokens, with the kind of object they are in."""
        return {"object": "response.input_tokens", "input_tokens": managed.tokens}

    def _usage(self, usage: Usage, reasoning: int = 0) -> dict[str, Any]:
        # Nothing is billed for writing to this cache.
        written = usage.cache_write
        return self.usage(msgspec.structs.replace(usage, input=usage.input + written, cache_write=0), reasoning)

    def overflow(self, tokens: int, window: int) -> RefusedError:
        """Return OpenAI's words for it here: without the numbers."""
        return RefusedError(
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
            code="context_length_exceeded",
            param="input",
        )


def _items(given: Any) -> list[dict[str, Any]]:
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return list(given or ())


def _output(outcome: Outcome) -> list[dict[str, Any]]:
    answer, number = outcome.answer, outcome.number
    items = [] if outcome.compaction is None else [outcome.compaction]
    if answer.reasoning:
        summary = [{"type": "summary_text", "text": answer.reasoning}]
        items.append(
            {"id": f"rs_{number}", "type": "reasoning", "summary": summary, "encrypted_content": outcome.signature}
        )
    if answer.text or not answer.calls:
        part = {"type": "output_text", "annotations": [], "logprobs": [], "text": answer.text}
        message = {"id": f"msg_{number}", "type": "message", "status": "completed", "role": "assistant"}
        items.append({**message, "content": [part]})
    for index, call in enumerate(answer.calls):
        item = {"id": f"fc_{number}_{index}", "type": "function_call", "status": "completed", "call_id": call.id}
        items.append({**item, "name": call.name, "arguments": msgspec.json.encode(call.input).decode()})
    return items


def _steps(response: dict[str, Any]) -> Iterator[Step]:
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    yield "created", {"response": begun}
    yield "in_progress", {"response": begun}
    for index, item in enumerate(response["output"]):
        place = {"output_index": index}
        yield "output_item.added", {**place, "item": {**item, **STARTED.get(item["type"], {})}}
        for name, fields in _filling(item):
            yield name, {"item_id": item["id"], **place, **fields}
        yield "output_item.done", {**place, "item": item}
    yield "completed", {"response": response}


def _filling(item: dict[str, Any]) -> Iterator[Step]:
    """Return what comes between the start and the end of an item."""
    match item["type"]:
        case "message":
            for index, part in enumerate(item["content"]):
                yield from _part(part, {"content_index": index}, "content_part", "output_text", {"logprobs": []})
        case "reasoning":
            for index, part in enumerate(item["summary"]):
                place = {"summary_index": index}
                yield from _part(part, place, "reasoning_summary_part", "reasoning_summary_text", {})
        case "function_call":
            for piece in pieces(item["arguments"]):
                yield "function_call_arguments.delta", {"delta": piece}
            yield "function_call_arguments.done", {"name": item["name"], "arguments": item["arguments"]}


def _part(part: dict[str, Any], place: dict[str, Any], kind: str, text: str, more: dict[str, Any]) -> Iterator[Step]:
    yield f"{kind}.added", {**place, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield f"{text}.delta", {**place, "delta": piece, **more}
    yield f"{text}.done", {**place, "text": part["text"], **more}
    yield f"{kind}.done", {**place, "part": part}
