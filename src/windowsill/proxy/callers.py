"""Tell who asks, in which conversation, and what for: read from the headers and the body of a request.

Credentials are hashed with a key of this machine and never kept; names of conversations are never logged.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

T = TypeVar("T")

CREDENTIALS = ("authorization", "x-api-key", "x-goog-api-key", "api-key", "chatgpt-account-id")

LONGEST_NAME = 200
SHORTEST_HEADER = 8
"""Characters of a session header that nobody has agreed on: less may be a counter, which several clients share."""

OWNER_DIGITS = 12
MARK = "~"
"""Stands before the owner in the id of a session; no name from outside holds it."""

SUB_AGENT = "-agent-"
"""Stands before the id of a sub-agent."""

SIDE = "/"
"""Stands in the id of a conversation beside another, such as one that asks for a title."""

_SESSION_HEADER = re.compile(r"x-[a-z0-9-]+-session-id")
_UNSAFE = re.compile(r"[^A-Za-z0-9._:@+-]+")
_OLD_USER_ID = re.compile(r"_session_([A-Za-z0-9-]{8,})")

COMPACTION_WORDS = ("CRITICAL: Respond with TEXT ONLY",)
"""Openings of the block with which a client asks for its own summary of the conversation."""

OPENCODE = "opencode/"
"""Its conversations have tools; a title and a summary, which it asks for in the name of the conversation, have none."""

Purpose: TypeAlias = Literal["conversation", "compaction", "other"]

_CLASSES: dict[str, Purpose] = {
    "main": "conversation",
    "subagent": "conversation",
    "workflow": "conversation",
    "compaction": "compaction",
    "auxiliary": "other",
    "turn": "conversation",
    "prewarm": "other",
}
"""The words of Claude Code and Codex for what a request is."""


class Caller(msgspec.Struct, frozen=True):
    """The owner of a request, the name of its conversation where the client gives one, and what it is for."""

    owner: str
    thread: str | None = None
    purpose: Purpose = "conversation"

    @property
    def session(self) -> str | None:
        """The id of the session of this conversation; `None` leaves it to the list of messages."""
        return f"{self.thread}{MARK}{self.owner}" if self.thread else None


class _Asked(msgspec.Struct):
    """The fields of a request that are needed here; the others, which may be many, are passed over."""

    metadata: Any = None
    prompt_cache_key: Any = None
    messages: msgspec.Raw = msgspec.Raw(b"[]")
    input: msgspec.Raw = msgspec.Raw(b"[]")
    tools: msgspec.Raw = msgspec.Raw(b"[]")


class _Turn(msgspec.Struct):
    """The fields of Codex's header that are needed here."""

    thread_id: str = ""
    request_kind: str = ""


def caller_of(headers: Mapping[str, str], query: Mapping[str, str], body: bytes, key: bytes, name: str = "") -> Caller:
    """Read who asks; `headers` have names in lower case, `name` is stated by hand in the address."""
    asked = read_or(body, _Asked, _Asked())
    turn = read_or(headers.get("x-codex-turn-metadata", "{}"), _Turn, _Turn())
    said = headers.get("x-claude-code-request-class") or turn.request_kind
    purpose = _CLASSES.get(said, "conversation")
    if purpose == "conversation" and _asks_for_summary(asked):
        purpose = "compaction"
    elif headers.get("user-agent", "").startswith(OPENCODE) and len(asked.tools) <= len("[]"):
        purpose = "other"
    thread = name or _thread(headers, turn, asked)
    return Caller(owner_of(headers, query, key), safe_name(thread) if thread else None, purpose)


def owner_of(headers: Mapping[str, str], query: Mapping[str, str], key: bytes) -> str:
    """Return a hash that is the same for the same credential on this machine, and says nothing about it."""
    credential = "\n".join([*(headers.get(each, "") for each in CREDENTIALS), query.get("key", "")])
    return hmac.new(key, credential.encode(errors="surrogatepass"), sha256).hexdigest()[:OWNER_DIGITS]


def safe_name(text: str) -> str:
    """Return a name from outside as part of a session's id."""
    return _UNSAFE.sub("-", text)[:LONGEST_NAME].strip("-") or "session"


def _thread(headers: Mapping[str, str], turn: _Turn, asked: _Asked) -> str | None:
    if stated := headers.get("x-windowsill-session"):
        return stated
    if session := headers.get("x-claude-code-session-id"):
        # One id covers the main agent and all that it started, which may start others: ids show the tree.
        agents = (headers.get("x-claude-code-parent-agent-id"), headers.get("x-claude-code-agent-id"))
        return f"claude-{session}" + "".join(f"{SUB_AGENT}{each}" for each in agents if each)
    if turn.thread_id:
        return f"codex-{turn.thread_id}"
    if "codex" in headers.get("user-agent", "").lower() and (
        thread := headers.get("thread-id") or headers.get("session-id")
    ):
        return f"codex-{thread}"
    if session := headers.get("x-session-id"):
        parent = headers.get("x-parent-session-id")
        return f"{parent}{SUB_AGENT}{session}" if parent else session
    for header, value in headers.items():
        if _SESSION_HEADER.fullmatch(header) and len(value) >= SHORTEST_HEADER:
            return value
    return _user_id(asked.metadata) or _text(asked.prompt_cache_key)


def _user_id(metadata: object) -> str | None:
    """Return the session that Anthropic's `metadata.user_id` names: a JSON text, or words around it."""
    stated = metadata.get("user_id") if isinstance(metadata, dict) else None
    if not isinstance(stated, str):
        return None
    if found := _OLD_USER_ID.search(stated):
        return found[1]
    return _text(read_or(stated.encode(errors="replace"), dict[str, Any], {}).get("session_id"))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and len(value) >= SHORTEST_HEADER else None


def read_or(data: bytes | str | msgspec.Raw, kind: type[T], otherwise: T) -> T:
    """Decode JSON that anybody may have written; `otherwise` where it is not of this kind."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return otherwise


def _asks_for_summary(asked: _Asked) -> bool:
    """Tell whether a client asks for a summary with which it will replace the conversation."""
    last = next((found for each in (asked.messages, asked.input) if (found := _last(each)) is not None), None)
    if last is None:
        return False
    content = last.get("content")
    texts = content if isinstance(content, list) else [{"text": content}]
    return last.get("type") == "compaction_trigger" or any(
        str(block.get("text", "")).startswith(COMPACTION_WORDS) for block in texts if isinstance(block, dict)
    )


def _last(messages: msgspec.Raw) -> dict[str, Any] | None:
    found = read_or(messages, list[msgspec.Raw], [])
    return read_or(found[-1], dict[str, Any], {}) if found else None
