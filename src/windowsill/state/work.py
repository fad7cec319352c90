"""L5: what is being made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from windowsill.errors import InputError
from windowsill.state.element import Count, Element, Part, Seconds, Share, demand

Status: TypeAlias = Literal["pending", "in_progress", "completed", "failed", "skipped"]
ChangeKind: TypeAlias = Literal["create", "modify", "delete"]
Verdict: TypeAlias = Literal["confirmed", "rejected", "inconclusive"]


class Step(Element, frozen=True, kw_only=True):
    """One step of the plan; `dependencies` are the ids of steps that come first."""

    description: str
    status: Status = "pending"
    dependencies: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    estimated_seconds: Seconds | None = None
    actual_seconds: Seconds | None = None
    result: Any = None
    error: str = ""

    def __post_init__(self) -> None:
        demand(bool(self.description.strip()), f"step {self.id!r} says nothing", "describe what is to be done")


class Plan(Part, frozen=True, kw_only=True):
    """The steps to the goal, and the id of the one that is worked on."""

    steps: tuple[Step, ...] = ()
    current: str = ""
    estimated_completion: float | None = None


class FileChange(Element, frozen=True, kw_only=True):
    """A change to a file or another target."""

    target: str
    type: ChangeKind = "modify"
    before: str | None = None
    after: str | None = None
    rationale: str = ""
    applied: bool = False


class Hypothesis(Element, frozen=True, kw_only=True):
    """A guess, what speaks for it, and what became of it."""

    description: str
    confidence: Share = 0.5
    evidence: tuple[str, ...] = ()
    tested: bool = False
    result: Verdict | None = None

    @property
    def open(self) -> bool:
        """Whether nobody knows yet if it holds."""
        return not self.tested or self.result in (None, "inconclusive")


class Draft(Element, frozen=True, kw_only=True):
    """A text in the making."""

    content: str
    type: str = "text"
    version: Count = 1


class Work(Part, frozen=True, kw_only=True):
    """L5."""

    plan: Plan = Plan()
    changes: tuple[FileChange, ...] = ()
    hypotheses: tuple[Hypothesis, ...] = ()
    drafts: tuple[Draft, ...] = ()
    scratchpad: str = ""


def check_steps(steps: Sequence[Step]) -> None:
    """`InputError` when a step waits for one that does not exist, or steps wait for each other in a circle."""
    after = {step.id: step.dependencies for step in steps}
    for step in steps:
        missing = [id for id in step.dependencies if id not in after]
        demand(
            not missing,
            f"step {step.id!r} depends on {', '.join(map(repr, missing))}, which the plan does not have",
            f"the plan has {', '.join(after)}",
        )
    state: dict[str, bool] = {}
    for start in after:
        trail = [start]
        while trail:
            here = trail[-1]
            state.setdefault(here, False)
            following = next((id for id in after[here] if state.get(id) is not True), None)
            if following is None:
                state[here] = True
                trail.pop()
            elif state.get(following) is False:
                circle = [*trail[trail.index(following) :], following]
                raise InputError(
                    f"steps wait for each other: {' > '.join(circle)}", remedy="take one of these dependencies out"
                )
            else:
                trail.append(following)
