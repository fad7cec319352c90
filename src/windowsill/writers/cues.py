"""Words that give a sentence away: a rule, a decision, something left to do. The lists are in `words.toml`."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterator
from importlib import resources


@functools.cache
def cues(kind: str) -> re.Pattern[str]:
    """All words of a kind, of every language, as one expression over text in lower case."""
    return re.compile("|".join(_expressions(_lists()[kind])))


def _expressions(lists: dict[str, list[str]]) -> Iterator[str]:
    for language in sorted(lists):
        for cue in lists[language]:
            # Each starts with its first letter and only then looks back for the edge of the word: the expression engine
            # skips to places where one of the letters stands, which makes the search several times faster.
            yield rf"{cue[0]}(?<=\b{cue[0]}){cue[1:]}\b" if cue.isascii() else cue


@functools.cache
def _lists() -> dict[str, dict[str, list[str]]]:
    text = resources.files(__package__).joinpath("words.toml").read_text("utf-8")
    lists: dict[str, dict[str, list[str]]] = tomllib.loads(text)
    return lists
