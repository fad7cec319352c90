"""What is shown of the layers that change all the time: evidence and work."""

from __future__ import annotations

from windowsill.state.building.kinds import Kind, Single
from windowsill.state.building.nodes import Child, Look, Node, leaf, moment
from windowsill.state.building.picks import Picks
from windowsill.state.building.remembered import OBSERVATION, by_age, by_confidence, by_relevance
from windowsill.state.evidence import Observation
from windowsill.state.state import State
from windowsill.state.work import Step

STATUSES = ("skipped", "completed", "failed", "pending", "in_progress")
"""Of steps, the least telling first."""

_PLACE = Look("place", attributes=("page", "section", "at"))
_RETRIEVED = Look("result", "content", ("id", "source", "query", "relevance"), (Child("place", "place", _PLACE),))
_CITATION = Look("citation", "text", ("id", "source", "location", "used_in"))
_MEASUREMENT = Look("measurement", attributes=("id", "at", "metric", "value", "unit", "context"))
_STEP = Look(
    "step",
    "description",
    ("id", "status", "estimated_seconds", "actual_seconds"),
    (Child("dependencies", "after"), Child("tools", "tool"), Child("result", "result"), Child("error", "error")),
)
_CHANGE = Look(
    "change",
    attributes=("id", "type", "target"),
    children=(
        Child("rationale", "rationale"),
        Child("before", "before", empty=True),
        Child("after", "after", empty=True),
    ),
)
_HYPOTHESIS = Look("hypothesis", "description", ("id", "confidence", "result"), (Child("evidence", "ground"),))
_DRAFT = Look("draft", "content", ("id", "type", "version"))


def _of_late(seen: Observation, now: float, _state: State, picks: Picks) -> bool:
    return now - seen.at < min(seen.ttl, picks.seconds)


def _by_status(step: Step, _relevance: float) -> int:
    return STATUSES.index(step.status)


def _current(state: State) -> Node | None:
    current = state.work.plan.current
    return leaf("current_step", current) if current else None


def _completion(state: State) -> Node | None:
    at = state.work.plan.estimated_completion
    return leaf("estimated_completion", moment(at)) if at is not None else None


def _scratchpad(state: State) -> Node | None:
    return leaf("scratchpad", state.work.scratchpad) if state.work.scratchpad else None


_EVIDENCE, _WORK, _PLAN = "evidence", ("work_buffer",), ("work_buffer", "plan")

CURRENT: tuple[Kind | Single, ...] = (
    Kind(
        "evidence.observations",
        (_EVIDENCE, "recent_observations"),
        OBSERVATION,
        "observations",
        rank=by_age,
        newest=True,
        ranked=True,
        fresh=_of_late,
        most="observations",
        fades="always",
    ),
    Kind(
        "evidence.retrieved",
        (_EVIDENCE, "retrieved"),
        _RETRIEVED,
        "retrieval",
        about=lambda found: found.content,
        rank=by_relevance,
        ranked=True,
        most="retrieved",
    ),
    Kind("evidence.citations", (_EVIDENCE, "citations"), _CITATION, "retrieval", rank=by_age, newest=True),
    Kind(
        "evidence.measurements",
        (_EVIDENCE, "measurements"),
        _MEASUREMENT,
        "observations",
        rank=by_age,
        newest=True,
        latest_of="metric",
    ),
    Single("work.scratchpad", _WORK, _scratchpad, last=True),
    Single("work.plan.current", _PLAN, _current),
    Single("work.plan.estimated_completion", _PLAN, _completion),
    Kind("work.plan.steps", _PLAN, _STEP, rank=_by_status),
    Kind(
        "work.changes",
        (*_WORK, "changes"),
        _CHANGE,
        holds=lambda change: not change.applied,
        rank=by_age,
        newest=True,
    ),
    Kind("work.hypotheses", (*_WORK, "hypotheses"), _HYPOTHESIS, holds=lambda guess: guess.open, rank=by_confidence),
    Kind("work.drafts", (*_WORK, "drafts"), _DRAFT, rank=by_age, newest=True),
)
