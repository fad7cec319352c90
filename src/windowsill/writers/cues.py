"""Words that give a sentence away: a rule, a decision, something left to do. The lists are in `words.toml`."""

from __future__ import annotations

import functools
import re
import tomllib
from importlib import resources


def cues(kind: str, text: str) -> re.Pattern[str]:
    """The words of a kind that may stand in this text, which is in lower case, as one expression."""
    return _expression(kind, ascii=text.isascii())


@functools.cache
def _expression(kind: str, *, ascii: bool) -> re.Pattern[str]:
    words = [word for words in _lists()[kind].values() for word in words]
    whole = rf"\b(?:{_by_letter([word for word in words if word.isascii()])})\b"
    return re.compile(whole if ascii else f"{whole}|{_by_letter([word for word in words if not word.isascii()])}")


def _by_letter(words: list[str]) -> str:
    """Those with the same first letter as one branch: the search is several times faster that way."""
    letters: dict[str, list[str]] = {}
    for word in words:
        letters.setdefault(word[0], []).append(word[1:])
    return "|".join(f"{first}(?:{'|'.join(rest)})" for first, rest in letters.items())


@functools.cache
def _lists() -> dict[str, dict[str, list[str]]]:
    text = resources.files(__package__).joinpath("words.toml").read_text("utf-8")
    lists: dict[str, dict[str, list[str]]] = tomllib.loads(text)
    return lists
