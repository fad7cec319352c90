"""Keep excerpts: lines of files exactly as they stand, so that a later edit can still quote them.

What a tool showed is taken without line numbers. A replacement that was made since is made in the excerpt too: an
excerpt of a file is what the file holds now, as far as the messages tell.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from windowsill.summaries.digest import CHARACTERS, Excerpt
from windowsill.summaries.tool_calls import Edit

MOST_LINES = 60
"""Lines of one excerpt. Of a longer text, only the lines around definitions are kept."""

MOST_CHARACTERS = 4_000
LONGEST_LINE = 400
"""Characters of a line worth quoting: a longer one is data."""

BEFORE, AFTER = 2, 6
"""Lines kept around a definition: what is written above it, and how it starts."""

LARGEST_SOURCE = 60_000
"""Characters of a file that are looked at."""

REMINDER = "\n<system-reminder>"
"""The start of an agent's own words after the contents of a file."""

_NUMBERED = re.compile(r"^[ \t]*(\d{1,7})(?:→|\t|\||: ?| \| ?)", re.MULTILINE)
_NUMBER = re.compile(r"\n[ \t]*+\d{1,7}+(?:→|\t|\||: ?| \| ?)")
"""The same with the end of the line before it: where lines end is found faster than where they start."""

_DEFINITION = re.compile(
    r"\n[ \t]*+(?:\d{1,7}+(?:→|\t|\||: ?)[ \t]*+)?+"
    r"(?:(?:export|public|private|protected|static|async|abstract|pub|default) )*+"
    r"(?:def|class|func|function|fn|type|interface|struct|enum|trait|impl"
    r"|const|module|package|resource|namespace|@\w+|#{2,4}) "
)


def pick_shown(shown: Excerpt) -> list[Excerpt]:
    """Pick what is worth keeping of a file's lines as a tool showed them."""
    path, id = shown.path, shown.id
    text = shown.text[:LARGEST_SOURCE].partition(REMINDER)[0]
    number = _NUMBERED.match(text)
    if number and _numbered(text):
        return [
            Excerpt(path=path, text=_NUMBER.sub("\n", "\n" + one.text)[1:], first=one.first, id=id)
            for one in pick_excerpts(path, text, int(number[1]), id)
        ]
    return pick_excerpts(path, text, shown.first, id)


def pick_excerpts(path: str, text: str, first: int, id: str) -> list[Excerpt]:
    """Return a text as excerpts: all of a short one, the surroundings of definitions of a long one."""
    lines = text.split("\n")
    if len(lines) <= MOST_LINES and len(text) <= MOST_CHARACTERS:
        return [Excerpt(path=path, text=text.strip("\n"), first=max(first, 1), id=id)] if text.strip() else []
    runs: list[tuple[int, int]] = []
    place = searched = 0
    for match in _DEFINITION.finditer("\n" + text):
        place += text.count("\n", searched, match.start())
        searched = match.start()
        if len(lines[place]) > LONGEST_LINE:
            continue
        start, stop = max(0, place - BEFORE), min(len(lines), place + AFTER + 1)
        if runs and start <= runs[-1][1] and stop - runs[-1][0] <= MOST_LINES:
            runs[-1] = (runs[-1][0], stop)
        else:
            runs.append((max(start, runs[-1][1]) if runs else start, stop))
    return [
        Excerpt(path=path, text="\n".join(lines[start:stop]), first=max(first, 1) + start, id=id)
        for start, stop in runs
        if any(line.strip() for line in lines[start:stop])
    ]


Held = dict[tuple[str, str], Excerpt]
"""Excerpts by path and text, oldest first."""


class Edited(msgspec.Struct, frozen=True):
    """A replacement that was made."""

    edit: Edit
    id: str


def current_excerpts(before: Iterable[Excerpt], events: Sequence[Excerpt | Edited]) -> list[Excerpt]:
    """Return the excerpts after these events, oldest first. What later ones would push out is not looked at."""
    held: Held = {(one.path, one.text): one for one in before}
    start, room = len(events), CHARACTERS["excerpts"]
    while start and room > 0:
        start -= 1
        event = events[start]
        room -= min(MOST_CHARACTERS, len(event.text if isinstance(event, Excerpt) else event.edit.new))
    for event in events[start:]:
        if isinstance(event, Excerpt):
            _add(held, pick_shown(event))
        else:
            _replace(held, event.edit, event.id)
    return _distinct(list(held.values()))


def _distinct(found: list[Excerpt]) -> list[Excerpt]:
    """Leave out those whose lines stand in newer excerpts of the same file for the most part."""
    several = Counter(one.path for one in found)
    lines: dict[str, set[str]] = {}
    distinct: list[Excerpt] = []
    for one in reversed(found):
        if several[one.path] == 1:
            distinct.append(one)
            continue
        shown = set(one.text.split("\n"))
        known = lines.setdefault(one.path, set())
        if len(shown - known) * 2 >= len(shown):
            distinct.append(one)
            known |= shown
    return distinct[::-1]


def _replace(held: Held, edit: Edit, id: str) -> None:
    """Bring the excerpts of a file up to an edit; where none shows the place, what was written is a new one."""
    if not edit.old:
        for key in [key for key in held if key[0] == edit.path]:
            del held[key]
    found = False
    for key in [key for key in held if edit.old and key[0] == edit.path and edit.old in held[key].text]:
        old = held.pop(key)
        text = old.text.replace(edit.old, edit.new, 1)
        if text.strip() and len(text) <= 2 * MOST_CHARACTERS:
            held[(edit.path, text)] = Excerpt(path=edit.path, text=text, first=old.first, id=id)
            found = True
    if not found:
        for one in pick_excerpts(edit.path, edit.new, 0, id):
            held[(edit.path, one.text)] = Excerpt(path=one.path, text=one.text, id=id)


def _add(held: Held, new: list[Excerpt]) -> None:
    """Take in what was shown last; older excerpts of the same lines give way."""
    if not new:
        return
    path, first = new[0].path, new[0].first
    last = new[-1].first + new[-1].text.count("\n")
    for key in [key for key in held if key[0] == path]:
        old = held[key]
        if old.first and first <= old.first and old.first + old.text.count("\n") <= last:
            del held[key]
    for one in new:
        held.pop((one.path, one.text), None)
        held[(one.path, one.text)] = one


def _numbered(text: str) -> bool:
    """Tell whether most of the first lines start with a number."""
    head = text[:2_000].split("\n")[:10]
    return 2 * sum(1 for line in head if _NUMBERED.match(line)) > len(head)
