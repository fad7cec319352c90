"""What a settings file that was merely found may not do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from windowsill.config.problems import placed
from windowsill.config.spelling import read
from windowsill.errors import SettingError

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
