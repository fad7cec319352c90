"""Tools that share their category, permissions and environments share their fate."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from windowsill.state.projection.projected import Rule
from windowsill.state.runtime import PHASES, Environment, Permission, Phase

Fate: TypeAlias = tuple[Rule, str] | None
"""The rule that hides a tool, and why; `None` when none does."""


class Group(NamedTuple):
    """What is decided alike."""

    category: str
    permissions: tuple[Permission, ...]
    environments: tuple[Environment, ...] | None


def phases_of(categories: Iterable[str], shown: Mapping[Phase, Collection[str]]) -> dict[str, tuple[Phase, ...]]:
    """The phases that show each category."""
    return {category: tuple(phase for phase in PHASES if category in shown[phase]) for category in set(categories)}


def fate_of(
    group: Group,
    phase: Phase,
    environment: Environment,
    held: Collection[Permission],
    phases: Mapping[str, tuple[Phase, ...]],
) -> Fate:
    """The first rule that hides these tools: phase, then permission, then environment."""
    if phase not in (fitting := phases[group.category]):
        where = ", ".join(fitting) or "no phase"
        return "phase", f"tools of the category {group.category} are for {where}, and the task is {phase}"
    if missing := [each for each in group.permissions if each not in held]:
        return "permission", f"it needs the permission {', '.join(missing)}, which this task does not have"
    if group.environments is not None and environment not in group.environments:
        return (
            "environment",
            f"it is for {', '.join(group.environments) or 'no environment'}, and this is {environment}",
        )
    return None


def held_by(given: Iterable[Permission], implied: Mapping[Permission, Iterable[Permission]]) -> frozenset[Permission]:
    """These permissions and all that they bring with them."""
    held: set[Permission] = set()
    waiting = list(given)
    while waiting:
        each = waiting.pop()
        if each not in held:
            held.add(each)
            waiting.extend(implied.get(each, ()))
    return frozenset(held)
