"""Loading: settings from code, the environment and files, in this order, and where each came from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from windowsill.config.environment import PREFIX, from_environment
from windowsill.config.files import find_plugin, find_settings, read_settings_file
from windowsill.config.plugin_json import from_plugin
from windowsill.config.presets import expanded
from windowsill.config.problems import placed
from windowsill.config.settings import TABLES, Settings, changed, check_tables, check_value
from windowsill.config.trust import refuse_addresses
from windowsill.config.tuning import tuned
from windowsill.errors import SettingError

CODE = "code"

NESTED = (TABLES, "models", "profiles")
"""Settings that are tables of tables: sources add to each other there, the stronger one key by key."""


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """Settings from all sources."""

    settings: Settings
    stated: dict[str, Any] = {}
    """Those that some source states, for `changed`."""
    tables: dict[str, dict[str, Any]] = {}
    """The settings of strategies by name, also of those that are not in use."""
    origins: dict[str, str] = {}
    """Where each stated setting was stated: a file, a variable, or code."""
    notes: tuple[str, ...] = ()

    def origin(self, setting: str) -> str:
        """Where a setting was stated: a file, a variable, code, or `default`."""
        return self.origins.get(setting, "default")

    def opening(self) -> dict[str, Any]:
        """What `Session.open` has to be told for these settings to hold, the profile of the model applied."""
        held = tuned(self.settings)
        usual = Settings()
        return {
            name: getattr(held, name)
            for name in Settings.__struct_fields__
            if getattr(held, name) != getattr(usual, name)
        }


def load(
    stated: Mapping[str, Any] | None = None,
    *,
    folder: Path | str | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | str | None = None,
) -> Loaded:
    """Settings as they hold here: code over `WINDOWSILL_*` over the settings file over the defaults.

    `stated` is what code states (`None` is not stated). The file is the nearest from `folder` (the current one)
    upwards, or `file`. `SettingError` names the place, the key, the value and what is allowed.
    """
    here = Path(folder).absolute() if folder is not None else _current()
    variables, notes = from_environment(os.environ if environ is None else environ)
    layers: list[tuple[str, dict[str, Any]]] = []
    if here is not None and (plugin := find_plugin(here)) is not None:
        layers.append((plugin.place, refuse_addresses(plugin.place, from_plugin(plugin))))
    if file is not None:
        layers.append(read_settings_file(Path(file)))
    elif here is not None and (found := find_settings(here)) is not None:
        layers.append((found.place, refuse_addresses(found.place, found.values)))
    layers += [(PREFIX + name.upper(), {name: value}) for name, value in _in_order(variables)]
    layers.append((CODE, {name: value for name, value in (stated or {}).items() if value is not None}))
    return _merged(layers, tuple(notes))


def _current() -> Path | None:
    """The current folder; `None` when somebody removed it, and there is nothing to be found in it."""
    try:
        return Path.cwd()
    except OSError:
        return None


def _in_order(variables: dict[str, Any]) -> list[tuple[str, Any]]:
    """A preset first: the marks that are stated beside it win."""
    return sorted(variables.items(), key=lambda pair: pair[0] != "preset")


def _merged(layers: list[tuple[str, dict[str, Any]]], notes: tuple[str, ...]) -> Loaded:
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for place, layer in layers:
        try:
            said = _checked(layer)
        except SettingError as error:
            raise _at(place, error) from None
        for name, value in said.items():
            if name in NESTED:
                values[name] = _laid_over(values.get(name, {}), value)
                origins |= {f"{name}.{each}.{key}": place for each, table in value.items() for key in table}
            else:
                values[name] = value
            origins[name] = place
    try:
        settings = changed(Settings(), values)
    except SettingError as error:
        raise _at(_place_of(error.setting, origins), error) from None
    return Loaded(settings=settings, stated=values, tables=values.get(TABLES, {}), origins=origins, notes=notes)


def _checked(layer: dict[str, Any]) -> dict[str, Any]:
    """A source's values, each of the kind it should be, with the marks of its preset among them."""
    for name, value in layer.items():
        if name == TABLES:
            check_tables(value)
        elif name != "strategy" or not isinstance(value, list):
            check_value(name, value)
        elif not value or not all(isinstance(each, str) for each in value):
            raise SettingError(name, value, "a strategy, or a list of them")
    return expanded(layer)


def _laid_over(below: dict[str, dict[str, Any]], above: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {**below, **{name: {**below.get(name, {}), **table} for name, table in above.items()}}


def _at(place: str, error: SettingError) -> SettingError:
    """The error with its place; code is where it is raised."""
    return error if place == CODE else placed(error, place)


def _place_of(setting: str, origins: dict[str, str]) -> str:
    """Where a setting was stated, or the table it is in."""
    return origins.get(setting) or origins.get(setting.partition(".")[0]) or CODE
