"""Codex rollouts (`~/.codex/sessions/**/rollout-*.jsonl`), converted to OpenAI's chat form.

A line is `{"timestamp", "type", "payload"}`; in older rollouts the items are the lines themselves. Reasoning is
encrypted, or a summary that is never sent again: it is counted and left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from windowsill.messages import Block, Role, Text, ToolResult, ToolUse
from windowsill.providers.wire import encode
from windowsill.transcripts.base import (
    Conversation,
    Line,
    Notes,
    Reader,
    RecordedSession,
    Turn,
    decode_objects,
    picture,
    text_or_none,
    timestamp,
    usage_of,
)

ENVELOPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})

CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})

INJECTED = ("<environment_context>", "<user_instructions>", "# AGENTS.md", "<turn_aborted>", "<INSTRUCTIONS>")
"""Beginnings of messages that the agent writes in the user's name: going back by turns does not count them."""

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}


def _knows(line: Mapping[str, object]) -> bool:
    if isinstance(line.get("payload"), dict):
        return line.get("type") in ENVELOPES
    is_old_head = "type" not in line and "id" in line and "timestamp" in line and "instructions" in line
    return is_old_head or line.get("record_type") == "state"


class _Rollout:
    def __init__(self, notes: Notes) -> None:
        self.id: str | None = None
        self.family: str | None = None
        """The first session of the forks this one belongs to."""
        self.conversation = Conversation()
        self._notes = notes
        self._model: str | None = None
        self._system: list[Turn] = []
        self._total: Any = None

    def take(self, value: Mapping[str, Any], number: int) -> None:
        kind, payload, at = value.get("type"), value.get("payload"), timestamp(value.get("timestamp"))
        if not isinstance(payload, dict):
            # A line of an older rollout.
            if "type" in value:
                self._item(self.conversation.turns, value, at, number)
            elif "id" in value:
                self._head(value)
            else:
                self._notes.skip(str(value.get("record_type", "untyped")))
            return
        match kind:
            case "session_meta":
                self._head(payload)
            case "turn_context":
                self._model = text_or_none(payload.get("model")) or self._model
            case "response_item":
                self._item(self.conversation.turns, payload, at, number)
            case "compacted":
                self._compacted(payload, at, number)
            case "event_msg":
                self._event(payload)
            case _:
                self._notes.skip(str(kind))

    def _head(self, meta: Mapping[str, Any]) -> None:
        id = text_or_none(meta.get("id")) or text_or_none(meta.get("session_id"))
        # A fork repeats the heads of the sessions it came from, up to the first.
        self.family = text_or_none(meta.get("forked_from_id")) or id or self.family
        if self.id is not None:
            return
        self.id = id
        instructions = meta.get("base_instructions")
        text = text_or_none(instructions.get("text") if isinstance(instructions, dict) else instructions)
        if text:
            self._system = [Turn(role="system", blocks=[Text(text=text)])]
            self.conversation.turns[:0] = self._system

    def _event(self, event: Mapping[str, Any]) -> None:
        match event.get("type"):
            case "token_count":
                self._usage(event.get("info"))
            case "thread_rolled_back" if isinstance(event.get("num_turns"), int):
                prompts = [index for index, turn in enumerate(self.conversation.turns) if turn.prompt]
                count = min(event["num_turns"], len(prompts))
                if count > 0:
                    self.conversation.rewind(prompts[-count])
            case kind:
                # The others tell a screen what the items say.
                self._notes.skip(str(kind))

    def _usage(self, info: Any) -> None:
        """Close a response with its token count; the agent repeats the same count when it shows its limits."""
        last = info.get("last_token_usage") if isinstance(info, dict) else None
        total = info.get("total_token_usage") if isinstance(info, dict) else None
        if not isinstance(last, dict) or (total is not None and total == self._total):
            return
        self._total = total
        turns = self.conversation.turns
        answer = next((turn for turn in reversed(turns) if turn.role == "assistant"), None)
        if answer is None or answer.usage is not None:
            if total is None:
                return  # Nothing tells a new call from the last one.
            # The response left no message: it only searched or reasoned, or it was the call for a summary.
            answer = Turn(role="assistant", blocks=[], model=self._model)
            turns.append(answer)
        answer.usage = usage_of(last, prompt=["input_tokens"], answer=["output_tokens"], cached="cached_input_tokens")
        answer.key = None if total is None else encode([total, last]).decode()

    def _compacted(self, payload: Mapping[str, Any], at: float | None, number: int) -> None:
        turns = list(self._system)
        history = payload.get("replacement_history")
        for item in history if isinstance(history, list) else ():
            if isinstance(item, dict):
                self._item(turns, item, at, number)
        summary = text_or_none(payload.get("message"))
        if summary and not isinstance(history, list):
            turns.append(Turn(role="user", blocks=[Text(text=summary)], at=at))
        self.conversation.begin_again(turns)

    def _item(self, turns: list[Turn], item: Mapping[str, Any], at: float | None, number: int) -> None:
        kind = item.get("type")
        call = text_or_none(item.get("call_id")) or text_or_none(item.get("id"))
        if kind == "message":
            self._message(turns, item, at, number)
        elif kind in CALLS and call:
            self._answer(turns, [_call(item, call)], at)
        elif kind in OUTPUTS and call:
            output = item.get("output")
            content = self._blocks(output.get("content") if isinstance(output, dict) else output)
            last = turns[-1].blocks if turns else []
            if not last or not all(isinstance(block, ToolResult) for block in last):
                turns.append(Turn(role="user", blocks=[]))
            turns[-1].blocks.append(ToolResult(tool_use_id=call, content=tuple(content)))
            turns[-1].at = at
        elif kind in CALLS or kind in OUTPUTS:
            self._notes.trouble(number, f"a {kind} without call_id")
        else:
            self._notes.skip(str(kind))

    def _message(self, turns: list[Turn], item: Mapping[str, Any], at: float | None, number: int) -> None:
        role = _ROLES.get(str(item.get("role")))
        if role is None:
            self._notes.trouble(number, f"a message of the role {item.get('role')!r}")
            return
        blocks = self._blocks(item.get("content"))
        if role == "assistant":
            self._answer(turns, blocks, at)
        elif blocks:
            first = blocks[0]
            injected = isinstance(first, Text) and first.text.lstrip().startswith(INJECTED)
            turns.append(Turn(role=role, blocks=blocks, at=at, prompt=role == "user" and not injected))

    def _answer(self, turns: list[Turn], blocks: Sequence[Block], at: float | None) -> None:
        """Add items of one response to one message; its usage closes it."""
        last = turns[-1] if turns else None
        if last is not None and last.role == "assistant" and last.usage is None:
            last.blocks += blocks
            last.at = at
        elif blocks:
            turns.append(Turn(role="assistant", blocks=list(blocks), at=at, model=self._model))

    def _blocks(self, content: Any) -> list[Block]:
        if isinstance(content, str):
            return [Text(text=content)]
        blocks: list[Block] = []
        for part in content if isinstance(content, list) else ():
            fields = part if isinstance(part, dict) else {"type": "untyped"}
            text, url = text_or_none(fields.get("text")), text_or_none(fields.get("image_url"))
            image = picture(url) if url else None
            if text is not None:
                blocks.append(Text(text=text))
            elif image is not None:
                blocks.append(image)
            else:
                self._notes.skip(str(fields.get("type")))
        return blocks


def _call(item: Mapping[str, Any], call: str) -> ToolUse:
    match item.get("type"):
        case "custom_tool_call":
            arguments = encode({"input": text_or_none(item.get("input")) or ""}).decode()
        case "local_shell_call":
            arguments = encode(item.get("action") or {}).decode()
        case _:
            arguments = text_or_none(item.get("arguments")) or "{}"
    return ToolUse(id=call, name=text_or_none(item.get("name")) or "local_shell", arguments=arguments)


def _read(lines: Iterable[Line], name: str, notes: Notes) -> Sequence[RecordedSession]:
    rollout = _Rollout(notes)
    for line, value in decode_objects(lines, notes):
        rollout.take(value, line.number)
    return rollout.conversation.sessions(rollout.id or name, rollout.family)


READER = Reader(agent="codex", knows=_knows, read=_read)
