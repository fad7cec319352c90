"""What DeepSeek and Kimi refuse in a request, beyond what OpenAI does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from windowsill.formats.base import Problem
from windowsill.formats.openai.read import REASONING_FIELDS
from windowsill.formats.openai.validate import validate as validate_chat

ROLES = frozenset({"system", "user", "assistant", "tool"})

_REMEDY = "send reasoning_content back as it came; where there was none, a space"


def validate(body: Any) -> list[Problem]:
    """Everything wrong with a request body or a list of messages, in order."""
    found = [_renamed(problem) for problem in validate_chat(body)]
    fields = body if isinstance(body, dict) else {}
    messages = fields.get("messages") if fields else body
    if isinstance(messages, list):
        where = "messages" if fields else ""
        found += _roles(messages, where)
        if not _is_off(fields.get("thinking")):
            found += _reasoning(messages, where, every=_wants_every(fields))
    return found


def _renamed(problem: Problem) -> Problem:
    return Problem(problem.rule.replace("openai.", "deepseek."), problem.where, problem.what, problem.remedy)


def _is_off(thinking: Any) -> bool:
    """Whether the request switches thinking off; then no reasoning is asked for."""
    return isinstance(thinking, dict) and thinking.get("type") == "disabled"


def _wants_every(body: dict[str, Any]) -> bool:
    """Whether messages without calls need it too: DeepSeek from version 4 on says so wherever there are tools."""
    return bool(body.get("tools")) and "deepseek-v4" in str(body.get("model"))


def _roles(messages: list[Any], where: str) -> Iterator[Problem]:
    for index, message in enumerate(messages):
        fields = message if isinstance(message, dict) else {}
        role = fields.get("role")
        if role in {"developer", "function"}:
            yield Problem(
                "deepseek.role", f"{where}[{index}]", f"role {role!r}", f"use one of {', '.join(sorted(ROLES))}"
            )
        elif fields.get("function_call"):
            yield Problem(
                "deepseek.function-call",
                f"{where}[{index}]",
                "function_call, which only OpenAI knows",
                "use tool_calls",
            )


def _reasoning(messages: list[Any], where: str, *, every: bool) -> Iterator[Problem]:
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") != "assistant":
            continue
        if any(message.get(field) for field in REASONING_FIELDS):
            continue
        place = f"{where}[{index}]"
        if message.get("tool_calls"):
            yield Problem("deepseek.calls-carry-reasoning", place, "calls without the reasoning behind them", _REMEDY)
        elif every:
            yield Problem("deepseek.reasoning-is-sent-back", place, "no reasoning_content, beside tools", _REMEDY)
