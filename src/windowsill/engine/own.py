"""Tools of the engine itself: with them the model keeps its plan, remembers, and says when it is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from windowsill.engine.signature import schema_of
from windowsill.engine.tools import EngineTool
from windowsill.errors import InputError
from windowsill.messages import Tool
from windowsill.state.changes import Change, Drop, Put, Set
from windowsill.state.memory import Fact, Milestone
from windowsill.state.runtime import Decision
from windowsill.state.state import State
from windowsill.state.work import Hypothesis, Status, Step

PLAN, REMEMBER, FINISH = "update_plan", "remember", "finish"


class PlanStep(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One step."""

    description: str
    id: str = ""
    status: Status = "pending"
    dependencies: tuple[str, ...] = ()


class UpdatePlan(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Write down the plan, or how its steps stand. Give all steps: the plan is replaced."""

    steps: Annotated[list[PlanStep], Meta(min_length=1, max_length=100)]


class Remember(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Remember something for the rest of the task, so that it is not lost when old messages leave the context."""

    kind: Literal["fact", "decision", "milestone", "hypothesis"]
    text: str
    source: Annotated[str, Meta(description="Where a fact comes from: a file, a command, the user.")] = ""
    reason: Annotated[str, Meta(description="Why something was decided.")] = ""


class Finish(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Say that the task is done, with the result for the user; or that it is not, and what is missing."""

    done: bool
    result: Annotated[str, Meta(description="What the user gets to read.")]
    missing: list[str] = []


Wish: TypeAlias = UpdatePlan | Remember | Finish


def own_tools() -> list[EngineTool]:
    """The definitions. The engine runs them itself: they change the state together with their result."""
    kinds: tuple[tuple[str, type[msgspec.Struct]], ...] = ((PLAN, UpdatePlan), (REMEMBER, Remember), (FINISH, Finish))
    return [
        EngineTool(
            definition=Tool(name=name, description=(kind.__doc__ or "").strip(), schema=schema_of(kind, name)),
            function=_never,
            category="general",
            repeatable=True,
            arguments=kind,
        )
        for name, kind in kinds
    ]


def _never(**_: Any) -> None:
    raise AssertionError  # pragma: no cover - the engine answers these itself


def is_own(tool: EngineTool) -> bool:
    """Whether the engine answers it: without these tools, those of others may have their names."""
    return tool.function is _never


def wish(name: str, arguments: dict[str, Any]) -> Wish:
    """What a call of one of these tools asks for."""
    kind: type[Wish] = {PLAN: UpdatePlan, REMEMBER: Remember, FINISH: Finish}[name]  # type: ignore[assignment]
    return msgspec.convert(arguments, kind)


def changes_of(wanted: Wish, state: State, call: str) -> tuple[list[Change], str]:
    """What a wish changes in the state, and what the model is told; `InputError` when that cannot be."""
    if isinstance(wanted, UpdatePlan):
        return _planned(wanted, state)
    if isinstance(wanted, Remember):
        return [_REMEMBERED[wanted.kind](wanted, call)], "Remembered."
    return [], "Noted."


def _planned(wanted: UpdatePlan, state: State) -> tuple[list[Change], str]:
    steps = [
        Step(id=id, description=step.description, status=step.status, dependencies=step.dependencies)
        for id, step in zip(_ids(wanted.steps), wanted.steps, strict=True)
    ]
    current = next((step.id for step in steps if step.status == "in_progress"), "")
    dropped = [Drop("work.plan.steps", step.key) for step in state.work.plan.steps]
    done = sum(step.status == "completed" for step in steps)
    put = [Put("work.plan.steps", step) for step in steps]
    said = f"The plan has {len(steps)} steps, {done} of them done."
    return [*dropped, *put, Set("work.plan.current", current)], said


def _ids(steps: Sequence[PlanStep]) -> list[str]:
    """An id for each step: its own, or its number, which no other may have."""
    stated = [step.id for step in steps if step.id]
    twice = next((id for place, id in enumerate(stated) if id in stated[:place]), None)
    if twice is not None:
        raise InputError(f"two steps have the id {twice!r}", remedy="give each its own, or none")
    ids: list[str] = []
    for place, step in enumerate(steps, start=1):
        numbers = (str(place), *(f"{place}.{more}" for more in range(2, len(steps) + 2)))
        ids.append(step.id or next(number for number in numbers if number not in (*stated, *ids)))
    return ids


def _fact(wanted: Remember, call: str) -> Change:
    source = wanted.source or f"the agent, call {call}"
    return Put("memory.semantic.facts", Fact(content=wanted.text, source=source, confidence=0.8, relevance=1.0))


_REMEMBERED: dict[str, Callable[[Remember, str], Change]] = {
    "fact": _fact,
    "decision": lambda wanted, _: Put(
        "memory.episodic.decisions", Decision(description=wanted.text, rationale=wanted.reason, relevance=1.0)
    ),
    "milestone": lambda wanted, _: Put("memory.episodic.milestones", Milestone(event=wanted.text)),
    "hypothesis": lambda wanted, _: Put("work.hypotheses", Hypothesis(description=wanted.text)),
}
