"""The `contextStrategy` of a `plugin.json`: the strategy of an agent, and its config."""

from __future__ import annotations

import re
from typing import Any

from windowsill.config.settings import writer_of
from windowsill.errors import SettingError

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
        _check(f"{CONTEXT}.config.{key}", words[key], value)
        values[words[key]] = value
    model = values.pop(WRITER, None)
    return _settings(strategy, values) | ({} if model is None else {WRITER: writer_of(model)})


def _settings(strategy: str, config: dict[str, Any]) -> dict[str, Any]:
    return {"strategy": strategy, "strategies": {strategy: config}} if config else {"strategy": strategy}


def _check(place: str, word: str, value: Any) -> None:
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
