"""Finds a strategy by name, dotted path or plug-in, makes it with its settings, and says what is wrong with those.

A plug-in is an entry point of the group `windowsill` that names a strategy class.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, get_args, runtime_checkable

import msgspec

from windowsill.budget import Budget
from windowsill.config.load import CODE, Loaded
from windowsill.config.settings import DEFAULT_STRATEGY, TABLES, read_stages
from windowsill.errors import InputError, NotFoundError, SettingError, StoreError, log
from windowsill.history.folds import Proposal
from windowsill.history.view import Item, View
from windowsill.strategies.base import Plan, ProviderRequestFields, Strategy
from windowsill.strategies.sliding_window import SlidingWindow

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


OURS = "windowsill.strategies."
"""The package of the strategies that come with Windowsill, and of `Guarded`."""

T = TypeVar("T")


def guarded(strategy: Strategy) -> Strategy:
    """Return the strategy as a session may use it: our own as they are, all others guarded."""
    stages = getattr(strategy, "stages", ())
    ours = all(type(each).__module__.startswith(OURS) for each in (strategy, *stages))
    return strategy if ours else Guarded(strategy)


class Guarded(Strategy):
    """A strategy that always answers: with what the guarded one says, or with the sliding window where that fails.

    `source` says in reports where it comes from, such as its package. One with a `fault` could not even be made, and
    is never asked.
    """

    def __init__(self, strategy: Strategy, *, name: str = "", source: str = "", fault: str = "") -> None:
        self.strategy = strategy
        self.name = name or str(strategy.name)
        self.source = source
        self.fault = self._report(fault) if fault else ""

    @property
    def delegates(self) -> bool:
        """True where the guarded strategy leaves the work to the provider."""
        return self.strategy.delegates

    def plan(self, view: View, budget: Budget) -> Plan:
        """Return what the strategy plans, or what the sliding window does when it fails."""
        notes = [self.fault] if self.fault else []
        plan = None if self.fault else self._answer(lambda: _checked(self.strategy.plan(view.copy(), budget)), notes)
        if plan is not None:
            return plan
        instead = SlidingWindow().plan(view, budget)
        return msgspec.structs.replace(instead, notes=(*notes, *instead.notes))

    def due(self, view: View, budget: Budget) -> bool:
        """Tell whether the strategy wants to plan now; it does not when it fails."""
        return not self.fault and self._answer(lambda: self.strategy.due(view.copy(), budget)) is True

    def explain(self, view: View, budget: Budget) -> dict[str, float | str]:
        """Return what the strategy says of its decision; nothing when it fails."""
        return self._answer(lambda: dict(self.strategy.explain(view.copy(), budget))) or {}

    def instead(self, view: View, budget: Budget) -> Plan:
        """Return what the strategy folds where a summary could not be written; nothing when it fails."""
        return self._answer(lambda: _checked(self.strategy.instead(view.copy(), budget))) or Plan()

    def ask(self, format: str, budget: Budget) -> ProviderRequestFields | None:
        """Return what the strategy says to the provider; nothing when it fails."""
        asking = self._answer(lambda: self.strategy.ask(format, budget))
        return asking if isinstance(asking, ProviderRequestFields) else None

    def layers(self, budget: Budget) -> int:
        """Return the tokens in which the layered state may be told; 0 when the strategy fails."""
        tokens = self._answer(lambda: self.strategy.layers(budget))
        return tokens if isinstance(tokens, int) else 0

    def _answer(self, ask: Callable[[], T], notes: list[str] | None = None) -> T | None:
        """Return what the strategy answers; `None`, and a report, when it raises."""
        try:
            return ask()
        except StoreError:
            # A disk that fails is not the strategy's fault.
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it may raise anything, and must not cost the turn
            report = self._report(f"failed with {type(error).__name__}: {error}")
            if notes is not None:
                notes.append(report)
            return None

    def _report(self, what: str) -> str:
        source = f" of {self.source}" if self.source else ""
        sentence = f"strategy {self.name!r}{source} {what}; {SlidingWindow.name} takes over"
        log.warning("%s", sentence)
        return sentence


def _checked(plan: object) -> Plan:
    """Return a plan; `InputError` for anything else: structs do not look at what they are given."""
    if not isinstance(plan, Plan):
        raise InputError(f"it planned {type(plan).__name__}", remedy="return a Plan")
    for field, kind in (("proposals", Proposal), ("middle", Item), ("notes", str)):
        values = getattr(plan, field)
        if not isinstance(values, (tuple, list)) or not all(isinstance(value, kind) for value in values):
            raise InputError(f"its plan's {field} are {values!r:.80}", remedy=f"give a tuple of {kind.__name__}")
    return plan


# A whole context manager in the place of a strategy: it composes what is sent, and the composer keeps its promises.


@runtime_checkable
class ContextManager(Protocol):
    """Decides what a model sees. Windowsill's own is `Manager`; a program may bring another."""

    async def compose_payload(
        self, system_prompt: Any, history: Sequence[Any], tools: Sequence[Any], rag_context: str | None = None
    ) -> Any:
        """Compose what to send now: a list of messages, a request body, or a `Payload`."""

    async def on_turn_complete(self, history: Sequence[Any]) -> None:
        """Do, after a turn, the work that no turn should wait for."""


class Managed(Strategy):
    """Lets a context manager compose; where that fails or does not fit, the sliding window plans."""

    def __init__(self, manager: ContextManager, *, name: str = "", source: str = "") -> None:
        self.manager = manager
        self.name = name or str(getattr(manager, "name", "") or type(manager).__name__)
        self.source = source

    def plan(self, view: View, budget: Budget) -> Plan:
        """Hide the oldest units, as the default does."""
        return SlidingWindow().plan(view, budget)


def is_manager(made: object) -> bool:
    """Tell whether an object, or a class, has both calls of a context manager."""
    return all(callable(getattr(made, call, None)) for call in ("compose_payload", "on_turn_complete"))


GROUP = "windowsill"

BUILT_IN = {
    "compact": "windowsill.strategies.compact:Compact",
    "condense": "windowsill.strategies.condense:Condense",
    "economy": "windowsill.strategies.economy:Economy",
    "extract": "windowsill.strategies.extract:Extract",
    "importance": "windowsill.strategies.importance:Importance",
    "layered": "windowsill.strategies.layered:Layered",
    "mask": "windowsill.strategies.masks:Mask",
    "native": "windowsill.strategies.native:Native",
    "outputs": "windowsill.strategies.outputs:Outputs",
    "priority": "windowsill.strategies.priority:Priority",
    "sliding-window": "windowsill.strategies.sliding_window:SlidingWindow",
    "summarize": "windowsill.strategies.summarize:Summarize",
    "tiered": "windowsill.strategies.tiered:Tiered",
}


def get(strategy: str | Strategy | ContextManager | None = None, settings: Mapping[str, Any] | None = None) -> Strategy:
    """Return a strategy by name or dotted path (`package.module:Class`) with its settings; an object as it is.

    Settings may follow the name: `sliding-window:keep=8`, `package.module:Class:size=8`. Several names joined by `+`
    are a pipeline. A plug-in that cannot be loaded is reported, and the sliding window takes over.
    """
    if isinstance(strategy, Strategy):
        return strategy
    if strategy is not None and not isinstance(strategy, str) and is_manager(strategy):
        return Managed(strategy)
    stages = read_stages(str(strategy or DEFAULT_STRATEGY))
    if len(stages) == 1:
        return _build(stages[0].name, {**stages[0].settings, **(settings or {})})
    if settings:
        raise SettingError("settings", dict(settings), "those of each stage behind its name: mask:keep=5+condense")
    from windowsill.strategies.pipeline import Pipeline  # noqa: PLC0415 - a pipeline is made of what this module gives

    return Pipeline([_build(stage.name, stage.settings) for stage in stages])


def names() -> tuple[str, ...]:
    """Return the names of all strategies, those of plug-ins included; none is loaded for it."""
    return tuple(sorted({*BUILT_IN, *plugin_points()}))


def is_installed(name: str) -> bool:
    """Tell whether somebody installed a strategy under this name, so that no path is imported for it."""
    return name in names() or name.rpartition(":")[0] in BUILT_IN


def settings_of(name: str) -> dict[str, Any]:
    """Return the settings of a strategy with their defaults; `None` for one that has to be stated."""
    made = factory(name)
    if not (isinstance(made, type) and issubclass(made, msgspec.Struct)):
        return {}
    return {field.name: _default(field) for field in msgspec.structs.fields(made)}


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return None if field.default is msgspec.NODEFAULT else field.default


def factory(name: str) -> Any:
    """Return what a name or dotted path stands for: the class of a strategy, or whatever is there."""
    plugin = _plugin_called(name)
    if plugin is not None:
        if plugin.made is None:
            raise InputError(f"strategy {name!r} of {plugin.package} cannot be used: {plugin.error}", strategy=name)
        return plugin.made
    module, _, attribute = BUILT_IN.get(name, name).replace(":", ".").rpartition(".")
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


def _build(name: str, values: dict[str, Any]) -> Strategy:
    head, _, last = name.rpartition(":")
    if head in BUILT_IN:
        # `sliding-window:` states nothing, `sliding-window:keep` a setting without a value.
        name, values = head, {**({last: ""} if last else {}), **values}
    plugin = _plugin_called(name)
    if plugin is not None:
        return _build_plugin(plugin, values)
    made = factory(name)
    if not _is_usable(made):
        # Nothing else is called: a settings file of somebody else's project may name any function that is installed.
        raise InputError(
            f"{name} is not a strategy", remedy="derive a class with a `name` and a `plan` from windowsill.Strategy"
        )
    return _make(name, made, values)


def _is_usable(made: object) -> bool:
    """Tell whether this is the class of a strategy, or of a context manager."""
    return isinstance(made, type) and (issubclass(made, Strategy) or is_manager(made))


def _make(name: str, made: type[Any], values: Mapping[str, Any], source: str = "") -> Strategy:
    """Make a strategy from its class and settings; `SettingError` when it does not take them."""
    try:
        is_struct = issubclass(made, msgspec.Struct)
        found = msgspec.convert(_with_numbers(made, values), made, strict=False) if is_struct else made(**values)
        return found if isinstance(found, Strategy) else Managed(found, name=name, source=source)
    except (msgspec.ValidationError, TypeError) as error:
        raise _refusal(name, made, values, error) from None


def _with_numbers(made: type[msgspec.Struct], values: Mapping[str, Any]) -> dict[str, Any]:
    """Read settings of a line of text: where both a number and text are allowed, what looks like a number is one."""
    mixed = {field.name for field in msgspec.structs.fields(made) if {float, str} <= set(get_args(field.type))}
    return {
        name: _number(value) if name in mixed and isinstance(value, str) else value for name, value in values.items()
    }


def _number(text: str) -> float | str:
    try:
        return msgspec.convert(text, int | float, strict=False)
    except msgspec.ValidationError:
        return text


# Plug-ins


class Plugin(msgspec.Struct, frozen=True):
    """A strategy that another package offers, or why it cannot be used."""

    name: str
    package: str
    made: type[Any] | None = None
    error: str = ""


@functools.cache
def plugin_points() -> dict[str, EntryPoint]:
    """Return the entry points of installed packages by name; none is loaded, and names of ours stay ours."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - reading metadata of packages takes long

    try:
        installed = list(entry_points(group=GROUP))
    except Exception as error:  # noqa: BLE001 - the metadata of any installed package may be damaged
        log.warning("plug-ins cannot be looked for: %s: %s", type(error).__name__, error)
        return {}
    found: dict[str, EntryPoint] = {}
    # In a fixed order: of two packages that offer the same name, always the same one gets it.
    for point in sorted(installed, key=lambda point: (point.name, _package(point), point.value)):
        if point.name in BUILT_IN or point.name in found:
            owner = _package(found[point.name]) if point.name in found else "windowsill"
            log.warning("plug-in %r of %s: %s has a strategy of this name already", point.name, _package(point), owner)
        else:
            found[point.name] = point
    return found


@functools.cache
def find_plugin(name: str) -> Plugin | None:
    """Load the plug-in of this name; `None` when no package offers it."""
    point = plugin_points().get(name)
    if point is None:
        return None
    package = _package(point)
    try:
        made = point.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a package of somebody else may raise anything
        return Plugin(name, package, error=f"{type(error).__name__}: {error}")
    if not _is_usable(made):
        return Plugin(name, package, error=f"{made!r:.80} is not a class derived from windowsill.Strategy")
    return Plugin(name, package, made)


def _plugin_called(name: str) -> Plugin | None:
    return None if name in BUILT_IN or ":" in name else find_plugin(name)


def _build_plugin(plugin: Plugin, settings: Mapping[str, Any]) -> Strategy:
    """Make the strategy of a plug-in, guarded; the sliding window replaces one that fails.

    `SettingError` when it does not take the settings: that is the user's mistake, not the plug-in's.
    """
    fault = f"cannot be used ({plugin.error})"
    if plugin.made is not None:
        try:
            found = _make(plugin.name, plugin.made, settings, plugin.package)
            return found if isinstance(found, Managed) else Guarded(found, source=plugin.package)
        except SettingError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - as above
            fault = f"cannot be made ({type(error).__name__}: {error})"
    return Guarded(SlidingWindow(), name=plugin.name, source=plugin.package, fault=fault)


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value.partition(":")[0].partition(".")[0]


# Errors

_UNKNOWN = re.compile(r"unknown field `([^`]*)`")
_MISSING = re.compile(r"missing required field `([^`]*)`")
_PLACE = re.compile(r" - at `\$\.?([A-Za-z0-9_]*)[^`]*`")


def _refusal(name: str, made: Any, values: Mapping[str, Any], error: Exception) -> SettingError:
    """Return the error of a strategy that does not take its settings, about the one that is wrong where possible."""
    cause, what = error.__cause__, str(error)
    if isinstance(cause, SettingError):
        return SettingError(f"{name}.{cause.setting}", cause.value, cause.allowed)
    if (found := _UNKNOWN.search(what)) is not None:
        fields = [field.encode_name for field in msgspec.structs.fields(made)]
        return SettingError.unknown(found[1], values.get(found[1]), fields, table=name)
    if (found := _MISSING.search(what)) is not None:
        return SettingError(f"{name}.{found[1]}", None, "a value: it has no default")
    if (found := _PLACE.search(what)) is not None and found[1] in values:
        return SettingError(f"{name}.{found[1]}", values[found[1]], f"another kind of value ({what[: found.start()]})")
    return SettingError(f"strategy {name}", dict(values), f"settings as `windowsill strategies` lists them ({what})")


def check_found(loaded: Loaded) -> None:
    """Refuse a strategy by its path in a settings file that nobody named: importing it runs whatever lies there.

    Names are those of strategies that somebody installed as such. Tables of settings are checked whether or not their
    strategy is in use: a name that was mistyped would never be read.
    """
    for name, table in loaded.tables.items():
        origins = {f"{name}.{key}": loaded.origins.get(f"{TABLES}.{name}.{key}", CODE) for key in table}
        try:
            if not is_installed(name) and not re.search("[.:]", name):
                raise SettingError.unknown(name, table, names(), table=TABLES)
            if name in BUILT_IN:
                get(name, table)
        except SettingError as error:
            if error.setting in origins:
                raise error.at(origins[error.setting], f"{TABLES}.{error.setting}") from None
            if not is_installed(name):
                raise error.at(next(iter(origins.values()), TABLES)) from None
    place = loaded.origin("strategy")
    for stage in read_stages(loaded.settings.strategy) if place in loaded.found else ():
        if not is_installed(stage.name) and re.search("[.:]", stage.name):
            allowed = "the name of an installed strategy here, or state a path in code or in WINDOWSILL_STRATEGY"
            raise SettingError("strategy", stage.name, allowed).at(place)


def with_place(error: SettingError, loaded: Loaded) -> SettingError:
    """Return the error of a strategy with the file or variable in which its setting, or its name, was stated."""
    for stage in read_stages(loaded.settings.strategy):
        for key in stage.settings:
            origin = loaded.origins.get(f"{TABLES}.{stage.name}.{key}")
            if origin is not None and error.setting == f"{stage.name}.{key}":
                # In the strategy's line every number became text; the file has it as it was written.
                found = SettingError(error.setting, loaded.tables[stage.name][key], error.allowed)
                return found.at(origin, f"{TABLES}.{stage.name}.{key}")
    origin = loaded.origins.get("strategy", CODE)
    return error if origin == CODE else error.at(origin)
