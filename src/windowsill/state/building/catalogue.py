"""Everything that is shown of a state, in the order in which it is shown: the most lasting first."""

from __future__ import annotations

from windowsill.state.building.current import CURRENT
from windowsill.state.building.kinds import Kind, Single
from windowsill.state.building.lasting import LASTING
from windowsill.state.building.remembered import REMEMBERED
from windowsill.state.shares import EVIDENCE_WEIGHTS, MEMORY_WEIGHTS, Points

CATALOGUE: tuple[Kind | Single, ...] = (*LASTING, *REMEMBERED, *CURRENT)
"""In each part of the frame single values come before lists: a heading has no end but the next heading."""

PLACES = {each.path: place for place, each in enumerate(CATALOGUE)}

LAYER_OF_TAG = {each.tags[0]: each.layer for each in CATALOGUE}

CRITICAL, HIGH, MEDIUM, LOW, MINIMAL = 100, 80, 50, 20, 5

IMPORTANCE = {
    "system": CRITICAL,
    "task": CRITICAL,
    "runtime": HIGH,
    "memory": MEDIUM,
    "evidence": HIGH,
    "work": MEDIUM,
}
"""Who gets what others leave first, and loses last."""

WHOLE = ("system", "task")
"""Layers that are shown whole or not at all."""

GROUPS: dict[str, Points] = {"memory": MEMORY_WEIGHTS, "evidence": EVIDENCE_WEIGHTS}
"""Layers whose budget is shared out further."""
