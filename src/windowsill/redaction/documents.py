"""Takes secrets out of documents: strings change, everything around them stays byte for byte."""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar

import msgspec

from windowsill.redaction.assigned import kind_under
from windowsill.redaction.found import sign
from windowsill.redaction.redactor import Redactor

T = TypeVar("T")

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_NAME_END = re.compile(rb"[ \t\r\n]*+:")
_NAME_ENDS = re.compile(rb"[{}\]]")
"""Where a name no longer holds; it does for the items of a list."""
_OPAQUE = re.compile(
    r"(?:^|_|-)(?:ids?|uuid|signature|thought_signature|encrypted_content|data|hash|sha\d*|digest|checksum|integrity"
    r"|etag|cursor|ref|refs|blob)$|(?:Id|ID|Ids|Signature|Data|Hash|Digest)$"
)
"""Names of values that look drawn by chance and are none of anybody's keys."""


def redacted_json(data: bytes, redactor: Redactor) -> bytes:
    """A JSON document without secrets; what stands under the name of a secret is one, whatever it looks like."""
    if b"\\u" not in data and b"\\/" not in data and not redactor.holds(data):
        return data
    pieces: list[bytes] = []
    end = 0
    name = ""
    before = 0
    for match in _STRING.finditer(data):
        text = _decoded(match[0])
        if _NAME_ENDS.search(data, before, match.start()):
            name = ""
        before = match.end()
        if _NAME_END.match(data, before):
            name, clean = text, redactor.redacted(text)
        else:
            clean = _redacted(text, redactor, name)
        if clean != text:
            pieces += (data[end : match.start()], _encoded(clean))
            end = match.end()
    return b"".join((*pieces, data[end:])) if pieces else data


def redacted_text(text: str, redactor: Redactor) -> str:
    """A text without secrets, which stays JSON if it is."""
    if text[:1] not in {"{", "["}:
        return redactor.redacted(text)
    data = text.encode("utf-8", "surrogatepass")
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return redactor.redacted(text)
    return redacted_json(data, redactor).decode("utf-8", "surrogatepass")


def redacted_value(value: T, redactor: Redactor, name: str = "") -> T:
    """A value of a document, with all that is in it; `name` is what it stands under."""
    clean: Any = value
    if isinstance(value, str):
        clean = _redacted(value, redactor, name)
    elif isinstance(value, dict):
        clean = {
            redacted_value(key, redactor): redacted_value(inner, redactor, key if isinstance(key, str) else "")
            for key, inner in value.items()
        }
    elif isinstance(value, list | tuple):
        clean = type(value)(redacted_value(inner, redactor, name) for inner in value)
    return clean if clean != value else value


def _redacted(text: str, redactor: Redactor, name: str) -> str:
    kind = kind_under(name, text) if name else ""
    if not kind or redactor.allows(text):
        return (redactor.known if _OPAQUE.search(name) else redactor).redacted(text)
    found = redactor.find(text)
    known = len(found) == 1 and (found[0].start, found[0].end) == (0, len(text))
    return sign(found[0].kind if known else kind)


def _decoded(literal: bytes) -> str:
    text: str = json.loads(literal.decode("utf-8", "replace"), strict=False)
    return text


def _encoded(text: str) -> bytes:
    try:
        return json.dumps(text, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair has no bytes of its own, only an escape.
        return json.dumps(text).encode()
