"""Gathers from a state what may be shown."""

from __future__ import annotations

from collections.abc import Collection as Names
from typing import NamedTuple

from windowsill.state.building.aim import Aim
from windowsill.state.building.catalogue import CATALOGUE, PLACES
from windowsill.state.building.collection import Collection
from windowsill.state.building.fitting import Candidate
from windowsill.state.building.frame import Drawn
from windowsill.state.building.kinds import Kind, Single
from windowsill.state.building.pen import Pen
from windowsill.state.building.picks import Picks
from windowsill.state.state import State

NAMELESS = "="
"""Stands between a path and a digest that serves as a key: where a key stands, any sign may be its first."""

FIRST, NEXT = -1, 0
"""Places in the order of importance: before all elements of a layer, and beside the best of each kind."""


class Gathered(NamedTuple):
    """What was chosen, in the order of the text, and how much was passed over."""

    candidates: list[Candidate]
    filtered: dict[str, int]
    weight: int
    """Tokens of everything there is, chosen or not."""


class Gathering:
    """Remembers what it found out about every element that is still there."""

    def __init__(self, pen: Pen, picks: Picks) -> None:
        self._pen = pen
        self._lists = {kind.path: Collection(kind, picks, pen) for kind in CATALOGUE if isinstance(kind, Kind)}
        self._singles: dict[str, Drawn] = {}

    def gather(self, state: State, aim: Aim, now: float, layers: Names[str]) -> Gathered:
        """What may be shown of these layers."""
        gathered = Gathered([], {}, 0)
        for entry in CATALOGUE:
            if entry.layer not in layers:
                continue
            more = self._single(entry, state) if isinstance(entry, Single) else self._list(entry, state, aim, now)
            gathered = Gathered(
                gathered.candidates + more.candidates, gathered.filtered | more.filtered, gathered.weight + more.weight
            )
        return gathered

    def list(self, path: str) -> Collection:
        """A list as it was last gathered."""
        return self._lists[path]

    def _single(self, entry: Single, state: State) -> Gathered:
        shown = entry.show(state)
        if shown is None:
            return Gathered([], {}, 0)
        drawn = self._singles.get(entry.path)
        if drawn is None or drawn.node != shown:
            drawn = self._singles[entry.path] = self._pen.draw(shown)
        place = PLACES[entry.path]
        order = NEXT if entry.last else FIRST
        return Gathered([Candidate(entry, "", f"{entry.path}#", drawn, (order, place), (place, 0))], {}, drawn.weight)

    def _list(self, kind: Kind, state: State, aim: Aim, now: float) -> Gathered:
        found = self._lists[kind.path]
        found.refresh(kind.elements(state), aim)
        best = found.best(now, state)
        place = PLACES[kind.path]
        shown = sorted((rank if kind.ranked else where, rank, where) for rank, where in enumerate(best))
        chosen: list[Candidate] = []
        used: set[str] = set()
        for spot, rank, where in shown:
            element = found.elements[where]
            drawn = found.drawn(element)
            # Without a key of its own only what it says tells it apart.
            named = element.key and element.key not in used
            used.add(element.key)
            id = f"{kind.path}#{element.key}" if named else f"{kind.path}{NAMELESS}{drawn.digest}"
            chosen.append(Candidate(kind, element.key, id, drawn, (rank, place), (place, spot)))
        return Gathered(chosen, {kind.path: len(found.elements) - len(best)}, found.weight)
