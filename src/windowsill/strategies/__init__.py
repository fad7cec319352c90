"""Planners that say what to fold, one file each, chosen by name or by dotted path; plug-ins have names too."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, get_args

import msgspec

from windowsill.budget import Budget
from windowsill.config import spelling
from windowsill.errors import InputError, NotFoundError, SettingError
from windowsill.history.folds import Proposal
from windowsill.history.view import Item, View
from windowsill.strategies.free import fold_units, foldable_units

__all__ = ["Asking", "Plan", "Strategy", "View", "fold_units", "foldable_units", "get", "names", "settings_of"]

DEFAULT = "sliding-window"

BUILT_IN = {
    DEFAULT: "windowsill.strategies.sliding_window:SlidingWindow",
    "compact": "windowsill.strategies.compact:Compact",
    "condense": "windowsill.strategies.condense:Condense",
    "extract": "windowsill.strategies.extract:Extract",
    "importance": "windowsill.strategies.importance:Importance",
    "layered": "windowsill.strategies.layered:Layered",
    "mask": "windowsill.strategies.mask:Mask",
    "native": "windowsill.strategies.native:Native",
    "outputs": "windowsill.strategies.outputs:Outputs",
    "priority": "windowsill.strategies.priority:Priority",
    "summarize": "windowsill.strategies.summarize:Summarize",
    "tiered": "windowsill.strategies.tiered:Tiered",
}


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a strategy wants folded, and what it found worth telling."""

    proposals: tuple[Proposal, ...] = ()
    middle: tuple[Item, ...] = ()
    """What could have been hidden, for the report of what each weighs."""
    notes: tuple[str, ...] = ()


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """Fields and headers of a request that make its provider do the work."""

    fields: dict[str, Any]
    """Fields of the body."""
    headers: dict[str, str] = {}


class Strategy:
    """Plan what to fold: a pure planner that calls no model, touches no store and reads no clock.

    A subclass has a `name` and overrides `plan`; the other methods have defaults that suit most strategies. As a
    msgspec Struct (`class Mine(Strategy, msgspec.Struct)`) its fields are its settings.
    """

    name: str = ""

    def plan(self, view: View, budget: Budget) -> Plan:
        """Return the folds that make the request fit; called when the high mark is passed or `due` says so."""
        raise NotImplementedError

    def due(self, view: View, budget: Budget) -> bool:
        """Tell whether to plan now although the high mark is not passed."""
        del view, budget
        return False

    def instead(self, view: View, budget: Budget) -> Plan:
        """Return the folds to make where a summary could not be written; none when the marker is as good."""
        del view, budget
        return Plan()

    def ask(self, format: str, budget: Budget) -> Asking | None:
        """Return what a request of this format says to make its provider act; `None` where it does nothing."""
        del format, budget
        return None

    def layers(self, budget: Budget) -> int:
        """Return the tokens in which a request may tell the layered state; 0 for not at all."""
        del budget
        return 0

    @property
    def delegates(self) -> bool:
        """True for a strategy that leaves the work to the provider: one that overrides `ask`."""
        return type(self).ask is not Strategy.ask


def names() -> tuple[str, ...]:
    """Return the names of all strategies, those of plug-ins included."""
    from windowsill.strategies import plugins  # noqa: PLC0415  entry points only where they are needed

    return tuple(sorted({*BUILT_IN, *plugins.points()}))


def get(strategy: str | Strategy | None = None, settings: Mapping[str, Any] | None = None) -> Strategy:
    """A strategy by name or dotted path (`package.module:Class`), with its settings; an object is given back.

    Settings may follow the name: `sliding-window:keep=8`, `package.module:Class:size=8`. Several names joined by `+`
    are a pipeline. A plug-in that cannot be loaded is reported, and the default takes over.
    """
    if isinstance(strategy, Strategy):
        return strategy
    stages = spelling.read(str(strategy or DEFAULT))
    if len(stages) == 1:
        return _one(stages[0].name, {**stages[0].settings, **(settings or {})})
    if settings:
        raise SettingError("settings", dict(settings), "those of each stage behind its name: mask:keep=5+condense")
    from windowsill.strategies.pipeline import Pipeline  # noqa: PLC0415  a pipeline is made of what this module gives

    return Pipeline([_one(stage.name, stage.settings) for stage in stages])


def _one(name: str, values: dict[str, Any]) -> Strategy:
    head, _, last = name.rpartition(":")
    if head in BUILT_IN:
        # `sliding-window:` states nothing, `sliding-window:keep` a setting without a value.
        name, values = head, {**({last: ""} if last else {}), **values}
    if name not in BUILT_IN and ":" not in name:
        from windowsill.strategies import plugins  # noqa: PLC0415  entry points only where they are needed

        if (built := plugins.build(name, values)) is not None:
            return built
    made = factory(name)
    if not isinstance(made, type) or not issubclass(made, Strategy):
        # Nothing else is called: a settings file of somebody else's project may name any function that is installed.
        raise _no_strategy(name)
    return make(name, made, values)


def _no_strategy(name: str) -> InputError:
    return InputError(
        f"{name} is not a strategy",
        remedy="derive a class with a `name` and a `plan` from windowsill.Strategy",
    )


def make(name: str, made: Callable[..., Any], values: Mapping[str, Any]) -> Strategy:
    """A strategy from its class and settings; `SettingError` when it does not take them."""
    try:
        built = msgspec.convert(_typed(made, values), made, strict=False) if is_struct(made) else made(**values)
    except (msgspec.ValidationError, TypeError) as error:
        from windowsill.strategies.refusals import refused  # noqa: PLC0415  only needed for this error

        raise refused(name, made, values, error) from None
    if not isinstance(built, Strategy):
        raise _no_strategy(name)
    return built


def _typed(made: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings from a line of text: where both a number and text are allowed, what looks like a number is one."""
    mixed = {field.name for field in msgspec.structs.fields(made) if {float, str} <= set(get_args(field.type))}
    return {
        name: _number(value) if name in mixed and isinstance(value, str) else value for name, value in values.items()
    }


def _number(text: str) -> float | str:
    try:
        return msgspec.convert(text, int | float, strict=False)
    except msgspec.ValidationError:
        return text


def settings_of(name: str) -> dict[str, Any]:
    """The settings of a named strategy with their defaults; `None` for one that has to be stated."""
    made = factory(name)
    return {field.name: _default(field) for field in msgspec.structs.fields(made)} if is_struct(made) else {}


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return None if field.default is msgspec.NODEFAULT else field.default


def is_struct(made: Callable[..., Any]) -> bool:
    """Whether a strategy is a value with settings."""
    return isinstance(made, type) and issubclass(made, msgspec.Struct)


def factory(name: str) -> Any:
    """Return what makes the strategy of a name or dotted path; nothing is called."""
    path = BUILT_IN.get(name, name)
    if name not in BUILT_IN and ":" not in name:
        from windowsill.strategies import plugins  # noqa: PLC0415  as in `names`

        if (plugin := plugins.find(name)) is not None:
            if plugin.made is None:
                raise InputError(f"strategy {name!r} of {plugin.package} cannot be used: {plugin.error}", strategy=name)
            return plugin.made
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
