"""L3: what is remembered, by kind."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from windowsill.state.element import Count, Element, Part, Seconds, Share, demand
from windowsill.state.evidence import Observation
from windowsill.state.runtime import Decision

Significance: TypeAlias = Literal["low", "medium", "high"]

SHORT_TERM_SECONDS = 300.0
"""How long an observation is fresh: five minutes."""

EPISODES = 50
"""How many summaries, decisions and milestones are kept in sight, each."""


class Variable(Element, frozen=True, kw_only=True):
    """A value that is being worked with."""

    name: str
    value: Any = None

    @property
    def key(self) -> str:
        """Its name."""
        return self.name


class Turn(Element, frozen=True, kw_only=True):
    """What somebody said, where the conversation itself does not stand in the request."""

    role: Literal["user", "assistant", "system"]
    text: str


class ShortTerm(Part, frozen=True, kw_only=True):
    """What is being worked with now."""

    variables: tuple[Variable, ...] = ()
    turns: tuple[Turn, ...] = ()
    observations: tuple[Observation, ...] = ()
    ttl: Seconds = SHORT_TERM_SECONDS
    """Seconds after which an observation here is no longer told."""


class Summary(Element, frozen=True, kw_only=True):
    """What a stretch of the past came to; `condensed_from` are the messages it stands for."""

    text: str
    condensed_from: tuple[str, ...] = ()
    tokens: Count = 0
    relevance: Share | None = None
    """To the task; found out where it is not stated."""

    def __post_init__(self) -> None:
        demand(bool(self.text.strip()), f"summary {self.id!r} is empty", "say what happened")


class Milestone(Element, frozen=True, kw_only=True):
    """Something that was reached."""

    event: str
    significance: Significance = "medium"

    def __post_init__(self) -> None:
        demand(bool(self.event.strip()), f"milestone {self.id!r} says nothing", "say what was reached")


class Episodic(Part, frozen=True, kw_only=True):
    """What happened."""

    summaries: tuple[Summary, ...] = ()
    decisions: tuple[Decision, ...] = ()
    milestones: tuple[Milestone, ...] = ()
    max_entries: Count = EPISODES
    """Of each kind; the oldest leave the state, and stay in the history."""


class Fact(Element, frozen=True, kw_only=True):
    """Something known, and from where."""

    content: str
    source: str
    confidence: Share = 1.0
    verified: bool = True
    relevance: Share | None = None
    """To the task; found out where it is not stated."""

    def __post_init__(self) -> None:
        demand(bool(self.content.strip()), f"fact {self.id!r} says nothing", "give its content")
        demand(
            bool(self.source.strip()),
            f"the fact {self.content[:60]!r} has no source",
            "say where it comes from: a message, a file, a person",
        )


class Definition(Element, frozen=True, kw_only=True):
    """What a word means here."""

    term: str
    definition: str
    context: str = ""
    examples: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The word."""
        return self.term


class Preference(Element, frozen=True, kw_only=True):
    """How the user wants something."""

    category: str
    name: str
    value: Any = None

    @property
    def key(self) -> str:
        """Its category and name."""
        return f"{self.category}/{self.name}"


class Knowledge(Element, frozen=True, kw_only=True):
    """Something about the project."""

    category: str
    content: str
    references: tuple[str, ...] = ()


class Semantic(Part, frozen=True, kw_only=True):
    """What is known."""

    facts: tuple[Fact, ...] = ()
    definitions: tuple[Definition, ...] = ()
    preferences: tuple[Preference, ...] = ()
    project_knowledge: tuple[Knowledge, ...] = ()


class Skill(Element, frozen=True, kw_only=True):
    """Something the agent knows how to do."""

    name: str
    description: str = ""
    steps: tuple[str, ...] = ()
    required_tools: tuple[str, ...] = ()
    prerequisites: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()


class Template(Element, frozen=True, kw_only=True):
    """A text to be filled in."""

    name: str
    content: str
    category: str = ""
    variables: tuple[str, ...] = ()
    usage_count: Count = 0


class ChecklistItem(Part, frozen=True, kw_only=True):
    """One line of a checklist."""

    description: str
    completed: bool = False
    optional: bool = False


class Checklist(Element, frozen=True, kw_only=True):
    """What has to be looked at, and what was."""

    name: str
    items: tuple[ChecklistItem, ...] = ()

    @property
    def completed(self) -> bool:
        """Whether everything that is not optional is done."""
        return all(item.completed or item.optional for item in self.items)


class ProcedurePhase(Part, frozen=True, kw_only=True):
    """One stage of a procedure."""

    name: str
    steps: tuple[str, ...] = ()
    validations: tuple[str, ...] = ()


class Procedure(Element, frozen=True, kw_only=True):
    """How something is done, in stages."""

    name: str
    description: str = ""
    phases: tuple[ProcedurePhase, ...] = ()
    estimated_seconds: Seconds | None = None


class Procedural(Part, frozen=True, kw_only=True):
    """How things are done."""

    skills: tuple[Skill, ...] = ()
    templates: tuple[Template, ...] = ()
    checklists: tuple[Checklist, ...] = ()
    procedures: tuple[Procedure, ...] = ()


class Memory(Part, frozen=True, kw_only=True):
    """L3."""

    short_term: ShortTerm = ShortTerm()
    episodic: Episodic = Episodic()
    semantic: Semantic = Semantic()
    procedural: Procedural = Procedural()
