"""The common changes of a state, by what they mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar

import msgspec

from windowsill.errors import InputError, NotFoundError
from windowsill.state.changes import Change, Drop, Put, Set, places
from windowsill.state.layers import (
    PERMISSIONS,
    Criterion,
    Decision,
    Environment,
    Fact,
    Failure,
    Hypothesis,
    Measurement,
    Milestone,
    Observation,
    Permission,
    Phase,
    Preference,
    Retrieved,
    Significance,
    Source,
    State,
    Status,
    Step,
    Summary,
    Trouble,
    Variable,
    known_permissions,
)

T = TypeVar("T")


class Verbs(ABC):
    """Changes a state. Each verb is one change of the history, with an id that `rewind` and `audit` know."""

    @property
    @abstractmethod
    def value(self) -> State:
        """The state as it is now."""

    @abstractmethod
    def patch(self, *changes: Change, reason: str = "") -> str:
        """Make changes together, all or none; the id of the entry that says so."""

    @abstractmethod
    def change(self, make: Callable[[State], Iterable[Change]], *, reason: str = "") -> str:
        """Make changes that follow from the state as it is when they are written, whoever else changes it meanwhile."""

    def set(self, path: str, value: Any, *, reason: str = "") -> str:
        """Set any value by its path, such as `task.goal`, or a field of one, such as `task.about.priority`."""
        return self.change(lambda state: [_set(state, path, value)], reason=reason)

    def put(self, path: str, value: Any, *, reason: str = "") -> str:
        """Add an element to any list by its path, or replace the one with its key."""
        return self.patch(Put(path, value), reason=reason)

    def drop(self, path: str, key: str, *, reason: str = "") -> str:
        """Take an element out of a list; the history still has it."""
        return self.patch(Drop(path, key), reason=reason)

    # The task

    def set_goal(self, goal: str, criteria: Iterable[str | Criterion] = ()) -> str:
        """Say what is to be done and, if given, how to tell that it is done."""
        if not goal.strip():
            raise InputError("the goal is empty", remedy="say in a sentence what is to be done")
        new = [
            Put("task.success_criteria", each if isinstance(each, Criterion) else Criterion(description=each))
            for each in _as_list(criteria)
        ]

        def make(state: State) -> Iterator[Change]:
            yield Set("task.goal", goal)
            if new:
                yield from (Drop("task.success_criteria", each.key) for each in state.task.success_criteria)
                yield from new

        return self.change(make)

    # Where the work stands

    def enter(self, phase: Phase, *, reason: str = "") -> str:
        """Go on to another phase; `InputError` for a jump that makes no sense."""
        return self.patch(Set("runtime.phase", phase), reason=reason)

    def grant(self, *permissions: Permission) -> str:
        """Allow more."""
        more = known_permissions(permissions, "grant")
        return self.change(lambda state: [_permissions({*state.runtime.permissions, *more})])

    def revoke(self, *permissions: Permission) -> str:
        """Allow less."""
        less = known_permissions(permissions, "revoke")
        return self.change(lambda state: [_permissions({*state.runtime.permissions}.difference(less))])

    def set_environment(self, environment: Environment) -> str:
        """Say where the work takes effect."""
        return self.patch(Set("runtime.environment", environment))

    def record_failure(self, tool: str, error: str) -> str:
        """Record that a tool failed; the same failure again counts as a retry."""
        return self.change(lambda state: [Put("runtime.failures", count_failure(state, tool, error))])

    def record_error(self, message: str) -> str:
        """Record what went wrong and no tool reported."""
        return self.patch(Put("runtime.execution.errors", Trouble(message=message)))

    def record_warning(self, message: str) -> str:
        """Record what is worth a warning."""
        return self.patch(Put("runtime.execution.warnings", Trouble(message=message)))

    # What is remembered

    def add_fact(
        self, content: str, *, source: str, confidence: float = 1.0, verified: bool = True, id: str = ""
    ) -> str:
        """Remember a fact and where it comes from."""
        fact = Fact(id=id, content=content, source=source, confidence=confidence, verified=verified)
        return self.patch(Put("memory.semantic.facts", fact))

    def add_summary(self, text: str, *, condensed_from: Sequence[str] = (), tokens: int = 0) -> str:
        """Remember what a stretch of the past came to."""
        summary = Summary(text=text, condensed_from=tuple(condensed_from), tokens=tokens)
        return self.patch(Put("memory.episodic.summaries", summary))

    def record_decision(self, description: str, *, rationale: str = "", alternatives: Sequence[str] = ()) -> str:
        """Remember what was decided, why, and instead of what."""
        made = Decision(description=description, rationale=rationale, alternatives=tuple(alternatives))
        return self.patch(Put("memory.episodic.decisions", made), Put("runtime.execution.decisions", made))

    def record_milestone(self, event: str, *, significance: Significance = "medium") -> str:
        """Remember that something was reached."""
        return self.patch(Put("memory.episodic.milestones", Milestone(event=event, significance=significance)))

    def set_preference(self, category: str, name: str, value: Any) -> str:
        """Remember how the user wants something."""
        return self.patch(Put("memory.semantic.preferences", Preference(category=category, name=name, value=value)))

    def set_variable(self, name: str, value: Any) -> str:
        """Keep a value that is being worked with."""
        return self.patch(Put("memory.short_term.variables", Variable(name=name, value=value)))

    # What was seen

    def record_observation(
        self, result: Any, *, tool: str = "", source: Source = "tool", relevance: float | None = None
    ) -> str:
        """Remember what a tool, the user or the system showed."""
        seen = Observation(result=result, tool=tool, source=source, relevance=relevance)
        return self.patch(Put("evidence.observations", seen))

    def add_retrieved(self, content: str, *, source: str, query: str = "", relevance: float = 0.0) -> str:
        """Remember what a search found."""
        found = Retrieved(content=content, source=source, query=query, relevance=relevance)
        return self.patch(Put("evidence.retrieved", found))

    def record_measurement(self, metric: str, value: float, *, unit: str = "", context: str = "") -> str:
        """Remember a number that was measured."""
        return self.patch(
            Put("evidence.measurements", Measurement(metric=metric, value=value, unit=unit, context=context))
        )

    # What is being made

    def set_plan(self, steps: Iterable[str | Step]) -> str:
        """Replace the plan. Texts become steps, each after the one before."""
        made: list[Step] = []
        for number, each in enumerate(_as_list(steps), start=1):
            if isinstance(each, Step):
                made.append(each if each.id else msgspec.structs.replace(each, id=str(number)))
            else:
                before = (made[-1].id,) if made else ()
                made.append(Step(id=str(number), description=each, dependencies=before))

        def make(state: State) -> Iterator[Change]:
            yield from (Drop("work.plan.steps", step.key) for step in state.work.plan.steps)
            yield from (Put("work.plan.steps", step) for step in made)
            yield Set("work.plan.current", "")

        return self.change(make)

    def set_step(self, id: str, status: Status, *, result: Any = None, error: str = "") -> str:
        """Say how a step of the plan stands."""

        def make(state: State) -> Iterator[Change]:
            plan = state.work.plan
            step = next((each for each in plan.steps if each.id == id), None)
            if step is None:
                known = ", ".join(each.id for each in plan.steps) or "none"
                raise NotFoundError(f"the plan has no step {id!r}", remedy=f"it has {known}")
            changed = {**msgspec.to_builtins(step), "status": status, "error": error or step.error}
            changed["result"] = step.result if result is None else result
            yield Put("work.plan.steps", changed)
            if status == "in_progress":
                yield Set("work.plan.current", id)
            elif status in ("completed", "failed", "skipped") and plan.current == id:
                yield Set("work.plan.current", "")

        return self.change(make)

    def add_hypothesis(self, description: str, *, confidence: float = 0.5, evidence: Sequence[str] = ()) -> str:
        """Note a guess and what speaks for it."""
        guess = Hypothesis(description=description, confidence=confidence, evidence=tuple(evidence))
        return self.patch(Put("work.hypotheses", guess))

    def set_scratchpad(self, text: str) -> str:
        """Replace the notes of the moment."""
        return self.patch(Set("work.scratchpad", text))


def _permissions(held: Collection[Permission]) -> Change:
    return Set("runtime.permissions", [each for each in PERMISSIONS if each in held])


def count_failure(state: State, tool: str, error: str, times: int = 1) -> Failure:
    """Return a failure as the state has it after so many more: the same one again counts as a retry."""
    same = [each for each in state.runtime.failures if (each.tool, each.error) == (tool, error)]
    if not same:
        return Failure(tool=tool, error=error, retries=times - 1)
    return msgspec.structs.replace(same[-1], retries=same[-1].retries + times, at=0.0)


def _set(state: State, path: str, value: Any) -> Change:
    """Set a value, or a field of one whose other fields stay."""
    outer, _, field = path.rpartition(".")
    if path in places() or outer not in places() or places()[outer].is_list:
        return Set(path, value)
    known = msgspec.to_builtins(attrgetter(outer)(state))
    return Set(outer, {**known, field: value}) if isinstance(known, Mapping) and field in known else Set(path, value)


def _as_list(given: Iterable[str | T]) -> Iterable[str | T]:
    """Return what was given as a list: a text alone is one entry, not its letters."""
    return (given,) if isinstance(given, str) else given
