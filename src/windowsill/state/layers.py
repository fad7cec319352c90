"""The state of an agent in six layers: everything that it knows besides its conversation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, cast, get_args

import msgspec

from windowsill.errors import InputError, NotFoundError
from windowsill.text import load_table

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
"""A number from 0 to 1."""

Count = Annotated[int, msgspec.Meta(ge=0)]

Seconds = Annotated[float, msgspec.Meta(ge=0)]


class Element(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing in a list of the state. Its `id` is given by the session when empty; `at` is when it came."""

    required: ClassVar[dict[str, str]] = {}
    """Texts that may not be blank, each with what to do about it."""
    key_fields: ClassVar[tuple[str, ...]] = ("id",)
    """The fields that tell it apart from the others of its list."""

    id: str = ""
    at: float = 0.0
    entry: Count = 0
    """The number of the entry it was taken from. While that stands in the request, it is not shown beside it."""

    def __post_init__(self) -> None:
        for name, remedy in self.required.items():
            if not getattr(self, name).strip():
                raise InputError(f"the {type(self).__name__.lower()} {self.id!r} has no {name}", remedy=remedy)

    @property
    def key(self) -> str:
        """The key of the element in its list."""
        fields = self.key_fields
        return self.id if len(fields) == 1 and fields[0] == "id" else "/".join(getattr(self, each) for each in fields)


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the state that holds values, lists of elements and further parts."""


# L0: the role of the agent and its rules, which stay the same for a session


class Role(Part, frozen=True, kw_only=True):
    """The part that the agent plays; empty unless somebody states it."""

    name: str = ""
    description: str = ""
    capabilities: tuple[str, ...] = ()
    limitations: tuple[str, ...] = ()


class Policy(Element, frozen=True, kw_only=True):
    """A rule. A hard one is enforced where code can do that, a soft one is reported."""

    required = {"rule": "say in one sentence what it demands"}

    rule: str
    category: Literal["safety", "privacy", "compliance", "ethics"] = "safety"
    priority: int = 50
    enforcement: Literal["hard", "soft"] = "hard"


class Constraints(Part, frozen=True, kw_only=True):
    """Limits on everything the agent does; `None` is no limit."""

    max_seconds: Seconds | None = None
    max_tool_calls: Count | None = None
    max_file_bytes: Count | None = 10 * 1024 * 1024
    max_cost: Seconds | None = None
    """Dollars."""
    allowed_domains: tuple[str, ...] | None = None
    """The only hosts a tool may reach; `None` is any."""
    forbidden_paths: tuple[str, ...] = ("/etc", "/sys", "/proc", "~/.ssh")
    allow_secrets: bool = False
    """True lets calls run whose arguments contain a key, a token or a password."""


class Audit(Part, frozen=True, kw_only=True):
    """The records that the state keeps of a run, for how long, and the calls that somebody has to allow first."""

    require_approval: tuple[str, ...] = ("delete", "deploy")
    """Categories or names of tools that are run only after somebody said yes."""
    log_tool_calls: bool = True
    """False keeps no list of calls that have ended in the state; their messages are in the history all the same."""
    log_decisions: bool = True
    """False records no decision on which tools are shown."""
    retention_days: Count | None = 90
    """Days after which calls, decisions, errors and failures leave the state, when a run begins; `None` is never."""


class System(Part, frozen=True, kw_only=True):
    """L0."""

    role: Role = Role()
    policies: tuple[Policy, ...] = ()
    constraints: Constraints = Constraints()
    audit: Audit = Audit()


# L1: the task and its criteria of success


class Criterion(Element, frozen=True, kw_only=True):
    """A condition of success. Who runs the task may give a function that checks it, by its id."""

    required = {"description": "describe what has to hold"}

    description: str
    measurable: bool = False
    status: Literal["met", "unmet", "unknown"] = "unknown"
    evidence: str = ""
    """The words of a tool result, or the complaint of a validator."""
    checked_by: str = ""
    """`validator`, the name of the tool whose result is the evidence, or `model` for a criterion it gave up."""


class OutputFormat(Part, frozen=True, kw_only=True):
    """The form of the result."""

    type: Literal["json", "markdown", "code", "mixed"] = "mixed"
    schema: dict[str, Any] | None = None
    """JSON Schema of the result."""
    examples: tuple[str, ...] = ()


class TaskLimits(Part, frozen=True, kw_only=True):
    """Limits of this task; `None` is no limit."""

    max_seconds: Seconds | None = None
    max_cost: Seconds | None = None
    """Dollars."""
    min_quality: Share | None = None
    """The share of the success criteria that has to be met; without it, all of them."""


class About(Part, frozen=True, kw_only=True):
    """The origin of the task and how pressing it is."""

    created_at: float = 0.0
    created_by: str = "user"
    priority: Literal["low", "medium", "high", "critical"] = "medium"
    tags: tuple[str, ...] = ()


class Task(Part, frozen=True, kw_only=True):
    """L1."""

    goal: str = ""
    success_criteria: tuple[Criterion, ...] = ()
    output_format: OutputFormat = OutputFormat()
    limits: TaskLimits = TaskLimits()
    about: About = About()


# L2: the progress of the run

Phase: TypeAlias = Literal["initializing", "planning", "executing", "reflecting", "verifying", "completed", "failed"]

Permission: TypeAlias = Literal["read", "write", "execute", "delete", "admin", "deploy"]

Environment: TypeAlias = Literal["dev", "staging", "prod", "production"]
"""`prod` and `production` are one; a state says `prod`."""

PHASES: tuple[Phase, ...] = get_args(Phase)

PERMISSIONS: tuple[Permission, ...] = get_args(Permission)

ENVIRONMENTS: tuple[Environment, ...] = ("dev", "staging", "prod")
"""`production` is accepted and becomes `prod`."""


def known_phase(given: str, where: str) -> Phase:
    """Return a known phase; raise `InputError` with `where` it was given for another."""
    return cast("Phase", _known(given, PHASES, "phase", where))


def known_environment(given: str, where: str) -> Environment:
    """Return a known environment, `production` as `prod`."""
    return cast("Environment", _known("prod" if given == "production" else given, ENVIRONMENTS, "environment", where))


def known_environments(given: Iterable[str], where: str) -> tuple[Environment, ...]:
    """Return known environments, each once."""
    return tuple(dict.fromkeys(known_environment(each, where) for each in check_list(given, where)))


def known_permissions(given: Iterable[str], where: str) -> tuple[Permission, ...]:
    """Return known permissions, as they were given."""
    found = (_known(each, PERMISSIONS, "permission", where) for each in check_list(given, where))
    return cast("tuple[Permission, ...]", tuple(found))


def check_list(given: Iterable[str], where: str) -> tuple[str, ...]:
    """Return words as a tuple; raise `InputError` for one bare text, which would be read letter by letter."""
    if isinstance(given, str):
        raise InputError(f"{where} is the text {given!r}", remedy=f"give a list: ({given!r},)")
    return tuple(given)


def _known(given: str, known: tuple[str, ...], kind: str, where: str) -> str:
    if given not in known:
        raise InputError(f"{where}: there is no {kind} {given!r}", remedy=f"use {', '.join(known)}")
    return given


class ToolRun(Element, frozen=True, kw_only=True):
    """A call of a tool: begun, and how it ended. The whole output is in the history."""

    tool: str
    input: Any = None
    output: Any = None
    duration: Seconds = 0.0
    success: bool | None = None
    """`None` while it runs, and for one that was interrupted."""


class Decision(Element, frozen=True, kw_only=True):
    """A decision, its reason, and what it was made instead of."""

    required = {"description": "describe what was decided"}

    description: str
    rationale: str = ""
    alternatives: tuple[str, ...] = ()
    relevance: Share | None = None
    """To the task; found out where it is not stated."""


class Trouble(Element, frozen=True, kw_only=True):
    """An error or a warning."""

    message: str


class Failure(Element, frozen=True, kw_only=True):
    """A tool that failed, and how often it was tried again."""

    tool: str
    error: str
    retries: Count = 0


class Execution(Part, frozen=True, kw_only=True):
    """The course of the run, the latest of each kind."""

    tool_calls: tuple[ToolRun, ...] = ()
    decisions: tuple[Decision, ...] = ()
    errors: tuple[Trouble, ...] = ()
    warnings: tuple[Trouble, ...] = ()


class Resources(Part, frozen=True, kw_only=True):
    """The resources used so far. `input` excludes what a provider's cache gave."""

    input: Count = 0
    output: Count = 0
    cached: Count = 0
    model_calls: Count = 0
    tool_calls: Count = 0
    seconds: Seconds = 0.0
    cost: Seconds = 0.0
    """Dollars."""


class Runtime(Part, frozen=True, kw_only=True):
    """L2."""

    phase: Phase = "initializing"
    permissions: tuple[Permission, ...] = ("read", "write")
    environment: Environment = "dev"
    execution: Execution = Execution()
    failures: tuple[Failure, ...] = ()
    resources: Resources = Resources()

    def __post_init__(self) -> None:
        if self.environment == "production":
            msgspec.structs.force_setattr(self, "environment", "prod")


# L4: what was seen, found and measured

Source: TypeAlias = Literal["tool", "user", "system"]


class Observation(Element, frozen=True, kw_only=True):
    """Something that a tool, the user or the system showed."""

    result: Any
    source: Source = "tool"
    tool: str = ""
    relevance: Share | None = None
    ttl: Seconds = 300.0
    """Seconds that it holds."""


class Place(Part, frozen=True, kw_only=True):
    """A place in a source."""

    page: Count | None = None
    section: str = ""
    at: float | None = None


class Retrieved(Element, frozen=True, kw_only=True):
    """A result of a search."""

    content: str
    source: str
    query: str = ""
    relevance: Share = 0.0
    place: Place = Place()


class Citation(Element, frozen=True, kw_only=True):
    """Words of a source, and where they were used."""

    text: str
    source: str
    location: str = ""
    used_in: str = ""


class Measurement(Element, frozen=True, kw_only=True):
    """A number that was measured."""

    metric: str
    value: float
    unit: str = ""
    context: str = ""


class Evidence(Part, frozen=True, kw_only=True):
    """L4."""

    observations: tuple[Observation, ...] = ()
    retrieved: tuple[Retrieved, ...] = ()
    citations: tuple[Citation, ...] = ()
    measurements: tuple[Measurement, ...] = ()


# L3: memory, by kind

Significance: TypeAlias = Literal["low", "medium", "high"]


class Variable(Element, frozen=True, kw_only=True):
    """A value that is being worked with."""

    key_fields = ("name",)

    name: str
    value: Any = None


class Turn(Element, frozen=True, kw_only=True):
    """Words of the conversation, where it does not itself stand in the request."""

    role: Literal["user", "assistant", "system"]
    text: str


class ShortTerm(Part, frozen=True, kw_only=True):
    """Memory of the moment."""

    variables: tuple[Variable, ...] = ()
    turns: tuple[Turn, ...] = ()
    observations: tuple[Observation, ...] = ()
    ttl: Seconds = 300.0
    """Seconds after which an observation here is no longer shown."""


class Summary(Element, frozen=True, kw_only=True):
    """A summary of a stretch of the past; `condensed_from` are the messages it stands for."""

    required = {"text": "say what happened"}

    text: str
    condensed_from: tuple[str, ...] = ()
    tokens: Count = 0
    relevance: Share | None = None
    """To the task; found out where it is not stated."""


class Milestone(Element, frozen=True, kw_only=True):
    """Something that was reached."""

    required = {"event": "say what was reached"}

    event: str
    significance: Significance = "medium"


class Episodic(Part, frozen=True, kw_only=True):
    """Memory of what happened."""

    summaries: tuple[Summary, ...] = ()
    decisions: tuple[Decision, ...] = ()
    milestones: tuple[Milestone, ...] = ()
    max_entries: Count = 50
    """The most elements of each kind; the oldest leave the state, and stay in the history."""


class Fact(Element, frozen=True, kw_only=True):
    """Something known, and from where."""

    required = {"content": "give its content", "source": "say where it comes from: a message, a file, a person"}

    content: str
    source: str
    confidence: Share = 1.0
    verified: bool = True
    relevance: Share | None = None
    """To the task; found out where it is not stated."""


class Definition(Element, frozen=True, kw_only=True):
    """The meaning of a word here."""

    key_fields = ("term",)

    term: str
    definition: str
    context: str = ""
    examples: tuple[str, ...] = ()


class Preference(Element, frozen=True, kw_only=True):
    """A wish of the user."""

    key_fields = ("category", "name")

    category: str
    name: str
    value: Any = None


class Knowledge(Element, frozen=True, kw_only=True):
    """Something about the project."""

    category: str
    content: str
    references: tuple[str, ...] = ()


class Semantic(Part, frozen=True, kw_only=True):
    """Memory of what is known."""

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
    """A list of things to look at, and which of them are done."""

    name: str
    items: tuple[ChecklistItem, ...] = ()


class ProcedurePhase(Part, frozen=True, kw_only=True):
    """One stage of a procedure."""

    name: str
    steps: tuple[str, ...] = ()
    validations: tuple[str, ...] = ()


class Procedure(Element, frozen=True, kw_only=True):
    """A way to do something, in stages."""

    name: str
    description: str = ""
    phases: tuple[ProcedurePhase, ...] = ()
    estimated_seconds: Seconds | None = None


class Procedural(Part, frozen=True, kw_only=True):
    """Memory of how things are done."""

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


# L5: the plan and what is being made

Status: TypeAlias = Literal["pending", "in_progress", "completed", "failed", "skipped"]


class Step(Element, frozen=True, kw_only=True):
    """One step of the plan; `dependencies` are the ids of steps that come first."""

    required = {"description": "describe what is to be done"}

    description: str
    status: Status = "pending"
    dependencies: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    estimated_seconds: Seconds | None = None
    actual_seconds: Seconds | None = None
    result: Any = None
    error: str = ""


class Plan(Part, frozen=True, kw_only=True):
    """The steps to the goal, and the id of the one that is worked on."""

    steps: tuple[Step, ...] = ()
    current: str = ""
    estimated_completion: float | None = None


class FileChange(Element, frozen=True, kw_only=True):
    """A change to a file or another target."""

    target: str
    type: Literal["create", "modify", "delete"] = "modify"
    before: str | None = None
    after: str | None = None
    rationale: str = ""
    applied: bool = False


class Hypothesis(Element, frozen=True, kw_only=True):
    """A guess, what speaks for it, and what became of it."""

    description: str
    confidence: Share = 0.5
    evidence: tuple[str, ...] = ()
    tested: bool = False
    result: Literal["confirmed", "rejected", "inconclusive"] | None = None

    @property
    def open(self) -> bool:
        """True while it is neither confirmed nor rejected."""
        return not self.tested or self.result in (None, "inconclusive")


class Draft(Element, frozen=True, kw_only=True):
    """A text in the making."""

    content: str
    type: str = "text"
    version: Count = 1


class Work(Part, frozen=True, kw_only=True):
    """L5."""

    plan: Plan = Plan()
    changes: tuple[FileChange, ...] = ()
    hypotheses: tuple[Hypothesis, ...] = ()
    drafts: tuple[Draft, ...] = ()
    scratchpad: str = ""


def check_steps(steps: Sequence[Step], current: str = "") -> None:
    """Raise `InputError` for a missing dependency or a circle, `NotFoundError` for a missing `current` step."""
    after = {step.id: step.dependencies for step in steps}
    for step in steps:
        if missing := [id for id in step.dependencies if id not in after]:
            raise InputError(
                f"step {step.id!r} depends on {', '.join(map(repr, missing))}, which the plan does not have",
                remedy=f"the plan has {', '.join(after)}",
            )
    try:
        TopologicalSorter(after).prepare()
    except CycleError as error:
        circle = " > ".join(reversed(error.args[1]))
        raise InputError(f"steps wait for each other: {circle}", remedy="take one of these dependencies out") from None
    if current and current not in after:
        raise NotFoundError(f"the plan has no step {current!r}", remedy=f"it has {', '.join(after) or 'none'}")


LAYERS = ("system", "task", "runtime", "memory", "evidence", "work")
"""L0 to L5, the most lasting first."""


class State(Part, frozen=True, kw_only=True):
    """Everything that an agent knows besides its conversation."""

    system: System = System()
    task: Task = Task()
    runtime: Runtime = Runtime()
    memory: Memory = Memory()
    evidence: Evidence = Evidence()
    work: Work = Work()

    @staticmethod
    def coding_assistant() -> State:
        """Return the state of an assistant for code: its role, four policies, one hour and 100 tool calls."""
        return State(system=msgspec.convert(load_table("windowsill.state", "coding_assistant.toml"), System))

    def to_json(self) -> bytes:
        """Write the state as JSON, every field: a default of a later version must not change what was meant."""
        return msgspec.json.encode(self)

    @staticmethod
    def from_json(data: bytes | str) -> State:
        """Read a state from JSON; raise `InputError` with the field that is wrong."""
        try:
            state = msgspec.json.decode(data, type=State)
        except msgspec.ValidationError as error:
            raise InputError(f"not a state: {error}", remedy="`State.schema()` says what it may hold") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(f"not JSON: {error}", remedy="give a JSON object") from None
        check_steps(state.work.plan.steps)
        return state

    @staticmethod
    def schema() -> dict[str, Any]:
        """Return the JSON Schema of a state."""
        return msgspec.json.schema(State)
