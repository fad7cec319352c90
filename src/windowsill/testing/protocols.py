"""The protocols of the local server: answers, streams and errors in the words of each provider."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import msgspec

from windowsill.messages import Usage
from windowsill.testing.answers import Answer

PIECE = 12
"""Characters of a streamed piece: short enough that everything comes in several."""


class Dialect(Protocol):
    """One provider's way to answer."""

    path: str
    format: str

    def reply(self, answer: Answer, usage: Usage, model: str, number: int) -> dict[str, Any]:
        """The body of a response."""

    def stream(self, answer: Answer, usage: Usage, model: str, number: int) -> Iterator[bytes]:
        """The events of a streamed response."""

    def error(self, status: int, message: str, *, overflow: bool = False) -> dict[str, Any]:
        """The body of an error."""

    def overflow(self, tokens: int, window: int) -> str:
        """What the provider says to a request that is too long."""


class AnthropicMessages:
    """`POST /v1/messages`."""

    path = "/v1/messages"
    format = "anthropic"

    def reply(self, answer: Answer, usage: Usage, model: str, number: int) -> dict[str, Any]:
        """A message with its usage."""
        return {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": self._blocks(answer),
            "stop_reason": "tool_use" if answer.calls else "end_turn",
            "stop_sequence": None,
            "usage": self._usage(usage, answer),
        }

    def stream(self, answer: Answer, usage: Usage, model: str, number: int) -> Iterator[bytes]:
        """The same message in events."""
        whole = self.reply(answer, usage, model, number)
        start = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
        yield _event("message_start", {"type": "message_start", "message": start})
        yield _event("ping", {"type": "ping"})
        for index, block in enumerate(whole["content"]):
            empty, deltas = _in_pieces(block)
            yield _event("content_block_start", {"type": "content_block_start", "index": index, "content_block": empty})
            for delta in deltas:
                yield _event("content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta})
            yield _event("content_block_stop", {"type": "content_block_stop", "index": index})
        end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        used = {"output_tokens": whole["usage"]["output_tokens"]}
        yield _event("message_delta", {"type": "message_delta", "delta": end, "usage": used})
        yield _event("message_stop", {"type": "message_stop"})

    def error(self, status: int, message: str, *, overflow: bool = False) -> dict[str, Any]:
        """An error with its type."""
        del overflow
        kinds = {400: "invalid_request_error", 404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error"}
        return {"type": "error", "error": {"type": kinds.get(status, "api_error"), "message": message}}

    def overflow(self, tokens: int, window: int) -> str:
        """As Anthropic words it."""
        return f"prompt is too long: {tokens} tokens > {window} maximum"

    @staticmethod
    def _blocks(answer: Answer) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        if answer.reasoning:
            blocks.append({"type": "thinking", "thinking": answer.reasoning, "signature": "c2lnbmVk"})
        if answer.text:
            blocks.append({"type": "text", "text": answer.text})
        blocks += [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.input} for call in answer.calls]
        return blocks

    @staticmethod
    def _usage(usage: Usage, answer: Answer) -> dict[str, int]:
        if not answer.usage:
            return {"input_tokens": 0, "output_tokens": 0}
        return {
            "input_tokens": usage.input,
            "cache_creation_input_tokens": usage.cache_write,
            "cache_read_input_tokens": usage.cache_read,
            "output_tokens": usage.output,
        }


class OpenAIChat:
    """`POST /v1/chat/completions`."""

    path = "/v1/chat/completions"
    format = "openai"

    def reply(self, answer: Answer, usage: Usage, model: str, number: int) -> dict[str, Any]:
        """A completion with one choice."""
        message: dict[str, Any] = {"role": "assistant", "content": answer.text or None, "refusal": None}
        if answer.calls:
            message["tool_calls"] = _tool_calls(answer)
        return {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "created": number,
            "model": model,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": _reason(answer)}],
            **({"usage": _openai_usage(usage)} if answer.usage else {}),
        }

    def stream(self, answer: Answer, usage: Usage, model: str, number: int) -> Iterator[bytes]:
        """The same completion in chunks, the usage in the last."""
        head = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": number, "model": model}

        def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
            return _data({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

        yield chunk({"role": "assistant", "content": ""})
        for piece in _pieces(answer.text):
            yield chunk({"content": piece})
        for index, call in enumerate(_tool_calls(answer)):
            arguments = call["function"]["arguments"]
            start = {**call, "index": index, "function": {**call["function"], "arguments": ""}}
            yield chunk({"tool_calls": [start]})
            for piece in _pieces(arguments):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield chunk({}, _reason(answer))
        if answer.usage:
            yield _data({**head, "choices": [], "usage": _openai_usage(usage)})
        yield b"data: [DONE]\n\n"

    def error(self, status: int, message: str, *, overflow: bool = False) -> dict[str, Any]:
        """An error with its code."""
        kinds = {400: "invalid_request_error", 404: "not_found_error", 429: "rate_limit_error"}
        code = "context_length_exceeded" if overflow else None
        param = "messages" if overflow else None
        return {"error": {"message": message, "type": kinds.get(status, "server_error"), "param": param, "code": code}}

    def overflow(self, tokens: int, window: int) -> str:
        """As OpenAI words it."""
        return (
            f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} "
            "tokens. Please reduce the length of the messages."
        )


DIALECTS: tuple[Dialect, ...] = (AnthropicMessages(), OpenAIChat())


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


def _openai_usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "audio_tokens": 0},
    }


def _in_pieces(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block as it starts, and the deltas that fill it."""
    if block["type"] == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
    if block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"])]
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return {**block, "thinking": "", "signature": ""}, [*deltas, signed]
    text = msgspec.json.encode(block["input"]).decode()
    return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in _pieces(text)]


def _pieces(text: str) -> list[str]:
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]


def _event(name: str, data: dict[str, Any]) -> bytes:
    return b"event: " + name.encode() + b"\n" + _data(data)


def _data(data: dict[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(data) + b"\n\n"
