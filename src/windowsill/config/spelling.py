"""How strategies and their settings are written in one line, and read from it.

`mask:keep=5+condense:keep=4` is two stages. A value that holds a comma, a plus or a list is written as JSON:
`mask:exempt=["read","grep"]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

_PLAIN = re.compile(r"[^\s,+=\[\]{}\"](?:[^,+=\[\]{}\"\n]*[^\s,+=\[\]{}\"])?")
"""Text that is read back as it is without being quoted."""

_OPENING, _CLOSING = "[{", "]}"


class Stage(msgspec.Struct, frozen=True):
    """One strategy, by name or dotted path, with the settings stated for it."""

    name: str
    settings: dict[str, Any] = {}


def read(text: str) -> tuple[Stage, ...]:
    """The stages that a line names, in order; whether there are such strategies is not looked at."""
    return tuple(_stage(part) for part in _split(text, "+"))


def write(stages: Iterable[Stage]) -> str:
    """The line that `read` makes these stages of."""
    return "+".join(_written(stage) for stage in stages)


def with_tables(text: str, tables: dict[str, dict[str, Any]]) -> str:
    """The line with each stage's settings from `tables`, where the line does not state them itself."""
    stages = read(text)
    if not any(tables.get(stage.name) for stage in stages):
        return text
    return write(Stage(stage.name, {**tables.get(stage.name, {}), **stage.settings}) for stage in stages)


def _stage(text: str) -> Stage:
    pairs = list(_split(text, ","))
    first, equals, value = pairs[0].partition("=")
    if not equals:
        return Stage(text.strip())
    name, _, key = first.rpartition(":")
    settings = {key.strip(): _value(value)}
    for pair in pairs[1:]:
        key, _, value = pair.partition("=")
        if key.strip():
            settings[key.strip()] = _value(value)
    return Stage(name.strip(), settings)


def _value(text: str) -> Any:
    value = text.strip()
    if value[:1] in ('"', *_OPENING):
        try:
            return msgspec.json.decode(value)
        except msgspec.DecodeError:
            return value
    return value


def _written(stage: Stage) -> str:
    if not stage.settings:
        return stage.name
    return stage.name + ":" + ",".join(f"{key}={_spelled(value)}" for key, value in stage.settings.items())


def _spelled(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    return msgspec.json.encode(value).decode()


def _split(text: str, separator: str) -> Iterator[str]:
    """The parts between separators that stand outside of brackets and quotes."""
    start = depth = 0
    quoted = escaped = False
    for index, character in enumerate(text):
        if quoted:
            quoted = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            quoted = True
        elif character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth = max(0, depth - 1)
        elif character == separator and depth == 0 and _separates(text, index):
            yield text[start:index]
            start = index + 1
    yield text[start:]


def _separates(text: str, index: int) -> bool:
    """A plus inside a number, such as `1e+5`, joins no stages."""
    return text[index] != "+" or not text[index + 1 : index + 2].isdigit()
