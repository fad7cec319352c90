"""Codex rollouts (`~/.codex/sessions/**/rollout-*.jsonl`), converted to OpenAI's chat form.

A line is `{"timestamp", "type", "payload"}`; the items of older rollouts stand in the line itself. Reasoning is
encrypted, or a summary that is never sent again: it is counted and left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from windowsill.formats.transcripts import chat
from windowsill.formats.transcripts.chat import Course, Turn
from windowsill.formats.transcripts.lines import objects
from windowsill.formats.transcripts.times import timestamp
from windowsill.formats.transcripts.transcript import Line, Notes, Reader, Recorded
from windowsill.formats.wire import encode
from windowsill.messages import Block, Role, Text, ToolResult, ToolUse

AGENT = "codex"

ENVELOPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})

CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})

INJECTED = ("<environment_context>", "<user_instructions>", "# AGENTS.md", "<turn_aborted>", "<INSTRUCTIONS>")
"""How messages begin that the agent writes in the user's name: going back by turns does not count them."""

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}


def _knows(line: Mapping[str, object]) -> bool:
    if isinstance(line.get("payload"), dict):
        return line.get("type") in ENVELOPES
    is_old_head = "type" not in line and "id" in line and "timestamp" in line and "instructions" in line
    return is_old_head or line.get("record_type") == "state"


class _Rollout:
    """A rollout, line by line."""

    def __init__(self, notes: Notes) -> None:
        self.id: str | None = None
        self.course = Course()
        self._notes = notes
        self.family: str | None = None
        """The first session of the forks this one is of."""
        self._model: str | None = None
        self._system: list[Turn] = []
        self._total: Any = None

    def take(self, value: Mapping[str, Any], number: int) -> None:
        """One more line."""
        kind, payload, at = value.get("type"), value.get("payload"), timestamp(value.get("timestamp"))
        if not isinstance(payload, dict):
            self._old_line(value, number)
            return
        match kind:
            case "session_meta":
                self._head(payload)
            case "turn_context":
                self._model = _text(payload.get("model")) or self._model
            case "response_item":
                self._item(self.course.turns, payload, at, number)
            case "compacted":
                self._compacted(payload, at, number)
            case "event_msg":
                self._event(payload)
            case _:
                self._notes.skip(str(kind))

    def _old_line(self, value: Mapping[str, Any], number: int) -> None:
        if "type" in value:
            self._item(self.course.turns, value, timestamp(value.get("timestamp")), number)
        elif "id" in value:
            self._head(value)
        else:
            self._notes.skip(str(value.get("record_type", "untyped")))

    def _head(self, meta: Mapping[str, Any]) -> None:
        id = _text(meta.get("id")) or _text(meta.get("session_id"))
        # A fork repeats the heads of the sessions it came from, up to the first.
        self.family = _text(meta.get("forked_from_id")) or id or self.family
        if self.id is not None:
            return
        self.id = id
        instructions = meta.get("base_instructions")
        text = _text(instructions.get("text")) if isinstance(instructions, dict) else _text(instructions)
        if text:
            self._system = [Turn(role="system", blocks=[Text(text=text)])]
            self.course.turns[:0] = self._system

    def _event(self, event: Mapping[str, Any]) -> None:
        match event.get("type"):
            case "token_count":
                self._usage(event.get("info"))
            case "thread_rolled_back" if isinstance(event.get("num_turns"), int):
                prompts = [index for index, turn in enumerate(self.course.turns) if turn.prompt]
                count = min(event["num_turns"], len(prompts))
                if count > 0:
                    self.course.rewind(prompts[-count])
            case kind:
                # The others tell a screen what the items say.
                self._notes.skip(str(kind))

    def _usage(self, info: Any) -> None:
        """A count of tokens closes a response; the agent writes the same count again when it shows its limits."""
        last = info.get("last_token_usage") if isinstance(info, dict) else None
        total = info.get("total_token_usage") if isinstance(info, dict) else None
        if not isinstance(last, dict) or (total is not None and total == self._total):
            return
        self._total = total
        answer = next((turn for turn in reversed(self.course.turns) if turn.role == "assistant"), None)
        if answer is None or answer.usage is not None:
            if total is None:
                return  # Nothing tells a new call from the last one.
            # The response left no message: it only searched or reasoned, or it was the call for a summary.
            answer = Turn(role="assistant", blocks=[], model=self._model)
            self.course.turns.append(answer)
        answer.usage = chat.usage(
            prompt=_count(last, "input_tokens"),
            answer=_count(last, "output_tokens"),
            cached=_count(last, "cached_input_tokens"),
        )
        answer.key = None if total is None else encode([total, last]).decode()

    def _compacted(self, payload: Mapping[str, Any], at: float | None, number: int) -> None:
        turns = list(self._system)
        history = payload.get("replacement_history")
        for item in history if isinstance(history, list) else ():
            if isinstance(item, dict):
                self._item(turns, item, at, number)
        summary = _text(payload.get("message"))
        if summary and not isinstance(history, list):
            turns.append(Turn(role="user", blocks=[Text(text=summary)], at=at))
        self.course.begin_again(turns)

    def _item(self, turns: list[Turn], item: Mapping[str, Any], at: float | None, number: int) -> None:
        kind = item.get("type")
        call = _text(item.get("call_id")) or _text(item.get("id"))
        if kind == "message":
            self._message(turns, item, at, number)
        elif kind in CALLS and call:
            self._answer(turns, [_call(item, call)], at)
        elif kind in OUTPUTS and call:
            result = ToolResult(tool_use_id=call, content=tuple(self._output(item.get("output"))))
            if turns and turns[-1].answers:
                turns[-1].blocks.append(result)
                turns[-1].at = at
            else:
                turns.append(Turn(role="user", blocks=[result], at=at))
        elif kind in CALLS or kind in OUTPUTS:
            self._notes.trouble(number, f"a {kind} without call_id")
        else:
            self._notes.skip(str(kind))

    def _message(self, turns: list[Turn], item: Mapping[str, Any], at: float | None, number: int) -> None:
        role = _ROLES.get(str(item.get("role")))
        if role is None:
            self._notes.trouble(number, f"a message of the role {item.get('role')!r}")
            return
        blocks = self._content(item.get("content"))
        if role == "assistant":
            self._answer(turns, blocks, at)
        elif blocks:
            first = blocks[0]
            written = role == "user" and not (isinstance(first, Text) and first.text.lstrip().startswith(INJECTED))
            turns.append(Turn(role=role, blocks=blocks, at=at, prompt=written))

    def _answer(self, turns: list[Turn], blocks: Sequence[Block], at: float | None) -> None:
        """Items of one response are one message; its usage closes it."""
        last = turns[-1] if turns else None
        if last is not None and last.role == "assistant" and last.usage is None:
            last.blocks += blocks
            last.at = at
        elif blocks:
            turns.append(Turn(role="assistant", blocks=list(blocks), at=at, model=self._model))

    def _output(self, output: Any) -> list[Block]:
        if isinstance(output, dict):
            return self._content(output.get("content"))
        return self._content(output)

    def _content(self, content: Any) -> list[Block]:
        if isinstance(content, str):
            return [Text(text=content)]
        blocks: list[Block] = []
        for part in content if isinstance(content, list) else ():
            text = _text(part.get("text")) if isinstance(part, dict) else None
            url = _text(part.get("image_url")) if isinstance(part, dict) else None
            image = chat.picture(url) if url else None
            if text is not None:
                blocks.append(Text(text=text))
            elif image is not None:
                blocks.append(image)
            else:
                self._notes.skip(str(part.get("type")) if isinstance(part, dict) else "untyped")
        return blocks


def _call(item: Mapping[str, Any], call: str) -> ToolUse:
    match item.get("type"):
        case "custom_tool_call":
            arguments = encode({"input": _text(item.get("input")) or ""}).decode()
        case "local_shell_call":
            arguments = encode(item.get("action") or {}).decode()
        case _:
            arguments = _text(item.get("arguments")) or "{}"
    return ToolUse(id=call, name=_text(item.get("name")) or "local_shell", arguments=arguments)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _count(usage: Mapping[str, Any], field: str) -> int:
    value = usage.get(field)
    return value if isinstance(value, int) else 0


def _read(lines: Iterable[Line], name: str, notes: Notes) -> Sequence[Recorded]:
    rollout = _Rollout(notes)
    for line, value in objects(lines, notes):
        rollout.take(value, line.number)
    return rollout.course.sessions(rollout.id or name, rollout.family)


READER = Reader(agent=AGENT, knows=_knows, read=_read)
