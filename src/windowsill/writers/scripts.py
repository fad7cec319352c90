"""Which writing system a text is in, told from its letters: enough to see that an answer is in another language."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

SCRIPTS = (
    ("Latin", 1, ((0x41, 0x5A), (0x61, 0x7A), (0xC0, 0x24F), (0x1E00, 0x1EFF))),
    ("Greek", 2, ((0x370, 0x3FF),)),
    ("Cyrillic", 2, ((0x400, 0x52F),)),
    ("Hebrew", 2, ((0x590, 0x5FF),)),
    ("Arabic", 2, ((0x600, 0x6FF), (0x750, 0x77F))),
    ("Devanagari", 2, ((0x900, 0x97F),)),
    ("Thai", 2, ((0xE00, 0xE7F),)),
    ("Kana", 4, ((0x3041, 0x30FF),)),
    ("Hangul", 4, ((0xAC00, 0xD7A3),)),
    ("Han", 4, ((0x3400, 0x4DBF), (0x4E00, 0x9FFF))),
)
"""Name, weight and ranges. Code, paths and names are Latin in every language, so other letters weigh more; a syllable
or an ideogram says as much as several letters."""

KANA_SHARE = 0.1
"""Japanese is ideograms with at least so many syllables between them; Chinese has none."""

ENOUGH = 12
"""Below this weight a text is too short to tell."""

READ = 20_000
"""Characters that are looked at."""


def script_of(texts: Iterable[str]) -> str:
    """The script of most of these texts: one of `SCRIPTS`, or Japanese; empty when there is too little to tell."""
    weights: dict[str, int] = {}
    for letter in _letters(texts):
        for name, weight, ranges in SCRIPTS:
            if any(low <= letter <= high for low, high in ranges):
                weights[name] = weights.get(name, 0) + weight
                break
    kana, han = weights.get("Kana", 0), weights.get("Han", 0)
    if kana and kana >= KANA_SHARE * (kana + han):
        weights["Japanese"] = weights.pop("Kana") + weights.pop("Han", 0)
    best = max(weights, key=lambda name: weights[name], default="")
    return best if weights.get(best, 0) >= ENOUGH else ""


def _letters(texts: Iterable[str]) -> Iterable[int]:
    """Code points of letters, up to a limit."""
    kept = list(texts)
    ends = accumulate(len(text) for text in kept)
    for text, end in zip(kept, ends, strict=True):
        yield from (ord(letter) for letter in text[:READ] if letter.isalpha())
        if end >= READ:
            return
