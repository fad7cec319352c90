"""Tell a model what changed in a state that it was told of before."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import msgspec

from windowsill.state.layers import State
from windowsill.state.prompt.catalogue import CATALOGUE, PLACES, WHOLE, Single
from windowsill.state.prompt.fit import Item, ItemSet, Piece, write_fitting
from windowsill.state.prompt.formats import Formatter, Node, Rendered, clean
from windowsill.state.prompt.selection import Selection

ROOT = "context_update"

WITHHELD = "-"
"""Begins the digest of what was chosen and had no room: it was not told, and is no news while it stays the same."""


class Update(msgspec.Struct, frozen=True, kw_only=True):
    """What changed since a model was last told."""

    text: str
    tokens: int
    pieces: tuple[Piece, ...]
    digests: dict[str, str]
    """Of the pieces: what to add to what was told,"""
    removed: tuple[str, ...]
    """and what to take out of it."""
    left_out: tuple[str, ...] = ()
    """Ids of what has changed too and had no room: it comes with the next update."""


class Difference(NamedTuple):
    """What is to be told."""

    changed: list[Item]
    """New, or no longer as it was told."""
    gone: list[str]
    """Ids of what is no longer in the state, or no longer holds."""


def compare(
    told: Mapping[str, str],
    items: Collection[Item],
    selections: Mapping[str, Selection],
    state: State,
    layers: Collection[str],
) -> Difference:
    """Find the difference between what was told and what a state holds now."""
    found = Difference([item for item in items if _is_news(told.get(item.id), item.rendered)], [])
    current = {item.id for item in items}
    for id, digest in told.items():
        path, _, key = id.partition("#")
        # What goes by its digest has no path before a key: nobody could say which one it was.
        if id in current or digest.startswith(WITHHELD) or path not in PLACES:
            continue
        entry = CATALOGUE[PLACES[path]]
        if entry.layer not in layers:
            continue
        if isinstance(entry, Single):
            found.gone.append(id)
            continue
        selection = selections[path]
        element = selection.find(key)
        if entry.fades == "always" or (element is None and entry.may_have_faded(state)):
            continue
        if element is None or not entry.holds(element):
            found.gone.append(id)
        elif _is_news(digest, rendered := selection.render(element)):
            # It gave way to others, so it stands behind them; what was told of it has to be true all the same.
            place, last = PLACES[path], len(selection.elements) + len(found.changed)
            found.changed.append(Item(entry, key, id, rendered, (last, place), (place, last)))
    return found


def _is_news(digest: str | None, rendered: Rendered) -> bool:
    return digest is None or digest.removeprefix(WITHHELD) != rendered.digest


def write_update(found: Difference, tokens: int, formatter: Formatter) -> Update | None:
    """Write an update within so many tokens: what is gone, then what is new, the most important first."""
    changed = sorted(found.changed, key=lambda item: item.urgency)
    taken, room = ItemSet(formatter), tokens - formatter.tag_tokens(ROOT, 0)
    taken.take((item for item in changed if item.kind.layer in WHOLE), float("inf"))
    removals: dict[str, Rendered] = {}
    for id in found.gone:
        removal = _removal(id, formatter)
        if taken.tokens + removal.tokens <= room:
            removals[id] = removal
            room -= removal.tokens
    taken.take((item for item in changed if item.kind.layer not in WHOLE), room - taken.tokens)
    written = write_fitting(formatter, ROOT, taken.items, list(removals.values()), tokens, tokens)
    if not written.items and not written.removals:
        return None
    removed = list(removals)[: len(written.removals)]
    digests = {item.id: item.rendered.digest for item in written.items}
    ids = (*found.gone, *(item.id for item in found.changed))
    return Update(
        text=written.text,
        tokens=written.tokens,
        pieces=tuple(item.piece() for item in written.items),
        digests=digests,
        removed=tuple(removed),
        left_out=tuple(id for id in ids if id not in digests and id not in removed),
    )


def _removal(id: str, formatter: Formatter) -> Rendered:
    path, _, key = id.partition("#")
    return formatter.render(Node("removed", (("path", path), *((("key", clean(key)),) if key else ()))))
