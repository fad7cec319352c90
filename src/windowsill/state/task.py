"""L1: what is to be done, and how to tell that it is."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from windowsill.state.element import Element, Part, Seconds, Share, demand

Output: TypeAlias = Literal["json", "markdown", "code", "mixed"]
Urgency: TypeAlias = Literal["low", "medium", "high", "critical"]


class Criterion(Element, frozen=True, kw_only=True):
    """A condition of success. Who runs the task may give a function that checks it, by its id."""

    description: str
    measurable: bool = False

    def __post_init__(self) -> None:
        demand(bool(self.description.strip()), f"criterion {self.id!r} says nothing", "describe what has to hold")


class OutputFormat(Part, frozen=True, kw_only=True):
    """What the result has to look like."""

    type: Output = "mixed"
    schema: dict[str, Any] | None = None
    """JSON Schema of the result."""
    examples: tuple[str, ...] = ()


class TaskLimits(Part, frozen=True, kw_only=True):
    """Limits of this task; `None` is no limit."""

    max_seconds: Seconds | None = None
    max_cost: Seconds | None = None
    """Dollars."""
    min_quality: Share | None = None


class About(Part, frozen=True, kw_only=True):
    """Where the task comes from and how pressing it is."""

    created_at: float = 0.0
    created_by: str = "user"
    priority: Urgency = "medium"
    tags: tuple[str, ...] = ()


class Task(Part, frozen=True, kw_only=True):
    """L1."""

    goal: str = ""
    success_criteria: tuple[Criterion, ...] = ()
    output_format: OutputFormat = OutputFormat()
    limits: TaskLimits = TaskLimits()
    about: About = About()
