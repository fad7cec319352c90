"""Google Gemini: `generateContent`, its stream, and counting."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import msgspec

from windowsill.messages import Block
from windowsill.providers.gemini import PLACEHOLDER, SKIP, camel
from windowsill.testing.protocols.base import Dialect, Proof, RefusedError, Route, Task, Told, data, pieces
from windowsill.testing.provider_rules import Managed, Place, Verdict

_PATH = re.compile(r"/v1(?:alpha|beta)?/models/([^/:]+):(generateContent|streamGenerateContent|countTokens)")

TASKS: dict[str, Task] = {"generateContent": "answer", "streamGenerateContent": "stream", "countTokens": "count"}

STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class Gemini(Dialect):
    """`POST /v1beta/models/{model}:generateContent`, `:streamGenerateContent?alt=sse` and `:countTokens`."""

    name = "gemini"

    def route(self, path: str) -> Route | None:
        """The model and the verb stand in the path."""
        found = _PATH.fullmatch(path)
        return None if found is None else Route(TASKS[found[2]], unquote(found[1]))

    def format(self, model: str) -> str:
        """The same for every model."""
        del model
        return "gemini"

    def whole(self, body: dict[str, Any]) -> dict[str, Any]:
        """Counting may hold a whole request in one field."""
        inner = camel(body).get("generateContentRequest")
        return inner if isinstance(inner, dict) else body

    def proof(self, block: Block, thoughts: str) -> Proof | None:
        """Any part may carry a signature, whose thoughts may be left out; placeholders are let through."""
        if block.raw is None or not block.raw.startswith(b"{"):
            return None
        signature = camel(msgspec.json.decode(block.raw)).get("thoughtSignature")
        if not isinstance(signature, str) or signature in {PLACEHOLDER, SKIP}:
            return None
        return Proof(signature, thoughts or None)

    def unproven(self, place: Place, block: Block, verdict: Verdict) -> RefusedError:
        """As Google words it."""
        del block
        if verdict == "moved":
            return RefusedError(
                f"Thought signature is not valid: contents[{place[0]}].parts[{place[1]}] follows other contents."
            )
        return RefusedError("Corrupted thought signature.")

    def reply(self, told: Told) -> dict[str, Any]:
        """A response with one candidate."""
        return _response(told, _parts(told), finished=True)

    def stream(self, told: Told) -> Iterator[bytes]:
        """The same response in chunks, the signature of plain words on an empty part at the end."""
        told_parts = _parts(told)
        for index, part in enumerate(told_parts):
            last = index == len(told_parts) - 1
            if "text" not in part:
                yield data(_response(told, [part], finished=last))
                continue
            rest = {key: value for key, value in part.items() if key not in {"text", "thoughtSignature"}}
            signed = "thoughtSignature" in part
            texts = pieces(part["text"]) or [""]
            for number, piece in enumerate(texts):
                ends = last and not signed and number == len(texts) - 1
                yield data(_response(told, [{"text": piece, **rest}], finished=ends))
            if signed:
                empty = {"text": "", "thoughtSignature": part["thoughtSignature"]}
                yield data(_response(told, [empty], finished=last))

    def counted(self, managed: Managed) -> dict[str, Any]:
        """The tokens under Google's name."""
        return {"totalTokens": managed.tokens}

    def error(self, refused: RefusedError) -> dict[str, Any]:
        """An error with its status in words."""
        status = STATUSES.get(refused.status, "INTERNAL")
        return {"error": {"code": refused.status, "message": refused.what, "status": status, "details": []}}

    def overflow(self, tokens: int, window: int) -> RefusedError:
        """As Google words it."""
        return RefusedError(
            f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window})."
        )


def _parts(told: Told) -> list[dict[str, Any]]:
    """The parts of an answer; the signature stands on the first call, or else on the last part."""
    answer = told.answer
    parts: list[dict[str, Any]] = [{"text": answer.reasoning, "thought": True}] if answer.reasoning else []
    if answer.text or not answer.calls:
        parts.append({"text": answer.text})
    signed = len(parts) if answer.calls else len(parts) - 1
    parts += [{"functionCall": {"id": call.id, "name": call.name, "args": call.input}} for call in answer.calls]
    if told.signature:
        parts[signed]["thoughtSignature"] = told.signature
    return parts


def _response(told: Told, parts: list[dict[str, Any]], *, finished: bool) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if finished:
        candidate["finishReason"] = "STOP"
    return {
        "candidates": [candidate],
        **({"usageMetadata": _usage(told, finished=finished)} if told.answer.usage else {}),
        "modelVersion": told.model,
        "responseId": f"response-{told.number}",
    }


def _usage(told: Told, *, finished: bool) -> dict[str, int]:
    """What was used; the model's own part is known when it has ended."""
    usage, thoughts = told.usage, told.reasoning_tokens
    used = {"promptTokenCount": usage.prompt, "totalTokenCount": usage.total if finished else usage.prompt}
    if usage.cache_read:
        used["cachedContentTokenCount"] = usage.cache_read
    if finished:
        used["candidatesTokenCount"] = usage.output - thoughts
        if thoughts:
            used["thoughtsTokenCount"] = thoughts
    return used
