"""Categories of tools, and the phases that show them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from windowsill.state.projection import known
from windowsill.state.projection.offered import Offered
from windowsill.state.runtime import PHASES, Phase

GENERAL = "general"
"""A tool of which nothing tells what it does; every phase shows it."""

_PLANNING = ("search", "analyze", "estimate", "read")

SHOWN: Mapping[Phase, tuple[str, ...]] = MappingProxyType(
    {
        "initializing": _PLANNING,  # nothing is decided yet: one may look around, and change nothing
        "planning": _PLANNING,
        "executing": ("read", "write", "modify", "delete", "execute", "test", "deploy"),
        "reflecting": ("evaluate", "test", "compare", "measure"),
        "verifying": ("verify", "audit", "approve"),
        "completed": (),  # there is nothing left to do, so only general tools stay
        "failed": (),
    }
)
"""What each phase shows besides `general`."""

KNOWN = frozenset(category for shown in SHOWN.values() for category in shown) | {GENERAL}

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+|\d+")


def first_word(name: str) -> str:
    """The first word of a camel, snake or kebab name, in small letters: `readFile` and `READ_FILE` give `read`."""
    found = _WORD.search(name)
    return found[0].lower() if found else name


def shown_by(phases: Mapping[str, Iterable[str]]) -> dict[Phase, frozenset[str]]:
    """What each phase shows: `phases` for those it names, the default for the others."""
    stated = {
        known.phase(name, "setting 'phases'"): known.listed(categories, f"setting 'phases', {name}")
        for name, categories in phases.items()
    }
    return {phase: frozenset((*stated.get(phase, SHOWN[phase]), GENERAL)) for phase in PHASES}


def category_of(offered: Offered, categories: Collection[str] = KNOWN) -> str:
    """The category of a tool: as stated, by the first word of that, or by the first word of its name."""
    for name in filter(
        None, (offered.category, first_word(offered.category), first_word(offered.category or offered.name))
    ):
        if name in categories:
            return name
    return offered.category or GENERAL
