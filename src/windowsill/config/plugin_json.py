"""The `contextStrategy` of a `plugin.json`: which strategy an agent wants, and its config."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from windowsill.config.files import CONTEXT, Found
from windowsill.config.problems import placed, unknown
from windowsill.config.writing import writer_of
from windowsill.errors import SettingError

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
