"""From planning to done: which phase follows, and what the model is told there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from windowsill.errors import SettingError
from windowsill.state.runtime import Phase
from windowsill.state.state import State

Worked: TypeAlias = tuple[Phase, ...]

ALL: Worked = ("planning", "executing", "reflecting", "verifying")
"""The phases a task goes through. One in which there is nothing to do is left out."""

ENGINE = "engine"
"""What messages of the engine are marked as, under `windowsill` in their metadata."""

MOST_REFLECTIONS = 2
"""How often one task is looked back on: a model that finds something to improve every time never ends."""

MOST_ROUNDS = 3
"""How often work goes on after a verification that failed."""

_PLANNING = (
    "[phase: planning] Look at what is needed and write down a plan with update_plan, or answer at once if there is "
    "nothing to plan. Nothing is changed in this phase."
)
_EXECUTING = "[phase: executing] Carry the task out now. When everything is done, answer with the result."
_REFLECTING = (
    "[phase: reflecting] Before this ends: {why}. Judge whether the result holds. If something is left to do, call "
    "finish with done=false and say what is missing; otherwise give the final result."
)
_VERIFYING = (
    "[phase: verifying] Check each of these with the tools you have, not from memory alone:\n{criteria}\n"
    "Then call finish: done=true only if all of them hold, otherwise say what is missing."
)
_AGAIN = "[phase: executing] The task is not done yet:\n{missing}\nGo on with it."


class Next(msgspec.Struct, frozen=True):
    """Where the task goes, and what the model is told; without words it has ended."""

    phase: Phase
    text: str = ""


class Road(msgspec.Struct):
    """How often a task has been looked back on and verified in this run, and the failures it was last judged with."""

    reflections: int = 0
    rounds: int = 0
    judged: int = 0


def check_phases(phases: Sequence[Phase]) -> Worked:
    """The phases as they are gone through; `SettingError` for others."""
    if "executing" not in phases or any(phase not in ALL for phase in phases):
        raise SettingError("phases", tuple(phases), f"executing, and any of {', '.join(ALL)}")
    return tuple(phase for phase in ALL if phase in phases)


def first(phases: Worked) -> Next:
    """How a task begins."""
    return Next("planning", _PLANNING) if "planning" in phases else Next("executing")


def after(state: State, phases: Worked, road: Road, unmet: Sequence[str]) -> Next:
    """What follows when the model has answered without a call; `unmet` are criteria that code found not to hold."""
    phase = state.runtime.phase
    if phase == "planning":
        return Next("executing", _EXECUTING)
    if unmet:
        return again(road, unmet)
    why = _worth_a_look(state, road)
    if phase == "executing" and why and "reflecting" in phases and road.reflections < MOST_REFLECTIONS:
        return Next("reflecting", _REFLECTING.format(why=why))
    return verified(state, phases)


def verified(state: State, phases: Worked) -> Next:
    """What follows when the work is said to be done: its criteria, or the end."""
    if state.runtime.phase != "verifying" and state.task.success_criteria and "verifying" in phases:
        criteria = "\n".join(f"- {each.description}" for each in state.task.success_criteria)
        return Next("verifying", _VERIFYING.format(criteria=criteria))
    return Next("completed")


def again(road: Road, missing: Sequence[str]) -> Next:
    """Back to work with what is missing; a task that does not get there has failed."""
    if road.rounds >= MOST_ROUNDS:
        return Next("failed")
    listed = "\n".join(f"- {each}" for each in missing) or "- it was said not to be done"
    return Next("executing", _AGAIN.format(missing=listed))


def way(state: State, following: Next) -> list[Phase]:
    """The phases on the way to the next one: a task that is planned and done at once was carried out in between."""
    done = following.phase in ("completed", "reflecting", "verifying")
    return ["executing", following.phase] if done and state.runtime.phase == "planning" else [following.phase]


def _worth_a_look(state: State, road: Road) -> str:
    """Why a result should be looked at again; empty when nothing speaks for it."""
    failures = sum(1 + failure.retries for failure in state.runtime.failures)
    steps = [step.id for step in state.work.plan.steps if step.status in ("pending", "in_progress")]
    reasons = []
    if failures > road.judged:
        reasons.append(f"{failures - road.judged} tool calls failed on the way")
    if steps:
        reasons.append(f"the plan still has open steps ({', '.join(steps[:10])})")
    return " and ".join(reasons)
