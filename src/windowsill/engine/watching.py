"""Limits on a run, and the sight of a model that goes round in circles."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from windowsill.engine.running import Ran
from windowsill.state.state import State

WARN_AFTER = 3
"""The same call with the same result so often in a row, and the model is told."""

STUCK_AFTER = 6
"""So often, and the run ends."""

LONGEST_CIRCLE = 4
"""Answers in a circle: a model may also go round between a few calls."""


class Circles:
    """Notices answers that repeat: the same calls with the same results, also in turns of a few."""

    def __init__(self) -> None:
        self._past: list[bytes] = []

    def see(self, ran: Sequence[Ran]) -> int:
        """How often what was just done has been done in a row, alone or as a circle of a few."""
        told = [(each.call.name, each.call.arguments, each.text, each.is_error) for each in ran]
        self._past.append(hashlib.blake2b(msgspec.msgpack.encode(told), digest_size=16).digest())
        del self._past[: -STUCK_AFTER * LONGEST_CIRCLE]
        return max(self._times(size) for size in range(1, LONGEST_CIRCLE + 1))

    def forget(self) -> None:
        """Something else happened."""
        self._past.clear()

    def _times(self, size: int) -> int:
        last = self._past[-size:]
        times = 0
        while (
            len(self._past) >= (times + 1) * size and self._past[len(self._past) - (times + 1) * size :][:size] == last
        ):
            times += 1
        return times


def most_seconds(state: State) -> float | None:
    """How long the task may take in all; `None` when nothing limits it."""
    limits = (state.system.constraints.max_seconds, state.task.limits.max_seconds)
    return min((each for each in limits if each is not None), default=None)


def passed_limit(state: State, *, seconds: float, turns: int, max_turns: int) -> str:
    """Which limit is reached, and what to do about it; empty when none is.

    `seconds` is the time that the task has taken, earlier runs included; `turns` are the model calls of this run.
    """
    used, system, task = state.runtime.resources, state.system.constraints, state.task.limits
    if turns >= max_turns:
        return f"the limit of {max_turns:,} model calls in one run is reached; run it again, or raise max_turns"
    limits = (
        ("seconds", seconds, system.max_seconds, "system.constraints.max_seconds"),
        ("seconds", seconds, task.max_seconds, "task.limits.max_seconds"),
        ("dollars", used.cost, system.max_cost, "system.constraints.max_cost"),
        ("dollars", used.cost, task.max_cost, "task.limits.max_cost"),
        ("tool calls", used.tool_calls, system.max_tool_calls, "system.constraints.max_tool_calls"),
    )
    for unit, value, most, path in limits:
        # Without any calls allowed a model may still answer; its calls are refused.
        if most is not None and value >= most and (most or unit != "tool calls"):
            return f"the limit of {most:,g} {unit} is reached; raise {path} and run it again"
    return ""
