"""Codex's compaction before a provider that knows none: the item that Codex asks for, and its words when it comes back.

The words travel in the item itself, so that nothing has to be kept for it here.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

import msgspec

from windowsill import providers
from windowsill.history.proposals import frame
from windowsill.proxy.callers import read_or
from windowsill.session.handoff import record_of

TRIGGER = "compaction_trigger"
"""The type of the last item of a request that asks for nothing but a compaction."""

COMPACT = "/responses/compact"
"""The end of the address that does the same."""

KNOWING = ("openai.com", "chatgpt.com")
"""The provider that compacts by itself: its word is passed on, whatever it is."""

REFUSED = (400, 404, 405, 422, 501)
"""Statuses with which others refuse what they do not know."""

OURS = "windowsill:"
"""Stands before the words in an item of ours."""

BYTES_PER_TOKEN = 4


class _Item(msgspec.Struct):
    type: str = ""
    role: str = ""
    encrypted_content: str | None = None


class _Asked(msgspec.Struct):
    model: str = ""
    input: list[msgspec.Raw] = []


def asks_for_item(body: bytes) -> bool:
    """Tell whether a request asks for a compaction and nothing else."""
    items = _items(body)
    return bool(items) and _read(items[-1]).type == TRIGGER


def compacts(upstream: str) -> bool:
    """Tell whether a provider is known to compact by itself."""
    host = urlsplit(upstream).hostname or ""
    return any(host == each or host.endswith(f".{each}") for each in KNOWING)


def has_item(answer: bytes) -> bool:
    """Tell whether an answer holds a compaction."""
    return b'"type":"compaction"' in answer.replace(b": ", b":")


def written_answer(body: bytes) -> Iterator[bytes]:
    """Yield the events of an answer that holds one compaction, written here."""
    response, item = _response(body)
    begun = {**response, "status": "in_progress", "output": []}
    yield _event("response.created", 0, response=begun)
    yield _event("response.output_item.added", 1, output_index=0, item=item)
    yield _event("response.output_item.done", 2, output_index=0, item=item)
    yield _event("response.completed", 3, response=response)


def written_list(body: bytes) -> bytes:
    """Return the answer of the address for compactions: the user's messages, and one compaction, written here."""
    response, item = _response(body)
    spoken = [each for each in _items(body) if _read(each).role == "user"]
    return msgspec.json.encode({**response, "object": "response.compaction", "output": [*spoken, item]})


def with_words(body: bytes) -> bytes:
    """Put the words of our own compactions into a request, which no provider could read; else it stays as it is."""
    if OURS.encode() not in body:
        return body
    fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    fields["input"] = msgspec.Raw(msgspec.json.encode([_opened(each) for each in _items(body)]))
    return msgspec.json.encode(fields)


def _opened(raw: msgspec.Raw) -> msgspec.Raw:
    item = _read(raw)
    if item.type != "compaction" or not (item.encrypted_content or "").startswith(OURS):
        return raw
    text = base64.b64decode((item.encrypted_content or "").removeprefix(OURS)).decode()
    content = [{"type": "input_text", "text": text}]
    return msgspec.Raw(msgspec.json.encode({"type": "message", "role": "user", "content": content}))


def _response(body: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    request = providers.read_request(body, format="responses")
    text = frame(record_of(request.messages, lambda words: len(words.encode(errors="replace")) // BYTES_PER_TOKEN))
    digits = sha256(text.encode(errors="replace")).hexdigest()[:24]
    packed = base64.b64encode(text.encode(errors="replace")).decode()
    item = {"type": "compaction", "id": f"cmp_{digits}", "encrypted_content": OURS + packed}
    before, after = len(body) // BYTES_PER_TOKEN, len(text) // BYTES_PER_TOKEN
    usage = {
        "input_tokens": before,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": after,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": before + after,
    }
    response = {
        "id": f"resp_{digits}",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": request.model or "",
        "output": [item],
        "usage": usage,
    }
    return response, item


def _event(type: str, number: int, **fields: Any) -> bytes:
    data = msgspec.json.encode({"type": type, "sequence_number": number, **fields})
    return b"event: " + type.encode() + b"\ndata: " + data + b"\n\n"


def _items(body: bytes) -> list[msgspec.Raw]:
    return read_or(body, _Asked, _Asked()).input


def _read(raw: msgspec.Raw) -> _Item:
    return read_or(raw, _Item, _Item())
