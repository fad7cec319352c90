"""The phases of a task, from planning to done: which one follows, and the instruction for the model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from windowsill import schemas, user_function
from windowsill.errors import InputError, SettingError
from windowsill.state.layers import Criterion, Phase, State, Task

WorkPhases: TypeAlias = tuple[Phase, ...]

ALL: WorkPhases = ("planning", "executing", "reflecting", "verifying")
"""The phases a task goes through. One in which there is nothing to do is left out."""

MAX_REFLECTIONS = 2
"""Reflections on one task: a model that finds something to improve every time never ends."""

MAX_ROUNDS = 3
"""Rounds of work after a verification that failed."""

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


class NextPhase(msgspec.Struct, frozen=True):
    """The phase that follows, and the instruction for the model; without one the task has ended."""

    phase: Phase
    text: str = ""


class PhaseCounts(msgspec.Struct):
    """The reflections and further rounds of a task in this run."""

    reflections: int = 0
    rounds: int = 0
    judged: int = 0
    """Failures that the last reflection knew of."""

    def count(self, state: State, following: NextPhase) -> None:
        """Count the step from the phase of this state to the one that follows."""
        if following.phase == "reflecting":
            self.reflections += 1
            self.judged = _failures(state)
        elif following.phase == "executing" and state.runtime.phase != "planning":
            self.rounds += 1


def check_phases(phases: Sequence[Phase]) -> WorkPhases:
    """Return the phases in their order; raise `SettingError` for unknown ones."""
    if "executing" not in phases or any(phase not in ALL for phase in phases):
        raise SettingError("phases", tuple(phases), f"executing, and any of {', '.join(ALL)}")
    return tuple(phase for phase in ALL if phase in phases)


def first_phase(phases: WorkPhases) -> NextPhase:
    """Return the phase in which a task begins."""
    return NextPhase("planning", _PLANNING) if "planning" in phases else NextPhase("executing")


def next_phase(state: State, phases: WorkPhases, counts: PhaseCounts, unmet: Sequence[str]) -> NextPhase:
    """Return what follows an answer without a call; `unmet` are criteria that code found not to hold."""
    phase = state.runtime.phase
    if phase == "planning":
        return NextPhase("executing", _EXECUTING)
    if unmet:
        return back_to_work(counts, unmet)
    why = _reasons_to_reflect(state, counts)
    if phase == "executing" and why and "reflecting" in phases and counts.reflections < MAX_REFLECTIONS:
        return NextPhase("reflecting", _REFLECTING.format(why=why))
    return verify_or_end(state, phases)


def verify_or_end(state: State, phases: WorkPhases) -> NextPhase:
    """Return what follows work that is said to be done: the check of its criteria, or the end."""
    if state.runtime.phase != "verifying" and state.task.success_criteria and "verifying" in phases:
        criteria = "\n".join(f"- {each.description}" for each in state.task.success_criteria)
        return NextPhase("verifying", _VERIFYING.format(criteria=criteria))
    return NextPhase("completed")


def back_to_work(counts: PhaseCounts, missing: Sequence[str]) -> NextPhase:
    """Return to executing with what is missing; a task that has been sent back too often has failed."""
    if counts.rounds >= MAX_ROUNDS:
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


Verdict: TypeAlias = bool | str | None
Validator: TypeAlias = Callable[[str], Verdict | Awaitable[Verdict]]
"""Gets the result's text; returns `True` or `None` when the criterion holds, `False` or what is missing when not."""

MAX_CHARACTERS = 500
"""Characters of one complaint."""


async def unmet(task: Task, validators: Mapping[str, Validator], result: str) -> list[str]:
    """List what code finds not to hold; the criterion of a validator that fails does not hold."""
    missing = []
    for criterion in task.success_criteria:
        validator = validators.get(criterion.id) or validators.get(criterion.description)
        if validator is not None and (complaint := await _validate(validator, criterion, result)):
            missing.append(complaint[:MAX_CHARACTERS])
    if complaint := _format_fault(task, result):
        missing.append(complaint[:MAX_CHARACTERS])
    return missing


def check_validators(criteria: Sequence[Criterion], validators: Mapping[str, Validator]) -> None:
    """Raise `InputError` for a validator whose criterion the task does not have."""
    known = {name for each in criteria for name in (each.id, each.description)}
    for name in validators:
        if name not in known:
            listed = ", ".join(repr(each.description) for each in criteria) or "none"
            raise InputError(f"there is no criterion {name!r} to validate", remedy=f"the task has {listed}")


def check_output_schema(task: Task) -> None:
    """Raise `InputError` for an output schema that is not a JSON Schema."""
    schema = task.output_format.schema
    if schema is None:
        return
    try:
        schemas.validator(schema).check_schema(schema)
    except schemas.unreadable() as error:
        what = f"task.output_format.schema is not a JSON Schema: {schemas.fault_of(error)}"
        raise InputError(what, remedy="mend it, or take it out") from None


async def _validate(validator: Validator, criterion: Criterion, result: str) -> str:
    try:
        verdict = await user_function.call(validator, result)
    except Exception as error:  # noqa: BLE001 - a check that breaks has not found the criterion to hold
        return f"{criterion.description}: its check failed ({type(error).__name__}: {error})"
    if verdict is None or verdict is True:
        return ""
    return criterion.description if verdict is False else f"{criterion.description}: {verdict}"


def _format_fault(task: Task, result: str) -> str:
    """Describe what is wrong with the format of a result; empty when it is right or the task states none."""
    wanted = task.output_format
    if wanted.type != "json" and wanted.schema is None:
        return ""
    try:
        value = msgspec.json.decode(_without_fence(result))
    except msgspec.DecodeError as error:
        return f"the result has to be JSON and nothing else: {error}"
    if wanted.schema is None:
        return ""
    try:
        found = schemas.best_match(schemas.validator(wanted.schema).iter_errors(value))
    except Exception as broken:  # noqa: BLE001 - whatever is wrong with a schema, the result has not been found to fit
        return f"the schema of the result cannot be used ({type(broken).__name__}: {broken})"
    return "" if found is None else f"the result does not fit its schema at {found.json_path}: {found.message}"


def _without_fence(text: str) -> str:
    lines = text.strip().splitlines()
    fenced = len(lines) > 1 and lines[0].startswith("```") and lines[-1].strip() == "```"
    return "\n".join(lines[1:-1]) if fenced else text
