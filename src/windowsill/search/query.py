"""Text as the index takes it, and questions as terms of a query: nothing of a question is ever syntax.

Chinese, Japanese and Korean have nothing between their words, so a run of such characters is indexed as its overlapping
pairs and its last character alone. Every character then begins some indexed word, and a word of one character is found
by its beginning.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator

from windowsill.store.search_index import PassageFacts

MOST_TERMS = 40
"""Terms of one query. A whole message may be the question; its longest words are the rarest."""

LARGEST_QUESTION = 16_000
"""Characters of a question that are looked at, half from each end: far more than its terms come from."""

LONGEST_PHRASE = 24
"""Parts of an identifier that are looked for in a row: a longer one is data, and its parts find it too."""

SHORTEST_RUN, LONGEST_RUN = 3, 40
"""Characters of a CJK word that is also looked for as a whole: a shorter one is a single pair, a longer one a text."""

# fmt: off
STOP_WORDS = frozenset({
    "a", "about", "after", "again", "also", "am", "an", "and", "any", "are", "as", "at", "be", "because", "been",
    "before", "being", "between", "both", "but", "by", "can", "could", "d", "did", "do", "does", "doing", "down",
    "during", "each", "few", "for", "from", "had", "has", "have", "having", "he", "her", "hers", "him", "his",
    "how", "i", "if", "in", "into", "is", "it", "its", "just", "ll", "m", "me", "more", "most", "my", "no", "nor",
    "not", "of", "on", "only", "or", "other", "our", "over", "own", "re", "s", "same", "she", "should", "so",
    "some", "such", "t", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those",
    "to", "too", "under", "until", "up", "ve", "very", "was", "we", "were", "what", "when", "where", "which", "who",
    "whom", "whose", "why", "will", "with", "would", "you", "your",
})
# fmt: on
"""Words that say how something is asked, not what about."""

CJK_STOP_WORDS = frozenset("何誰私")
"""Single characters that only ask, or only say who asks."""

_CJK = re.compile(
    "[々〇\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]+"
)
"""Han, Hiragana, Katakana and Hangul, after NFKC."""
_NO_HIRAGANA = re.compile("[^\u3041-\u309f]+")
_HIRAGANA = re.compile("[\u3041-\u309f]+")

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_HUMPED = re.compile(r"[A-Za-z0-9]*[a-z0-9][A-Z][A-Za-z0-9]*")
# The capital stands first: the engine then runs from one to the next instead of trying every letter.
_HAS_HUMP = re.compile("[A-Z](?<=[a-z0-9][A-Z])")
_COMPOUND = re.compile(r"[^\W_]+(?:[_./\\:#@-]+[^\W_]+)*")
_PART = re.compile(r"[^\W_]+")

_ROLES = {
    "user": re.compile(r"\b(?:i|me|my|mine|we|our|user)\b|私|僕|俺|ユーザー"),
    "assistant": re.compile(r"\b(?:you|your|yours|assistant)\b|あなた|アシスタント"),
    "tool": re.compile(r"\b(?:tool|command|output|log)s?\b|ツール|コマンド|出力|ログ"),
}


def valid_text(text: str) -> str:
    """Return a text that UTF-8 can hold; half a surrogate pair becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def shorten_question(question: str) -> str:
    """Keep the beginning and the end of a question that is as long as a file."""
    half = LARGEST_QUESTION // 2
    return question if len(question) <= LARGEST_QUESTION else f"{question[:half]} {question[-half:]}"


def index_words(text: str) -> str:
    """Return the words a text is found by: full-width forms made ordinary, CJK as pairs, `camelCase` in parts too."""
    words = text
    if not text.isascii():
        spread = _CJK.sub(lambda found: f" {' '.join(_pairs(found[0]))} ", unicodedata.normalize("NFKC", text))
        words = spread.casefold()
    # Lowering all of it is far cheaper than a search, and most lines of text have no capital inside.
    if text == text.lower() or not _HAS_HUMP.search(text):
        return words
    return f"{words}\n{' '.join(_HUMP.sub(' ', word) for word in dict.fromkeys(_HUMPED.findall(text)))}"


def content_words(text: str) -> list[str]:
    """Return the words of a question that say what it is about, as they were written; all if there are no others."""
    words = _PART.findall(unicodedata.normalize("NFKC", text))
    return [word for word in words if word.casefold() not in STOP_WORDS] or words


def query_terms(question: str) -> list[str]:
    """Return the terms of a query that finds any of a question's words; none when it has no words."""
    text = shorten_question(unicodedata.normalize("NFKC", valid_text(shorten_question(question))))
    found = [term for run in _CJK.findall(text) for term in _cjk_terms(run)]
    every: list[str] = []
    for compound in _COMPOUND.findall(_CJK.sub(" ", text)):
        found += _compound_terms(compound)
        every += _PART.findall(compound)
    terms = list(dict.fromkeys(found)) or list(dict.fromkeys(map(str.casefold, every)))
    return terms if len(terms) <= MOST_TERMS else sorted(terms, key=len, reverse=True)[:MOST_TERMS]


def phrase_term(question: str) -> str:
    """Return the words of a short question as one term; empty when it has a single word, or many."""
    text = unicodedata.normalize("NFKC", valid_text(question))
    words = _PART.findall(text.casefold()) if len(text) <= LARGEST_QUESTION and not _CJK.search(text) else []
    return " ".join(words) if 1 < len(words) <= LONGEST_PHRASE else ""


def distinct_words(text: str) -> frozenset[str]:
    """Return the words and CJK pairs that say what a text is about."""
    runs = [run for run in _CJK.findall(text) if len(run) > 1]
    words = [word.casefold() for word in content_words(_CJK.sub(" ", text))]
    return frozenset([*words, *(pair for run in runs for pair in _pairs(run)[:-1])])


def named_speaker(question: str, passages: Iterable[PassageFacts]) -> Callable[[PassageFacts], bool]:
    """Return a test for passages of the one the question names; a question that names several names nobody."""
    text = unicodedata.normalize("NFKC", question).casefold()
    present = [name for name in {about.speaker for about in passages if about.speaker} if _mentions(text, name)]
    if present:
        return lambda about: len(present) == 1 and about.speaker == present[0]
    roles = [role for role, words in _ROLES.items() if words.search(text)]
    return lambda about: about.speaker is None and roles == [about.role]


def _mentions(text: str, speaker: str) -> bool:
    name = unicodedata.normalize("NFKC", speaker).casefold()
    return name in text if not name.isascii() else bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text))


def _pairs(run: str) -> list[str]:
    return [run[place : place + 2] for place in range(len(run))]


def _cjk_terms(run: str) -> Iterator[str]:
    """Yield the terms for a run; Hiragana mostly binds and bends words, so the rest of a mixed run is looked for."""
    if _HIRAGANA.fullmatch(run):
        yield from _cjk_word(run)
        return
    for found in _NO_HIRAGANA.finditer(run):
        word = found[0]
        if len(word) > 1:
            yield from _cjk_word(word)
        elif word not in CJK_STOP_WORDS:
            yield f"{word}*"
            if after := run[found.end() : found.end() + 1]:
                yield f"{word}{after}"


def _cjk_word(word: str) -> Iterator[str]:
    if len(word) == 1:
        yield f"{word}*"
        return
    pairs = _pairs(word)[:-1]
    if SHORTEST_RUN <= len(word) <= LONGEST_RUN:
        yield " ".join(pairs)
    yield from pairs


def _compound_terms(compound: str) -> list[str]:
    """Return an identifier's parts, and the parts in a row: the index has them so, however it was written there."""
    whole = _PART.findall(compound)
    parts = [part.casefold() for word in whole for part in _HUMP.split(word)]
    terms = [part for part in parts if part not in STOP_WORDS]
    if len(parts) > 1:
        if len(parts) <= LONGEST_PHRASE:
            terms.append(" ".join(parts))
        known = STOP_WORDS.union(parts)
        terms += [word.casefold() for word in whole if word.casefold() not in known]
    return terms
