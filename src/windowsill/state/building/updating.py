"""What a model has to be told of a state that it was told of before."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from windowsill.state.building.built import WITHHELD, Update
from windowsill.state.building.catalogue import CATALOGUE, PLACES, WHOLE
from windowsill.state.building.fitting import Candidate, Table
from windowsill.state.building.frame import Drawn
from windowsill.state.building.gathering import Gathered, Gathering
from windowsill.state.building.kinds import Kind, Single
from windowsill.state.building.nodes import Node, clean
from windowsill.state.building.pen import Pen
from windowsill.state.building.settling import settle
from windowsill.state.state import State

ROOT = "context_update"


class News(NamedTuple):
    """What is to be told."""

    changed: list[Candidate]
    """New, or no longer as it was told."""
    gone: list[str]
    """Ids of what is no longer in the state, or no longer holds."""


def news(
    told: Mapping[str, str], gathered: Gathered, gathering: Gathering, state: State, layers: Collection[str]
) -> News:
    """The difference between what was told and what a state holds now."""
    found = News([each for each in gathered.candidates if _is_news(told.get(each.id), each)], [])
    current = {each.id for each in gathered.candidates}
    for id, known in told.items():
        path, _, key = id.partition("#")
        # What goes by its digest has no path before a key: nobody could say which one it was.
        if id in current or known.startswith(WITHHELD) or path not in PLACES:
            continue
        entry = CATALOGUE[PLACES[path]]
        if entry.layer not in layers or (isinstance(entry, Kind) and entry.fades == "always"):
            continue
        element = gathering.list(path).find(key) if isinstance(entry, Kind) else None
        if isinstance(entry, Single) or _is_gone(entry, element, state):
            found.gone.append(id)
        elif element is not None:
            # It gave way to others, so it stands behind them; what was told of it has to be true all the same.
            last = len(gathering.list(path).elements) + len(found.changed)
            place = PLACES[path]
            other = Candidate(entry, key, id, gathering.list(path).drawn(element), (last, place), (place, last))
            if _is_news(known, other):
                found.changed.append(other)
    return found


def _is_news(known: str | None, candidate: Candidate) -> bool:
    return known is None or known.removeprefix(WITHHELD) != candidate.drawn.digest


def _is_gone(kind: Kind, element: Any, state: State) -> bool:
    return not kind.lets_go(state) if element is None else not kind.holds(element)


def tell(found: News, tokens: int, pen: Pen) -> Update | None:
    """An update within so many tokens: what is gone, then what is new, the most important first."""
    changed = sorted(found.changed, key=lambda each: each.urgency)
    table, room = Table(pen), tokens - pen.around(ROOT, 0)
    table.take((each for each in changed if each.kind.layer in WHOLE), float("inf"))
    signs: dict[str, Drawn] = {}
    for id in found.gone:
        sign = _sign(id, pen)
        if table.weight + sign.weight <= room:
            signs[id] = sign
            room -= sign.weight
    table.take((each for each in changed if each.kind.layer not in WHOLE), room - table.weight)
    settled = settle(pen, ROOT, table.taken, list(signs.values()), tokens, tokens)
    if not settled.shown and not settled.signs:
        return None
    removed = list(signs)[: len(settled.signs)]
    digests = {each.id: each.drawn.digest for each in settled.shown}
    return Update(
        text=settled.text,
        tokens=settled.tokens,
        pieces=tuple(each.piece() for each in settled.shown),
        digests=digests,
        removed=tuple(removed),
        left_out=tuple(
            id for id in (*found.gone, *(each.id for each in found.changed)) if id not in digests and id not in removed
        ),
    )


def _sign(id: str, pen: Pen) -> Drawn:
    path, _, key = id.partition("#")
    return pen.draw(Node("removed", (("path", path), *((("key", clean(key)),) if key else ()))))
