"""What the layers of the state are made of."""

from __future__ import annotations

from typing import Annotated

import msgspec

from windowsill.errors import InputError

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
"""A number from 0 to 1."""

Count = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]


class Element(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing in a list of the state. Its `id` is given by the session when empty; `at` is when it came."""

    id: str = ""
    at: float = 0.0

    @property
    def key(self) -> str:
        """What tells it apart from the others of its list."""
        return self.id


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the state that holds values, lists of elements and further parts."""


def demand(holds: bool, what: str, remedy: str) -> None:  # noqa: FBT001 - a condition, read as an assertion
    """`InputError` when something that must hold does not."""
    if not holds:
        raise InputError(what, remedy=remedy)
