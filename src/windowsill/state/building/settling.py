"""The last word on what fits: the whole text is counted, as parts weigh a little more or less together than alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from windowsill.errors import BudgetError
from windowsill.state.building.catalogue import LAYER_OF_TAG, WHOLE
from windowsill.state.building.fitting import Candidate
from windowsill.state.building.frame import Drawn, Part, lay_out
from windowsill.state.building.pen import Pen


class Settled(NamedTuple):
    """A text and what stands in it."""

    text: str
    tokens: int
    parts: list[Part]
    shown: list[Candidate]
    """In the order of the text."""
    signs: list[Drawn]
    """What stands before all layers."""


def settle(pen: Pen, root: str, taken: Sequence[Candidate], signs: Sequence[Drawn], limit: int, most: int) -> Settled:
    """The text of what was taken, without as much of the least important as is over `limit`, and checked.

    `BudgetError` when what is shown whole is over `most`.
    """
    shown, signs = sorted(taken, key=lambda each: each.place), list(signs)
    while True:
        parts = list(
            lay_out(root, [*(((), sign) for sign in signs), *((each.kind.tags, each.drawn) for each in shown)])
        )
        text = pen.text(parts)
        tokens = pen.count(text)
        over = tokens - limit
        movable = sorted((each for each in shown if each.kind.layer not in WHOLE), key=lambda each: each.urgency)
        if over <= 0 or not (movable or signs):
            break
        if not movable:
            signs.pop()
        gone = set()
        while over > 0 and movable:
            worst = movable.pop()
            gone.add(worst.place)
            over -= max(worst.drawn.weight, 1)
        shown = [each for each in shown if each.place not in gone]
    if tokens > most:
        raise _too_large(pen, parts, tokens, most)
    pen.format.check(text, parts)
    return Settled(text, tokens, parts, shown, signs)


def _too_large(pen: Pen, parts: list[Part], tokens: int, most: int) -> BudgetError:
    found = {LAYER_OF_TAG[tag]: pen.count(text) for tag, text in pen.layers(parts).items()}
    sizes = {layer: found.get(layer, 0) for layer in WHOLE}
    said = " and ".join(f"the {layer} layer has {size:,}" for layer, size in sizes.items())
    return BudgetError(
        f"{said} tokens, which with their frame are {tokens:,} of {most:,}",
        wanted=tokens,
        available=most,
        parts=sizes,
        remedy="neither is ever cut: shorten the role, the policies or the goal, or give more tokens",
    )
