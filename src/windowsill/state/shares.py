"""Share out a window among the layers of the state, in whole points: no share is off by a rounding of floats."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias, get_args

import msgspec

from windowsill.errors import SettingError
from windowsill.models.catalog import SizeClass
from windowsill.state.layers import PHASES, Phase

Points: TypeAlias = Mapping[str, int]
"""Points by name. What they add up to is the whole."""

SIZES: tuple[SizeClass, ...] = get_args(SizeClass)

SHARED = 90
"""Percent of a window that are shared out; the rest stays free for what nobody counted."""

BASE: Points = {"system": 5, "task": 5, "runtime": 3, "memory": 52, "evidence": 25, "work": 10}

BY_PHASE: Mapping[str, Points] = {
    # A plan draws on what is known and found, and nothing is being made yet.
    "planning": {"memory": 10, "evidence": 10, "work": -20},
    # Whoever works needs room for what is in the making.
    "executing": {"memory": -10, "evidence": -5, "work": 15},
    # Looking back takes the past, and what speaks for and against.
    "reflecting": {"memory": 15, "evidence": 5, "work": -20},
}

BY_SIZE: Mapping[str, Points] = {
    "large": {"evidence": 5, "memory": 5},
    "small": {"evidence": -10, "memory": -5, "work": 15},
}

MEMORY_WEIGHTS: Points = {"short_term": 15, "episodic": 10, "semantic": 8, "procedural": 12}
"""Tenths: what is going on now and what guides the hand before what could be looked up."""

EVIDENCE_WEIGHTS: Points = {"observations": 25, "retrieval": 10}

IMPORTANCE: Points = {"system": 100, "task": 100, "runtime": 80, "evidence": 80, "memory": 50, "work": 50}
"""The order in which layers get what others leave, and lose last: 100 is critical, 80 high, 50 medium, 20 low, 5
minimal."""


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


class ShareSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Shares a budget out among the layers, in points. What is not stated stays as it is."""

    base: dict[str, int] = {}
    """Points of each layer,"""
    by_phase: dict[str, dict[str, int]] = {}
    """added to in a phase,"""
    by_size: dict[str, dict[str, int]] = {}
    """and for large and small models."""
    memory: dict[str, int] = {}
    """Weights of the kinds of memory,"""
    evidence: dict[str, int] = {}
    """and of evidence."""
    importance: dict[str, int] = {}
    """The order of the layers in getting what others leave."""
    shared: int = SHARED
    """Percent of the budget that are shared out."""

    def __post_init__(self) -> None:
        for name, default in (
            ("base", BASE),
            ("memory", MEMORY_WEIGHTS),
            ("evidence", EVIDENCE_WEIGHTS),
            ("importance", IMPORTANCE),
            ("by_phase", BY_PHASE),
            ("by_size", BY_SIZE),
        ):
            stated = getattr(self, name)
            known = {"by_phase": PHASES, "by_size": SIZES}.get(name, tuple(default))
            if set(stated) - set(known):
                raise SettingError(f"shares.{name}", stated, f"numbers for {', '.join(known)}")
            msgspec.structs.force_setattr(self, name, {**default, **stated})
        for name in ("by_phase", "by_size"):
            if strange := [points for points in getattr(self, name).values() if set(points) - set(BASE)]:
                raise SettingError(name, strange[0], f"points for {', '.join(BASE)}")
        if not 0 < self.shared <= 100:  # noqa: PLR2004 - a hundred percent is the whole
            raise SettingError("shared", self.shared, "a percentage above 0 and up to 100")
        if min(self.base.values()) < 0 or not sum(self.base.values()):
            raise SettingError("base", self.base, f"points of 0 or more, some above 0, for {', '.join(BASE)}")
        for name in ("memory", "evidence"):
            if min(getattr(self, name).values()) < 0:
                raise SettingError(f"shares.{name}", getattr(self, name), "weights of 0 or more")

    def allocate(self, window: int, *, phase: Phase, size: SizeClass = "balanced") -> Shares:
        """Share out a window of so many tokens among the layers, as the phase and the size of the model ask for.

        An adjustment takes at most what a layer has; afterwards the points are brought back to one whole.
        """
        if window < 1:
            raise SettingError("window", window, "at least one token")
        points = dict(self.base)
        for adjustment in (self.by_phase.get(phase, {}), self.by_size.get(size, {})):
            for name, change in adjustment.items():
                points[name] = max(0, points[name] + change)
        room = window * self.shared // 100
        tokens = split(room, points, points)
        return Shares(**tokens, reserve=room - sum(tokens.values()), free=window - room)

    def weights(self, layer: str) -> Points:
        """Return the weights of the kinds of a layer; one kind without a name where it has none."""
        return {"memory": self.memory, "evidence": self.evidence}.get(layer, {"": 1})


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
