"""What Anthropic demands beside a sound conversation, and what it can be asked to do to one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windowsill.testing.managing import Clearing, Compacting, Edit
from windowsill.testing.protocols.dialect import RefusedError

CLEAR = "clear_tool_uses_20250919"
COMPACT = "compact_20260112"
BETAS = {CLEAR: "context-management-2025-06-27", COMPACT: "compact-2026-01-12"}
"""The word in the header `anthropic-beta` without which each edit is refused."""

CLEAR_ABOVE, KEEP, COMPACT_ABOVE = 100_000, 3, 150_000
"""What holds where a request does not say: the documented defaults."""

THINKING = frozenset({"thinking", "redacted_thinking"})


def demand_betas(body: dict[str, Any], headers: Mapping[str, str]) -> None:
    """Refuse edits, and blocks that come of them, without the header that allows them."""
    betas = {beta.strip() for beta in headers.get("anthropic-beta", "").split(",")}
    for edit in _listed(body):
        if BETAS.get(str(edit.get("type"))) not in betas:
            raise RefusedError("context_management: Extra inputs are not permitted")
    for index, message in enumerate(body["messages"]):
        for number, block in enumerate(_content(message)):
            if block.get("type") == "compaction" and BETAS[COMPACT] not in betas:
                raise RefusedError(
                    f"messages.{index}.content.{number}: Input tag 'compaction' found using 'type' does not match any "
                    "of the expected tags"
                )


def demand_thinking(body: dict[str, Any]) -> None:
    """Refuse a tool loop whose thinking was left out, when the model is to think."""
    if (body.get("thinking") or {}).get("type") != "enabled":
        return
    messages = body["messages"]
    last = next((index for index in range(len(messages) - 1, -1, -1) if messages[index]["role"] == "assistant"), None)
    if last is None:
        return
    first = last
    # Messages of the assistant in a row are one turn.
    while first and messages[first - 1]["role"] == "assistant":
        first -= 1
    turn = [
        (index, number, str(block.get("type")))
        for index in range(first, last + 1)
        for number, block in enumerate(_content(messages[index]))
        if block.get("type") != "compaction"
    ]
    if turn and turn[0][2] not in THINKING and any(kind == "tool_use" for _, _, kind in turn):
        index, number, kind = turn[0]
        raise RefusedError(
            f"messages.{index}.content.{number}.type: Expected `thinking` or `redacted_thinking`, but found `{kind}`. "
            "When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the "
            "lastmost set of `tool_use` and `tool_result` blocks)."
        )


def edits(body: dict[str, Any]) -> tuple[Edit, ...]:
    """The edits a request asks for."""
    return tuple(_edit(edit) for edit in _listed(body))


def _edit(edit: dict[str, Any]) -> Edit:
    trigger = edit.get("trigger") or {}
    value = trigger.get("value")
    if edit["type"] == COMPACT:
        tokens = COMPACT_ABOVE if value is None else value
        return Compacting(tokens=tokens, pause=bool(edit.get("pause_after_compaction")))
    by_uses = trigger.get("type") == "tool_uses"
    inputs = edit.get("clear_tool_inputs") or False
    return Clearing(
        tokens=None if by_uses else CLEAR_ABOVE if value is None else value,
        uses=value if by_uses else None,
        keep=(edit.get("keep") or {}).get("value", KEEP),
        at_least=(edit.get("clear_at_least") or {}).get("value", 0),
        exclude=frozenset(edit.get("exclude_tools") or ()),
        inputs=inputs if isinstance(inputs, bool) else frozenset(inputs),
    )


def _listed(body: dict[str, Any]) -> list[dict[str, Any]]:
    managed = body.get("context_management") or {}
    wishes = managed.get("edits") or [] if isinstance(managed, dict) else None
    if not isinstance(wishes, list) or not all(isinstance(wish, dict) for wish in wishes):
        raise RefusedError("context_management.edits: Input should be a valid list of objects")
    return wishes


def _content(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return content if isinstance(content, list) else [{"type": "text", "text": content}]
