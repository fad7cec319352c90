"""Plug-ins: strategies of other packages, found through entry points and registered with pluggy.

An entry point of the group `windowsill` is a strategy class, which goes by the entry point's name, or a module (or
object) with the hook `windowsill_strategies`, which gives several by name.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeAlias

import msgspec
import pluggy

from windowsill.errors import SettingError
from windowsill.logs import log
from windowsill.strategies import BUILT_IN, Strategy, factory, make
from windowsill.strategies.guard import guarded, substitute, within

GROUP = "windowsill"

LOAD_SECONDS = 10.0
"""How long importing a plug-in may take: large packages take seconds, one that waits for something never ends."""

hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)
"""Marks the hooks of a plug-in."""

Offer: TypeAlias = Callable[..., Any] | str
"""What makes a strategy: a class or function, or its dotted path (`package.module:Class`), imported when it is used."""


class Hooks:
    """What a plug-in may offer."""

    @hookspec
    def windowsill_strategies(self) -> Mapping[str, Offer]:  # type: ignore[empty-body]
        """Strategies by name."""


class Plugged(msgspec.Struct, frozen=True):
    """A strategy of a plug-in."""

    name: str
    offer: Offer
    package: str


class Problem(msgspec.Struct, frozen=True):
    """A plug-in that cannot be used."""

    name: str
    package: str
    error: str

    def __str__(self) -> str:
        """One line for a person."""
        return f"plug-in {self.name!r} of {self.package}: {self.error}"


class _Single:
    """The plug-in that a strategy class is: one strategy, by the name of its entry point."""

    def __init__(self, name: str, offer: Offer) -> None:
        self._strategies = {name: offer}

    @hookimpl
    def windowsill_strategies(self) -> Mapping[str, Offer]:
        return self._strategies


class Registry:
    """All strategies that have a name. A plug-in is loaded when it is asked for, and never twice."""

    def __init__(self, built_in: Mapping[str, str], found: Iterable[EntryPoint]) -> None:
        # Sessions are opened in many threads, and what one of them is loading the others have to wait for.
        self._lock = threading.RLock()
        self._manager = pluggy.PluginManager(GROUP)
        self._manager.add_hookspecs(Hooks)
        # In a fixed order: of two packages that offer the same name, always the same one gets it.
        self._waiting = sorted(found, key=lambda point: (point.name, package_of(point), point.value))
        self.offers: dict[str, Plugged] = {}
        self.problems: list[Problem] = []
        for name, path in built_in.items():
            self._register(_Single(name, path), name, "windowsill")

    def find(self, name: str) -> Plugged | Problem | None:
        """What offers a strategy of this name, or why the plug-in of this name does not.

        The entry point of that name is loaded; the others only where it is none, and no dotted path either.
        """
        with self._lock:
            self._load([point for point in self._waiting if point.name == name])
            problem = next((each for each in self.problems if each.name == name), None)
            if name not in self.offers and problem is None and "." not in name:
                self.load_all()
            return self.offers.get(name) or problem

    def load_all(self) -> Registry:
        """The registry itself, with every plug-in loaded."""
        with self._lock:
            self._load(list(self._waiting))
        return self

    def _load(self, points: Iterable[EntryPoint]) -> None:
        for point in points:
            self._waiting.remove(point)
            package = package_of(point)
            try:
                self._adopt(within(LOAD_SECONDS, point.load), point.name, package)
            except TimeoutError:
                self._report(point.name, package, f"did not load in {LOAD_SECONDS:g} seconds")
            except Exception as error:  # noqa: BLE001 - a package of somebody else may raise anything
                self._report(point.name, package, f"{type(error).__name__}: {error}")

    def _adopt(self, plugin: Any, name: str, package: str) -> None:
        hooked = hasattr(plugin, "windowsill_strategies")
        self._register(_Single(name, plugin) if callable(plugin) and not hooked else plugin, name, package)

    def _register(self, plugin: object, name: str, package: str) -> None:
        known = f"{package}:{name}"
        try:
            self._manager.register(plugin, known)
        except Exception as error:  # noqa: BLE001 - pluggy checks the plug-in's own functions, by calling for their marks
            self._report(name, package, f"{type(error).__name__}: {error}")
            return
        hooks = [each for each in self._manager.hook.windowsill_strategies.get_hookimpls() if each.plugin_name == known]
        if not hooks:
            self._report(name, package, "it is no strategy and has no hook `windowsill_strategies`")
        for hook in hooks:
            try:
                given = hook.function() if package == "windowsill" else within(LOAD_SECONDS, hook.function)
            except TimeoutError:
                self._report(name, package, f"did not answer in {LOAD_SECONDS:g} seconds")
            except Exception as error:  # noqa: BLE001 - as above
                self._report(name, package, f"{type(error).__name__}: {error}")
            else:
                self._take(given, name, package)

    def _take(self, given: object, plugin: str, package: str) -> None:
        if not isinstance(given, Mapping):
            self._report(plugin, package, f"`windowsill_strategies` gave {type(given).__name__}, not names")
            return
        for name, offer in given.items():
            if not isinstance(name, str) or not (callable(offer) or isinstance(offer, str)):
                self._report(plugin, package, f"{name!r} is {offer!r:.80}, not a strategy class or its dotted path")
            elif name in self.offers:
                self._report(name, package, f"{self.offers[name].package} has a strategy of this name already")
            else:
                self.offers[name] = Plugged(name, offer, package)

    def _report(self, name: str, package: str, error: str) -> None:
        self.problems.append(Problem(name, package, error))


def package_of(point: EntryPoint) -> str:
    """The package that an entry point belongs to."""
    return point.dist.name if point.dist is not None else point.value.partition(":")[0].partition(".")[0]


def build(name: str, settings: Mapping[str, Any]) -> Strategy | None:
    """The strategy of a plug-in, guarded; `None` when none offers it. One that cannot be used is the default instead.

    `SettingError` when it does not take the settings: that is the user's mistake, not the plug-in's.
    """
    found = registry().find(name)
    if found is None:
        return None
    if isinstance(found, Problem):
        return substitute(name, found.package, f"cannot be used ({found.error})")
    try:
        made = within(LOAD_SECONDS, lambda: make(name, factory(name), settings))
    except SettingError:
        raise
    except TimeoutError:
        return substitute(name, found.package, f"was not made in {LOAD_SECONDS:g} seconds")
    except Exception as error:  # noqa: BLE001 - as above
        return substitute(name, found.package, f"cannot be made ({type(error).__name__}: {error})")
    return guarded(made, source=found.package)


def offer(name: str) -> Offer | None:
    """What makes the strategy of a plug-in; `None` when none offers it."""
    found = registry().find(name)
    return found.offer if isinstance(found, Plugged) else None


@functools.cache
def registry() -> Registry:
    """The registry of this process."""
    try:
        found = tuple(entry_points(group=GROUP))
    except Exception as error:  # noqa: BLE001 - the metadata of any installed package may be damaged
        log.warning("plug-ins cannot be looked for: %s: %s", type(error).__name__, error)
        found = ()
    return Registry(BUILT_IN, found)
