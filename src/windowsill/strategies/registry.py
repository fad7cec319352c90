"""Plug-ins: strategies of other packages. An entry point of the group `windowsill` is a strategy class by name."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import msgspec

from windowsill.config.load import CODE, Loaded
from windowsill.config.profiles import placed, unknown
from windowsill.config.settings import TABLES, read
from windowsill.errors import SettingError, log
from windowsill.strategies import BUILT_IN, Strategy, make
from windowsill.strategies.guard import Guarded
from windowsill.strategies.sliding_window import SlidingWindow

GROUP = "windowsill"


class Plugin(msgspec.Struct, frozen=True):
    """A strategy that another package offers, or why it cannot be used."""

    name: str
    package: str
    made: type[Strategy] | None = None
    error: str = ""


@functools.cache
def points() -> dict[str, EntryPoint]:
    """Return the entry points of installed packages by name; none is loaded, and names of ours stay ours."""
    try:
        installed = list(entry_points(group=GROUP))
    except Exception as error:  # noqa: BLE001 - the metadata of any installed package may be damaged
        log.warning("plug-ins cannot be looked for: %s: %s", type(error).__name__, error)
        return {}
    found: dict[str, EntryPoint] = {}
    # In a fixed order: of two packages that offer the same name, always the same one gets it.
    for point in sorted(installed, key=lambda point: (point.name, package_of(point), point.value)):
        if point.name in BUILT_IN or point.name in found:
            owner = package_of(found[point.name]) if point.name in found else "windowsill"
            log.warning(
                "plug-in %r of %s: %s has a strategy of this name already", point.name, package_of(point), owner
            )
        else:
            found[point.name] = point
    return found


@functools.cache
def find(name: str) -> Plugin | None:
    """Load the plug-in of this name; `None` when no package offers it."""
    point = points().get(name)
    if point is None:
        return None
    package = package_of(point)
    try:
        made = point.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a package of somebody else may raise anything
        return Plugin(name, package, error=f"{type(error).__name__}: {error}")
    if not isinstance(made, type) or not issubclass(made, Strategy):
        return Plugin(name, package, error=f"{made!r:.80} is not a class derived from windowsill.Strategy")
    return Plugin(name, package, made)


def build(name: str, settings: Mapping[str, Any]) -> Strategy | None:
    """Make the strategy of a plug-in, guarded; `None` when none offers it. The default replaces one that fails.

    `SettingError` when it does not take the settings: that is the user's mistake, not the plug-in's.
    """
    plugin = find(name)
    if plugin is None:
        return None
    if plugin.made is None:
        return _default(plugin, f"cannot be used ({plugin.error})")
    try:
        return Guarded(make(name, plugin.made, settings), source=plugin.package)
    except SettingError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - as above
        return _default(plugin, f"cannot be made ({type(error).__name__}: {error})")


def _default(plugin: Plugin, fault: str) -> Strategy:
    return Guarded(SlidingWindow(), name=plugin.name, source=plugin.package, fault=fault)


def package_of(point: EntryPoint) -> str:
    """Return the package that an entry point belongs to."""
    return point.dist.name if point.dist is not None else point.value.partition(":")[0].partition(".")[0]


_UNKNOWN = re.compile(r"unknown field `([^`]*)`")
_MISSING = re.compile(r"missing required field `([^`]*)`")
_PLACE = re.compile(r" - at `\$\.?([A-Za-z0-9_]*)[^`]*`")


def refused(name: str, made: Any, values: Mapping[str, Any], error: Exception) -> SettingError:
    """The error of a strategy that does not take its settings, about the one that is wrong where that can be told."""
    cause, what = error.__cause__, str(error)
    if isinstance(cause, SettingError):
        return SettingError(f"{name}.{cause.setting}", cause.value, cause.allowed)
    if (found := _UNKNOWN.search(what)) is not None:
        fields = [field.encode_name for field in msgspec.structs.fields(made)]
        return SettingError(f"{name}.{found[1]}", values.get(found[1]), unknown(found[1], None, fields).allowed)
    if (found := _MISSING.search(what)) is not None:
        return SettingError(f"{name}.{found[1]}", None, "a value: it has no default")
    if (found := _PLACE.search(what)) is not None and found[1] in values:
        return SettingError(f"{name}.{found[1]}", values[found[1]], f"another kind of value ({what[: found.start()]})")
    return SettingError(f"strategy {name}", dict(values), f"settings as `windowsill strategies` lists them ({what})")


def located(error: SettingError, loaded: Loaded) -> SettingError:
    """The error of a strategy with the file or variable in front in which its setting, or its name, was stated."""
    for stage in read(loaded.settings.strategy):
        for key in stage.settings:
            origin = loaded.origins.get(f"{TABLES}.{stage.name}.{key}")
            if origin is not None and error.setting == f"{stage.name}.{key}":
                # In the strategy's line every number became text; the file has it as it was written.
                found = SettingError(error.setting, loaded.tables[stage.name][key], error.allowed)
                return placed(found, origin, f"{TABLES}.{stage.name}.{key}")
    origin = loaded.origins.get("strategy", CODE)
    return error if origin == CODE else placed(error, origin)
