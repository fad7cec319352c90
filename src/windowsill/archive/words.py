"""Text as the full-text index takes it, and questions in its query language: nothing of a question is ever syntax."""

from __future__ import annotations

import re
import unicodedata

from windowsill.archive.cjk import RUN, query_terms, spread_out
from windowsill.archive.stopwords import STOP_WORDS

MOST_TERMS = 40
"""Terms of one query. A whole message may be the question; its longest words are the rarest."""

LARGEST_QUESTION = 16_000
"""Characters of a question that are looked at, half from each end: far more than its terms come from."""

LONGEST_PHRASE = 24
"""Parts of an identifier that are looked for in a row: a longer one is data, and its parts find it too."""

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_HUMPED = re.compile(r"[A-Za-z0-9]*[a-z0-9][A-Z][A-Za-z0-9]*")
# The capital stands first: the engine then runs from one to the next instead of trying every letter.
_HAS_HUMP = re.compile("[A-Z](?<=[a-z0-9][A-Z])")
_COMPOUND = re.compile(r"[^\W_]+(?:[_./\\:#@-]+[^\W_]+)*")
_PART = re.compile(r"[^\W_]+")


def plain(text: str) -> str:
    """A text that UTF-8 can hold; half a surrogate pair becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def shortened(question: str) -> str:
    """The beginning and the end of a question that is as long as a file."""
    half = LARGEST_QUESTION // 2
    return question if len(question) <= LARGEST_QUESTION else f"{question[:half]} {question[-half:]}"


def indexed(text: str) -> str:
    """The words of a text, full-width forms made ordinary, CJK as pairs, and `camelCase` in its parts as well."""
    words = text if text.isascii() else spread_out(unicodedata.normalize("NFKC", text)).casefold()
    parts = _parts_of_humped(text)
    return words + parts if parts else words


def _parts_of_humped(text: str) -> str:
    # Lowering all of it is far cheaper than a search, and most lines of text have no capital inside.
    if text == text.lower() or not _HAS_HUMP.search(text):
        return ""
    return "\n" + " ".join(_HUMP.sub(" ", word) for word in dict.fromkeys(_HUMPED.findall(text)))


def content_words(text: str) -> list[str]:
    """The words of a question that say what it is about, as they were written; all of them if there are no others."""
    words = _PART.findall(unicodedata.normalize("NFKC", text))
    return [word for word in words if word.casefold() not in STOP_WORDS] or words


def query(text: str) -> str:
    """A match expression for FTS5 that finds any of a question's words; empty when it has none."""
    text = shortened(unicodedata.normalize("NFKC", plain(shortened(text))))
    found = [term for run in RUN.findall(text) for term in query_terms(run)]
    every: list[str] = []
    for compound in _COMPOUND.findall(RUN.sub(" ", text)):
        found += _compound_terms(compound)
        every += _PART.findall(compound)
    terms = list(dict.fromkeys(found)) or [f'"{word}"' for word in dict.fromkeys(map(str.casefold, every))]
    if len(terms) > MOST_TERMS:
        terms = sorted(terms, key=len, reverse=True)[:MOST_TERMS]
    return " OR ".join(terms)


def phrase(text: str) -> str:
    """A match expression for the words of a short question in a row; empty when it has a single word, or many."""
    text = unicodedata.normalize("NFKC", plain(text))
    words = _PART.findall(text.casefold()) if len(text) <= LARGEST_QUESTION and not RUN.search(text) else []
    return f'"{" ".join(words)}"' if 1 < len(words) <= LONGEST_PHRASE else ""


def _compound_terms(compound: str) -> list[str]:
    """An identifier's parts, and the parts in a row: the index has them so, however it was written there."""
    whole = _PART.findall(compound)
    parts = [part.casefold() for word in whole for part in _HUMP.split(word)]
    terms = [f'"{part}"' for part in parts if part not in STOP_WORDS]
    if len(parts) > 1:
        if len(parts) <= LONGEST_PHRASE:
            terms.append(f'"{" ".join(parts)}"')
        known = STOP_WORDS.union(parts)
        terms += [f'"{word.casefold()}"' for word in whole if word.casefold() not in known]
    return terms
