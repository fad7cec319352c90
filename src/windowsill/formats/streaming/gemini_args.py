"""The arguments of a Gemini call that come one by one, each under its path (`$.files[0].name`)."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from windowsill.formats.streaming.pieces import Pieces

_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d+)\]|\[(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\]""", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)

MAX_PLACES = 100_000
"""A list grows by the items that come; a place far behind them is no place a model wrote."""


def put(args: dict[str, Any], piece: dict[str, Any]) -> bool:
    """Put one more value, or more of a text, to its place; false when it cannot be told where or what that is."""
    path = _path(piece.get("jsonPath"))
    if not path or not isinstance(path[0], str):
        return False
    target: Any = args
    for step, after in pairwise(path):
        inner = _get(target, step)
        if not isinstance(inner, dict if isinstance(after, str) else list) or isinstance(inner, Pieces):
            inner = {} if isinstance(after, str) else []
            if not _set(target, step, inner):
                return False
        target = inner
    return _put_value(target, path[-1], piece)


def _put_value(target: Any, step: str | int, piece: dict[str, Any]) -> bool:
    if isinstance(text := piece.get("stringValue"), str):
        old = _get(target, step)
        if isinstance(old, Pieces):
            old.append(text)
            return True
        return _set(target, step, Pieces([text]))
    if "nullValue" in piece:
        return _set(target, step, None)
    for kind in ("numberValue", "boolValue"):
        if kind in piece:
            return _set(target, step, piece[kind])
    # A text that is empty comes without a value.
    return isinstance(_get(target, step), Pieces) or _set(target, step, Pieces())


def _path(text: Any) -> list[str | int]:
    if not isinstance(text, str) or text[:1] != "$":
        return []
    found: list[str | int] = []
    place = 1
    while place < len(text):
        step = _STEP.match(text, place)
        if step is None:
            return []
        name, number, single, double = step.groups()
        quoted = single if single is not None else double
        found.append(int(number) if number else name if name is not None else _ESCAPE.sub(r"\1", quoted))
        place = step.end()
    return found


def _get(target: Any, step: str | int) -> Any:
    if isinstance(step, str):
        return target.get(step) if isinstance(target, dict) else None
    return target[step] if isinstance(target, list) and step < len(target) else None


def _set(target: Any, step: str | int, value: Any) -> bool:
    if isinstance(step, str) and isinstance(target, dict):
        target[step] = value
        return True
    if isinstance(step, int) and isinstance(target, list) and step < len(target) + MAX_PLACES:
        target.extend([None] * (step + 1 - len(target)))
        target[step] = value
        return True
    return False
