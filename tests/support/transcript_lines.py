"""Small transcripts of known agents, as the agents write them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from windowsill import transcripts

SESSION = "0b2c4e9a-1111-4222-8333-444455556666"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def jsonl(*lines: Any) -> bytes:
    """Lines of JSON; bytes stay as they are."""
    return b"".join((each if isinstance(each, bytes) else json.dumps(each).encode()) + b"\n" for each in lines)


def read_transcript(data: bytes, name: str = "file") -> transcripts.Transcript:
    """The transcript in the bytes; it has to be known."""
    found = transcripts.read(data, name)
    assert found is not None
    return found


def messages(session: transcripts.RecordedSession) -> list[Any]:
    """The messages of a session, decoded."""
    return [json.loads(each) for each in session.messages]


def texts(session: transcripts.RecordedSession) -> list[str]:
    """The words of each message, or the kinds of its blocks."""
    return [_words(each["content"]) for each in messages(session)]


def _words(content: str | Iterable[dict[str, Any]] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return " ".join(block.get("text") or block["type"] for block in content)


def claude(uuid: str, parent: str | None, role: str, content: Any, **fields: Any) -> dict[str, Any]:
    """A line of Claude Code; `message` adds fields to the message."""
    message = {"role": role, "content": content, **fields.pop("message", {})}
    if role == "assistant":
        message = {"type": "message", "model": "claude-opus-4-6", **message}
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/ann/shop",
        "sessionId": SESSION,
        "version": "2.1.0",
        "type": role,
        "message": message,
        "uuid": uuid,
        "timestamp": "2026-02-06T09:24:39.155Z",
        **fields,
    }


def use(id: str, name: str = "Read", **input: Any) -> dict[str, Any]:
    """A call, as Anthropic writes it."""
    return {"type": "tool_use", "id": id, "name": name, "input": input}


def result(id: str, content: Any = "ok") -> dict[str, Any]:
    """A result, as Anthropic writes it."""
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def codex(kind: str, payload: dict[str, Any], at: str = "2026-03-01T10:00:00.000Z") -> dict[str, Any]:
    """A line of a Codex rollout."""
    return {"timestamp": at, "type": kind, "payload": payload}


def item(kind: str, **fields: Any) -> dict[str, Any]:
    """A line with an item of the Responses API."""
    return codex("response_item", {"type": kind, **fields})


def codex_says(role: str, text: str) -> dict[str, Any]:
    """A message in a Codex rollout."""
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": text}])


CODEX_HEAD = codex("session_meta", {"id": "c0dec", "cwd": "/w", "cli_version": "0.98.0", "originator": "codex_cli_rs"})
CODEX_MODEL = codex("turn_context", {"cwd": "/w", "model": "gpt-5.2-codex", "approval_policy": "on-request"})


def codex_used(input: int, output: int, cached: int = 0) -> dict[str, Any]:
    """The count of tokens after a response."""
    last = {"input_tokens": input, "cached_input_tokens": cached, "output_tokens": output, "total_tokens": 0}
    return codex("event_msg", {"type": "token_count", "info": {"last_token_usage": last}})


def gemini(id: str, kind: str, content: Any, **fields: Any) -> dict[str, Any]:
    """A message of the Gemini CLI."""
    return {"id": id, "timestamp": "2026-04-01T08:00:00.000Z", "type": kind, "content": content, **fields}


GEMINI_HEAD = {"sessionId": "gem", "projectHash": "ab", "startTime": "2026-04-01T08:00:00.000Z", "messages": []}
