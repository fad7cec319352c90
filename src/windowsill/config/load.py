"""Load settings from code, the environment and files, the first the strongest, and record the source of each.

The `contextStrategy` of a `plugin.json` is read like a file. A settings file that nobody named, an export and a
snapshot may have come with somebody else's project: they send nothing anywhere and run no code.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from windowsill.budget import Size, tokens_of
from windowsill.config.settings import (
    TABLES,
    Settings,
    Stage,
    check_tables,
    check_value,
    read_stages,
    with_changes,
    with_preset,
    write_stages,
    writer_of,
)
from windowsill.errors import InputError, SettingError

REACH = ("writer", "user", "project", "scope", "files")
"""Settings that decide who reads the conversation, and which other sessions and files it reads or writes."""

WRITES = "model"
"""The setting of a strategy, and of a profile `writer`, that names the model which is given the conversation."""

_ADDRESS = re.compile(r"@\s*http(?!s?://(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?(?:/|$))", re.IGNORECASE)
"""The address of a model's server in a writer, unless it is plainly on this machine: nothing may be between host and
path, where a name and password would make another host of the rest."""


def refuse_addresses(place: str, values: dict[str, Any]) -> None:
    """Refuse a server elsewhere in a file that nobody named: it must not decide where words and keys are sent."""
    for key, text in _texts(values):
        if _ADDRESS.search(text):
            allowed = "a server on this machine here, or state it in code or in WINDOWSILL_WRITER"
            raise SettingError(key, text, allowed).at(place)


def without_reach(settings: Settings, is_installed: Callable[[str], bool]) -> tuple[Settings, tuple[str, ...]]:
    """Return the settings of a file from elsewhere without what only a user may decide, and the names left out.

    These are `REACH`, every other model that is given the conversation, paths of files, and strategies that are not
    installed under a name of their own: importing one by its path runs whatever lies there.
    """
    plain = Settings()
    found: dict[str, Any] = {name: getattr(plain, name) for name in REACH}
    profiles = {name: {**table, "writer": None} for name, table in settings.profiles.items() if table.get("writer")}
    found["profiles"] = {
        name: {key: value for key, value in profiles.get(name, table).items() if value is not None}
        for name, table in settings.profiles.items()
    }
    stages = read_stages(settings.strategy)
    if not all(is_installed(stage.name) for stage in stages):
        found["strategy"] = plain.strategy
    elif any(WRITES in stage.settings for stage in stages):
        kept = [{key: value for key, value in stage.settings.items() if key != WRITES} for stage in stages]
        found["strategy"] = write_stages(Stage(stage.name, left) for stage, left in zip(stages, kept, strict=True))
    if settings.tokenizer is not None and re.search(r"[/\\]|\.json$", settings.tokenizer):
        found["tokenizer"] = None
    changed = {name: value for name, value in found.items() if value != getattr(settings, name)}
    return msgspec.structs.replace(settings, **changed), tuple(sorted(changed))


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield all texts in a value, each with its key."""
    match value:
        case str():
            yield key, value
            if key == "strategy":
                for stage in read_stages(value):
                    yield from _texts(list(stage.settings.values()), "strategy.settings")
        case dict():
            for name, each in value.items():
                yield from _texts(each, f"{key}.{name}".lstrip("."))
        case list() | tuple():
            for each in value:
                yield from _texts(each, key)


CONTEXT = "contextStrategy"
"""The field of `plugin.json` that is ours; one without it belongs to somebody else."""

FIELDS = ("type", "pluginId", "config")
TYPE = "plugin"

WRITER = "writer"
"""Our word for the model that writes, which is a setting of the session and not of a strategy."""

STANDARD: dict[str, tuple[str, dict[str, str]]] = {
    "std-sliding-window-strategy": ("sliding-window", {"keep": "keep", "quote": "quote"}),
    "std-summarization-strategy": (
        "summarize",
        {"threshold": "threshold", "batch": "batch", "compressionModel": WRITER},
    ),
    "std-extraction-strategy": ("extract", {"schema": "schema", "compressionModel": WRITER}),
}
"""Our strategies by their standard names, and our words for their config."""

_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/@-]*")


def from_plugin(place: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that a `plugin.json` states; another `pluginId` than ours is the name of a plug-in."""
    try:
        return _read(values.get(CONTEXT))
    except SettingError as error:
        raise error.at(place) from None


def _read(context: Any) -> dict[str, Any]:
    if not isinstance(context, dict):
        raise SettingError(CONTEXT, context, f"an object with {', '.join(FIELDS)}")
    for field, value in context.items():
        if field not in FIELDS:
            raise SettingError.unknown(field, value, FIELDS, table=CONTEXT)
    if context.get("type", TYPE) != TYPE:
        raise SettingError(f"{CONTEXT}.type", context["type"], repr(TYPE))
    plugin, config = context.get("pluginId"), context.get("config", {})
    if not isinstance(plugin, str) or not _ID.fullmatch(plugin):
        raise SettingError(f"{CONTEXT}.pluginId", plugin, f"one of {', '.join(STANDARD)}, or the name of a plug-in")
    if not isinstance(config, dict):
        raise SettingError(f"{CONTEXT}.config", config, "an object")
    if plugin not in STANDARD:
        return _settings(plugin, config)
    strategy, words = STANDARD[plugin]
    values: dict[str, Any] = {}
    for key, value in config.items():
        if key not in words:
            raise SettingError.unknown(key, value, words, table=f"{CONTEXT}.config")
        _check_word(f"{CONTEXT}.config.{key}", words[key], value)
        values[words[key]] = value
    model = values.pop(WRITER, None)
    return _settings(strategy, values) | ({} if model is None else {WRITER: writer_of(model)})


def _settings(strategy: str, config: dict[str, Any]) -> dict[str, Any]:
    return {"strategy": strategy, "strategies": {strategy: config}} if config else {"strategy": strategy}


def _check_word(place: str, word: str, value: Any) -> None:
    """Refuse a value that the strategy would refuse later, without naming the file."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    whole = number and isinstance(value, int)
    text = isinstance(value, str) and bool(value)
    checks = {
        "threshold": (whole and value >= 1, "a whole number from 1 on"),
        "batch": (whole and value >= 1, "a whole number from 1 on"),
        "keep": (whole and value >= 0, "a whole number from 0 on"),
        "quote": (number and 0 <= value <= 1, "a share of the window from 0 to 1"),
        "schema": (text or isinstance(value, dict), "a JSON schema, or the path of one"),
        WRITER: (text and writer_of(value), "a model of Anthropic, OpenAI or Google, or `openai:NAME@ADDRESS`"),
    }
    valid, allowed = checks[word]
    if not valid:
        raise SettingError(place, value, allowed)


OWN = "windowsill.toml"
PROJECT = "pyproject.toml"
TABLE = "tool.windowsill"
"""The table of `pyproject.toml` that is ours."""
PLUGIN = "plugin.json"
PREFIX = "WINDOWSILL_"
CODE = "code"

OTHERS = frozenset({"DEBUG", "ENTROPY", "HOME", "KEY", "TOKEN", "TRACE"})
"""Variables with our prefix that are not settings of a session."""

NESTED = (TABLES, "models", "profiles")
"""Settings that are tables of tables: sources add to each other there, the stronger one key by key."""

LARGEST = 4 * 1024 * 1024
"""Bytes of a file with settings, the lists of dependencies in a `pyproject.toml` included."""

_SHARE = re.compile(r"(?:0?\.\d+|1\.0*)")
"""A share of the window written as a number."""

Source: TypeAlias = tuple[str, dict[str, Any]]
"""A place that states settings, as errors name it, and their values."""


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """Settings from all sources."""

    settings: Settings
    tables: dict[str, dict[str, Any]] = {}
    """The settings of strategies by name, also of those that are not in use."""
    origins: dict[str, str] = {}
    """The source of each stated setting: a file, a variable, or code."""
    notes: tuple[str, ...] = ()
    found: frozenset[str] = frozenset()
    """The files that nobody named: they may have come with somebody else's project."""

    def origin(self, setting: str) -> str:
        """Return the source of a setting: a file, a variable, code, or `default`."""
        return self.origins.get(setting, "default")

    def opening(self) -> dict[str, Any]:
        """Return the arguments of `Session.open` for these settings."""
        defaults = msgspec.structs.asdict(Settings())
        return {name: value for name, value in msgspec.structs.asdict(self.settings).items() if value != defaults[name]}


def load(
    stated: Mapping[str, Any] | None = None,
    *,
    folder: Path | str | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | str | None = None,
) -> Loaded:
    """Return the settings in force: code over `WINDOWSILL_*` over the settings file over the defaults.

    `stated` are those of code (`None` is not stated). The file is the nearest from `folder` (the current one) upwards,
    or `file`. `SettingError` names the place, the key, the value and what is allowed.
    """
    sources: list[Source] = []
    found: list[Source] = []
    here = Path(folder).absolute() if folder is not None else _current_folder()
    if here is not None and (plugin := find_plugin(here)) is not None:
        found.append((plugin[0], from_plugin(*plugin)))
    if file is not None:
        sources.append(read_settings_file(Path(file)))
    elif here is not None and (nearest := find_settings(here)) is not None:
        found.append(nearest)
    for place, values in found:
        refuse_addresses(place, values)
    variables, notes = from_environment(os.environ if environ is None else environ)
    # A preset first: the marks that are stated beside it win.
    names = sorted(variables, key=lambda name: name != "preset")
    sources += [(PREFIX + name.upper(), {name: variables[name]}) for name in names]
    sources.append((CODE, {name: value for name, value in (stated or {}).items() if value is not None}))
    loaded = _merge([*found, *sources], tuple(notes))
    return msgspec.structs.replace(loaded, found=frozenset(place for place, _ in found))


def _merge(sources: list[Source], notes: tuple[str, ...]) -> Loaded:
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for place, source in sources:
        try:
            checked = _check(source)
        except SettingError as error:
            raise _at(place, error) from None
        for name, value in checked.items():
            origins[name] = place
            if name in NESTED:
                below = values.get(name, {})
                values[name] = {**below, **{key: {**below.get(key, {}), **table} for key, table in value.items()}}
                origins |= {f"{name}.{each}.{key}": place for each, table in value.items() for key in table}
            else:
                values[name] = value
    try:
        settings = with_changes(Settings(), values)
    except SettingError as error:
        place = origins.get(error.setting) or origins.get(error.setting.partition(".")[0]) or CODE
        raise _at(place, error) from None
    return Loaded(settings=settings, tables=values.get(TABLES, {}), origins=origins, notes=notes)


def _check(source: dict[str, Any]) -> dict[str, Any]:
    """Return a source's values, each of the kind it should be, with the marks of its preset."""
    for name, value in source.items():
        if name == TABLES:
            check_tables(value)
        elif name != "strategy" or not isinstance(value, list):
            check_value(name, value)
        elif not value or not all(isinstance(each, str) for each in value):
            raise SettingError(name, value, "a strategy, or a list of them")
    return with_preset(source)


def _at(place: str, error: SettingError) -> SettingError:
    """Return the error with its place; an error in code is where it is raised."""
    return error if place == CODE else error.at(place)


def from_environment(environ: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Return the settings in `WINDOWSILL_*` variables, and notes on variables that are no setting.

    Tables are JSON. An empty variable states nothing.
    """
    types = {field.name: field.type for field in msgspec.structs.fields(Settings)}
    types[TABLES] = dict[str, dict[str, Any]]
    values: dict[str, Any] = {}
    notes: list[str] = []
    for variable in sorted(environ):
        name = variable.removeprefix(PREFIX).lower()
        text = environ[variable].strip()
        if not variable.startswith(PREFIX) or not text or name.upper() in OTHERS:
            continue
        if name not in types:
            notes.append(f"the environment variable {variable} is not a setting and was passed over")
            continue
        try:
            values[name] = _parse(name, text, types[name])
        except SettingError as error:
            raise error.at(variable) from None
    return values, notes


def _parse(name: str, text: str, type: Any) -> Any:
    if type in (Size, Size | None):
        if _SHARE.fullmatch(text):
            return float(text)
        tokens = tokens_of(text, 1, name)
        return text if "%" in text else tokens
    try:
        is_table = text.startswith("{")
        return msgspec.json.decode(text, type=type) if is_table else msgspec.convert(text, type, strict=False)
    except (msgspec.DecodeError, RecursionError) as error:
        raise SettingError(name, text[:200], f"another kind of value ({error})") from None


def _current_folder() -> Path | None:
    """Return the current folder; `None` when it was removed."""
    try:
        return Path.cwd()
    except OSError:
        return None


def find_settings(folder: Path) -> Source | None:
    """Return the nearest `windowsill.toml`, or `pyproject.toml` with our table, from this folder upwards."""
    for each in (folder, *folder.parents):
        if _mentions(each / OWN, ""):
            return read_settings_file(each / OWN)
        if _mentions(each / PROJECT, "windowsill"):
            found = read_settings_file(each / PROJECT)
            if found[1]:
                return found
    return None


def find_plugin(folder: Path) -> Source | None:
    """Return the nearest `plugin.json` with a `contextStrategy`, from this folder upwards."""
    paths = (each / PLUGIN for each in (folder, *folder.parents))
    return next((_read_plugin_file(path) for path in paths if _mentions(path, CONTEXT)), None)


def read_settings_file(path: Path) -> Source:
    """Return the settings in a file: all of `windowsill.toml`, our table of a `pyproject.toml`."""
    import tomllib  # noqa: PLC0415  loaded on use: most sessions have no such file

    try:
        values: Any = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not TOML: {error}", remedy="correct that line", place=str(path)) from None
    except RecursionError:
        raise InputError(f"{path} is nested too deeply", remedy="write less brackets", place=str(path)) from None
    if path.name != PROJECT:
        return str(path), values
    for part in TABLE.split("."):
        values = values.get(part, {}) if isinstance(values, dict) else {}
    return f"{path} [{TABLE}]", values if isinstance(values, dict) else {}


def _read_plugin_file(path: Path) -> Source:
    try:
        values = msgspec.json.decode(read_text(path))
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}", remedy="correct it", place=str(path)) from None
    if not isinstance(values, dict):
        raise InputError(f"{path} is not a JSON object", remedy=f"write {{{CONTEXT!r}: ...}}", place=str(path))
    return str(path), values


def read_text(path: Path, largest: int = LARGEST) -> str:
    """Read a file of the user's; `InputError` for one that cannot be read, or is larger."""
    try:
        return _bytes(path, largest).decode("utf-8-sig")
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise InputError(f"{path} cannot be read: {why}", remedy="check the path", place=str(path)) from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8", remedy="save it as UTF-8", place=str(path)) from None
    except ValueError:
        raise InputError(f"{str(path)!r} is not a path", remedy="give the path of a file") from None


def _bytes(path: Path, largest: int = LARGEST) -> bytes:
    """Return the bytes of a file; `OSError` for one that is too large, such as an endless device."""
    with path.open("rb") as file:
        data = file.read(largest + 1)
    if len(data) > largest:
        raise OSError(f"it is larger than {largest:,} bytes")
    return data


def _mentions(path: Path, word: str) -> bool:
    """Tell whether a file exists, can be read and contains a word."""
    try:
        return path.is_file() and (not word or word.encode() in _bytes(path))
    except OSError:
        return False
