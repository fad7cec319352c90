"""Share out a window among the layers of the state, in whole points: no share is off by a rounding of floats."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import TypeAlias

import msgspec

from windowsill.errors import SettingError
from windowsill.models.catalog import SizeClass
from windowsill.state.layers import Phase

Points: TypeAlias = Mapping[str, int]
"""Points by name. What they add up to is the whole."""

SHARED = 90
"""Percent of a window that are shared out; the rest stays free for what nobody counted."""

BASE: Points = MappingProxyType({"system": 5, "task": 5, "runtime": 3, "memory": 52, "evidence": 25, "work": 10})

BY_PHASE: Mapping[Phase, Points] = MappingProxyType(
    {
        # A plan draws on what is known and found, and nothing is being made yet.
        "planning": MappingProxyType({"memory": 10, "evidence": 10, "work": -20}),
        # Whoever works needs room for what is in the making.
        "executing": MappingProxyType({"memory": -10, "evidence": -5, "work": 15}),
        # Looking back takes the past, and what speaks for and against.
        "reflecting": MappingProxyType({"memory": 15, "evidence": 5, "work": -20}),
    }
)

BY_SIZE: Mapping[SizeClass, Points] = MappingProxyType(
    {
        "large": MappingProxyType({"evidence": 5, "memory": 5}),
        "small": MappingProxyType({"evidence": -10, "memory": -5, "work": 15}),
    }
)

MEMORY_WEIGHTS: Points = MappingProxyType({"short_term": 15, "episodic": 10, "semantic": 8, "procedural": 12})
"""Tenths: what is going on now and what guides the hand before what could be looked up."""

EVIDENCE_WEIGHTS: Points = MappingProxyType({"observations": 25, "retrieval": 10})


class Shares(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of each layer. All of them together are the window."""

    system: int
    task: int
    runtime: int
    memory: int
    evidence: int
    work: int
    reserve: int
    """Tokens that rounding down left over."""
    free: int
    """Tokens that were not shared out."""

    @property
    def layers(self) -> dict[str, int]:
        """Tokens by layer, without the reserve and the free part."""
        return {name: getattr(self, name) for name in BASE}


def allocate(
    window: int,
    *,
    phase: Phase,
    size: SizeClass = "balanced",
    base: Points = BASE,
    by_phase: Mapping[Phase, Points] = BY_PHASE,
    by_size: Mapping[SizeClass, Points] = BY_SIZE,
    shared: int = SHARED,
) -> Shares:
    """Share out a window of so many tokens among the layers, as the phase and the size of the model ask for.

    An adjustment takes at most what a layer has; afterwards the points are brought back to one whole.
    """
    if window < 1:
        raise SettingError("window", window, "at least one token")
    if not 0 < shared <= 100:  # noqa: PLR2004 - a hundred percent is the whole
        raise SettingError("shared", shared, "a percentage above 0 and up to 100")
    points = _checked(base)
    for setting, adjustment in (("by_phase", by_phase.get(phase, {})), ("by_size", by_size.get(size, {}))):
        if set(adjustment) - set(points):
            raise SettingError(setting, dict(adjustment), f"points for {', '.join(points)}")
        for name, change in adjustment.items():
            points[name] = max(0, points[name] + change)
    room = window * shared // 100
    tokens = split(room, points, points)
    return Shares(**tokens, reserve=room - sum(tokens.values()), free=window - room)


def _checked(base: Points) -> dict[str, int]:
    points = {name: base.get(name, 0) for name in BASE}
    if set(base) - set(BASE) or min(points.values()) < 0 or not sum(points.values()):
        raise SettingError("base", dict(base), f"points of 0 or more, some above 0, for {', '.join(BASE)}")
    return points


def split(tokens: int, weights: Points, held: Collection[str]) -> dict[str, int]:
    """Split tokens by weight, rounded down; what is not held gets nothing."""
    whole = sum(weight for name, weight in weights.items() if name in held)
    return {name: tokens * weight // whole if name in held and whole else 0 for name, weight in weights.items()}


def pass_on(shares: Mapping[str, int], needs: Mapping[str, int], importance: Mapping[str, int]) -> dict[str, int]:
    """Grant each its share or what it needs of it, and then what others leave, most important first.

    Of two that are as important as each other the earlier in `shares` comes first.
    """
    granted = {name: min(share, needs.get(name, 0)) for name, share in shares.items()}
    spare = sum(shares.values()) - sum(granted.values())
    for name in sorted(shares, key=lambda name: -importance.get(name, 0)):
        more = min(spare, needs.get(name, 0) - granted[name])
        granted[name] += more
        spare -= more
    return granted
