"""An answer in a provider's wire format, made here: for functions that give text, and for models that play a script."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from windowsill import formats
from windowsill.formats.wire import Fields, any_decoder, decode, encode, fields_decoder
from windowsill.messages import Message, Usage

NAMELESS = "unknown"
"""The model of an answer where nobody says one: the providers' own clients want some name."""


def worded(message: Message, format: str, *, model: str = "", usage: Usage | None = None, whole: bool = True) -> bytes:
    """The answer that holds this message; one that is not `whole` does not say that it ended."""
    # Of the dialects of a chat only requests differ.
    chunks = formats.get("openai" if format in formats.DIALECTS else format).render_message(message)
    id = hashlib.blake2b(b"".join(chunks), digest_size=8).hexdigest()
    used = {} if usage is None else _USAGES[format](usage)
    named = {"model": model or NAMELESS}
    match format:
        case "anthropic":
            reason = ("tool_use" if message.calls else "end_turn") if whole else None
            said = decode(fields_decoder, chunks[0])
            ended = {"stop_reason": reason, "stop_sequence": None}
            return encode({"id": f"msg_{id}", "type": "message", **named, **said, **ended, **used})
        case "responses":
            status = "completed" if whole else "incomplete"
            items = [
                _item(decode(fields_decoder, chunk), f"{id}_{place}", status) for place, chunk in enumerate(chunks)
            ]
            around = {"created_at": 0, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
            head = {"id": f"resp_{id}", "object": "response", "status": status}
            return encode({**head, **around, **named, "output": items, **used})
        case "gemini":
            finish = {"finishReason": "STOP"} if whole else {}
            candidate = {"content": msgspec.Raw(chunks[0]), "index": 0, **finish}
            return encode({"candidates": [candidate], "modelVersion": named["model"], "responseId": id, **used})
        case _:
            reason = ("tool_calls" if message.calls else "stop") if whole else None
            choice = {"index": 0, "message": msgspec.Raw(chunks[0]), "logprobs": None, "finish_reason": reason}
            head = {"id": f"chatcmpl-{id}", "object": "chat.completion"}
            return encode({**head, "created": 0, **named, "choices": [choice], **used})


def _item(item: Fields, id: str, status: str) -> dict[str, Any]:
    """An item as it is answered: words stand in parts, which they do not in a request."""
    if "type" in item:
        return {"id": f"fc_{id}", "status": status, **item}
    part = {"type": "output_text", "text": decode(any_decoder, item["content"]), "annotations": []}
    return {"id": f"msg_{id}", "type": "message", "status": status, "role": "assistant", "content": [part]}


def _anthropic(usage: Usage) -> dict[str, Any]:
    return {
        "usage": {
            "input_tokens": usage.input,
            "cache_creation_input_tokens": usage.cache_write,
            "cache_read_input_tokens": usage.cache_read,
            "output_tokens": usage.output,
        }
    }


def _chat(usage: Usage) -> dict[str, Any]:
    return {
        "usage": {
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.output,
            "total_tokens": usage.total,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        }
    }


def _responses(usage: Usage) -> dict[str, Any]:
    return {
        "usage": {
            "input_tokens": usage.prompt,
            "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.total,
        }
    }


def _gemini(usage: Usage) -> dict[str, Any]:
    return {
        "usageMetadata": {
            "promptTokenCount": usage.prompt,
            "cachedContentTokenCount": usage.cache_read,
            "candidatesTokenCount": usage.output,
            "totalTokenCount": usage.total,
        }
    }


_USAGES = {"anthropic": _anthropic, "openai": _chat, "deepseek": _chat, "responses": _responses, "gemini": _gemini}
