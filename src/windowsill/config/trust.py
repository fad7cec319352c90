"""Trust in settings by where they come from: a file of somebody else sends nothing anywhere and runs no code.

A settings file that nobody named, an export and a snapshot may have come with somebody else's project.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from windowsill.config.settings import Settings, Stage, read_stages, write_stages
from windowsill.errors import SettingError

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
        found["strategy"] = write_stages(Stage(stage.name, _without_model(stage.settings)) for stage in stages)
    if settings.tokenizer is not None and re.search(r"[/\\]|\.json$", settings.tokenizer):
        found["tokenizer"] = None
    changed = {name: value for name, value in found.items() if value != getattr(settings, name)}
    return msgspec.structs.replace(settings, **changed), tuple(sorted(changed))


def _without_model(settings: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key != WRITES}


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
