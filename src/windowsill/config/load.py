"""Loading: settings from code, the environment and files, in this order, and where each came from."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from windowsill.budget import Size, tokens_of
from windowsill.config.profiles import placed, unknown, writer_of
from windowsill.config.settings import TABLES, Settings, changed, check_tables, check_value, expanded, read, tuned
from windowsill.errors import InputError, SettingError

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


FIELDS = ("type", "pluginId", "config")
TYPE = "plugin"

_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/@-]*")
_COUNT = "a whole number from 1 on"


class Standard(NamedTuple):
    """A strategy of ours under its standard name, and our words for its config."""

    strategy: str
    config: dict[str, str]


WRITER = "writer"
"""The word for the model that writes, which is a setting of the session and not of a strategy."""

STANDARD = {
    "std-sliding-window-strategy": Standard("sliding-window", {"keep": "keep", "quote": "quote"}),
    "std-summarization-strategy": Standard(
        "summarize", {"threshold": "threshold", "batch": "batch", "compressionModel": WRITER}
    ),
    "std-extraction-strategy": Standard("extract", {"schema": "schema", "compressionModel": WRITER}),
}


def from_plugin(found: Found) -> dict[str, Any]:
    """The settings that a `plugin.json` states; another `pluginId` than ours is the name of a plug-in."""
    try:
        return _read(found.values.get(CONTEXT))
    except SettingError as error:
        raise placed(error, found.place) from None


def _read(context: Any) -> dict[str, Any]:
    if not isinstance(context, dict):
        raise SettingError(CONTEXT, context, f"an object with {', '.join(FIELDS)}")
    for field, value in context.items():
        if field not in FIELDS:
            raise SettingError(f"{CONTEXT}.{field}", value, unknown(field, value, FIELDS).allowed)
    if context.get("type", TYPE) != TYPE:
        raise SettingError(f"{CONTEXT}.type", context["type"], repr(TYPE))
    plugin, config = context.get("pluginId"), context.get("config", {})
    if not isinstance(plugin, str) or not _ID.fullmatch(plugin):
        raise SettingError(f"{CONTEXT}.pluginId", plugin, f"one of {', '.join(STANDARD)}, or the name of a plug-in")
    if not isinstance(config, dict):
        raise SettingError(f"{CONTEXT}.config", config, "an object")
    if plugin not in STANDARD:
        return _stated(plugin, config)
    strategy, words = STANDARD[plugin]
    values: dict[str, Any] = {}
    for key, value in config.items():
        place = f"{CONTEXT}.config.{key}"
        if key not in words:
            raise SettingError(place, value, unknown(key, value, words).allowed)
        _check(place, words[key], value)
        values[words[key]] = value
    model = values.pop(WRITER, None)
    said = _stated(strategy, values)
    return said if model is None else {**said, WRITER: writer_of(model)}


def _stated(strategy: str, config: dict[str, Any]) -> dict[str, Any]:
    return {"strategy": strategy, "strategies": {strategy: config}} if config else {"strategy": strategy}


def _check(place: str, word: str, value: object) -> None:
    """What the strategy itself would refuse later, without a word about the file."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if word in ("threshold", "batch") and not (whole and isinstance(value, int) and value >= 1):
        raise SettingError(place, value, _COUNT)
    if word == "keep" and not (whole and isinstance(value, int) and value >= 0):
        raise SettingError(place, value, "a whole number from 0 on")
    if word == "quote" and not (isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1):
        raise SettingError(place, value, "a share of the window from 0 to 1")
    if word == "schema" and not (isinstance(value, dict) or (isinstance(value, str) and value)):
        raise SettingError(place, value, "a JSON schema, or the path of one")
    if word == WRITER and not (isinstance(value, str) and value and writer_of(value)):
        raise SettingError(place, value, "a model of Anthropic, OpenAI or Google, or `openai:NAME@ADDRESS`")


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
            values[name] = _environment_read(variable, name, text, kinds[name])
        else:
            notes.append(f"the environment variable {variable} is no setting and was passed over")
    return values, notes


def _environment_read(variable: str, name: str, text: str, kind: Any) -> Any:
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


_ADDRESS = re.compile(r"@\s*http(?!s?://(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?(?:/|$))", re.IGNORECASE)
"""The address of a model's server, as it stands in a writer, that is not plainly on this machine: nothing may stand
between host and path, where a name and password would make another host of what follows them."""


def refuse_addresses(place: str, values: dict[str, Any]) -> dict[str, Any]:
    """The values of a file that was found near the current folder; `SettingError` when one names a server elsewhere.

    Such a file may come with somebody else's project. It must not decide where conversations and keys are sent.
    """
    for key, text in _texts(values):
        if _ADDRESS.search(text):
            allowed = "a server on this machine here, or state it in code or in WINDOWSILL_WRITER"
            raise placed(SettingError(key, text, allowed), place)
    return values


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """All texts in a value, each with the key it stands under."""
    match value:
        case str():
            yield key, value
            if key == "strategy":
                for stage in read(value):
                    for each in stage.settings.values():
                        yield from _texts(each, "strategy.settings")
        case dict():
            for name, each in value.items():
                yield from _texts(each, f"{key}.{name}".lstrip("."))
        case list() | tuple():
            for each in value:
                yield from _texts(each, key)


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
