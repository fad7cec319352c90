"""Values that arrive in pieces: kept apart while they come, joined once."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec

from windowsill.formats.wire import any_decoder

T = TypeVar("T")

REPLACED = frozenset({"type", "role", "id", "format"})
"""Fields that are whole each time they come; some servers repeat them in every event."""


class Pieces(list[str]):
    """Text that may still grow."""


def joined(pieces: list[str]) -> str:
    """The text of all pieces; a character torn into halves (two escapes in two events) is made whole."""
    text = "".join(pieces)
    try:
        text.encode()
    except UnicodeEncodeError:
        return _whole(text)
    return text


def settle(value: Any) -> Any:
    """The value as JSON has it."""
    if isinstance(value, Pieces):
        return joined(value)
    if isinstance(value, str):
        return joined([value])
    if isinstance(value, dict):
        return {joined([key]): settle(each) for key, each in value.items()}
    return [settle(each) for each in value] if isinstance(value, list) else value


def grow(into: dict[str, Any], fields: dict[str, Any]) -> None:
    """Put what arrived to what is there: text and lists get longer, objects are merged, anything else is replaced."""
    for key, value in fields.items():
        old = into.get(key)
        if isinstance(value, str) and key not in REPLACED:
            into[key] = _longer(old, value)
        elif isinstance(value, list):
            into[key] = items = _items(old)
            for each in value:
                _add(items, each)
        elif isinstance(value, dict):
            into[key] = inner = old if isinstance(old, dict) else {}
            grow(inner, value)
        elif value is not None or key not in into:
            into[key] = value


def _longer(old: Any, text: str) -> Any:
    if isinstance(old, dict) and not text:
        return old
    if isinstance(old, Pieces):
        old.append(text)
        return old
    if isinstance(old, list):
        _add(old, {"type": "text", "text": text})
        return old
    return Pieces([old, text] if isinstance(old, str) else [text])


def _items(old: Any) -> list[Any]:
    """A list that may follow text: what was said is then its first part."""
    if isinstance(old, Pieces):
        return [{"type": "text", "text": old}] if any(old) else []
    return old if isinstance(old, list) else []


def _add(items: list[Any], item: Any) -> None:
    """One more item, or more of the last one, which then has the same index and type."""
    last = items[-1] if items else None
    if isinstance(item, dict) and isinstance(last, dict) and _same(last, item):
        grow(last, item)
    elif isinstance(item, dict):
        items.append({})
        grow(items[-1], item)
    else:
        items.append(item)


def _same(last: dict[str, Any], item: dict[str, Any]) -> bool:
    continues = "index" in item or item.keys() == {"type", "text"}
    return continues and last.get("type") == item.get("type") and last.get("index") == item.get("index")


def lenient(decoder: msgspec.json.Decoder[T], data: bytes) -> T | None:
    """Decode what other readers of JSON take too (half a surrogate pair, broken UTF-8); `None` when nothing helps."""
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        text = json.dumps(json.loads(str(data, "utf-8", "replace")), ensure_ascii=False)
        return decoder.decode(_whole(text).encode())
    except (ValueError, msgspec.DecodeError, RecursionError):
        return None


def loose(data: bytes) -> dict[str, Any] | None:
    """The object in an event, halves of surrogate pairs kept for their other half; `None` when it is none."""
    value = loose_value(data)
    return value if isinstance(value, dict) else None


def loose_value(data: bytes) -> Any:
    """The same for any value; `None` when it cannot be read."""
    try:
        return any_decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return json.loads(str(data, "utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _whole(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
