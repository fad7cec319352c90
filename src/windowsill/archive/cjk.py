"""Chinese, Japanese and Korean text as pairs of characters, since nothing stands between its words.

A run of characters is indexed as its overlapping pairs and its last character alone. So every character begins some
indexed word, and a word of one character is found by its beginning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from windowsill.archive.stopwords import CJK_STOP_WORDS

RUN = re.compile(
    "[々〇\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]+"
)
"""Han, Hiragana, Katakana and Hangul, after NFKC."""

_CONTENT = re.compile("[^\u3041-\u309f]+")
_HIRAGANA = re.compile("[\u3041-\u309f]+")

PHRASE_FROM, PHRASE_TO = 3, 40
"""Characters of a word that is also looked for as a whole: a shorter one is a single pair, a longer one a text."""


def pairs(run: str) -> list[str]:
    """A run as the index holds it."""
    return [run[place : place + 2] for place in range(len(run))]


def spread_out(text: str) -> str:
    """A text with its runs as pairs, apart from what stands beside them."""
    return RUN.sub(lambda found: f" {' '.join(pairs(found[0]))} ", text)


def query_terms(run: str) -> Iterator[str]:
    """What to look for when a question holds this run, in FTS5's words.

    Hiragana mostly binds and bends words, so a run that holds anything else is looked for by that.
    """
    if _HIRAGANA.fullmatch(run):
        yield from _word(run)
        return
    for found in _CONTENT.finditer(run):
        word = found[0]
        if len(word) > 1:
            yield from _word(word)
        elif word not in CJK_STOP_WORDS:
            yield f'"{word}" *'
            if after := run[found.end() : found.end() + 1]:
                yield f'"{word}{after}"'


def _word(word: str) -> Iterator[str]:
    if len(word) == 1:
        yield f'"{word}" *'
        return
    parts = pairs(word)[:-1]
    if PHRASE_FROM <= len(word) <= PHRASE_TO:
        yield f'"{" ".join(parts)}"'
    yield from (f'"{part}"' for part in parts)
