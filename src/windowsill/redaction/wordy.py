"""Tells words from noise: how much of a token reads like the words that names are made of."""

from __future__ import annotations

from operator import concat

_AFTER = {
    "a": "bcdgiklmnprstuvy",
    "b": "aeilorsu",
    "c": "acehiklorstu",
    "d": "adeilorsu",
    "e": "acdefgilmnoprstvwx",
    "f": "aefiloru",
    "g": "aehinrs",
    "h": "aeiot",
    "i": "abcdefglmnoprstvz",
    "j": "aosu",
    "k": "ei",
    "l": "adeilostuy",
    "m": "abeimopsu",
    "n": "acdefgiklnostuv",
    "o": "bcdfglmnoprstuvw",
    "p": "aeiloprstuy",
    "q": "u",
    "r": "acdegilmnoprstuy",
    "s": "acehilopstuy",
    "t": "acehilmoprstuy",
    "u": "abceilmnprst",
    "v": "aei",
    "w": "aeir",
    "x": "pt",
    "y": "ps",
    "z": "e",
}
"""The letters that follow a letter in nine of ten places of English words and of names in programs; by chance two
letters are such a pair in one of three places."""

_PAIRS = frozenset(first + second for first, seconds in _AFTER.items() for second in seconds)
_COMMON = _PAIRS | {pair.upper() for pair in _PAIRS} | {pair.capitalize() for pair in _PAIRS}
"""As a word spells them: small, large, or beginning with a large one. A small letter before a large one ends a word."""


def wordiness(token: str) -> float:
    """The share of neighbours in a token that are a common pair of letters: about 0.8 for names, 0.15 for noise."""
    return sum(map(_COMMON.__contains__, map(concat, token, token[1:]))) / max(1, len(token) - 1)
