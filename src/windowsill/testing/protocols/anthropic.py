"""Anthropic Messages: answers, streams, and counting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from windowsill.messages import Block, Reasoning
from windowsill.providers.anthropic.rules import lacks_thinking
from windowsill.testing.protocols.base import Outcome, Proof, Protocol, RefusedError, Task, event, is_kind, pieces
from windowsill.testing.provider_rules import Clearing, Compacting, Edit, Managed, Place, Verdict

CLEAR = "clear_tool_uses_20250919"
CLEAR_THINKING = "clear_thinking_20251015"
COMPACT = "compact_20260112"
BETAS = {
    CLEAR: "context-management-2025-06-27",
    CLEAR_THINKING: "context-management-2025-06-27",
    COMPACT: "compact-2026-01-12",
}
"""The word in the header `anthropic-beta` without which each edit is refused."""

CLEAR_ABOVE, KEEP, COMPACT_ABOVE = 100_000, 3, 150_000
"""The documented defaults, for a request that does not say."""


class AnthropicMessages(Protocol):
    """`POST /v1/messages` and `/v1/messages/count_tokens`."""

    name = "anthropic"
    paths: ClassVar[Mapping[str, Task]] = {"/v1/messages": "answer", "/v1/messages/count_tokens": "count"}
    error_types: ClassVar[Mapping[int, str]] = {**Protocol.error_types, 529: "overloaded_error"}

    def check(self, body: dict[str, Any], headers: Mapping[str, str]) -> None:
        """Refuse betas without their header, and a tool loop whose thinking was left out."""
        _check_betas(body, headers)
        _check_thinking(body)

    def edits(self, body: dict[str, Any]) -> tuple[Edit, ...]:
        """Return the edits of `context_management`; that of thinking changes nothing that is counted here."""
        return tuple(_edit(edit) for edit in _stated_edits(body) if edit.get("type") != CLEAR_THINKING)

    def closes(self, block: Block) -> bool:
        """Tell whether it is a compaction; one without content stands for an attempt that failed."""
        return is_kind(block.raw, "compaction") and msgspec.json.decode(block.raw or b"{}").get("content") is not None

    def proof(self, block: Block, thoughts: str) -> Proof | None:
        """Return the signature of thinking; redacted thinking is nothing but one."""
        if not isinstance(block, Reasoning):
            return None
        return Proof(block.data) if block.data is not None else Proof(block.signature or "", block.text)

    def bad_proof(self, place: Place, block: Block, verdict: Verdict) -> RefusedError:
        """Return Anthropic's words for it."""
        redacted = isinstance(block, Reasoning) and block.data is not None
        kind, field = ("redacted_thinking", "data") if redacted else ("thinking", "signature")
        words = f"messages.{place[0]}.content.{place[1]}: Invalid `{field}` in `{kind}` block"
        bound = ". The block is bound to a different conversation. Remove the block."
        return RefusedError(words + (bound if verdict == "moved" else ""))

    def reply(self, outcome: Outcome) -> dict[str, Any]:
        """Return a message with its usage."""
        edits = [
            {"type": CLEAR, "cleared_tool_uses": uses, "cleared_input_tokens": tokens}
            for uses, tokens in outcome.managed.cleared
        ]
        return {
            "id": f"msg_{outcome.number}",
            "type": "message",
            "role": "assistant",
            "model": outcome.model,
            "content": _blocks(outcome),
            "stop_reason": self._reason(outcome),
            "stop_sequence": None,
            "usage": self._usage(outcome),
            **({"context_management": {"applied_edits": edits}} if "context_management" in outcome.body else {}),
        }

    def stream(self, outcome: Outcome) -> Iterator[bytes]:
        """Return the same message in events."""
        whole = self.reply(outcome)
        used = whole["usage"]
        final = {"output_tokens": used["output_tokens"]}
        if "iterations" in used:
            final["iterations"] = used.pop("iterations")
        managed = {"context_management": whole.pop("context_management")} if "context_management" in whole else {}
        start = {**whole, "content": [], "stop_reason": None, "usage": {**used, "output_tokens": 1}}
        yield _event("message_start", message=start)
        yield _event("ping")
        for index, block in enumerate(whole["content"]):
            empty, deltas = _in_pieces(block)
            yield _event("content_block_start", index=index, content_block=empty)
            for delta in deltas:
                yield _event("content_block_delta", index=index, delta=delta)
            yield _event("content_block_stop", index=index)
        end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield _event("message_delta", delta=end, usage=final, **managed)
        yield _event("message_stop")

    def count_reply(self, managed: Managed) -> dict[str, Any]:
        """Return the tokens, and how many they were before the edits."""
        before = {"context_management": {"original_input_tokens": managed.original}} if managed.cleared else {}
        return {"input_tokens": managed.tokens, **before}

    def error(self, refused: RefusedError) -> dict[str, Any]:
        """Return an error with its type."""
        kind = self.error_types.get(refused.status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": refused.what}}

    def overflow(self, tokens: int, window: int) -> RefusedError:
        """Return Anthropic's words for it."""
        return RefusedError(f"prompt is too long: {tokens} tokens > {window} maximum")

    def _reason(self, outcome: Outcome) -> str:
        if outcome.managed.compacting is not None and outcome.managed.compacting.pause:
            return "compaction"
        return self.spec.stops.calls if outcome.answer.calls else self.spec.stops.done

    def _usage(self, outcome: Outcome) -> dict[str, Any]:
        if not outcome.answer.usage:
            return {"input_tokens": 0, "output_tokens": 0}
        used = self.usage(outcome.usage)
        if outcome.compaction is not None:
            # What the compaction itself read and wrote stands here alone, in none of the totals.
            used["iterations"] = [{"type": "compaction", **self.usage(outcome.compaction_usage)}]
            if self._reason(outcome) != "compaction":
                used["iterations"].append({"type": "message", **self.usage(outcome.usage)})
        return used


def _event(kind: str, **fields: Any) -> bytes:
    return event(kind, {"type": kind, **fields})


def _blocks(outcome: Outcome) -> list[dict[str, Any]]:
    answer = outcome.answer
    blocks = [] if outcome.compaction is None else [outcome.compaction]
    if answer.reasoning:
        blocks.append({"type": "thinking", "thinking": answer.reasoning, "signature": outcome.signature})
    if answer.text:
        blocks.append({"type": "text", "text": answer.text})
    blocks += [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.input} for call in answer.calls]
    return blocks


def _in_pieces(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a block as it starts, and the deltas that fill it."""
    match block["type"]:
        case "text":
            return {**block, "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
        case "thinking":
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
            signed = {"type": "signature_delta", "signature": block["signature"]}
            return {**block, "thinking": "", "signature": ""}, [*deltas, signed]
        case "compaction":
            # It comes in one piece.
            return {**block, "content": None}, [{"type": "compaction_delta", "content": block["content"]}]
        case _:
            text = msgspec.json.encode(block["input"]).decode()
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(text)]
            return {**block, "input": {}}, deltas


def _check_betas(body: dict[str, Any], headers: Mapping[str, str]) -> None:
    """Refuse edits, and blocks that come of them, without the header that allows them."""
    betas = {beta.strip() for beta in headers.get("anthropic-beta", "").split(",")}
    for edit in _stated_edits(body):
        if BETAS.get(str(edit.get("type"))) not in betas:
            raise RefusedError("context_management: Extra inputs are not permitted")
    for index, message in enumerate(body["messages"]):
        for number, block in enumerate(_content(message)):
            if block.get("type") == "compaction" and BETAS[COMPACT] not in betas:
                raise RefusedError(
                    f"messages.{index}.content.{number}: Input tag 'compaction' found using 'type' does not match any "
                    "of the expected tags"
                )


def _check_thinking(body: dict[str, Any]) -> None:
    """Refuse, in Anthropic's words, a tool loop whose thinking was left out when the model is to think."""
    found = lacks_thinking(body["messages"], body.get("thinking"))
    if found is None:
        return
    index, number = found
    blocks = _content(body["messages"][index])
    kind = blocks[number].get("type") if number < len(blocks) else None
    raise RefusedError(
        f"messages.{index}.content.{number}.type: Expected `thinking` or `redacted_thinking`, but found `{kind}`. "
        "When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the "
        "lastmost set of `tool_use` and `tool_result` blocks)."
    )


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


def _stated_edits(body: dict[str, Any]) -> list[dict[str, Any]]:
    managed = body.get("context_management") or {}
    wishes = managed.get("edits") or [] if isinstance(managed, dict) else None
    if not isinstance(wishes, list) or not all(isinstance(wish, dict) for wish in wishes):
        raise RefusedError("context_management.edits: Input should be a valid list of objects")
    return wishes


def _content(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return content if isinstance(content, list) else [{"type": "text", "text": content}]
