"""How much room there is: from the options, and from what a recording says about its model."""

from __future__ import annotations

import re

import msgspec

from windowsill import models
from windowsill.budget import Size, tokens_of
from windowsill.errors import InputError, UnknownModelError

_SHARE = re.compile(r"0?\.\d+|1\.0*")


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """What a session is opened with."""

    model: str | None
    window: int | None
    budget: Size | None


def room(*, model: str | None, named: str | None, window: int | None, budget: Size | None) -> Room:
    """The room for a request: `model` was stated, `named` stands in the request itself.

    An unknown model is fine where a size is stated; without either it is an error that says what to state.
    """
    name = model or named
    if name is None and window is None and budget is None:
        raise InputError("nothing says how much room there is", remedy="give --model M or --window N")
    if name is None or window is not None or is_known(name):
        return Room(model=name, window=window, budget=budget)
    if isinstance(budget, int):
        return Room(model=name, window=budget, budget=budget)
    models.find(name)
    raise AssertionError  # pragma: no cover - `find` has just refused this name


def is_known(name: str) -> bool:
    """Whether the window of this model is known."""
    try:
        models.find(name)
    except UnknownModelError:
        return False
    return True


def size(text: str | None, setting: str = "budget") -> Size | None:
    """A size as it was typed: `32000`, `32k`, `80%`, `200k,80%`."""
    if text is None:
        return None
    probe = 1_000_000
    tokens = tokens_of(text, probe, setting)
    return text if "%" in text else tokens


def mark(text: str | None, setting: str) -> Size | None:
    """A mark as it was typed: a size, or a share as settings files have it (`0.8`)."""
    return float(text) if text is not None and _SHARE.fullmatch(text.strip()) else size(text, setting)
