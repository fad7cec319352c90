"""Google Gemini: `generateContent`, its stream, and counting."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import msgspec

from windowsill.messages import Block
from windowsill.providers.gemini import PLACEHOLDER, SKIP, camel
from windowsill.testing.protocols.base import Outcome, Proof, Protocol, RefusedError, Route, Task, data, pieces
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


class Gemini(Protocol):
    """`POST /v1beta/models/{model}:generateContent`, `:streamGenerateContent?alt=sse` and `:countTokens`."""

    name = "gemini"
    error_types = STATUSES

    def route(self, path: str) -> Route | None:
        """Read the model and the verb from the path."""
        found = _PATH.fullmatch(path)
        return None if found is None else Route(TASKS[found[2]], unquote(found[1]))

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the request to count, which may stand whole in one field."""
        inner = camel(body).get("generateContentRequest")
        return inner if isinstance(inner, dict) else body

    def proof(self, block: Block, thoughts: str) -> Proof | None:
        """Return the signature that any part may carry; its thoughts may be left out, placeholders are let through."""
        if block.raw is None or not block.raw.startswith(b"{"):
            return None
        signature = camel(msgspec.json.decode(block.raw)).get("thoughtSignature")
        if not isinstance(signature, str) or signature in {PLACEHOLDER, SKIP}:
            return None
        return Proof(signature, thoughts or None)

    def bad_proof(self, place: Place, block: Block, verdict: Verdict) -> RefusedError:
        """Return Google's words for it."""
        where = f"contents[{place[0]}].parts[{place[1]}]"
        moved = f"Thought signature is not valid: {where} follows other contents."
        return RefusedError(moved if verdict == "moved" else "Corrupted thought signature.")

    def reply(self, outcome: Outcome) -> dict[str, Any]:
        """Return a response with one candidate."""
        return self._response(outcome, _parts(outcome), finished=True)

    def stream(self, outcome: Outcome) -> Iterator[bytes]:
        """Return the same response in chunks, the signature of plain words on an empty part at the end."""
        parts = [piece for part in _parts(outcome) for piece in _in_pieces(part)]
        for index, part in enumerate(parts):
            yield data(self._response(outcome, [part], finished=index == len(parts) - 1))

    def count_reply(self, managed: Managed) -> dict[str, Any]:
        """Return the tokens under Google's name."""
        return {"totalTokens": managed.tokens}

    def error(self, refused: RefusedError) -> dict[str, Any]:
        """Return an error with its status in words."""
        status = self.error_types.get(refused.status, "INTERNAL")
        return {"error": {"code": refused.status, "message": refused.what, "status": status, "details": []}}

    def overflow(self, tokens: int, window: int) -> RefusedError:
        """Return Google's words for it."""
        return RefusedError(
            f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window})."
        )

    def _response(self, outcome: Outcome, parts: list[dict[str, Any]], *, finished: bool) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
        used, thoughts = outcome.usage, outcome.reasoning_tokens
        if finished:
            candidate["finishReason"] = self.spec.stops.done
        else:
            # The model's own part is known when it has ended.
            used, thoughts = msgspec.structs.replace(used, output=0), 0
        return {
            "candidates": [candidate],
            **({"usageMetadata": self.usage(used, thoughts)} if outcome.answer.usage else {}),
            "modelVersion": outcome.model,
            "responseId": f"response-{outcome.number}",
        }


def _parts(outcome: Outcome) -> list[dict[str, Any]]:
    """Return the parts of an answer; the signature stands on the first call, or else on the last part."""
    answer = outcome.answer
    parts: list[dict[str, Any]] = [{"text": answer.reasoning, "thought": True}] if answer.reasoning else []
    if answer.text or not answer.calls:
        parts.append({"text": answer.text})
    signed = len(parts) if answer.calls else len(parts) - 1
    parts += [{"functionCall": {"id": call.id, "name": call.name, "args": call.input}} for call in answer.calls]
    if outcome.signature:
        parts[signed]["thoughtSignature"] = outcome.signature
    return parts


def _in_pieces(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "text" not in part:
        yield part
        return
    rest = {key: value for key, value in part.items() if key not in {"text", "thoughtSignature"}}
    for piece in pieces(part["text"]) or [""]:
        yield {"text": piece, **rest}
    if "thoughtSignature" in part:
        yield {"text": "", "thoughtSignature": part["thoughtSignature"]}
