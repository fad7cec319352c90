"""What may be asked of an archive: mistakes are named instead of finding nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import get_args

from windowsill.archive.words import plain
from windowsill.errors import InputError
from windowsill.messages import Role

ROLES = (*get_args(Role), "tool")
"""Who says something in an archive; `tool` are results."""

MOST = 1_000_000
"""Passages that are fetched at once, whatever is asked for."""


def check_limits(k: int | None, budget: int | None = None, **times: float | None) -> None:
    """Refuse a number of passages, a budget or a time that cannot be meant."""
    if k is not None and k < 1:
        raise InputError(f"k is {k}", remedy="ask for one passage or more")
    if budget is not None and budget < 0:
        raise InputError(f"budget is {budget}", remedy="give a number of tokens")
    for name, value in times.items():
        if value is not None and (isinstance(value, float) and math.isnan(value)):
            raise InputError(f"{name} is {value}", remedy="give seconds since the epoch")


def names(given: Sequence[str] | None) -> list[str] | None:
    """Names that a filter was given; a single one need not be in a list."""
    return None if given is None else [plain(name) for name in ([given] if isinstance(given, str) else given)]


def known_roles(given: Sequence[str] | None) -> list[str] | None:
    """The roles of a filter; `InputError` when nobody has one of them."""
    roles = names(given)
    for role in roles or ():
        if role not in ROLES:
            raise InputError(f"there is no role {role!r}", remedy=f"the roles are {', '.join(ROLES)}")
    return roles
