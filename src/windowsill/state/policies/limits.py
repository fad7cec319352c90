"""Limits on time, calls and money."""

from __future__ import annotations

from collections.abc import Iterator

from windowsill.state.runtime import Resources
from windowsill.state.system import Constraints
from windowsill.state.task import TaskLimits


def reached(limits: Constraints, task: TaskLimits, used: Resources) -> Iterator[tuple[str, str, str]]:
    """Every limit that is used up: its name, how far, and what to do. A limit of ten calls lets ten be run."""
    remedy = "finish with what you have, and say what is left to do"
    for name, limit, spent, unit in (
        ("max_tool_calls", limits.max_tool_calls, used.tool_calls, "tool calls"),
        ("max_seconds", limits.max_seconds, used.seconds, "seconds"),
        ("max_cost", limits.max_cost, used.cost, "dollars"),
        ("task.max_seconds", task.max_seconds, used.seconds, "seconds of the task"),
        ("task.max_cost", task.max_cost, used.cost, "dollars of the task"),
    ):
        if limit is not None and spent >= limit:
            yield name, f"{spent:g} of {limit:g} {unit} are used", remedy
