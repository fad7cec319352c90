"""OpenAI Chat Completions, and those who speak it with reasoning beside the content."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from windowsill import providers
from windowsill.messages import Usage
from windowsill.testing.protocols.base import Answer, Dialect, RefusedError, Route, Told, data, pieces

PATH = "/v1/chat/completions"

REASONING_MODELS = ("deepseek", "kimi")
"""How the names of models begin that tell their reasoning as `reasoning_content`."""

REASONING_FORMAT = "deepseek"

KINDS = {400: "invalid_request_error", 404: "not_found_error", 429: "rate_limit_error"}


def openai_error(refused: RefusedError) -> dict[str, Any]:
    """An error as OpenAI's interfaces word it."""
    kind = KINDS.get(refused.status, "server_error")
    return {"error": {"message": refused.what, "type": kind, "param": refused.param, "code": refused.code}}


class OpenAIChat(Dialect):
    """`POST /v1/chat/completions`."""

    name = "openai"

    def route(self, path: str) -> Route | None:
        """One path; the body says whether to stream."""
        return Route("answer") if path == PATH else None

    def format(self, model: str) -> str:
        """The format with reasoning for the models that have it."""
        return REASONING_FORMAT if _reasons(model) and REASONING_FORMAT in providers.names() else "openai"

    def reply(self, told: Told) -> dict[str, Any]:
        """A completion with one choice."""
        answer = told.answer
        message: dict[str, Any] = {"role": "assistant", "content": answer.text or None, "refusal": None}
        if answer.reasoning and _reasons(told.model):
            message["reasoning_content"] = answer.reasoning
        if answer.calls:
            message["tool_calls"] = _tool_calls(answer)
        return {
            "id": f"chatcmpl-{told.number}",
            "object": "chat.completion",
            "created": told.number,
            "model": told.model,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": _reason(answer)}],
            **({"usage": _usage(told.usage, told.reasoning_tokens)} if answer.usage else {}),
        }

    def stream(self, told: Told) -> Iterator[bytes]:
        """The same completion in chunks, the usage in the last if it was asked for."""
        answer = told.answer
        asked = told.body.get("stream_options") or {}
        counts = bool(asked.get("include_usage")) and answer.usage
        head = {
            "id": f"chatcmpl-{told.number}",
            "object": "chat.completion.chunk",
            "created": told.number,
            "model": told.model,
        }
        tail = {"usage": None} if counts else {}

        def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
            return data({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}], **tail})

        yield chunk({"role": "assistant", "content": ""})
        for delta in _deltas(answer, reasons=_reasons(told.model)):
            yield chunk(delta)
        yield chunk({}, _reason(answer))
        if counts:
            yield data({**head, "choices": [], "usage": _usage(told.usage, told.reasoning_tokens)})
        yield b"data: [DONE]\n\n"

    def error(self, refused: RefusedError) -> dict[str, Any]:
        """An error with its code."""
        return openai_error(refused)

    def overflow(self, tokens: int, window: int) -> RefusedError:
        """As OpenAI words it."""
        return RefusedError(
            f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} "
            "tokens. Please reduce the length of the messages.",
            code="context_length_exceeded",
            param="messages",
        )


def _reasons(model: str) -> bool:
    return model.startswith(REASONING_MODELS)


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


def _reason(answer: Answer) -> str:
    return "tool_calls" if answer.calls else "stop"


def _tool_calls(answer: Answer) -> list[dict[str, Any]]:
    return [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": msgspec.json.encode(call.input).decode()},
        }
        for call in answer.calls
    ]


def _usage(usage: Usage, reasoning: int) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }
