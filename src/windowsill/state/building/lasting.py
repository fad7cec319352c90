"""What is shown of the layers that last: system, task and runtime."""

from __future__ import annotations

from typing import Any

from windowsill.state.building.kinds import Kind, Single
from windowsill.state.building.nodes import Child, Look, Node, leaf, node
from windowsill.state.state import State
from windowsill.state.system import Policy
from windowsill.state.task import TaskLimits

_ROLE = Look(
    "role",
    children=(
        Child("name", "name"),
        Child("description", "description"),
        Child("capabilities", "capability"),
        Child("limitations", "limitation"),
    ),
)
_POLICY = Look("policy", "rule", ("id", "category", "priority", "enforcement"))
_CONSTRAINTS = Look(
    "constraints",
    attributes=("max_seconds", "max_tool_calls", "max_file_bytes", "max_cost"),
    children=(Child("allowed_domains", "allowed_domain"), Child("forbidden_paths", "forbidden_path")),
)
_CRITERION = Look("criterion", "description", ("id", "measurable"))
_FORMAT = Look(
    "output_format", attributes=("type",), children=(Child("schema", "schema"), Child("examples", "example"))
)
_LIMITS = Look("limits", attributes=("max_seconds", "max_cost", "min_quality"))
_ABOUT = Look("about", attributes=("created_by", "priority"), children=(Child("tags", "tag"),))
_FAILURE = Look("failure", "error", ("id", "at", "tool", "retries"))

DECISION = Look(
    "decision",
    "description",
    ("id", "at"),
    (Child("rationale", "rationale"), Child("alternatives", "alternative")),
)


def shown(look: Look, value: Any) -> Node | None:
    """A node, if it says anything."""
    made = node(look, value)
    return made if made != Node(made.tag) else None


def _constraints(state: State) -> Node | None:
    made = node(_CONSTRAINTS, state.system.constraints)
    if state.system.constraints.allowed_domains == ():
        # No host at all is not the same as any host.
        made = made._replace(children=(leaf("allowed_domains", "none"), *made.children))
    return made if made != Node(made.tag) else None


def _audit(state: State) -> Node | None:
    """What somebody has to allow first; what is written down is no matter of the model's."""
    asked = state.system.audit.require_approval
    return Node("audit", children=tuple(leaf("require_approval", each) for each in asked)) if asked else None


def _limits(state: State) -> Node | None:
    return node(_LIMITS, state.task.limits) if state.task.limits != TaskLimits() else None


def _permissions(state: State) -> Node:
    return Node("permissions", children=tuple(leaf("permission", each) for each in state.runtime.permissions))


def _by_priority(policy: Policy, _relevance: float) -> tuple[bool, int]:
    return policy.enforcement == "hard", policy.priority


def _run(path: str, tag: str, look: Look) -> Kind:
    """The latest of what happened in a run; the whole of it is in the history."""
    return Kind(path, ("runtime_state", tag), look, most="latest", newest=True, fades="always")


_SYSTEM, _TASK, _RUNTIME = ("system",), ("task",), ("runtime_state",)

LASTING: tuple[Kind | Single, ...] = (
    Single("system.role", _SYSTEM, lambda state: shown(_ROLE, state.system.role)),
    Single("system.constraints", _SYSTEM, _constraints),
    Single("system.audit", _SYSTEM, _audit),
    Kind("system.policies", (*_SYSTEM, "policies"), _POLICY, rank=_by_priority, ranked=True),
    Single("task.goal", _TASK, lambda state: leaf("goal", state.task.goal) if state.task.goal else None),
    Single("task.output_format", _TASK, lambda state: node(_FORMAT, state.task.output_format)),
    Single("task.limits", _TASK, _limits),
    Single("task.about", _TASK, lambda state: shown(_ABOUT, state.task.about)),
    Kind("task.success_criteria", (*_TASK, "success_criteria"), _CRITERION),
    Single("runtime.phase", _RUNTIME, lambda state: leaf("phase", state.runtime.phase)),
    Single("runtime.environment", _RUNTIME, lambda state: leaf("environment", state.runtime.environment)),
    Single("runtime.permissions", _RUNTIME, _permissions),
    _run("runtime.execution.errors", "recent_errors", Look("error", "message", ("id", "at"))),
    _run("runtime.execution.warnings", "recent_warnings", Look("warning", "message", ("id", "at"))),
    _run("runtime.failures", "recent_failures", _FAILURE),
    _run("runtime.execution.decisions", "recent_decisions", DECISION),
)
"""The system and the task are shown whole. What the run has used is left out: it would change with every call."""
