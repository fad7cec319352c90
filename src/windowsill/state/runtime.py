"""L2: where the work stands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, cast, get_args

import msgspec

from windowsill.errors import InputError
from windowsill.state.element import Count, Element, Part, Seconds, Share, demand

Phase: TypeAlias = Literal["initializing", "planning", "executing", "reflecting", "verifying", "completed", "failed"]
Permission: TypeAlias = Literal["read", "write", "execute", "delete", "admin", "deploy"]
Environment: TypeAlias = Literal["dev", "staging", "prod", "production"]
"""`prod` and `production` are one; a state says `prod`."""

PHASES: tuple[Phase, ...] = get_args(Phase)
PERMISSIONS: tuple[Permission, ...] = get_args(Permission)

NEXT: dict[Phase, frozenset[Phase]] = {
    "initializing": frozenset({"planning", "executing", "failed"}),
    "planning": frozenset({"executing", "failed"}),
    "executing": frozenset({"planning", "reflecting", "verifying", "completed", "failed"}),
    "reflecting": frozenset({"planning", "executing", "verifying", "completed", "failed"}),
    "verifying": frozenset({"planning", "executing", "reflecting", "completed", "failed"}),
    "completed": frozenset({"initializing", "planning", "executing"}),
    "failed": frozenset({"initializing", "planning", "executing"}),
}
"""Where each phase may lead. Nothing is completed that was never worked on; what has ended may be taken up again."""


def check_jump(before: Phase, after: Phase) -> None:
    """`InputError` for a change of phase that makes no sense. Staying where one is always does."""
    if before != after and after not in NEXT[before]:
        raise InputError(
            f"a task cannot go from {before} to {after}",
            remedy=f"from {before} it may go to {', '.join(phase for phase in PHASES if phase in NEXT[before])}",
        )


class ToolRun(Element, frozen=True, kw_only=True):
    """A call of a tool: begun, and how it ended. The whole output is in the history."""

    tool: str
    input: Any = None
    output: Any = None
    duration: Seconds = 0.0
    success: bool | None = None
    """`None` while it runs, and for one that was interrupted."""


class Decision(Element, frozen=True, kw_only=True):
    """What was decided, why, and instead of what."""

    description: str
    rationale: str = ""
    alternatives: tuple[str, ...] = ()
    relevance: Share | None = None
    """To the task; found out where it is not stated."""

    def __post_init__(self) -> None:
        demand(bool(self.description.strip()), f"decision {self.id!r} says nothing", "describe what was decided")


class Trouble(Element, frozen=True, kw_only=True):
    """An error or a warning."""

    message: str


class Failure(Element, frozen=True, kw_only=True):
    """A tool that failed, and how often it was tried again."""

    tool: str
    error: str
    retries: Count = 0


class Execution(Part, frozen=True, kw_only=True):
    """What was done, the latest of each kind."""

    tool_calls: tuple[ToolRun, ...] = ()
    decisions: tuple[Decision, ...] = ()
    errors: tuple[Trouble, ...] = ()
    warnings: tuple[Trouble, ...] = ()


class Resources(Part, frozen=True, kw_only=True):
    """What the task has used so far. `input` excludes what a provider's cache gave."""

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


ENVIRONMENTS: tuple[Environment, ...] = ("dev", "staging", "prod")
"""`production` is accepted and becomes `prod`."""


def known_phase(given: str, where: str) -> Phase:
    """Return a phase that exists; `InputError` names `where` another was given."""
    return cast("Phase", _known(given, PHASES, "phase", where))


def known_environment(given: str, where: str) -> Environment:
    """Return an environment that exists, `production` as `prod`."""
    return cast("Environment", _known("prod" if given == "production" else given, ENVIRONMENTS, "environment", where))


def known_environments(given: Iterable[str], where: str) -> tuple[Environment, ...]:
    """Return environments that exist, each once."""
    return tuple(dict.fromkeys(known_environment(each, where) for each in listed(given, where)))


def known_permissions(given: Iterable[str], where: str) -> tuple[Permission, ...]:
    """Return permissions that exist, as they were given."""
    found = (_known(each, PERMISSIONS, "permission", where) for each in listed(given, where))
    return cast("tuple[Permission, ...]", tuple(found))


def listed(given: Iterable[str], where: str) -> tuple[str, ...]:
    """Return several words; one bare word is a mistake that would be read letter by letter."""
    if isinstance(given, str):
        raise InputError(f"{where} is the text {given!r}", remedy=f"give a list: ({given!r},)")
    return tuple(given)


def _known(given: str, known: tuple[str, ...], kind: str, where: str) -> str:
    if given not in known:
        raise InputError(f"{where}: there is no {kind} {given!r}", remedy=f"use {', '.join(known)}")
    return given
