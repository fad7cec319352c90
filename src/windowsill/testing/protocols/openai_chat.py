"""OpenAI Chat Completions, and those who speak it with reasoning beside the content."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from windowsill.testing.protocols.base import Answer, Outcome, Protocol, RefusedError, Task, data, pieces

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
