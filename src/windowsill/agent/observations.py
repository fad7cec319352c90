"""Find by code alone what the state keeps of a call, an answer and a fold, so that it is there when they are hidden.

Each element names the entry it was taken from: while that stands in a request, it is not shown a second time.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any, Literal

import msgspec

from windowsill.agent.tools import EngineTool, Outcome
from windowsill.compose.payload import FoldMade
from windowsill.history.proposals import unframe
from windowsill.history.view import View
from windowsill.messages import GREP_TOOL, OWN_TOOLS, SEARCH_TOOL
from windowsill.providers.wire import escape_halves
from windowsill.state.changes import Change, Drop, Put
from windowsill.state.layers import (
    Citation,
    Draft,
    Evidence,
    FileChange,
    Measurement,
    Observation,
    Retrieved,
    State,
    Summary,
    Turn,
)
from windowsill.state.tools.projection import category_of
from windowsill.summaries.tool_calls import recognise
from windowsill.text import cut_middle, shorten

MAX_CHARACTERS = 160
"""Characters of an output or an answer that the state keeps; the history has it whole."""

SHORTEST_TURN = 24
"""A shorter answer ("Done.", "I note that.") tells nothing."""

MAX_SUMMARY = 600
"""Characters of a summary that it keeps: the summary that takes its place tells most of it too."""

MAX_DRAFT = 2_000
"""Characters of a draft that it keeps."""

MAX_SCANNED = 4_000
"""Characters of an output in which sources and numbers are looked for, half from each end."""

MAX_SOURCES = 3
MAX_NUMBERS = 8
"""Sources and numbers that are taken from one output."""

LARGEST = 1e15
"""No measurement is larger; a number of that many digits is an id."""

SEARCHES = frozenset({SEARCH_TOOL, GREP_TOOL})

CHANGES: dict[str, Literal["modify", "delete"]] = {"write": "modify", "modify": "modify", "delete": "delete"}
"""Categories whose calls change what they name."""

MEASURES = frozenset({"test", "measure", "estimate", "evaluate", "compare", "analyze", "execute", "verify"})
"""Categories whose outputs have numbers that are worth keeping."""

_SOURCE = re.compile(r"https?://[^\s<>\"')\]]+|\b[\w./-]*\w\.\w{1,8}:\d+\b|\bm\d+\b")
"""A web address, a line of a file, a message of the history."""

_COUNTED = re.compile(r"\b(\d{1,12}) (passed|failed|errors?|warnings?|skipped|tests?)\b", re.IGNORECASE)
"""A number that test runners print: `3 failed`."""
_NAMED = re.compile(r"^ *([A-Za-z][\w .-]{0,40}?) *[:=] *(-?\d{1,12}(?:\.\d{1,12})?) ?(%|[A-Za-z]{0,8})$", re.MULTILINE)
"""A line that has a name and a number: `coverage: 87%`."""


def observe_call(tool: EngineTool, key: str, outcome: Outcome, entry: int, evidence: Evidence) -> list[Change]:
    """Return the changes of the state after a call of a tool of the caller or the history, by what it did.

    A number that `evidence` has already is not measured again.
    """
    if outcome.is_error or not outcome.ran or (tool.name in OWN_TOOLS and tool.name not in SEARCHES):
        return []
    given = outcome.call.input
    category = category_of(tool.offer)
    if tool.name in SEARCHES or category == "search":
        return _retrieved(tool.name, given, outcome.text, key, entry)
    touched = recognise(given).touched if category != "read" and isinstance(given, dict) else ()
    changed = [escape_halves(each.path) for each in touched if each.changed or category in CHANGES]
    changes: list[Change] = [
        Put(
            "work.changes",
            FileChange(id=path, target=path, type=CHANGES.get(category, "modify"), applied=True, entry=entry),
        )
        for path in changed
    ]
    if not changed:
        result = cut_middle(outcome.text, MAX_CHARACTERS)
        seen = Observation(id=key, tool=tool.name, result=result, entry=entry)
        if tool.repeatable and category == "read":
            # What was read can be read again: it is kept, and not told after a fold.
            seen = msgspec.structs.replace(seen, ttl=0.0)
        changes.append(Put("evidence.observations", seen))
    if category in MEASURES:
        known = {each.id: each.value for each in evidence.measurements}
        numbers = itertools.islice(_numbers(outcome.text), MAX_NUMBERS)
        changes += [
            Put(
                "evidence.measurements",
                Measurement(
                    id=f"{tool.name}/{name}", metric=name, value=value, unit=unit, context=tool.name, entry=entry
                ),
            )
            for name, value, unit in numbers
            if known.get(f"{tool.name}/{name}") != value
        ]
    return changes


def _retrieved(tool: str, given: Any, text: str, key: str, entry: int) -> list[Change]:
    """Keep the result of a search, and the sources that it names."""
    words = given.values() if isinstance(given, dict) else ()
    query = escape_halves(shorten(next((each for each in words if isinstance(each, str)), ""), MAX_CHARACTERS))
    found: dict[str, str] = {}
    for match in _SOURCE.finditer(scanned := _ends(text)):
        line = scanned[scanned.rfind("\n", 0, match.start()) + 1 :].partition("\n")[0]
        found.setdefault(match[0], shorten(line, MAX_CHARACTERS))
    sources = list(found)[:MAX_SOURCES]
    result = Retrieved(
        id=key,
        content=cut_middle(text, MAX_CHARACTERS),
        source=", ".join(sources) or tool,
        query=query,
        relevance=1.0,
        entry=entry,
    )
    citations = [
        Citation(id=f"{key}/{number}", text=found[source], source=source, used_in=query, entry=entry)
        for number, source in enumerate(sources, start=1)
    ]
    return [Put("evidence.retrieved", result), *(Put("evidence.citations", each) for each in citations)]


def _numbers(text: str) -> Iterator[tuple[str, float, str]]:
    """Yield the numbers of an output with their names and units: those of a JSON object, or those that lines name."""
    if text.startswith("{"):
        try:
            values = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            values = {}
        for name, value in values.items():
            if type(value) in (int, float) and abs(value) < LARGEST:
                yield shorten(name, MAX_CHARACTERS), value, ""
        return
    scanned = _ends(text)
    yield from ((name, float(number), unit) for name, number, unit in _NAMED.findall(scanned))
    yield from ((name.lower(), float(number), "") for number, name in _COUNTED.findall(scanned))


def _ends(text: str) -> str:
    half = MAX_SCANNED // 2
    return text if len(text) <= MAX_SCANNED else f"{text[:half]}\n{text[-half:]}"


def observe_turn(role: Literal["user", "assistant"], text: str, entry: int) -> list[Change]:
    """Return the change that keeps the words of a message; none where it has no words."""
    words = cut_middle(text.strip(), MAX_CHARACTERS)
    if not words or (role == "assistant" and len(words) < SHORTEST_TURN):
        return []
    return [Put("memory.short_term.turns", Turn(id=f"m{entry}", role=role, text=words, entry=entry))]


def observe_draft(state: State, text: str, entry: int) -> Change:
    """Return the change that keeps a result which is still to be checked."""
    before = next((each.version for each in state.work.drafts if each.id == RESULT), 0)
    content = cut_middle(text, MAX_DRAFT)
    return Put("work.drafts", Draft(id=RESULT, type="result", content=content, version=before + 1, entry=entry))


RESULT = "result"
"""The id of the draft that the engine keeps."""


def observe_folds(folds: Iterable[FoldMade], view: View) -> list[Change]:
    """Return the changes that keep the summaries which folds put in the place of messages."""
    made = {fold.id for fold in folds}
    shown = [item for item in view.items if item.fold and item.id.partition(":")[0] in made] if made else []
    return [
        Put(
            "memory.episodic.summaries",
            Summary(
                id=item.id,
                text=words,
                condensed_from=(f"m{item.first}-m{item.last}",),
                tokens=view.tokens(item),
                entry=item.last,
            ),
        )
        for item in shown
        if (words := cut_middle(_words(view.read(item).text), MAX_SUMMARY))
    ]


def _words(text: str) -> str:
    framed = unframe(text)
    return (framed.text if framed is not None else text).strip()


DAY = 86_400.0

LOGS = (
    "runtime.execution.tool_calls",
    "runtime.execution.decisions",
    "runtime.execution.errors",
    "runtime.execution.warnings",
    "runtime.failures",
)
"""Lists of what happened, which are kept as long as the audit settings say."""


def expired(state: State, now: float) -> list[Change]:
    """Return the changes that take out of the state what was to be kept for fewer days than have passed."""
    days = state.system.audit.retention_days
    if days is None:
        return []
    oldest = now - days * DAY
    return [Drop(path, each.key) for path in LOGS for each in attrgetter(path)(state) if each.at < oldest]
