"""The kind of a text: prose, code, JSON, or Chinese, Japanese and Korean.

Vocabularies differ most from each other by kind, so each kind has its own ratio. The guess looks at a bounded sample:
it costs the same for a line and for a megabyte.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["prose", "code", "json", "cjk"]

KINDS: tuple[Kind, ...] = ("prose", "code", "json", "cjk")

SAMPLE = 500
"""Characters looked at, at the start, in the middle and at the end."""

CJK_SHARE = 0.2
"""One such character is about one token, a Latin word about five characters: a fifth of the characters is half of the
tokens."""

JSON_SHARE = 0.04
"""Quotation marks, colons and commas among the characters of a text that opens and closes like JSON."""

CODE_SHARE = 0.035
"""Signs of code per character: dialogues and documents have up to 0.03, source code has about 0.055."""

FEW = 2
"""Signs that a short sentence may have: one pair of brackets."""

_CJK = re.compile("[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]+")
_JSON_SIGNS = b'":,'
_CODE_SIGNS = b"{}()[];=<>/_\\&$+^~\t"  # without the signs of Markdown, which is prose


def kind_of(text: str) -> Kind:
    """The kind most of `text` seems to be."""
    sample = text
    if len(text) > 3 * SAMPLE:
        middle = len(text) // 2
        sample = text[:SAMPLE] + text[middle : middle + SAMPLE] + text[-SAMPLE:]
    size = len(sample)
    if not size:
        return "prose"
    if not sample.isascii() and len("".join(_CJK.findall(sample))) > CJK_SHARE * size:
        return "cjk"
    letters = sample.encode("ascii", "ignore")
    body = letters.strip()
    if body[:1] in (b"{", b"[") and body[-1:] in (b"}", b"]") and _count(letters, _JSON_SIGNS) > JSON_SHARE * size:
        return "json"
    return "code" if _count(letters, _CODE_SIGNS) > max(FEW, CODE_SHARE * size) else "prose"


def _count(text: bytes, signs: bytes) -> int:
    return len(text) - len(text.translate(None, signs))
