"""Weights of messages by kind of content, and how that kind is guessed."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

import msgspec


class Weight(msgspec.Struct, frozen=True, omit_defaults=True, array_like=True):
    """The weight of something, before any calibration; adding two gives the weight of both.

    Tokens are kept apart by kind of content, because the ratio between a vocabulary and what a provider bills differs
    by kind: a weight is counted once and stays right when the calibration learns.
    """

    prose: int = 0
    code: int = 0
    json: int = 0
    cjk: int = 0
    fixed: int = 0
    """Tokens that no calibration changes: pictures and documents by the provider's rule."""
    overhead: int = 0
    """Tokens of the framing around messages, calls and tools."""
    bytes: int = 0
    """Bytes on the wire."""
    media: int = 0
    """Pictures and documents."""
    media_bytes: int = 0
    """Their decoded size, all together."""

    def __add__(self, other: Weight) -> Weight:
        return Weight(
            self.prose + other.prose,
            self.code + other.code,
            self.json + other.json,
            self.cjk + other.cjk,
            self.fixed + other.fixed,
            self.overhead + other.overhead,
            self.bytes + other.bytes,
            self.media + other.media,
            self.media_bytes + other.media_bytes,
        )

    def __sub__(self, other: Weight) -> Weight:
        return Weight(
            self.prose - other.prose,
            self.code - other.code,
            self.json - other.json,
            self.cjk - other.cjk,
            self.fixed - other.fixed,
            self.overhead - other.overhead,
            self.bytes - other.bytes,
            self.media - other.media,
            self.media_bytes - other.media_bytes,
        )


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
    """Guess the kind that most of `text` is."""
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
