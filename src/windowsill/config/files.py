"""Finding and reading the files that settings stand in."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from windowsill.errors import InputError

OWN = "windowsill.toml"
PROJECT = "pyproject.toml"
TABLE = "tool.windowsill"
"""The table of `pyproject.toml` that is ours."""

PLUGIN = "plugin.json"
CONTEXT = "contextStrategy"
"""The field of `plugin.json` that is ours; one without it belongs to somebody else."""


LARGEST = 4 * 1024 * 1024
"""Bytes of a file with settings, the lists of dependencies in a `pyproject.toml` included."""


class Found(NamedTuple):
    """A file that holds settings, and what it holds."""

    place: str
    """The file, as errors name it."""
    values: dict[str, Any]


def find_settings(folder: Path) -> Found | None:
    """The nearest `windowsill.toml`, or `pyproject.toml` with our table, from this folder upwards."""
    for each in (folder, *folder.parents):
        if _is_file(each / OWN):
            return read_settings_file(each / OWN)
        if _is_file(each / PROJECT) and _mentions(each / PROJECT, "windowsill"):
            found = read_settings_file(each / PROJECT)
            if found.values:
                return found
    return None


def read_settings_file(path: Path) -> Found:
    """What a settings file holds: all of `windowsill.toml`, our table of a `pyproject.toml`."""
    import tomllib  # noqa: PLC0415  loaded on use: most sessions have no such file

    try:
        values: Any = tomllib.loads(_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not TOML: {error}", remedy="correct that line", place=str(path)) from None
    except RecursionError:
        raise InputError(f"{path} is nested too deeply", remedy="write less brackets", place=str(path)) from None
    if path.name != PROJECT:
        return Found(str(path), values)
    for part in TABLE.split("."):
        values = values.get(part, {}) if isinstance(values, dict) else {}
    return Found(f"{path} [{TABLE}]", values if isinstance(values, dict) else {})


def find_plugin(folder: Path) -> Found | None:
    """The nearest `plugin.json` with a `contextStrategy`, from this folder upwards."""
    for each in (folder, *folder.parents):
        if _is_file(each / PLUGIN) and _mentions(each / PLUGIN, CONTEXT):
            return read_plugin_file(each / PLUGIN)
    return None


def read_plugin_file(path: Path) -> Found:
    """What a `plugin.json` holds."""
    try:
        values = msgspec.json.decode(_text(path))
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}", remedy="correct it", place=str(path)) from None
    if not isinstance(values, dict):
        raise InputError(f"{path} is not a JSON object", remedy=f"write {{{CONTEXT!r}: ...}}", place=str(path))
    return Found(str(path), values)


def _text(path: Path) -> str:
    try:
        return _bytes(path).decode("utf-8-sig")
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise InputError(f"{path} cannot be read: {why}", remedy="check the path", place=str(path)) from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8", remedy="save it as UTF-8", place=str(path)) from None
    except ValueError:
        raise InputError(f"{str(path)!r} is no path", remedy="give the path of a file") from None


def _bytes(path: Path) -> bytes:
    """What a file holds; an `OSError` for one so large that it cannot be meant, such as a device without end."""
    with path.open("rb") as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise OSError(f"it is larger than {LARGEST:,} bytes")
    return data


def _is_file(path: Path) -> bool:
    """Whether there is such a file; where that may not even be asked, there is none for us."""
    try:
        return path.is_file()
    except OSError:
        return False


def _mentions(path: Path, word: str) -> bool:
    """Whether a file that may be somebody else's could be meant for us; one that cannot be read is not."""
    try:
        return word.encode() in _bytes(path)
    except OSError:
        return False
