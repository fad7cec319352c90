"""What is shown of memory."""

from __future__ import annotations

from typing import Any

from windowsill.state.building.kinds import Kind, Single
from windowsill.state.building.lasting import DECISION
from windowsill.state.building.nodes import Child, Look, words
from windowsill.state.building.picks import Picks
from windowsill.state.evidence import Observation
from windowsill.state.memory import Checklist, Definition, Knowledge, Milestone, Preference, Template
from windowsill.state.state import State

SIGNIFICANCE = {"medium": 1, "high": 2}
"""Milestones that are shown at all, and how much they matter."""

OBSERVATION = Look("observation", "result", ("id", "at", "source", "tool"))

_SUMMARY = Look("summary", "text", ("id", "at", "relevance"))
_MILESTONE = Look("milestone", "event", ("id", "significance"))
_FACT = Look("fact", "content", ("id", "source", "confidence"))
_DEFINITION = Look("definition", "definition", ("term", "context"), (Child("examples", "example"),))
_PREFERENCE = Look("preference", "value", ("category", "name"))
_KNOWLEDGE = Look("knowledge", "content", ("id", "category"), (Child("references", "reference"),))
_SKILL = Look(
    "skill",
    attributes=("id", "name"),
    children=(
        Child("description", "description"),
        Child("prerequisites", "prerequisite"),
        Child("required_tools", "required_tool"),
        Child("steps", "step"),
        Child("examples", "example"),
    ),
)
_TEMPLATE = Look("template", "content", ("id", "name", "category"), (Child("variables", "variable"),))
_ITEM = Look("item", "description", ("completed", "optional"))
_CHECKLIST = Look("checklist", attributes=("id", "name"), children=(Child("items", "item", _ITEM),))
_PHASE = Look("phase", attributes=("name",), children=(Child("steps", "step"), Child("validations", "validation")))
_PROCEDURE = Look(
    "procedure",
    attributes=("id", "name", "estimated_seconds"),
    children=(Child("description", "description"), Child("phases", "phase", _PHASE)),
)


def by_relevance(_element: Any, relevance: float) -> float:
    """The nearer to the goal, the more important."""
    return relevance


def by_age(element: Any, _relevance: float) -> float:
    """The younger, the more important."""
    return float(element.at)


def by_confidence(element: Any, _relevance: float) -> float:
    """The surer, the more important."""
    return float(element.confidence)


def _by_significance(milestone: Milestone, _relevance: float) -> int | None:
    return SIGNIFICANCE.get(milestone.significance)


def _fresh(seen: Observation, now: float, state: State, _picks: Picks) -> bool:
    return now - seen.at < min(seen.ttl, state.memory.short_term.ttl)


def _definition(word: Definition) -> str:
    return f"{word.term} {word.definition} {word.context}"


def _preference(wish: Preference) -> str:
    return f"{wish.category} {wish.name} {words(wish.value)}"


def _knowledge(known: Knowledge) -> str:
    return f"{known.category} {known.content}"


def _template(template: Template) -> str:
    return f"{template.name} {template.category} {template.content}"


def _checklist(checklist: Checklist) -> str:
    return " ".join((checklist.name, *(item.description for item in checklist.items)))


def _named(element: Any) -> str:
    return f"{element.name} {element.description}"


def _kind(path: str, tag: str, look: Look, **rules: Any) -> Kind:
    """A list of memory; the part of its path behind the layer is the kind of memory."""
    group = path.split(".")[1]
    return Kind(path, ("memory", group, tag), look, group, **rules)


REMEMBERED: tuple[Kind | Single, ...] = (
    _kind(
        "memory.short_term.variables",
        "working_variables",
        Look("variable", "value", ("name",)),
        rank=by_age,
        newest=True,
    ),
    _kind(
        "memory.short_term.turns",
        "recent_turns",
        Look("turn", "text", ("id", "role", "at")),
        newest=True,
        fades="always",
    ),
    _kind(
        "memory.short_term.observations",
        "recent_observations",
        OBSERVATION,
        rank=by_age,
        newest=True,
        ranked=True,
        fresh=_fresh,
        most="short_term",
        fades="always",
    ),
    _kind(
        "memory.episodic.summaries",
        "summaries",
        _SUMMARY,
        about=lambda summary: summary.text,
        rank=by_relevance,
        ranked=True,
        most="summaries",
        fades="at the cap",
    ),
    _kind(
        "memory.episodic.decisions",
        "decisions",
        DECISION,
        about=lambda decision: f"{decision.description} {decision.rationale}",
        rank=by_relevance,
        most="decisions",
        fades="at the cap",
    ),
    _kind(
        "memory.episodic.milestones",
        "milestones",
        _MILESTONE,
        rank=_by_significance,
        newest=True,
        fades="at the cap",
    ),
    _kind(
        "memory.semantic.facts",
        "facts",
        _FACT,
        about=lambda fact: fact.content,
        holds=lambda fact: fact.verified,
        rank=by_confidence,
        ranked=True,
        most="facts",
    ),
    _kind("memory.semantic.definitions", "definitions", _DEFINITION, about=_definition, rank=by_relevance),
    _kind("memory.semantic.preferences", "preferences", _PREFERENCE, about=_preference, rank=by_relevance),
    _kind("memory.semantic.project_knowledge", "project_knowledge", _KNOWLEDGE, about=_knowledge, rank=by_relevance),
    _kind("memory.procedural.skills", "skills", _SKILL, about=_named, rank=by_relevance),
    _kind(
        "memory.procedural.templates",
        "templates",
        _TEMPLATE,
        about=_template,
        rank=by_relevance,
        ranked=True,
        most="templates",
    ),
    _kind("memory.procedural.checklists", "checklists", _CHECKLIST, about=_checklist, rank=by_relevance),
    _kind("memory.procedural.procedures", "procedures", _PROCEDURE, about=_named, rank=by_relevance),
)
