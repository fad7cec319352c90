"""Decide which tools a model gets, record why the others are hidden, and let calls through."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from windowsill.errors import InputError, SettingError
from windowsill.messages import Tool
from windowsill.models import Prices
from windowsill.state.layers import (
    ENVIRONMENTS,
    PERMISSIONS,
    PHASES,
    Environment,
    Permission,
    Phase,
    State,
    check_list,
    known_environment,
    known_environments,
    known_permissions,
    known_phase,
)
from windowsill.state.tools.argument_checks import Refusal, list_names
from windowsill.state.tools.restrictions import Narrow, NarrowedTool

BUDGET = 2_000
"""Tokens of definitions in a request."""

URGENT = 5
"""Tools of an urgent task: fewer to choose from is faster."""

LITTLE_LEFT = 0.1
"""A task with less than this share of its time left is urgent, whatever its priority."""

MOST_KEPT = 64
"""The most results kept: a session goes back and forth between a few states."""

PRIORITY = 50
"""The priority of a tool that states none: the middle of 0 to 100."""

GENERAL = "general"
"""The category of a tool that fits no other; every phase shows it."""

UNSTATED = "uncategorised"
"""The category of a tool that states none. It may change things, whatever its name: only `executing` shows it, and
somebody is asked before it runs."""

_PLANNING = ("search", "analyze", "estimate", "read")

SHOWN: Mapping[Phase, tuple[str, ...]] = {
    "initializing": _PLANNING,  # nothing is decided yet: one may look around, and change nothing
    "planning": _PLANNING,
    "executing": ("read", "write", "modify", "delete", "execute", "test", "deploy", UNSTATED),
    "reflecting": ("evaluate", "test", "compare", "measure"),
    "verifying": ("verify", "audit", "approve", "read", "search", "test"),
    "completed": (),  # there is nothing left to do, so only general tools stay
    "failed": (),
}
"""The categories that each phase shows besides `general`."""

KNOWN = frozenset(category for shown in SHOWN.values() for category in shown) | {GENERAL}

Mode: TypeAlias = Literal["remove", "mask"]
Rule: TypeAlias = Literal["phase", "permission", "environment", "urgent", "budget"]

REMEDIES: dict[str, str] = {
    "phase": "go on with the tools of this phase",
    "permission": "do without it, or ask the user to grant the permission",
    "environment": "do without it here",
    "urgent": "the task is urgent: use one of the tools that are shown",
    "budget": "use one of the tools that are shown",
}

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+|\d+")


class ToolOffer(msgspec.Struct, frozen=True):
    """A tool with what decides whether a model sees it."""

    tool: Tool
    category: str = ""
    """`read`, `write`, `readFile`, ...; a tool without one counts as one that changes things."""
    permissions: tuple[Permission, ...] = ()
    """All of them must be held."""
    environments: tuple[Environment, ...] | None = None
    """`None` is every environment."""
    priority: int = PRIORITY
    """The higher, the sooner it gets room."""
    paths: tuple[str, ...] = ()
    """Parameters that name files or folders,"""
    urls: tuple[str, ...] = ()
    """addresses or hosts,"""
    commands: tuple[str, ...] = ()
    """or hold shell commands. Where any are declared, policies look at these and at no others."""

    def __post_init__(self) -> None:
        where = f"tool {self.tool.name!r}"
        force = msgspec.structs.force_setattr
        force(self, "permissions", known_permissions(self.permissions, f"{where}, permissions"))
        if self.environments is not None:
            force(self, "environments", known_environments(self.environments, f"{where}, environments"))
        known = self.tool.schema.get("properties")
        for kind in ("paths", "urls", "commands"):
            declared = check_list(getattr(self, kind), f"{where}, {kind}")
            force(self, kind, declared)
            if unknown := [name for name in declared if isinstance(known, dict) and name not in known]:
                raise InputError(
                    f"{where}, {kind}: it has no parameter {unknown[0]!r}",
                    remedy=f"it has {list_names(known or (), none='no parameters')}",
                )

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.tool.name


def first_word(name: str) -> str:
    """Return the first word of a camel, snake or kebab name: `readFile` and `READ_FILE` give `read`."""
    found = _WORD.search(name)
    return found[0].lower() if found else name


def category_of(offer: ToolOffer, categories: Collection[str] = KNOWN) -> str:
    """Return the category of a tool: as stated, or by the first word of that. A name says nothing about safety."""
    stated = offer.category
    return next((name for name in (stated, first_word(stated)) if name in categories), stated or UNSTATED)


class HiddenTool(msgspec.Struct, frozen=True, gc=False):
    """A tool that may not be called, the first rule that kept it out, and why."""

    name: str
    rule: Rule
    why: str


class ToolDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The decision as a plain value, to be recorded."""

    phase: Phase
    environment: Environment
    permissions: tuple[Permission, ...]
    urgent: bool
    mode: Mode
    names: tuple[str, ...]
    """Tools that may be called, in the given order."""
    hidden: tuple[HiddenTool, ...]
    narrowed: tuple[str, ...]
    """Those whose schema a rule changed."""
    tokens: int


class ToolChange(msgspec.Struct, frozen=True, kw_only=True):
    """The price of another set of tools, against masking: all definitions stay, and calls are refused.

    Definitions stand before the system prompt and the messages, so a cache that held the request is of no use once
    one of them changed. Dollars are only relative where `known` is false.
    """

    changed: bool
    """True when the definitions of the request are others than before."""
    written: int = 0
    """Tokens that have to be written to the cache again: the new definitions and all that stood behind the old ones."""
    cost: float = 0.0
    """Dollars for writing them."""
    extra: float = 0.0
    """The part of these dollars that the same tools as before would have saved."""
    masking: int = 0
    """Tokens of definitions that masking sends, or would send, though nobody may call them."""
    masking_cost: float = 0.0
    """Dollars for reading these from the cache, each turn."""
    known: bool = True

    @property
    def turns(self) -> float:
        """Turns after which removing has paid for itself; infinite when it never does."""
        if not self.changed or self.extra <= 0:
            return 0.0
        return self.extra / self.masking_cost if self.masking_cost else math.inf


class ToolSelection:
    """The tools of a request. In mode `mask` they are all there, and `allows` refuses those that are hidden."""

    def __init__(
        self, decision: ToolDecision, *, tools: tuple[Tool, ...], by_name: Mapping[str, NarrowedTool], masking: int
    ) -> None:
        self.decision = decision
        self.tools = tools
        """The definitions to send, in the given order."""
        self.names = decision.names
        """The tools that may be called."""
        self.hidden = decision.hidden
        self.tokens = decision.tokens
        """The tokens of the definitions that are sent."""
        self._by_name = by_name
        self._masking = masking

    def allows(self, name: str, arguments: Any) -> Refusal | None:
        """Return the reason not to run this call, in words for the model; `None` when it may be run."""
        if name not in self._by_name:
            remedy = f"the tools are {list_names(self.names, none='none at present')}"
            return Refusal(tool=name, rule="unknown", why="there is no such tool", remedy=remedy)
        hidden = next((each for each in self.hidden if each.name == name), None)
        if hidden is not None:
            return Refusal(tool=name, rule=hidden.rule, why=hidden.why, remedy=REMEDIES[hidden.rule])
        return self._by_name[name].refuse(arguments)

    def arguments(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments to run a call with: as given, and every fixed value in its place."""
        if name not in self._by_name:
            raise InputError(f"there is no tool {name!r}", remedy="ask `allows` before running a call")
        return self._by_name[name].fill(given)

    def change(self, before: ToolSelection | None, *, cached_tokens: int, prices: Prices) -> ToolChange:
        """Price sending these tools after those of `before`, with so many tokens in the provider's cache.

        `cached_tokens` is what the cache holds of the last request, its tool definitions included.
        """
        changed = before is not None and before.tools != self.tools
        behind = max(0, cached_tokens - (0 if before is None else before.tokens))
        written = self.tokens + behind if changed and cached_tokens else 0
        cost = written * prices.cache_write
        return ToolChange(
            changed=changed,
            written=written,
            cost=cost,
            extra=cost - cached_tokens * prices.cache_read if written else 0.0,
            masking=self._masking,
            masking_cost=self._masking * prices.cache_read,
            known=prices.known,
        )


_Group: TypeAlias = tuple[str, tuple[Permission, ...], tuple[Environment, ...] | None]


class Projection:
    """Tools and the rules by which a state shows them.

    What does not depend on a state (tokens, categories, narrowed schemas) is found out here, once for each tool.
    """

    def __init__(
        self,
        tools: Iterable[ToolOffer | Tool],
        *,
        count: Callable[[str], int],
        phases: Mapping[str, Iterable[str]] | None = None,
        budget: int | None = BUDGET,
        urgent: int = URGENT,
        rules: Iterable[Narrow] = (),
        implied: Mapping[str, Iterable[str]] | None = None,
        mode: Mode = "remove",
    ) -> None:
        """Read the settings and count the definitions.

        `phases` maps phases to the categories they show, in place of the default for that phase; `general` is always
        shown. `implied` maps a permission to others it brings with it: none does by default, `admin` included.
        `budget` limits the tokens of all definitions, as `count` counts their JSON; `None` is no limit.
        """
        if budget is not None and budget < 0:
            raise SettingError("budget", budget, "0 tokens or more, or None for no limit")
        if urgent < 1:
            raise SettingError("urgent", urgent, "1 tool or more")
        if mode not in get_args(Mode):
            raise SettingError("mode", mode, "remove or mask")
        self.mode: Mode = mode
        self._budget, self._urgent = budget, urgent
        self._shown = _categories_by_phase(phases or {})
        where = "setting 'implied'"
        self._implied = {
            name: known_permissions(brought, f"{where}, {name}")
            for name, brought in zip(known_permissions(implied or {}, where), (implied or {}).values(), strict=True)
        }
        offers = [each if isinstance(each, ToolOffer) else ToolOffer(each) for each in tools]
        names = [each.name for each in offers]
        if twice := [name for name, times in Counter(names).items() if times > 1]:
            raise InputError(f"the tool {twice[0]!r} is offered twice", remedy="offer each tool once, under its name")
        rules = tuple(rules)
        if unknown := [rule.tool for rule in rules if rule.tool not in names]:
            raise InputError(
                f"a rule narrows {unknown[0]!r}, which is not offered", remedy=f"offered are {list_names(names)}"
            )
        plain = {each.name: NarrowedTool(each.tool, count) for each in offers}
        self._definitions = {each: {**plain, **_narrow(plain, rules, each, count)} for each in ENVIRONMENTS}
        categories = frozenset().union(KNOWN, *self._shown.values())
        for each in offers:
            if category_of(each, categories) not in categories:
                raise InputError(
                    f"the tool {each.name!r} has the category {each.category!r}, which no phase shows",
                    remedy=f"use {list_names(sorted(KNOWN - {UNSTATED}))}, or name it in categories= for a phase",
                )
        # Tools that differ in none of these are hidden together, for one reason.
        self._group_of: dict[str, _Group] = {
            each.name: (category_of(each, categories), each.permissions, each.environments) for each in offers
        }
        self._ranked = [each.name for each in sorted(offers, key=lambda each: -each.priority)]
        self._kept: dict[object, ToolSelection] = {}

    def project(self, state: State) -> ToolSelection:
        """Choose the tools for this state; the very same result while what decides does not change."""
        runtime = state.runtime
        urgent = _is_urgent(state)
        key = (runtime.phase, runtime.environment, tuple(runtime.permissions), urgent)
        if key not in self._kept:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[key] = self._decide(
                known_phase(runtime.phase, "the state"),
                known_environment(runtime.environment, "the state"),
                known_permissions(runtime.permissions, "the state"),
                urgent=urgent,
            )
        return self._kept[key]

    def _decide(
        self, phase: Phase, environment: Environment, permissions: tuple[Permission, ...], *, urgent: bool
    ) -> ToolSelection:
        definitions = self._definitions[environment]
        hidden = self._hide(phase, environment, self._held(permissions))
        self._make_room(definitions, hidden, urgent=urgent)
        callable = [each for name, each in definitions.items() if name not in hidden]
        tokens, total = (sum(each.tokens for each in found) for found in (callable, definitions.values()))
        masked = self.mode == "mask"
        decision = ToolDecision(
            phase=phase,
            environment=environment,
            permissions=tuple(each for each in PERMISSIONS if each in permissions),
            urgent=urgent,
            mode=self.mode,
            names=tuple(each.name for each in callable),
            hidden=tuple(hidden[name] for name in self._group_of if name in hidden),
            narrowed=tuple(each.name for each in callable if each.is_narrowed),
            tokens=total if masked else tokens,
        )
        tools = tuple(each.tool for each in (definitions.values() if masked else callable))
        return ToolSelection(decision, tools=tools, by_name=definitions, masking=total - tokens)

    def _held(self, given: Iterable[Permission]) -> frozenset[Permission]:
        """Return these permissions and all that they bring with them."""
        held = set(given)
        while more := {brought for each in held for brought in self._implied.get(each, ())} - held:
            held |= more
        return frozenset(held)

    def _hide(self, phase: Phase, environment: Environment, held: Collection[Permission]) -> dict[str, HiddenTool]:
        """Hide tools by phase, then permission, then environment."""
        groups = set(self._group_of.values())
        reasons = {group: self._reason(group, phase, environment, held) for group in groups}
        return {
            name: HiddenTool(name, *reason)
            for name, group in self._group_of.items()
            if (reason := reasons[group]) is not None
        }

    def _reason(
        self, group: _Group, phase: Phase, environment: Environment, held: Collection[Permission]
    ) -> tuple[Rule, str] | None:
        """Return the first rule that hides these tools, and its reason."""
        category, permissions, environments = group
        if category not in self._shown[phase]:
            where = ", ".join(each for each in PHASES if category in self._shown[each]) or "no phase"
            return "phase", f"tools of the category {category} are for {where}, and the task is {phase}"
        if missing := [each for each in permissions if each not in held]:
            return "permission", f"it needs the permission {', '.join(missing)}, which this task does not have"
        if environments is not None and environment not in environments:
            where = ", ".join(environments) or "no environment"
            return "environment", f"it is for {where}, and this is {environment}"
        return None

    def _make_room(self, tools: Mapping[str, NarrowedTool], hidden: dict[str, HiddenTool], *, urgent: bool) -> None:
        """Hide what does not fit, the highest priority first; a smaller tool further down may still fit.

        A masked definition is sent all the same, so the budget hides nothing then: it would save nothing.
        """
        budget = None if self.mode == "mask" else self._budget
        left = math.inf if budget is None else budget
        most = self._urgent if urgent else len(self._ranked)
        full = f"the task is urgent, and the {most} tools of highest priority are shown"
        short = ""  # the same text for all that find the same room
        for name in self._ranked:
            if name in hidden:
                continue
            if most == 0:
                hidden[name] = HiddenTool(name, "urgent", full)
            elif tools[name].tokens > left:
                short = short or f"its definition needs more than the {left} tokens left of {budget}"
                hidden[name] = HiddenTool(name, "budget", short)
            else:
                left, most, short = left - tools[name].tokens, most - 1, ""


def _narrow(
    tools: Mapping[str, NarrowedTool], rules: Iterable[Narrow], environment: Environment, count: Callable[[str], int]
) -> dict[str, NarrowedTool]:
    """Return the tools that the rules of an environment narrow."""
    here = [rule for rule in rules if environment in rule.environments]
    return {
        name: NarrowedTool(tools[name].tool, count, [rule for rule in here if rule.tool == name], environment)
        for name in dict.fromkeys(rule.tool for rule in here)
    }


def _categories_by_phase(phases: Mapping[str, Iterable[str]]) -> dict[Phase, frozenset[str]]:
    """Return what each phase shows: `phases` for those it names, the default for the others."""
    stated = {
        known_phase(name, "setting 'phases'"): check_list(categories, f"setting 'phases', {name}")
        for name, categories in phases.items()
    }
    return {phase: frozenset((*stated.get(phase, SHOWN[phase]), GENERAL)) for phase in PHASES}


def _is_urgent(state: State) -> bool:
    """Tell whether the task is of high priority, or its own time limit is nearly reached."""
    limit = state.task.limits.max_seconds
    if state.task.about.priority in ("high", "critical"):
        return True
    return limit is not None and limit - state.runtime.resources.seconds < LITTLE_LEFT * limit
