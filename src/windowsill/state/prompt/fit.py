"""Choose what is shown when not everything fits: whole elements, the most important first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from windowsill.errors import BudgetError
from windowsill.state.prompt.catalogue import GROUPS, IMPORTANCE, LAYER_OF_TAG, WHOLE, Kind, Single
from windowsill.state.prompt.formats import Formatter, Part, Rendered, lay_out
from windowsill.state.shares import Shares, pass_on, split

FRAME = "frame"
"""The outermost tags count like a layer of their own, which has the reserve as its share."""


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is shown: an element of a list, or a single value (its key is empty)."""

    layer: str
    path: str
    """Its list or value in the state, such as `memory.semantic.facts`."""
    key: str
    id: str
    """Its path and key, as in `work.hypotheses#h1`; what has no key of its own goes by its digest."""
    text: str
    """As it stands in the context."""
    tokens: int
    digest: str


class Item(NamedTuple):
    """Something that may be shown."""

    kind: Kind | Single
    key: str
    id: str
    rendered: Rendered
    order: tuple[int, int]
    """The lower, the more important in its layer: the place among its kind, then the place of the kind."""
    place: tuple[int, int]
    """Its order in the text: the place of the kind, then the place among its kind."""

    @property
    def urgency(self) -> tuple[int, tuple[int, int]]:
        """The order among all items: the lower, the more important."""
        return -IMPORTANCE[self.kind.layer], self.order

    def piece(self) -> Piece:
        """Return what a caller gets to see of it."""
        _, text, tokens, digest = self.rendered
        layer, path = self.kind.layer, self.kind.path
        text = text.removesuffix("\n")
        return Piece(layer=layer, path=path, key=self.key, id=self.id, text=text, tokens=tokens, digest=digest)


class ItemSet:
    """Items that were taken, and the tokens they have together with the tags around them."""

    def __init__(self, formatter: Formatter) -> None:
        self.items: list[Item] = []
        self.tokens = 0
        self._formatter = formatter
        self._open: set[tuple[str, ...]] = set()

    def take(self, items: Iterable[Item], room: float) -> list[Item]:
        """Take each item that still fits, in this order, into `room` more tokens; return the others."""
        left, end = list[Item](), self.tokens + room
        for item in items:
            tags = item.kind.tags
            missing = {tags[:length] for length in range(1, len(tags) + 1)} - self._open
            more = item.rendered.tokens + sum(self._formatter.tag_tokens(each[-1], len(each)) for each in missing)
            if self.tokens + more > end:
                left.append(item)
                continue
            self.items.append(item)
            self.tokens += more
            self._open |= missing
        return left


def fit(items: Sequence[Item], shares: Shares, frame: int, formatter: Formatter) -> tuple[list[Item], int]:
    """Return what is shown and the tokens it may have: more than the shares only if what is shown whole needs it."""
    layers: dict[str, list[Item]] = {layer: [] for layer in IMPORTANCE}
    for item in sorted(items, key=lambda item: item.order):
        layers[item.kind.layer].append(item)
    needs = {FRAME: frame, **{layer: _need(found, formatter) for layer, found in layers.items()}}
    room = sum(shares.layers.values()) + shares.reserve
    if sum(needs.values()) <= room:
        return list(items), room
    granted = _grant(shares, needs)
    taken, left = ItemSet(formatter), list[Item]()
    for layer in WHOLE:
        taken.take(layers[layer], float("inf"))
    for layer in (layer for layer in layers if layer not in WHOLE):
        left += _fit_layer(taken, layers[layer], granted[layer], GROUPS.get(layer, {"": 1}), formatter)
    # What is too large for its own share may still fit into what all the others left.
    taken.take(sorted(left, key=lambda item: item.urgency), room - frame - taken.tokens)
    return taken.items, max(room, frame + sum(needs[layer] for layer in WHOLE))


def _need(items: Iterable[Item], formatter: Formatter) -> int:
    taken = ItemSet(formatter)
    taken.take(items, float("inf"))
    return taken.tokens


def _grant(shares: Shares, needs: Mapping[str, int]) -> dict[str, int]:
    """Set the budgets of the layers: unused shares are passed on, and what is shown whole gets all that it needs."""
    importance = {FRAME: max(IMPORTANCE.values()), **IMPORTANCE}
    granted = pass_on({FRAME: shares.reserve, **shares.layers}, needs, importance)
    lacking = sum(needs[name] - granted[name] for name in (FRAME, *WHOLE))
    most_important_first = sorted(IMPORTANCE, key=lambda layer: -IMPORTANCE[layer])
    for layer in most_important_first[::-1]:
        if layer not in WHOLE:
            given = min(lacking, granted[layer])
            granted[layer] -= given
            lacking -= given
    return granted


def _fit_layer(
    taken: ItemSet, items: Sequence[Item], budget: int, weights: Mapping[str, int], formatter: Formatter
) -> list[Item]:
    """Take what fits into a layer's budget, by the shares of its groups first; return the rest."""
    groups = {name: [item for item in items if item.kind.group == name] for name in weights}
    needs = {name: _need(found, formatter) for name, found in groups.items()}
    held = {name for name, found in groups.items() if found}
    end, left = taken.tokens + budget, list[Item]()
    for name, room in pass_on(split(budget, weights, held), needs, weights).items():
        left += taken.take(groups[name], min(room, end - taken.tokens))
    left.sort(key=lambda item: item.order)
    return taken.take(left, end - taken.tokens)


class FittedText(NamedTuple):
    """A text that keeps its limit, and what stands in it."""

    text: str
    tokens: int
    parts: list[Part]
    items: list[Item]
    """In the order of the text."""
    removals: list[Rendered]
    """Notices of what is gone, before all layers."""


def write_fitting(
    formatter: Formatter, root: str, items: Sequence[Item], removals: Sequence[Rendered], limit: int, most: int
) -> FittedText:
    """Write the items without as much of the least important as is over `limit`, and check the text.

    The whole text is counted, as parts have a few tokens more or less together than alone. `BudgetError` when what is
    shown whole is over `most`.
    """
    shown, removals = sorted(items, key=lambda item: item.place), list(removals)
    while True:
        placed = [*(((), each) for each in removals), *((item.kind.tags, item.rendered) for item in shown)]
        parts = lay_out(root, placed)
        text = formatter.text(parts)
        tokens = formatter.count(text)
        over = tokens - limit
        movable = sorted((item for item in shown if item.kind.layer not in WHOLE), key=lambda item: item.urgency)
        if over <= 0 or not (movable or removals):
            break
        if not movable:
            removals.pop()
        gone = set()
        while over > 0 and movable:
            worst = movable.pop()
            gone.add(worst.place)
            over -= max(worst.rendered.tokens, 1)
        shown = [item for item in shown if item.place not in gone]
    if tokens > most:
        raise _too_large(formatter, parts, tokens, most)
    formatter.check(text, parts)
    return FittedText(text, tokens, parts, shown, removals)


def _too_large(formatter: Formatter, parts: list[Part], tokens: int, most: int) -> BudgetError:
    found = {LAYER_OF_TAG[tag]: formatter.count(text) for tag, text in formatter.layer_texts(parts).items()}
    sizes = {layer: found.get(layer, 0) for layer in WHOLE}
    listed = " and ".join(f"the {layer} layer has {size:,}" for layer, size in sizes.items())
    return BudgetError(
        f"{listed} tokens, which with their frame are {tokens:,} of {most:,}",
        wanted=tokens,
        available=most,
        parts=sizes,
        remedy="neither is ever cut: shorten the role, the policies or the goal, or give more tokens",
    )
