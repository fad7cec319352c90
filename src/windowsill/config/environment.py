"""Settings from environment variables: `WINDOWSILL_` and the setting's name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from windowsill.budget import Size, tokens_of
from windowsill.config.problems import placed
from windowsill.config.settings import TABLES, Settings
from windowsill.errors import SettingError

PREFIX = "WINDOWSILL_"

OTHERS = frozenset({"DEBUG", "HOME"})
"""Variables that are no settings of a session."""

SHOWN = 200
"""Characters of a value that an error quotes."""

_SHARE = re.compile(r"(?:0?\.\d+|1\.0*)")
"""A share of the window written as a number."""


def from_environment(environ: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """The settings that the environment states, and notes on variables that mean nothing.

    Tables are JSON. An empty variable states nothing.
    """
    kinds = {field.name: field.type for field in msgspec.structs.fields(Settings)}
    kinds[TABLES] = dict[str, dict[str, Any]]
    values: dict[str, Any] = {}
    notes: list[str] = []
    for variable in sorted(environ):
        name = variable.removeprefix(PREFIX).lower()
        text = environ[variable].strip()
        if not variable.startswith(PREFIX) or not text or name.upper() in OTHERS:
            continue
        if name in kinds:
            values[name] = _read(variable, name, text, kinds[name])
        else:
            notes.append(f"the environment variable {variable} is no setting and was passed over")
    return values, notes


def _read(variable: str, name: str, text: str, kind: Any) -> Any:
    try:
        if kind in (Size, Size | None):
            return _size(name, text)
        if text.startswith("{"):
            return msgspec.json.decode(text, type=kind)
        return msgspec.convert(text, kind, strict=False)
    except SettingError as error:
        raise placed(error, variable) from None
    except (msgspec.ValidationError, msgspec.DecodeError, RecursionError) as error:
        raise placed(SettingError(name, text[:SHOWN], f"another kind of value ({error})"), variable) from None


def _size(name: str, text: str) -> Size:
    """A size as it was typed; in tokens where it says nothing of a window."""
    if _SHARE.fullmatch(text):
        return float(text)
    tokens = tokens_of(text, 1, name)
    return text if "%" in text else tokens
