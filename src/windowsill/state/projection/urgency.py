"""Whether a task is urgent."""

from __future__ import annotations

from windowsill.state.runtime import Resources
from windowsill.state.task import Task

LITTLE_LEFT = 0.1
"""A task with less than this share of its time left is urgent, whatever its priority."""


def is_urgent(task: Task, used: Resources) -> bool:
    """Whether the task is of high or critical priority, or its own time limit is nearly reached."""
    if task.about.priority in ("high", "critical"):
        return True
    limit = task.limits.max_seconds
    return limit is not None and limit - used.seconds < LITTLE_LEFT * limit
