"""What is wrong with the settings of a strategy: which one, its value, and what is allowed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from windowsill.config.loading import CODE, Loaded
from windowsill.config.problems import placed, unknown
from windowsill.config.settings import TABLES
from windowsill.config.spelling import read
from windowsill.errors import SettingError

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
