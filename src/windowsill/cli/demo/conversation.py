"""The agent's conversation in Anthropic's form, as a program that uses the provider's SDK would hold it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from windowsill.cli.demo.agent import Turn
from windowsill.cli.demo.tools import Outcome

Native: TypeAlias = dict[str, Any]


def said_by_user(words: str) -> Native:
    """What the user types."""
    return {"role": "user", "content": words}


def answer_of(turn: Turn, first: int) -> Native:
    """The agent's turn; its calls are numbered on from `first`."""
    text = {"type": "text", "text": turn.says}
    calls = [
        {"type": "tool_use", "id": _call_id(number), "name": call.tool, "input": call.input}
        for number, call in enumerate(turn.calls, first)
    ]
    return {"role": "assistant", "content": [text, *calls]}


def results_of(outcomes: Sequence[Outcome], first: int) -> Native:
    """What the tools answered to the calls from `first` on."""
    return {"role": "user", "content": [_result(outcome, number) for number, outcome in enumerate(outcomes, first)]}


def _result(outcome: Outcome, number: int) -> Native:
    result = {"type": "tool_result", "tool_use_id": _call_id(number), "content": outcome.text}
    return {**result, "is_error": True} if outcome.failed else result


def _call_id(number: int) -> str:
    return f"toolu_demo_{number:05d}"
