"""Finds private keys that span lines, in text and in strings with escaped line ends, whole or cut off."""

from __future__ import annotations

from collections.abc import Iterator

from windowsill.redaction.found import Found, Range
from windowsill.redaction.scanning import compiled

KIND = "private-key"

HINT = "----BEGIN "

LONGEST = 32_768
"""Bytes from the beginning of a key to its end: twice the longest RSA key that is in use."""

LONGEST_LABEL = 60

_LABEL = r"-{4,5}BEGIN ([A-Z0-9 ]{0,40})-{4,5}|-{4,5}BEGIN ([A-Z0-9 ]{0,40}) BLOCK-{4,5}"
_KEY = r"""(?s)(?:\s|\\[nrt]|["'+,-])*(?:(?:[A-Za-z-]+: [^\n\\]*)(?:\s|\\[nrt])+)*[A-Za-z0-9+/=]{16,}"""
_LINES = (
    rf"""{_KEY}(?:(?:\s|\\[nrt]|["'+,-])+[A-Za-z0-9+/=]{{16,}})*(?:(?:\s|\\[nrt])+[A-Za-z0-9+/]{{1,15}}={{1,2}})?"""
)


def find(data: bytes) -> tuple[list[Found], list[Range]]:
    """The private keys, and the blocks of other kinds: certificates and public keys, in which nothing is secret."""
    keys: list[Found] = []
    others: list[Range] = []
    for start, label_end, end in _blocks(data):
        if b"PRIVATE KEY" not in data[start:label_end]:
            others.append((start, end or label_end))
        elif end is not None:
            if compiled(_KEY).match(data, label_end, end) is not None:
                keys.append(Found(KIND, start, end))
        elif (lines := compiled(_LINES).match(data, label_end, min(len(data), label_end + LONGEST))) is not None:
            keys.append(Found(KIND, start, lines.span()[1]))
    return keys, others


def _blocks(data: bytes) -> Iterator[tuple[int, int, int | None]]:
    """Where each block begins, where its label ends, and where it ends if its end is there before another begins."""
    closing, after = 0, 0
    begins = [match.span() for match in compiled(_LABEL).finditer(data)]
    for place, (start, label_end) in enumerate(begins):
        if closing >= 0 and closing < label_end:
            closing = data.find(b"----END ", label_end)
        following = begins[place + 1][0] if place + 1 < len(begins) else len(data)
        end = None
        if 0 <= closing < min(following, label_end + LONGEST):
            dashes = data.find(b"----", closing + 8, closing + 8 + LONGEST_LABEL)
            after = dashes if dashes >= 0 else closing + 8
            while data[after : after + 1] == b"-":
                after += 1
            end = after
        yield start, label_end, end
