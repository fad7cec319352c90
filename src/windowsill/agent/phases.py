"""The phases of a task, from planning to done: which one follows, and the instruction for the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from windowsill.errors import SettingError
from windowsill.state.layers import Criterion, Phase, State

WorkPhases: TypeAlias = tuple[Phase, ...]

ALL: WorkPhases = ("planning", "executing", "reflecting", "verifying")
"""The phases a task goes through. One in which there is nothing to do is left out."""

_PLANNING = (
    "[phase: planning] If all there is to do is to answer, answer: that ends the task. Otherwise look at what is "
    "needed and write down a plan with update_plan. Nothing is changed in this phase."
)
_EXECUTING = "[phase: executing] Carry the task out now. When everything is done, answer with the result."
_REFLECTING = (
    "[phase: reflecting] Before this ends: {why}. Judge whether the result holds. If something is left to do, call "
    "finish with done=false and say what is missing; otherwise give the final result."
)
_VERIFYING = (
    "[phase: verifying] Check each of these with the tools you have, not from memory:\n{criteria}\n"
    "Then call finish. Under criteria give for each its number, whether it is met, and as evidence words copied from "
    "the tool result that shows it. done=true only if all of them hold, otherwise say what is missing."
)
_UNPROVEN = (
    "[phase: verifying] No tool result was quoted that shows this:\n{criteria}\n"
    "Words alone prove nothing: look with a tool, then call finish with its words as evidence, or with done=false."
)
_AGAIN = "[phase: executing] The task is not done yet:\n{missing}\nGo on with it."


class NextPhase(msgspec.Struct, frozen=True):
    """The phase that follows, and the instruction for the model; without one the task has ended."""

    phase: Phase
    text: str = ""


class PhaseCounts(msgspec.Struct):
    """The reflections and further rounds of a task in this run, and the most of each."""

    max_reflections: int
    max_rounds: int
    max_unproven: int
    reflections: int = 0
    rounds: int = 0
    judged: int = 0
    """Failures that the last reflection knew of."""
    unproven: int = 0

    def count(self, state: State, following: NextPhase) -> None:
        """Count the step from the phase of this state to the one that follows."""
        if following.phase == "verifying":
            self.unproven = self.unproven + 1 if state.runtime.phase == "verifying" else 0
        elif following.phase == "reflecting":
            self.reflections += 1
            self.judged = _failures(state)
        elif following.phase == "executing" and state.runtime.phase != "planning":
            self.rounds += 1


def check_phases(phases: Sequence[Phase]) -> WorkPhases:
    """Return the phases in their order; raise `SettingError` for unknown ones."""
    if "executing" not in phases or any(phase not in ALL for phase in phases):
        raise SettingError("phases", tuple(phases), f"executing, and any of {', '.join(ALL)}")
    return tuple(phase for phase in ALL if phase in phases)


def first_phase(phases: WorkPhases, *, own_tools: bool) -> NextPhase:
    """Return the phase in which a task begins. Without the tool that writes a plan there is nothing to plan with."""
    return NextPhase("planning", _PLANNING) if "planning" in phases and own_tools else NextPhase("executing")


def next_phase(
    state: State, phases: WorkPhases, counts: PhaseCounts, missing: Sequence[str], unknown: Sequence[Criterion]
) -> NextPhase:
    """Return what follows an answer without a call.

    `missing` is what was found not to hold, `unknown` are criteria that nothing has shown to hold.
    """
    phase = state.runtime.phase
    if phase == "planning" and not is_answer(state):
        return NextPhase("executing", _EXECUTING)
    why = "" if missing else _reasons_to_reflect(state, counts)
    if phase == "executing" and why and "reflecting" in phases and counts.reflections < counts.max_reflections:
        return NextPhase("reflecting", _REFLECTING.format(why=why))
    return verify_or_end(state, phases, counts, missing, unknown)


def is_answer(state: State) -> bool:
    """Tell whether the first thing a model says ends the task: after a look around, or a plan, there is work to do."""
    return state.runtime.resources.model_calls <= 1 and not state.work.plan.steps


def verify_or_end(
    state: State, phases: WorkPhases, counts: PhaseCounts, missing: Sequence[str], unknown: Sequence[Criterion]
) -> NextPhase:
    """Return what follows work that is said to be done: more of it, the check of its criteria, or the end.

    Where nothing can be shown the task stays in its phase, without an instruction: it is not completed.
    """
    if missing:
        return back_to_work(counts, missing)
    if not unknown:
        return NextPhase("completed")
    phase = state.runtime.phase
    if phase != "verifying" and "verifying" in phases:
        numbered = enumerate(state.task.success_criteria, start=1)
        listed = "\n".join(f"{number}. {each.description}" for number, each in numbered)
        return NextPhase("verifying", _VERIFYING.format(criteria=listed))
    if phase == "verifying" and counts.unproven < counts.max_unproven:
        return NextPhase("verifying", _UNPROVEN.format(criteria="\n".join(f"- {each.description}" for each in unknown)))
    return NextPhase(phase)


def back_to_work(counts: PhaseCounts, missing: Sequence[str]) -> NextPhase:
    """Return to executing with what is missing; a task that has been sent back too often has failed."""
    if counts.rounds >= counts.max_rounds:
        return NextPhase("failed")
    listed = "\n".join(f"- {each}" for each in missing) or "- it was said not to be done"
    return NextPhase("executing", _AGAIN.format(missing=listed))


def phases_until(state: State, following: NextPhase) -> list[Phase]:
    """List the phases up to the next one: a task that is planned and done at once was carried out in between."""
    done = following.phase in ("completed", "reflecting", "verifying")
    return ["executing", following.phase] if done and state.runtime.phase == "planning" else [following.phase]


def _failures(state: State) -> int:
    return sum(1 + failure.retries for failure in state.runtime.failures)


def _reasons_to_reflect(state: State, counts: PhaseCounts) -> str:
    failures = _failures(state)
    steps = [step.id for step in state.work.plan.steps if step.status in ("pending", "in_progress")]
    reasons = []
    if failures > counts.judged:
        reasons.append(f"{failures - counts.judged} tool calls failed on the way")
    if steps:
        reasons.append(f"the plan still has open steps ({', '.join(steps[:10])})")
    return " and ".join(reasons)
