"""Anthropic Messages: answers, streams, and counting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from windowsill.messages import Block, Reasoning, Usage
from windowsill.testing.managing import Edit, Managed, Place
from windowsill.testing.protocols import anthropic_rules as rules
from windowsill.testing.protocols.dialect import Dialect, Proof, RefusedError, Route, Told
from windowsill.testing.protocols.pieces import event, is_kind, pieces
from windowsill.testing.signing import Verdict

PATH = "/v1/messages"
COUNT = f"{PATH}/count_tokens"

KINDS = {400: "invalid_request_error", 404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error"}


class AnthropicMessages(Dialect):
    """`POST /v1/messages` and `/v1/messages/count_tokens`."""

    name = "anthropic"

    def route(self, path: str) -> Route | None:
        """Two paths; the body says whether to stream."""
        return {PATH: Route("answer"), COUNT: Route("count")}.get(path)

    def format(self, model: str) -> str:
        """The same for every model."""
        del model
        return "anthropic"

    def demand(self, body: dict[str, Any], headers: Mapping[str, str]) -> None:
        """What is beta needs its header; a model that thinks has to find its thinking again."""
        rules.demand_betas(body, headers)
        rules.demand_thinking(body)

    def edits(self, body: dict[str, Any]) -> tuple[Edit, ...]:
        """The edits of `context_management`."""
        return rules.edits(body)

    def closes(self, block: Block) -> bool:
        """A compaction does; one without content stands for an attempt that failed."""
        return is_kind(block.raw, "compaction") and msgspec.json.decode(block.raw or b"{}").get("content") is not None

    def proof(self, block: Block, thoughts: str) -> Proof | None:
        """Thinking has a signature; redacted thinking is nothing but one."""
        del thoughts
        if not isinstance(block, Reasoning):
            return None
        return Proof(block.data) if block.data is not None else Proof(block.signature or "", block.text)

    def unproven(self, place: Place, block: Block, verdict: Verdict) -> RefusedError:
        """As Anthropic words it."""
        redacted = isinstance(block, Reasoning) and block.data is not None
        kind, field = ("redacted_thinking", "data") if redacted else ("thinking", "signature")
        words = f"messages.{place[0]}.content.{place[1]}: Invalid `{field}` in `{kind}` block"
        bound = ". The block is bound to a different conversation. Remove the block."
        return RefusedError(words + (bound if verdict == "moved" else ""))

    def reply(self, told: Told) -> dict[str, Any]:
        """A message with its usage."""
        managed = "context_management" in told.body
        return {
            "id": f"msg_{told.number}",
            "type": "message",
            "role": "assistant",
            "model": told.model,
            "content": _blocks(told),
            "stop_reason": _reason(told),
            "stop_sequence": None,
            "usage": _usage(told),
            **({"context_management": _applied(told.managed)} if managed else {}),
        }

    def stream(self, told: Told) -> Iterator[bytes]:
        """The same message in events."""
        whole = self.reply(told)
        used = whole["usage"]
        final = {"output_tokens": used["output_tokens"]}
        if "iterations" in used:
            final["iterations"] = used.pop("iterations")
        managed = {"context_management": whole.pop("context_management")} if "context_management" in whole else {}
        start = {**whole, "content": [], "stop_reason": None, "usage": {**used, "output_tokens": 1}}
        yield event("message_start", {"type": "message_start", "message": start})
        yield event("ping", {"type": "ping"})
        for index, block in enumerate(whole["content"]):
            empty, deltas = _in_pieces(block)
            yield event("content_block_start", {"type": "content_block_start", "index": index, "content_block": empty})
            for delta in deltas:
                yield event("content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta})
            yield event("content_block_stop", {"type": "content_block_stop", "index": index})
        end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield event("message_delta", {"type": "message_delta", "delta": end, "usage": final, **managed})
        yield event("message_stop", {"type": "message_stop"})

    def counted(self, managed: Managed) -> dict[str, Any]:
        """The tokens, and how many they were before the edits."""
        before = {"context_management": {"original_input_tokens": managed.original}} if managed.cleared else {}
        return {"input_tokens": managed.tokens, **before}

    def error(self, refused: RefusedError) -> dict[str, Any]:
        """An error with its type."""
        kind = KINDS.get(refused.status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": refused.what}}

    def overflow(self, tokens: int, window: int) -> RefusedError:
        """As Anthropic words it."""
        return RefusedError(f"prompt is too long: {tokens} tokens > {window} maximum")


def _reason(told: Told) -> str:
    if told.managed.compacting is not None and told.managed.compacting.pause:
        return "compaction"
    return "tool_use" if told.answer.calls else "end_turn"


def _blocks(told: Told) -> list[dict[str, Any]]:
    answer = told.answer
    blocks = [] if told.compaction is None else [told.compaction]
    if answer.reasoning:
        blocks.append({"type": "thinking", "thinking": answer.reasoning, "signature": told.signature})
    if answer.text:
        blocks.append({"type": "text", "text": answer.text})
    blocks += [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.input} for call in answer.calls]
    return blocks


def _applied(managed: Managed) -> dict[str, Any]:
    return {
        "applied_edits": [
            {"type": rules.CLEAR, "cleared_tool_uses": uses, "cleared_input_tokens": tokens}
            for uses, tokens in managed.cleared
        ]
    }


def _usage(told: Told) -> dict[str, Any]:
    if not told.answer.usage:
        return {"input_tokens": 0, "output_tokens": 0}
    used: dict[str, Any] = _counts(told.usage)
    if told.compaction is not None:
        # What the compaction itself read and wrote stands here alone, in none of the totals.
        used["iterations"] = [{"type": "compaction", **_counts(told.compaction_usage)}]
        if _reason(told) != "compaction":
            used["iterations"].append({"type": "message", **_counts(told.usage)})
    return used


def _counts(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    }


def _in_pieces(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block as it starts, and the deltas that fill it."""
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
