"""What a builder gives back."""

from __future__ import annotations

import msgspec

from windowsill.state.shares import Shares

WITHHELD = "-"
"""Begins the digest of what was chosen and had no room: it was not told, and is no news while it stays the same."""


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is shown: an element of a list, or a single value (its key is empty)."""

    layer: str
    path: str
    """Where in the state it is, such as `memory.semantic.facts`."""
    key: str
    id: str
    """Its path and key, as in `work.hypotheses#h1`; what has no key of its own goes by its digest."""
    text: str
    """As it stands in the context."""
    tokens: int
    digest: str


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a list is not shown."""

    filtered: int = 0
    """Not relevant, not fresh, not among the best, or no longer holding."""
    no_room: int = 0
    """Chosen, and without room in the budget."""


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """A context."""

    text: str
    tokens: int
    """Of the whole text."""
    layers: dict[str, int]
    """Tokens of each layer that is shown, counted on its part of the text."""
    ratio: float
    """`tokens` against what it would be with everything that was left out: 1.0 when nothing was."""
    pieces: tuple[Piece, ...]
    """In the order of the text."""
    left_out: dict[str, LeftOut]
    """By path; a list that is shown whole is not in it."""
    digests: dict[str, str]
    """By the id of a piece: what a model that gets this text was told. See `WITHHELD` for what had no room."""
    shares: Shares
    """How the budget was shared out before anything was passed on."""


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
