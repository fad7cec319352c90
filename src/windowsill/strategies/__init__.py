"""Planners that say what to fold, one file each, chosen by name or by dotted path; plug-ins have names too."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeGuard, get_args, runtime_checkable

import msgspec

from windowsill.budget import Budget
from windowsill.config import spelling
from windowsill.errors import InputError, NotFoundError, SettingError
from windowsill.history.folds import Proposal
from windowsill.history.view import Item, View

__all__ = [
    "Asking",
    "Delegating",
    "Eager",
    "Following",
    "Plan",
    "Strategy",
    "Substituting",
    "Telling",
    "delegates",
    "follows",
    "get",
    "is_eager",
    "names",
    "settings_of",
    "substitutes",
    "tells",
]

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


@runtime_checkable
class Eager(Protocol):
    """A strategy that has something to do before the high mark is passed: after so many turns, or after each input."""

    def due(self, view: View, budget: Budget) -> bool:
        """Whether it wants to plan now."""


@runtime_checkable
class Following(Protocol):
    """A strategy that reads what messages say, and would rather do so while they are in memory than all at once."""

    def follow(self, view: View) -> None:
        """Take in what was added to the view; called before each request, when its messages are in memory."""


@runtime_checkable
class Telling(Protocol):
    """A strategy under which requests tell the layered state."""

    def layers(self, budget: Budget) -> int:
        """How many tokens a request may tell of it."""


@runtime_checkable
class Substituting(Protocol):
    """A strategy that knows something better than a marker where its summary could not be written."""

    def instead(self, view: View, budget: Budget) -> Plan:
        """What to fold in the place of what was planned; nothing when the marker is as good."""


# Asked at every turn: a protocol's own `isinstance` takes longer than what follows from the answer.


def delegates(strategy: object) -> TypeGuard[Delegating]:
    """Whether a strategy asks the provider."""
    return hasattr(strategy, "ask")


def is_eager(strategy: object) -> TypeGuard[Eager]:
    """Whether a strategy may have something to do before the high mark."""
    return hasattr(strategy, "due")


def follows(strategy: object) -> TypeGuard[Following]:
    """Whether a strategy reads messages as they come."""
    return hasattr(strategy, "follow")


def tells(strategy: object) -> TypeGuard[Telling]:
    """Whether requests tell the layered state under a strategy."""
    return hasattr(strategy, "layers")


def substitutes(strategy: object) -> TypeGuard[Substituting]:
    """Whether a strategy knows something better than a marker."""
    return hasattr(strategy, "instead")


def names() -> tuple[str, ...]:
    """The strategies that have a name, those of plug-ins included, which are loaded for it."""
    from windowsill.strategies import plugins  # noqa: PLC0415  pluggy and entry points only where they are needed

    return tuple(sorted(plugins.registry().load_all().offers))


def get(strategy: str | Strategy | None = None, settings: Mapping[str, Any] | None = None) -> Strategy:
    """A strategy by name or dotted path (`package.module:Class`), with its settings; an object is given back.

    Settings may follow the name: `sliding-window:keep=8`, `package.module:Class:size=8`. Several names joined by `+`
    are a pipeline. A plug-in that cannot be loaded is reported, and the default takes over.
    """
    if isinstance(strategy, Strategy) and not isinstance(strategy, (str, type)):
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
        from windowsill.strategies import plugins  # noqa: PLC0415  pluggy and entry points only where they are needed

        if (built := plugins.build(name, values)) is not None:
            return built
    made = factory(name)
    if not isinstance(made, type) or not callable(getattr(made, "plan", None)):
        # Nothing else is called: a settings file of somebody else's project may name any function that is installed.
        raise _no_strategy(name)
    return make(name, made, values)


def _no_strategy(name: str) -> InputError:
    return InputError(f"{name} is not a strategy", remedy="give it a `name` and a method `plan(view, budget)`")


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
    """What makes the strategy of a name or dotted path: its class, or a function."""
    path = BUILT_IN.get(name, name)
    if name not in BUILT_IN and ":" not in name:
        from windowsill.strategies import plugins  # noqa: PLC0415  as in `names`

        offer = plugins.offer(name)
        if callable(offer):
            return offer
        path = offer or name
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
