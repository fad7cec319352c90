"""Planners that say what to fold, one file each, chosen by name or by dotted path."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import msgspec

from windowsill.budget import Budget
from windowsill.errors import InputError, NotFoundError, SettingError
from windowsill.history.folds import Proposal
from windowsill.history.view import Item, View

__all__ = ["Asking", "Delegating", "Plan", "Strategy", "get", "names", "settings_of"]

DEFAULT = "sliding-window"

_BUILT_IN = {
    DEFAULT: "windowsill.strategies.sliding_window:SlidingWindow",
    "native": "windowsill.strategies.native:Native",
}


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a strategy wants folded, and what it found worth telling."""

    proposals: tuple[Proposal, ...] = ()
    middle: tuple[Item, ...] = ()
    """What could have been hidden, for the report of what each weighs."""
    notes: tuple[str, ...] = ()


@runtime_checkable
class Strategy(Protocol):
    """A pure planner: looks at a view and a budget, calls no model, touches no store, reads no clock."""

    name: str

    def plan(self, view: View, budget: Budget) -> Plan:
        """What to fold so that the request fits."""


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """What a request says to make its provider do the work."""

    fields: dict[str, Any]
    """Fields of the body."""
    headers: dict[str, str] = {}


@runtime_checkable
class Delegating(Protocol):
    """A strategy that asks the provider."""

    def ask(self, format: str, budget: Budget) -> Asking | None:
        """What to say in a request of this format; `None` where its provider does nothing of the kind."""


def names() -> tuple[str, ...]:
    """The strategies that have a name."""
    return tuple(sorted(_BUILT_IN))


def get(strategy: str | Strategy | None = None, settings: Mapping[str, Any] | None = None) -> Strategy:
    """A strategy by name or dotted path (`package.module:Class`), with its settings; an object is given back.

    Settings may follow the name: `sliding-window:keep=8`, `package.module:Class:size=8`.
    """
    if isinstance(strategy, Strategy) and not isinstance(strategy, (str, type)):
        return strategy
    name, inline = str(strategy or DEFAULT), ""
    head, _, last = name.rpartition(":")
    if head and ("=" in last or head in _BUILT_IN):
        name, inline = head, last
    made = _factory(name)
    values = {**_parse(inline), **(settings or {})}
    try:
        built = msgspec.convert(values, made, strict=False) if _is_struct(made) else made(**values)
    except (msgspec.ValidationError, TypeError) as error:
        raise SettingError(
            f"strategy {name}", values, f"settings as `windowsill strategies` lists them ({error})"
        ) from None
    if not isinstance(built, Strategy):
        raise InputError(f"{name} is not a strategy", remedy="give it a `name` and a method `plan(view, budget)`")
    return built


def settings_of(name: str) -> dict[str, Any]:
    """The settings of a named strategy with their defaults."""
    made = _factory(name)
    return {field.name: field.default for field in msgspec.structs.fields(made)} if _is_struct(made) else {}


def _is_struct(made: Callable[..., Any]) -> bool:
    return isinstance(made, type) and issubclass(made, msgspec.Struct)


def _factory(name: str) -> Any:
    path = _BUILT_IN.get(name, name)
    module, _, attribute = path.replace(":", ".").rpartition(".")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        missing = getattr(error, "name", None)
        if isinstance(error, ImportError) and missing is not None and not f"{module}.".startswith(f"{missing}."):
            raise InputError(
                f"strategy {name!r} cannot be loaded: {error}", remedy=f"install what {module!r} imports", strategy=name
            ) from error
        known = ", ".join(names())
        raise NotFoundError(
            f"there is no strategy {name!r}", remedy=f"use one of {known}, or a dotted path to your own", strategy=name
        ) from None


def _parse(inline: str) -> dict[str, str]:
    """`key=value,key=value` as settings."""
    pairs = (part.partition("=") for part in inline.split(",") if part)
    return {key.strip(): value.strip() for key, _, value in pairs}
