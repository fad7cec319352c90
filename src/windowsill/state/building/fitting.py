"""Chooses what is shown when not everything fits: whole elements, the most important first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from windowsill.state.building.built import Piece
from windowsill.state.building.catalogue import GROUPS, IMPORTANCE, WHOLE
from windowsill.state.building.frame import Drawn
from windowsill.state.building.kinds import Kind, Single
from windowsill.state.building.pen import Pen
from windowsill.state.shares import Shares, passed_on, split

FRAME = "frame"
"""What stands around the layers counts like a layer of its own, which has the reserve as its share."""


class Candidate(NamedTuple):
    """Something that may be shown."""

    kind: Kind | Single
    key: str
    id: str
    drawn: Drawn
    order: tuple[int, int]
    """The lower, the more important in its layer: the place among its kind, then the place of the kind."""
    place: tuple[int, int]
    """Where it stands in the text: the place of the kind, then the place among its kind."""

    @property
    def urgency(self) -> tuple[int, tuple[int, int]]:
        """The lower, the more important of all."""
        return -IMPORTANCE[self.kind.layer], self.order

    def piece(self) -> Piece:
        """What a caller gets to see of it."""
        return Piece(
            layer=self.kind.layer,
            path=self.kind.path,
            key=self.key,
            id=self.id,
            text=self.drawn.text.removesuffix("\n"),
            tokens=self.drawn.weight,
            digest=self.drawn.digest,
        )


class Table:
    """Candidates that are taken, and what they weigh together with the tags around them."""

    def __init__(self, pen: Pen) -> None:
        self.taken: list[Candidate] = []
        self.weight = 0
        self._pen = pen
        self._open: set[tuple[str, ...]] = set()

    def take(self, candidates: Iterable[Candidate], room: float) -> list[Candidate]:
        """Take each that still fits, in this order, until `room` more tokens are used up; the rest is returned."""
        left, end = list[Candidate](), self.weight + room
        for each in candidates:
            more = self.cost(each)
            if self.weight + more > end:
                left.append(each)
                continue
            self.taken.append(each)
            self.weight += more
            self._open |= _prefixes(each.kind.tags)
        return left

    def cost(self, candidate: Candidate) -> int:
        """What taking it would add."""
        missing = _prefixes(candidate.kind.tags) - self._open
        return candidate.drawn.weight + sum(self._pen.around(tags[-1], len(tags)) for tags in missing)


def _prefixes(tags: tuple[str, ...]) -> set[tuple[str, ...]]:
    return {tags[:length] for length in range(1, len(tags) + 1)}


def need(candidates: Iterable[Candidate], pen: Pen) -> int:
    """What candidates weigh together with the tags around them."""
    table = Table(pen)
    table.take(candidates, float("inf"))
    return table.weight


def fit(candidates: Sequence[Candidate], shares: Shares, frame: int, pen: Pen) -> tuple[list[Candidate], int]:
    """What is shown, and the tokens that it may have: more than was shared out only if what is shown whole needs it."""
    layers = {layer: sorted(found, key=lambda each: each.order) for layer, found in _by_layer(candidates).items()}
    needs = {FRAME: frame, **{layer: need(found, pen) for layer, found in layers.items()}}
    room = sum(shares.layers.values()) + shares.reserve
    whole = frame + sum(needs[layer] for layer in WHOLE)
    if sum(needs.values()) <= room:
        return list(candidates), room
    granted = _granted(shares, needs)
    table, left = Table(pen), list[Candidate]()
    for layer in WHOLE:
        table.take(layers[layer], float("inf"))
    for layer in (layer for layer in layers if layer not in WHOLE):
        left += _fit_layer(table, layers[layer], granted[layer], GROUPS.get(layer, {"": 1}), pen)
    # What is too large for its own share may still fit into what all the others left.
    table.take(sorted(left, key=lambda each: each.urgency), room - frame - table.weight)
    return table.taken, max(room, whole)


def _by_layer(candidates: Iterable[Candidate]) -> dict[str, list[Candidate]]:
    layers: dict[str, list[Candidate]] = {layer: [] for layer in IMPORTANCE}
    for each in candidates:
        layers[each.kind.layer].append(each)
    return layers


def _granted(shares: Shares, needs: Mapping[str, int]) -> dict[str, int]:
    """The budgets of the layers, after what is not used was passed on and what is shown whole has all that it needs."""
    importance = {FRAME: max(IMPORTANCE.values()), **IMPORTANCE}
    granted = passed_on({FRAME: shares.reserve, **shares.layers}, needs, importance)
    lacking = sum(needs[name] - granted[name] for name in (FRAME, *WHOLE))
    most_important_first = sorted(IMPORTANCE, key=lambda layer: -IMPORTANCE[layer])
    for layer in most_important_first[::-1]:
        if layer not in WHOLE:
            given = min(lacking, granted[layer])
            granted[layer] -= given
            lacking -= given
    return granted


def _fit_layer(
    table: Table, candidates: Sequence[Candidate], budget: int, weights: Mapping[str, int], pen: Pen
) -> list[Candidate]:
    """Take what fits into a layer's budget, by the shares of its groups first; the rest is returned."""
    groups = {name: [each for each in candidates if each.kind.group == name] for name in weights}
    needs = {name: need(found, pen) for name, found in groups.items()}
    held = {name for name, found in groups.items() if found}
    end, left = table.weight + budget, list[Candidate]()
    for name, room in passed_on(split(budget, weights, held), needs, weights).items():
        left += table.take(groups[name], min(room, end - table.weight))
    left.sort(key=lambda each: each.order)
    return table.take(left, end - table.weight)
