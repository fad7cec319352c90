"""Identifiers that later calls may need: paths, addresses, hashes, ids, tickets, symbols, named numbers."""

from __future__ import annotations

import functools
import heapq
import re
from collections import Counter
from collections.abc import Sequence

import msgspec

from windowsill.summaries.digest import Name

MOST_OF_AN_OUTPUT = 40
"""Names kept of one output: a listing of a thousand files is read again, not remembered."""

LONGEST_TOKEN = 160
WEIGHTS = {"url": 3.0, "id": 2.5, "path": 3.0, "value": 1.5, "definition": 1.2, "symbol": 1.0}
"""The chance that a later call needs one of a kind, relative to the others."""

OFTEN = 5
"""Times after which one more mention tells nothing new."""

LARGEST_SCAN = 12_000
"""Characters of one output that are looked at, half from each end. What is larger is mostly the contents of a file, of
which excerpts are kept."""

REMEMBERED = 16_384
"""Tokens whose kind is remembered: a session shows the same ones again and again."""

_TOKEN = re.compile(
    r"""
    (?:(?:[a-z]*+[0-9.:=_-]{0,2}+ | [A-Z][a-z]*+[.:=]?+) [^A-Za-z0-9_./@~#+:=?&%-]++)*+
    (?:([A-Z]?[a-z]*+[A-Z0-9_./@~#+:=-][A-Za-z0-9_./@~#+:=?&%-]{2,}+)
        | [A-Za-z0-9_]++[^A-Za-z0-9_]?+ | [^A-Za-z0-9_] | \Z)
    """,
    re.VERBOSE,
)
"""A word with something in it that plain words do not have: a sign, a digit, a capital after the first letter.

The first line passes over plain words and what stands between them: to leave that to the search would take longer. The
last three ways pass over what turns out to be no such word, and give an empty one."""

_URL = re.compile(r"https?://[^\s\"'<>)\]}]{4,200}")
_KINDS = re.compile(
    r"""
    (?P<id>[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12} | (?=[a-f]*\d)[0-9a-f]{7,64} | [A-Z]{2,10}-\d{1,6}
        | [A-Z]{2,5}\d{2,8} | \#\d{1,7} | (?=[A-Za-z_]*\d)[A-Za-z]+_[A-Za-z0-9]{8,64})
    | (?P<path>(?:[\w.@~+-]*/)+[\w.@~+-]*[A-Za-z][\w.@~+-]* | [\w-]{2,60}\.(?:[a-z]{1,4}|ipynb))(?::\d+)*
    | (?P<value>[A-Za-z_][\w.-]{1,40}[=:]-?\d[\w.,:-]{0,30})
    | (?P<symbol>[A-Za-z]+[a-z0-9][A-Z]\w+ | [A-Za-z]\w*_\w+ | [A-Za-z]\w+(?:\.[A-Za-z]\w+)+)
    """,
    re.VERBOSE,
)
_DEFINITION = re.compile(
    r"\n[^\w\n]*+(?:\d++[^\w\n]++)?+((?:func|def|class|fn|function|interface|struct|enum|trait) [A-Za-z_]\w{3,60})"
)
"""The head of a definition: what a search for it is made of. Line numbers may stand before it."""

_LINE_OF = re.compile(r"(\.[A-Za-z]\w{0,9})[:-]\d+(?:[:-].*)?$")
"""The line number that search tools put behind a path."""

_ENDS = ".,:;=-?&%+"
_STARTS = ",:;=-?&%+"


class Source(msgspec.Struct, frozen=True, gc=False):
    """A text that may hold identifiers, and the message it stands in."""

    text: str
    id: str
    contents: bool = False
    """True for the contents of a file: listings, messages and outputs of programs are looked at first."""


def collect_names(sources: Sequence[Source], most: int) -> list[Name]:
    """Return at most `most` names, oldest first. The newest texts are looked at first: others would be pushed out."""
    found: dict[str, Name] = {}
    for contents, enough in ((False, most * 3 // 4), (True, most)):
        for source in reversed(sources):
            if len(found) >= enough:
                break
            if source.contents is contents:
                for name, kind, count in find_identifiers(source.text):
                    if name not in found:
                        found[name] = Name(text=name, kind=kind, count=count, id=source.id)
    order = {source.id: place for place, source in enumerate(sources)}
    return sorted(found.values(), key=lambda name: order[name.id])


def find_identifiers(text: str) -> list[tuple[str, str, int]]:
    """Return `(name, kind, how often)` of the identifiers in a text that are worth keeping, the best first."""
    if len(text) > LARGEST_SCAN:
        half = LARGEST_SCAN // 2
        text = f"{text[:half]}\n{text[-half:]}"
    found: dict[str, tuple[str, int]] = {}
    counts = Counter(_TOKEN.findall(text))
    for token, count in counts.items():
        if (named := _named(token)) is not None and named[0] not in found:
            found[named[0]] = (named[1], count)
    for head in _DEFINITION.findall("\n" + text):
        # The head says the name too.
        found.pop(head.rpartition(" ")[2], None)
        found[head] = ("definition", 1)
    if "://" in text:
        for address in _URL.findall(text):
            found[address.rstrip(".,;:")] = ("url", 1)
    if len(found) > MOST_OF_AN_OUTPUT:
        # What a later call most likely needs comes first, equals by the alphabet.
        needs = ((-(WEIGHTS[kind] + min(count, OFTEN) / OFTEN), name) for name, (kind, count) in found.items())
        found = {name: found[name] for _, name in heapq.nsmallest(MOST_OF_AN_OUTPUT, needs)}
    return [(name, kind, count) for name, (kind, count) in found.items()]


@functools.lru_cache(maxsize=REMEMBERED)
def _named(token: str) -> tuple[str, str] | None:
    """Return the name in a token and its kind; `None` for an ordinary word."""
    if len(token) > LONGEST_TOKEN or "://" in token:
        return None
    match = _KINDS.fullmatch(_LINE_OF.sub(r"\1", token).rstrip(_ENDS).lstrip(_STARTS))
    if match is None or match.lastgroup is None:
        return None
    name = match[match.lastgroup]
    return None if name.isdigit() else (name, match.lastgroup)
