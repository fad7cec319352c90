"""The tools of one engine: the caller's, the history's, the engine's own, and the choice for each request.

With its own tools the model keeps its plan, remembers, and says when it is done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from windowsill.agent.tools import AnyTool, EngineTool, ToolError, as_tool, schema_of
from windowsill.agent.verification import Claim
from windowsill.errors import InputError
from windowsill.messages import MESSAGE_TOOL, READ_TOOL, SEARCH_TOOL, Tool
from windowsill.session.session import Session
from windowsill.state.changes import Change, Drop, Put, Set
from windowsill.state.layers import Decision, Element, Fact, Hypothesis, Milestone, State, Status, Step, known_phase
from windowsill.state.tools import Narrow, Projection, Refusal, ToolOffer, ToolSelection
from windowsill.state.tools.projection import UNSTATED, URGENT, Mode, category_of

PLAN, REMEMBER, FINISH = "update_plan", "remember", "finish"

HISTORY: dict[str, tuple[str, tuple[str, ...]]] = {
    READ_TOOL: ("Show lines of a tool output that was cut, by its ref.", ("ref_id", "offset", "limit")),
    SEARCH_TOOL: ("Search everything said or shown in this session.", ("query",)),
    MESSAGE_TOOL: ("Show a message that history_search found.", ("message_id",)),
}
"""The tools of the session that an engine offers, in few words: their definitions are paid for in every request."""

LENGTHY = frozenset({"title", "default", "minimum", "maximum", "minItems", "maxItems", "additionalProperties"})
"""Keys of a schema that say nothing a model needs; whoever answers the call checks its arguments all the same."""


class PlanStep(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One step."""

    description: str
    id: str = ""
    status: Status = "pending"
    dependencies: tuple[str, ...] = ()


class UpdatePlan(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Write down all steps of the plan and how they stand."""

    steps: Annotated[list[PlanStep], Meta(min_length=1, max_length=100)]


class Remember(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Remember something when old messages leave the context."""

    kind: Literal["fact", "decision", "milestone", "hypothesis"]
    text: str
    source: str = ""
    reason: str = ""


class Finish(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """End the task, or say what is missing; quote evidence from a tool result."""

    done: bool
    result: str
    missing: list[str] = []
    criteria: list[Claim] = []


OwnCall: TypeAlias = UpdatePlan | Remember | Finish

_OWN: dict[str, type[OwnCall]] = {PLAN: UpdatePlan, REMEMBER: Remember, FINISH: Finish}

OWN_NAMES = frozenset({*_OWN, *HISTORY})
"""Names that no tool of a caller may have."""


class ShownTools:
    """The tools of one request: those that are always there, and those that the state selects."""

    def __init__(self, always: ToolSelection, selected: ToolSelection) -> None:
        self.always = always
        self.selected = selected
        # What is always there comes first, so that a change of the others leaves most of a cached prefix alone.
        self.tools = (*always.tools, *selected.tools)

    def allows(self, name: str, arguments: Any) -> Refusal | None:
        """Return `None` when this call may be run, otherwise what to tell the model."""
        return self._of(name).allows(name, arguments)

    def arguments(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments to run a call with."""
        return self._of(name).arguments(name, given)

    def _of(self, name: str) -> ToolSelection:
        return self.always if name in self.always.names else self.selected


class Toolset:
    """Tools by name, projected by the state. Those of the engine and of the history are always shown."""

    def __init__(
        self,
        session: Session,
        tools: Iterable[AnyTool],
        *,
        rules: Iterable[Narrow] = (),
        mode: Mode = "remove",
        budget: int | None,
        categories: Mapping[str, Iterable[str]] | None = None,
        history: bool = True,
        own: bool = True,
        urgent: int = URGENT,
        implied: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        given = [as_tool(each) for each in tools]
        self.has_own = own
        self.unstated = [each.name for each in given if category_of(each.offer) == UNSTATED]
        """The tools that state no category."""
        for name in categories or ():
            known_phase(name, "setting 'categories'")
        always = [*(own_tools() if own else ()), *(_history_tools(session) if history else ())]
        names = {each.name for each in always}
        if taken := [each.name for each in given if each.name in names]:
            raise InputError(
                f"the engine has a tool {taken[0]!r} of its own",
                remedy="give yours another name, or switch off own_tools",
            )
        self._by_name = {each.name: each for each in (*always, *given)}
        # Neither the budget nor urgency concerns what the engine cannot do without.
        self._always = Projection(
            [each.offer for each in always], count=session.composer.step.count, budget=None, urgent=len(always) or 1
        )
        self._given = Projection(
            [each.offer for each in given],
            count=session.composer.step.count,
            phases=categories,
            budget=budget,
            urgent=urgent,
            rules=rules,
            implied=implied,
            mode=mode,
        )
        self._last: ShownTools | None = None

    def get(self, name: str) -> EngineTool | None:
        """Return a tool by its name."""
        return self._by_name.get(name)

    def evidence_category(self, name: str) -> str:
        """Return the category of a tool whose result is evidence; empty for the engine's own and for the history's."""
        tool = self._by_name.get(name)
        if tool is None or name in (SEARCH_TOOL, MESSAGE_TOOL) or is_own(tool):
            return ""
        return category_of(tool.offer)

    def project(self, state: State) -> ShownTools:
        """Return the tools for this state; the very same object while what decides does not change."""
        always, selected = self._always.project(state), self._given.project(state)
        last = self._last
        if last is None or last.always is not always or last.selected is not selected:
            last = self._last = ShownTools(always, selected)
        return last


def _history_tools(session: Session) -> list[EngineTool]:
    made = []
    for whole in session.tools.tools:
        if whole.name in HISTORY:
            description, names = HISTORY[whole.name]
            properties = {name: {"type": whole.schema["properties"][name]["type"]} for name in names}
            schema = {"type": "object", "properties": properties, "required": whole.schema["required"]}
            offer = ToolOffer(Tool(name=whole.name, description=description, schema=schema), "general")
            ask = partial(_ask_history, session, whole.name)
            made.append(EngineTool(offer=offer, function=ask, parallel=True, repeatable=True))
    return made


def _ask_history(session: Session, tool: str, /, **arguments: Any) -> Any:
    answer = session.tools.call(tool, arguments)
    if answer.is_error:
        raise ToolError(answer.text)
    return answer.content if answer.media else answer.text


def _short_schema(schema: Any, parts: Mapping[str, Any]) -> Any:
    """Return a schema with its parts in their places and without what a model does not need."""
    if isinstance(schema, list):
        return [_short_schema(each, parts) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _short_schema({**parts[schema["$ref"].rpartition("/")[2]], "description": None, "type": "object"}, parts)
    return {
        name: {key: _short_schema(each, parts) for key, each in value.items()}
        if name == "properties"
        else _short_schema(value, parts)
        for name, value in schema.items()
        if name not in LENGTHY and name != "$defs" and value is not None
    }


# The engine's own tools


def own_tools() -> list[EngineTool]:
    """Return the engine's own tools, which it answers itself: they change the state together with their result."""
    made = []
    for name, kind in _OWN.items():
        schema = schema_of(kind, name)
        definition = Tool(
            name=name,
            description=(kind.__doc__ or "").strip(),
            schema=_short_schema(schema, schema.get("$defs", {})),
        )
        offer = ToolOffer(definition, "general")
        made.append(EngineTool(offer=offer, function=_never, repeatable=True, arguments=kind))
    return made


def _never(**_: Any) -> None:
    raise AssertionError  # pragma: no cover - the engine answers these itself


def is_own(tool: EngineTool) -> bool:
    """Tell whether the engine answers this tool: without its own, those of others may have their names."""
    return tool.function is _never


def read_own_call(name: str, arguments: dict[str, Any]) -> OwnCall:
    """Read the arguments of a call of one of the engine's own tools."""
    return msgspec.convert(arguments, _OWN[name])


def changes_of(wanted: UpdatePlan | Remember, state: State, call: str, entry: int) -> tuple[list[Change], str]:
    """Return the changes of the state and the reply to the model; raise `InputError` when that cannot be.

    `entry` is the number of the message with the call: while that stands in a request, nothing is told again.
    """
    if isinstance(wanted, UpdatePlan):
        return _plan_changes(wanted, state, entry)
    path, element = _remembered(wanted, call)
    return [Put(path, msgspec.structs.replace(element, entry=entry))], "Remembered."


def _plan_changes(wanted: UpdatePlan, state: State, entry: int) -> tuple[list[Change], str]:
    steps = [
        Step(id=id, description=step.description, status=step.status, dependencies=step.dependencies, entry=entry)
        for id, step in zip(_step_ids(wanted.steps), wanted.steps, strict=True)
    ]
    current = next((step.id for step in steps if step.status == "in_progress"), "")
    dropped = [Drop("work.plan.steps", step.key) for step in state.work.plan.steps]
    done = sum(step.status == "completed" for step in steps)
    put = [Put("work.plan.steps", step) for step in steps]
    reply = f"The plan has {len(steps)} steps, {done} of them done."
    return [*dropped, *put, Set("work.plan.current", current)], reply


def _step_ids(steps: Sequence[PlanStep]) -> list[str]:
    """Return an id for each step: its own, or its number, which no other may have."""
    given = [step.id for step in steps if step.id]
    if twice := [id for place, id in enumerate(given) if id in given[:place]]:
        raise InputError(f"two steps have the id {twice[0]!r}", remedy="give each its own, or none")
    ids: list[str] = []
    for place, step in enumerate(steps, start=1):
        numbers = (str(place), *(f"{place}.{more}" for more in range(2, len(steps) + 2)))
        ids.append(step.id or next(number for number in numbers if number not in (*given, *ids)))
    return ids


def _remembered(wanted: Remember, call: str) -> tuple[str, Element]:
    match wanted.kind:
        case "fact":
            source = wanted.source or f"the agent, call {call}"
            fact = Fact(content=wanted.text, source=source, confidence=0.8, relevance=1.0)
            return "memory.semantic.facts", fact
        case "decision":
            decision = Decision(description=wanted.text, rationale=wanted.reason, relevance=1.0)
            return "memory.episodic.decisions", decision
        case "milestone":
            return "memory.episodic.milestones", Milestone(event=wanted.text)
        case "hypothesis":
            return "work.hypotheses", Hypothesis(description=wanted.text)
