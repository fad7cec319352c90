"""The table of everything that a model is shown of a state, and how each part is chosen and shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import msgspec

from windowsill.errors import SettingError
from windowsill.state.layers import LAYERS, Audit, Constraints, FileChange, Observation, State
from windowsill.state.prompt.formats import Node, clean


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The most that is shown of each list, and the relevance it has to have. The rest stays in the state."""

    relevance: float = 0.3
    """From 0 to 1; what is above it has to do with the current step or the goal, and comes first."""
    turns: int = 5
    """The latest words of the conversation."""
    summaries: int = 5
    """The most relevant ones."""
    decisions: int = 5
    """The most relevant of those that are remembered."""
    facts: int = 10
    """The surest of those that are verified and relevant, then the others by relevance."""
    definitions: int = 10
    preferences: int = 20
    project_knowledge: int = 10
    checklists: int = 5
    procedures: int = 3
    """The most relevant of each."""
    templates: int = 3
    """The most relevant ones."""
    short_term: int = 5
    """The newest observations that hold."""
    observations: int = 5
    """The newest pieces of evidence,"""
    seconds: float = 60.0
    """not older than this."""
    retrieved: int = 10
    """The most relevant ones."""
    citations: int = 10
    measurements: int = 10
    changes: int = 20
    drafts: int = 3
    """The newest of each."""
    latest: int = 3
    """The latest errors, warnings, failures and decisions of the run, so many of each."""

    def __post_init__(self) -> None:
        if not 0 <= self.relevance <= 1:
            raise SettingError("picks.relevance", self.relevance, "a number from 0 to 1")
        for name in self.__struct_fields__:
            if not getattr(self, name) >= 0:
                raise SettingError(f"picks.{name}", getattr(self, name), "0 or more")


# How a value is shown


class Child(NamedTuple):
    """A field that becomes nodes of its own: one, or one for each of its values."""

    field: str
    tag: str
    look: Look | None = None
    keep_empty: bool = False
    """Show an empty text: an empty file is not the same as none."""


class Look(NamedTuple):
    """The form of a struct: the field that is its text, the fields beside it, and those below it."""

    tag: str
    text: str = ""
    attributes: tuple[str, ...] = ()
    children: tuple[Child, ...] = ()


def _look(tag: str, text: str, attributes: str, children: str = "", *more: Child) -> Look:
    """Write a look in short: fields by their names, a child as `field` or `field:tag`."""
    below = (Child(each.split(":")[0], each.split(":")[-1]) for each in children.split())
    return Look(tag, text, tuple(attributes.split()), (*below, *more))


def node_of(look: Look, value: Any) -> Node:
    """Make the node of a struct. Empty fields are left out."""
    attributes = [(name, attribute_text(name, getattr(value, name))) for name in look.attributes]
    text = getattr(value, look.text) if look.text else ""
    return Node(
        look.tag,
        (*((name, text) for name, text in attributes if text), *_json_mark(text)),
        value_text(text),
        tuple(below for child in look.children for below in _children(child, getattr(value, child.field))),
    )


def leaf(tag: str, value: Any) -> Node:
    """Make the node of a single value."""
    return Node(tag, _json_mark(value), value_text(value))


def _unless_empty(node: Node) -> Node | None:
    return node if node != Node(node.tag) else None


def _children(child: Child, value: Any) -> list[Node]:
    nothing = value is None or (isinstance(value, str) and not value and not child.keep_empty)
    values = value if isinstance(value, tuple) else () if nothing else (value,)
    if child.look is None:
        return [leaf(child.tag, each) for each in values]
    return [node for each in values if (node := _unless_empty(node_of(child.look, each))) is not None]


def _json_mark(value: Any) -> tuple[tuple[str, str], ...]:
    """Mark a value that is written as JSON: a text and a number must not look the same."""
    return () if isinstance(value, str) else (("as", "json"),)


def value_text(value: Any) -> str:
    """Write a value as text: a string as it is, anything else as JSON with its keys in order."""
    if isinstance(value, str):
        return clean(value)
    try:
        return clean(
            json.dumps(value, ensure_ascii=False, sort_keys=True, default=partial(msgspec.to_builtins, enc_hook=str))
        )
    except (TypeError, ValueError, RecursionError):
        # Keys of several kinds cannot be sorted, and a value may contain itself: it is shown all the same.
        return clean(_blunt_text(value))


def _blunt_text(value: Any) -> str:
    try:
        return str(value)
    except (RecursionError, ValueError) as error:
        return f"a {'value too deep' if isinstance(error, RecursionError) else 'number too long'} to be shown"


def attribute_text(name: str, value: Any) -> str:
    """Write a field as an attribute; empty when it says nothing."""
    if value is None:
        return ""
    if name == "at":
        return time_text(value) if value else ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number_text(value)
    return value_text(value)


def number_text(value: float) -> str:
    """Write a number, whole ones without a point."""
    return str(int(value)) if value.is_integer() and abs(value) < 10**15 else repr(value)  # beyond that an exponent


def time_text(at: float) -> str:
    """Write a time in UTC, to the second."""
    try:
        return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return number_text(at)  # no calendar has it


# How a list is chosen from


class Entry(msgspec.Struct, frozen=True):
    """Something of the state that can be shown."""

    path: str
    tags: tuple[str, ...]
    """The tags around it, the layer's first."""

    @property
    def layer(self) -> str:
        """The layer it belongs to."""
        return self.path.partition(".")[0]


class Kind(Entry, frozen=True):
    """A list of the state."""

    look: Look
    group: str = ""
    """The kind of memory or evidence whose budget it draws on."""
    about: Callable[[Any], str] | None = None
    """The words of an element that are compared with the goal; `None` where the goal does not matter."""
    strict: bool = False
    """True where only what has to do with the goal is shown; elsewhere the rest follows, as far as `limit` goes."""
    holds: Callable[[Any], bool] = lambda _element: True
    """An element that does not hold is not shown, and a model that was told of it is told so."""
    rank: Callable[[Any, float], Any] = lambda _element, _relevance: 0
    """The higher, the more important, given the relevance; `None` is passed over."""
    limit: str = ""
    """The field of `Limits` that says how many."""
    newest: bool = False
    """True when the later of two with the same rank is the more important."""
    by_rank: bool = False
    """Shown by rank, and not in the order of the state."""
    expiry: Callable[[Any, State, Limits], float] | None = None
    """The moment from which an element is no longer shown."""
    latest_of: str = ""
    """A field: of elements with the same value in it only the most important is shown."""
    fades: Literal["always", "at the cap", "never"] = "never"
    """The cases in which an element may leave the state because of its age alone: nobody is told then."""

    def elements(self, state: State) -> tuple[Any, ...]:
        """Return the list; of what happened only as much as the state keeps in sight."""
        found: tuple[Any, ...] = attrgetter(self.path)(state)
        if self.fades == "at the cap":
            return found[max(0, len(found) - state.memory.episodic.max_entries) :]
        return found

    def may_have_faded(self, state: State) -> bool:
        """Tell whether an element that is gone may have left by its age."""
        full = len(attrgetter(self.path)(state)) >= state.memory.episodic.max_entries
        return self.fades == "always" or (full and self.fades == "at the cap")


class Single(Entry, frozen=True):
    """A value of the state that is not a list of elements."""

    node: Callable[[State], Node | None]
    """`None` when there is nothing to show."""
    expendable: bool = False
    """It goes before the elements of its layer when room is short; otherwise it is the last to go."""
    group: str = ""


def _by_relevance(_element: Any, relevance: float) -> float:
    return relevance


def _by_confidence(element: Any, _relevance: float) -> float:
    return float(element.confidence)


# The rows of the table

LAYER_TAGS = {layer: layer for layer in LAYERS} | {"runtime": "runtime_state", "work": "work_buffer"}


def _single(path: str, node: Callable[[State], Node | None], *, expendable: bool = False) -> Single:
    """Show a value below the tags of its path."""
    layer, *parts, _ = path.split(".")
    return Single(path, (LAYER_TAGS[layer], *parts), node, expendable)


def _leaf(path: str, *, expendable: bool = False) -> Single:
    """Show a text or a number under its own name, if there is one."""
    tag, value_of = path.rpartition(".")[2], attrgetter(path)
    return _single(path, lambda state: leaf(tag, value) if (value := value_of(state)) else None, expendable=expendable)


def _part(path: str, look: Look, default: Any = None) -> Single:
    """Show a part of the state, if it says anything: a call against the defaults is refused with its reason."""

    def node(state: State) -> Node | None:
        part = attrgetter(path)(state)
        return None if part == default else _unless_empty(node_of(look, part))

    return _single(path, node)


def _list(path: str, look: Look, tag: str = "", **rules: Any) -> Kind:
    """Show a list of the state below the tags of its path, no more of it than the limit of its name says.

    Kinds of memory have a tag and a budget of their own.
    """
    layer, *parts, name = path.split(".")
    group = parts if layer == "memory" else []
    tags = (LAYER_TAGS[layer], *group, tag or name)
    limit = name if name in Limits.__struct_fields__ else ""
    return Kind(path, tags, look, **{"group": "".join(group), "limit": limit, **rules})


def _latest(path: str, look: Look) -> Kind:
    """Show the latest of what happened in a run; the whole of it is in the history."""
    return _list(path, look, f"recent_{path.rpartition('.')[2]}", limit="latest", newest=True, fades="always")


def _about(*fields: str) -> dict[str, Any]:
    """Choose the nearest to the goal by what an element says in these fields."""
    return {"about": lambda element: " ".join(getattr(element, each) for each in fields), "rank": _by_relevance}


_NEWEST: dict[str, Any] = {"rank": lambda element, _relevance: element.at, "newest": True}


def _observed(path: str, expiry: Callable[[Observation, State, Limits], float], **rules: Any) -> Kind:
    """Show the newest observations that have not expired."""
    look = _look("observation", "result", "id source tool")
    return _list(path, look, "recent_observations", **_NEWEST, by_rank=True, fades="always", expiry=expiry, **rules)


def _constraints(state: State) -> Node | None:
    look = _look(
        "constraints",
        "",
        "max_seconds max_tool_calls max_file_bytes max_cost",
        "allowed_domains:allowed_domain forbidden_paths:forbidden_path",
    )
    node = node_of(look, state.system.constraints)
    if state.system.constraints.allowed_domains == ():
        # No host at all is not the same as any host.
        node = node._replace(children=(leaf("allowed_domains", "none"), *node.children))
    return None if state.system.constraints == Constraints() else _unless_empty(node)


def _permissions(state: State) -> Node:
    return Node("permissions", (), "", tuple(leaf("permission", each) for each in state.runtime.permissions))


def _current_step(state: State) -> Node | None:
    """Show which step is worked on, unless the step says so itself."""
    plan = state.work.plan
    says_so = any(each.id == plan.current and each.status == "in_progress" for each in plan.steps)
    return leaf("current_step", plan.current) if plan.current and not says_so else None


def _completion(state: State) -> Node | None:
    at = state.work.plan.estimated_completion
    return leaf("estimated_completion", time_text(at)) if at is not None else None


def _is_news(change: FileChange) -> bool:
    """Tell whether a change is still to be made, or was made by a call that the model no longer sees."""
    return not change.applied or change.entry > 0


SIGNIFICANCE = {"medium": 1, "high": 2}
"""Milestones that are shown at all, and how much they matter."""

STATUSES = ("skipped", "completed", "failed", "pending", "in_progress")
"""The statuses of steps, the least telling first."""

_DECISION = _look("decision", "description", "id at", "rationale alternatives:alternative")
_ITEM = _look("item", "description", "completed optional")
_PHASE = _look("phase", "", "name", "steps:step validations:validation")
_PLACE = _look("place", "", "page section at")
_FILES = (Child("before", "before", keep_empty=True), Child("after", "after", keep_empty=True))

CATALOGUE: tuple[Kind | Single, ...] = (
    # The system and the task are shown whole.
    _part("system.role", _look("role", "", "", "name description capabilities:capability limitations:limitation")),
    _single("system.constraints", _constraints),
    _part("system.audit", _look("audit", "", "", "require_approval"), Audit()),
    _list(
        "system.policies",
        _look("policy", "rule", "id category priority enforcement"),
        rank=lambda policy, _relevance: (policy.enforcement == "hard", policy.priority),
        by_rank=True,
    ),
    _leaf("task.goal"),
    _part("task.output_format", _look("output_format", "", "type", "schema examples:example")),
    _part("task.limits", _look("limits", "", "max_seconds max_cost min_quality")),
    _part("task.about", _look("about", "", "created_by priority", "tags:tag")),
    _list("task.success_criteria", _look("criterion", "description", "id measurable")),
    # What the run has used is left out: it would change with every call.
    _leaf("runtime.phase"),
    _leaf("runtime.environment"),
    _single("runtime.permissions", _permissions),
    _latest("runtime.execution.errors", _look("error", "message", "id at")),
    _latest("runtime.execution.warnings", _look("warning", "message", "id at")),
    _latest("runtime.failures", _look("failure", "error", "id at tool retries")),
    _latest("runtime.execution.decisions", _DECISION),
    _observed(
        "evidence.observations",
        lambda seen, _state, limits: seen.at + min(seen.ttl, limits.seconds),
        group="observations",
    ),
    _list(
        "evidence.retrieved",
        _look("result", "content", "id source query relevance", "", Child("place", "place", _PLACE)),
        group="retrieval",
        strict=True,
        by_rank=True,
        **_about("content"),
    ),
    _list("evidence.citations", _look("citation", "text", "id source location used_in"), group="retrieval", **_NEWEST),
    _list(
        "evidence.measurements",
        _look("measurement", "", "id at metric value unit context"),
        group="observations",
        latest_of="metric",
        **_NEWEST,
    ),
    _list("memory.short_term.variables", _look("variable", "value", "name"), "working_variables", **_NEWEST),
    _list("memory.short_term.turns", _look("turn", "text", "id role at"), "recent_turns", newest=True, fades="always"),
    _observed(
        "memory.short_term.observations",
        lambda seen, state, _limits: seen.at + min(seen.ttl, state.memory.short_term.ttl),
        limit="short_term",
    ),
    _list(
        "memory.episodic.summaries",
        _look("summary", "text", "id at relevance"),
        fades="at the cap",
        by_rank=True,
        **_about("text"),
    ),
    _list("memory.episodic.decisions", _DECISION, fades="at the cap", **_about("description", "rationale")),
    _list(
        "memory.episodic.milestones",
        _look("milestone", "event", "id significance"),
        rank=lambda milestone, _relevance: SIGNIFICANCE.get(milestone.significance),
        newest=True,
        fades="at the cap",
    ),
    _list(
        "memory.semantic.facts",
        _look("fact", "content", "id source confidence"),
        holds=lambda fact: fact.verified,
        by_rank=True,
        **{**_about("content"), "rank": _by_confidence},
    ),
    _list(
        "memory.semantic.definitions",
        _look("definition", "definition", "term context", "examples:example"),
        **_about("term", "definition", "context"),
    ),
    _list(
        "memory.semantic.preferences",
        _look("preference", "value", "category name"),
        about=lambda wish: f"{wish.category} {wish.name} {value_text(wish.value)}",
        rank=_by_relevance,
    ),
    _list(
        "memory.semantic.project_knowledge",
        _look("knowledge", "content", "id category", "references:reference"),
        **_about("category", "content"),
    ),
    _list(
        "memory.procedural.skills",
        _look(
            "skill",
            "",
            "id name",
            "description prerequisites:prerequisite required_tools:required_tool steps:step examples:example",
        ),
        strict=True,
        **_about("name", "description"),
    ),
    _list(
        "memory.procedural.templates",
        _look("template", "content", "id name category", "variables:variable"),
        by_rank=True,
        **_about("name", "category", "content"),
    ),
    _list(
        "memory.procedural.checklists",
        _look("checklist", "", "id name", "", Child("items", "item", _ITEM)),
        about=lambda checklist: " ".join((checklist.name, *(item.description for item in checklist.items))),
        rank=_by_relevance,
    ),
    _list(
        "memory.procedural.procedures",
        _look("procedure", "", "id name estimated_seconds", "description", Child("phases", "phase", _PHASE)),
        **_about("name", "description"),
    ),
    _leaf("work.scratchpad", expendable=True),
    _single("work.plan.current", _current_step),
    _single("work.plan.estimated_completion", _completion),
    _list(
        "work.plan.steps",
        _look(
            "step",
            "description",
            "id status estimated_seconds actual_seconds",
            "dependencies:after tools:tool result error",
        ),
        "plan",
        rank=lambda step, _relevance: STATUSES.index(step.status),
    ),
    _list(
        "work.changes",
        _look("change", "", "id type target applied", "rationale", *_FILES),
        holds=_is_news,
        **_NEWEST,
    ),
    _list(
        "work.hypotheses",
        _look("hypothesis", "description", "id confidence result", "evidence:ground"),
        holds=lambda guess: guess.open,
        rank=_by_confidence,
    ),
    _list("work.drafts", _look("draft", "content", "id type version"), **_NEWEST),
)
"""Everything that is shown, in the order in which it is shown: the most important layer first. In each part of the
frame single values come before lists: a heading has no end but the next heading."""

PLACES = {each.path: place for place, each in enumerate(CATALOGUE)}

LAYER_OF_TAG = {tag: layer for layer, tag in LAYER_TAGS.items()}

WHOLE = ("system", "task")
"""Layers that are shown whole or not at all."""
