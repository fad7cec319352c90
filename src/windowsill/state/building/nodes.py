"""What is shown of an element, before it has a format: a tag, attributes, a text and further nodes."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

DIGEST_BYTES = 8
"""Enough to notice any change of one element; nobody gains by finding two that look alike."""

CONTROL_PICTURES = 0x2400
"""Where Unicode has its pictures of control characters, in the same order."""

DELETE, DELETE_PICTURE = 0x7F, "\u2421"

_BREAK = "\r\n?|[\u0085\u2028\u2029]"
_UNFIT = re.compile(_BREAK + "|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


class Node(NamedTuple):
    """One thing that is shown. Its strings are clean."""

    tag: str
    attributes: tuple[tuple[str, str], ...] = ()
    text: str = ""
    children: tuple[Node, ...] = ()


class Child(NamedTuple):
    """A field that becomes nodes of its own: one, or one for each of its values."""

    field: str
    tag: str
    look: Look | None = None
    empty: bool = False
    """Whether an empty text is shown: an empty file is not the same as none."""


class Look(NamedTuple):
    """How a struct is shown: the field that is its text, the fields beside it, and those below it."""

    tag: str
    text: str = ""
    attributes: tuple[str, ...] = ()
    children: tuple[Child, ...] = ()


def clean(text: str) -> str:
    """A text that any format can hold.

    Every line break becomes a line feed, a control character its picture, and what is no character U+FFFD.
    """
    return _UNFIT.sub(_visible, text)


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0][0])
    if code == DELETE:
        return DELETE_PICTURE
    if found[0][0] in "\r\u0085\u2028\u2029":
        return "\n"
    return chr(CONTROL_PICTURES + code) if code < ord(" ") else "\ufffd"


def node(look: Look, value: Any) -> Node:
    """What is shown of a struct. Empty fields are left out."""
    attributes = [(name, said(name, getattr(value, name))) for name in look.attributes]
    text = getattr(value, look.text) if look.text else ""
    return Node(
        look.tag,
        (*((name, told) for name, told in attributes if told), *_spelling(text)),
        words(text),
        tuple(below for child in look.children for below in _children(child, getattr(value, child.field))),
    )


def leaf(tag: str, value: Any) -> Node:
    """A single value under its tag."""
    return Node(tag, _spelling(value), words(value))


def _children(child: Child, value: Any) -> list[Node]:
    nothing = value is None or (isinstance(value, str) and not value and not child.empty)
    values = value if isinstance(value, tuple) else () if nothing else (value,)
    if child.look is None:
        return [leaf(child.tag, each) for each in values]
    shown = [node(child.look, each) for each in values]
    return [each for each in shown if each != Node(each.tag)]


def _spelling(value: Any) -> tuple[tuple[str, str], ...]:
    """A text and a number must not look the same: `as` says that a value is written as JSON."""
    return () if isinstance(value, str) else (("as", "json"),)


def words(value: Any) -> str:
    """A value as text: a string as it is, anything else as JSON with its keys in order."""
    if isinstance(value, str):
        return clean(value)
    try:
        return clean(json.dumps(value, ensure_ascii=False, sort_keys=True, default=_builtin))
    except (TypeError, ValueError, RecursionError):
        # Keys of several kinds cannot be sorted, and a value may hold itself: it is shown all the same.
        return clean(_blunt(value))


def _blunt(value: Any) -> str:
    try:
        return str(value)
    except RecursionError:
        return "a value too deep to be shown"
    except ValueError:
        return "a number too long to be shown"


def _builtin(value: Any) -> Any:
    return msgspec.to_builtins(value, enc_hook=str)


def said(name: str, value: Any) -> str:
    """A field as an attribute; empty when it says nothing."""
    if value is None:
        return ""
    if name == "at":
        return moment(value) if value else ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number(value)
    return words(value)


def number(value: float) -> str:
    """A number as one writes it."""
    return str(int(value)) if value.is_integer() and abs(value) < 10**15 else repr(value)  # beyond that an exponent


def moment(at: float) -> str:
    """A time in UTC, to the second."""
    if math.isfinite(at):
        try:
            return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        except (ValueError, OverflowError, OSError):
            pass
    return number(at) if math.isfinite(at) else repr(at)


def digest(shown: Node) -> str:
    """A short mark of what is shown, the same in every format."""
    return blake2b(msgspec.json.encode(shown), digest_size=DIGEST_BYTES).hexdigest()
