"""Redact documents: JSON, texts that may be JSON, decoded values, and messages.

Only strings with a secret change; everything around them stays byte for byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from operator import is_
from typing import Any, TypeVar

import msgspec

from windowsill.messages import Block, Document, Image, Message, Reasoning, Text, ToolResult, ToolUse, Unknown
from windowsill.secrets.detectors import kind_under, may_name
from windowsill.secrets.redactor import Redactor, default_redactor, sign

SHORT, LONG, LONGEST = 500, 8_000, 100_000
"""Characters up to which many thousand texts, many and a few are remembered as redacted."""

_lines = msgspec.json.Encoder().encode_lines

T = TypeVar("T")
Same = TypeVar("Same", bound=Message | Block)

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_NAME_END = re.compile(rb"[ \t\r\n]*+:")
_NAME_ENDS = re.compile(rb"[{}\]]")
"""The end of what a name holds for; the items of a list are under its name."""
_OBJECT_ENDS = re.compile(rb"[{}]")
_NAMING, _VALUE = ("name", "key", "variable"), "value"
"""The fields of a pair that is an assignment: `{"name": "DB_PASSWORD", "value": "..."}`."""
_OPAQUE = re.compile(
    r"(?:^|_|-)(?:ids?|uuid|signature|thought_signature|encrypted_content|data|hash|sha\d*|digest|checksum|integrity"
    r"|etag|cursor|ref|refs|blob)$|(?:Id|ID|Ids|Signature|Data|Hash|Digest)$"
)
"""Names of values that look random and are nobody's keys."""


def redact_json(data: bytes, redactor: Redactor | None = None) -> bytes:
    """Return a JSON document without secrets; a value under the name of a secret is one, whatever it looks like."""
    redactor = redactor or default_redactor()
    if b"\\u" not in data and b"\\/" not in data and not redactor.holds(data):
        return data
    pieces: list[bytes] = []
    end = before = 0
    name = label = ""
    for match in _STRING.finditer(data):
        text: str = json.loads(match[0].decode("utf-8", "replace"), strict=False)
        if _NAME_ENDS.search(data, before, match.start()):
            name = ""
        if _OBJECT_ENDS.search(data, before, match.start()):
            label = ""
        before = match.end()
        if _NAME_END.match(data, before):
            name, clean = text, redactor.redact(text)
        else:
            label = text if name.lower() in _NAMING else label
            clean = _redact(text, redactor, _name_of(name, label))
        if clean != text:
            pieces += (data[end : match.start()], _encoded(clean))
            end = match.end()
    return b"".join((*pieces, data[end:])) if pieces else data


def redact_text(text: str, redactor: Redactor | None = None) -> str:
    """Return a text without secrets, which stays JSON if it is."""
    redactor = redactor or default_redactor()
    if text[:1] not in {"{", "["}:
        return redactor.redact(text)
    data = text.encode("utf-8", "surrogatepass")
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return redactor.redact(text)
    return redact_json(data, redactor).decode("utf-8", "surrogatepass")


_redact_part = lru_cache(maxsize=2_048)(redact_text)
_redact_output = lru_cache(maxsize=32)(redact_text)


def _redact_message_text(text: str) -> str:
    """Redact a text of a message; one fold reads the same messages for its summary and for what stays in view."""
    size = len(text)
    return (_redact_part if size <= LONG else _redact_output if size <= LONGEST else redact_text)(text)


def redact_value(value: T, redactor: Redactor | None = None, name: str = "") -> T:
    """Return a decoded value without the secrets in it, at any depth; `name` is the name it has in its document."""
    redactor = redactor or default_redactor()
    clean: Any = value
    if isinstance(value, str):
        size = len(value)
        clean = (_redact_fact if size <= SHORT else _redact_text if size <= LONG else _redact)(value, redactor, name)
    elif isinstance(value, dict):
        label = _label(value)
        keys = [_redact_fact(key, redactor, "") if isinstance(key, str) else key for key in value]
        values = [redact_value(inner, redactor, _name_of(key, label)) for key, inner in value.items()]
        clean = dict(zip(keys, values, strict=True))
    elif isinstance(value, list | tuple):
        rest = list(value)
        for place in range(len(rest)) if may_name(name) else _suspects(rest, redactor):
            rest[place] = redact_value(rest[place], redactor, name)
        # Tuples with names of their own cannot be made from a row of values.
        clean = rest if isinstance(value, list) else tuple(rest)
    return clean if clean != value else value


def _suspects(values: list[Any], redactor: Redactor) -> Iterable[int]:
    """Return the places of those values that may hold a secret: one look at all of them tells that most hold none."""
    try:
        return redactor.suspects(_lines(values))
    except (TypeError, ValueError, OverflowError, RecursionError):
        # Not every value in a message is one of JSON.
        return range(len(values))


def _label(value: dict[Any, Any]) -> str:
    """Return the name that an object states for what it has as `value`."""
    keys = {key.lower() for key in value if isinstance(key, str)}
    if _VALUE not in keys:
        return ""
    named = {key.lower(): inner for key, inner in value.items() if isinstance(key, str) and isinstance(inner, str)}
    return next((named[name] for name in _NAMING if name in named), "")


def _name_of(key: Any, label: str) -> str:
    """Return the name of the value under a key: the key, or the name that the object states."""
    name = key if isinstance(key, str) else ""
    return label if label and name.lower() == _VALUE else name


def _redact(text: str, redactor: Redactor, name: str) -> str:
    kind = kind_under(name, text) if name else ""
    if not kind or text in redactor.allow:
        return (redactor.known if _OPAQUE.search(name) else redactor).redact(text)
    found = redactor.find(text)
    known = len(found) == 1 and (found[0].start, found[0].end) == (0, len(text))
    return sign(found[0].kind if known else kind)


_redact_fact = lru_cache(maxsize=8_192)(_redact)
_redact_text = lru_cache(maxsize=512)(_redact)
"""Each fold of a session has most facts of the fold before."""


def _encoded(text: str) -> bytes:
    try:
        return json.dumps(text, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair has no bytes of its own, only an escape.
        return json.dumps(text).encode()


def redact_for_reading(message: Message) -> Message:
    """Return the message as a writer may read it: without secrets; where one was found, without its original bytes."""
    blocks = [_block(block, whole=False) for block in message.blocks]
    if all(map(is_, blocks, message.blocks)):
        return message
    return msgspec.structs.replace(message, blocks=tuple(blocks), raw=None)


def redact_for_export(message: Message) -> Message:
    """Return the message without secrets in anything that belongs to it, its metadata and original bytes included."""
    return _replace(
        message,
        blocks=tuple(_block(block, whole=True) for block in message.blocks),
        metadata=redact_value(message.metadata),
        raw=redact_json(message.raw) if message.raw is not None else None,
    )


def _block(block: Block, *, whole: bool) -> Block:
    changes: dict[str, Any] = {}
    match block:
        case Text() | Reasoning():
            changes["text"] = _redact_message_text(block.text)
        case ToolUse():
            changes["arguments"] = _redact_message_text(block.arguments)
        case ToolResult():
            changes["content"] = tuple([_block(inner, whole=whole) for inner in block.content])
        case Image():
            changes["url"] = block.url and default_redactor().redact(block.url)
        case Document():
            texts = {name: getattr(block, name) for name in ("url", "text", "title")}
            changes |= {name: text and redact_text(text) for name, text in texts.items()}
        case Unknown():
            changes["raw"] = block.raw and redact_json(block.raw)
    if block.raw is not None and "raw" not in changes:
        if whole:
            changes["raw"] = redact_json(block.raw)
        elif any(new != getattr(block, name) for name, new in changes.items()):
            changes["raw"] = None
    return _replace(block, **changes)


def _replace(old: Same, **changes: Any) -> Same:
    """Return `old` with the changes; the same object where nothing differs."""
    new = {name: value for name, value in changes.items() if value != getattr(old, name)}
    return msgspec.structs.replace(old, **new) if new else old
