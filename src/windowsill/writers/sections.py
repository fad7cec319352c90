"""Sections of a summary: each part of the ledger as lines, the most useful first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from windowsill.text import one_line
from windowsill.writers.ledger import Command, Entry, Excerpt, File, Ledger, Quote, Sentence, Task, Trouble, Value

NAMES_A_LINE = 6
LONGEST_SAID = 160
"""Characters of what a command said, in its line."""


class Line(msgspec.Struct, frozen=True, gc=False):
    """One entry of a section."""

    text: str
    place: int
    """Where it stands in the section, once it is known which lines fit."""
    cuttable: bool = False
    """Whether a part of it still tells something."""
    group: str = ""
    """Lines of one group stand under a common head."""


Maker: TypeAlias = Callable[[Ledger], Iterable[Line]]
"""Makes the lines of a section, the most useful first; those nobody takes need not be made."""


def requests(ledger: Ledger) -> Iterator[Line]:
    """What the user asked for: the last first, then the first, then the others from the newest on."""
    said = ledger.requests
    order = sorted(range(len(said)), key=lambda place: (min(place, len(said) - 1 - place), -place))
    return (Line(text=_quoted(said[place]), place=place, cuttable=True) for place in order)


def rules(ledger: Ledger) -> Iterator[Line]:
    """The user's rules, word for word."""
    return _newest(ledger.rules, _noted)


def tasks(ledger: Ledger) -> list[Line]:
    """What is open first, then what is done: a plan is often written again as a whole."""
    if not ledger.tasks:
        # Worth saying where work was done: the model need not look for a plan.
        return [Line(text="- none recorded", place=0)] if ledger.files or ledger.commands else []
    lines = [Line(text=_task(task), place=place) for place, task in enumerate(ledger.tasks)]
    return sorted(lines, key=lambda line: (ledger.tasks[line.place].done, -line.place))


def files(ledger: Ledger) -> Iterator[Line]:
    """Files that were read and changed, the latest first."""
    return _newest(ledger.files, _file)


def commands(ledger: Ledger) -> Iterator[Line]:
    """Commands and how they ended, the latest first."""
    return _newest(ledger.commands, _command)


def errors(ledger: Ledger) -> list[Line]:
    """Errors and what fixed them: what is still open comes first."""
    return sorted(_newest(ledger.errors, _trouble), key=lambda line: bool(ledger.errors[line.place].fix))


def decisions(ledger: Ledger) -> Iterator[Line]:
    """What was settled."""
    return _newest(ledger.decisions, _noted)


def sentences(ledger: Ledger) -> list[Line]:
    """What the assistant said that tells the most."""
    return sorted(_newest(ledger.sentences, _noted), key=lambda line: -ledger.sentences[line.place].score)


def values(ledger: Ledger) -> Iterator[Line]:
    """Arguments of earlier calls, by tool and key, the latest first."""
    groups: dict[tuple[str, str], list[Value]] = {}
    for value in reversed(ledger.values):
        groups.setdefault((value.tool, value.key), []).append(value)
    return _chunked([(f"{tool} {key}", [one.text for one in group]) for (tool, key), group in groups.items()])


def names(ledger: Ledger) -> Iterator[Line]:
    """Identifiers, by the message where they stand last: the latest first, mere symbols after all others."""
    groups: dict[tuple[bool, str], list[str]] = {}
    for name in reversed(ledger.names):
        groups.setdefault((name.kind in ("symbol", "definition"), name.id), []).append(name.text)
    ordered = sorted(groups.items(), key=lambda pair: pair[0][0])
    return _chunked([(f"({id})", texts) for (_, id), texts in ordered])


def excerpts(ledger: Ledger) -> Iterator[Line]:
    """Lines of files exactly as they stand, the latest first."""
    held = ledger.excerpts
    return (
        Line(text=held[place].text, place=place, cuttable=True, group=_place(held[place]))
        for place in reversed(range(len(held)))
    )


def fenced(text: str) -> str:
    """A text as it stands, between signs that it cannot close."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def _newest(entries: Sequence[Entry], write: Callable[[Entry], str]) -> Iterator[Line]:
    return (Line(text=write(entries[place]), place=place) for place in reversed(range(len(entries))))


def _chunked(groups: list[tuple[str, list[str]]]) -> Iterator[Line]:
    """Short lines of a few texts each, so that a part of a long list still fits."""
    chunks = ((head, texts[start : start + NAMES_A_LINE]) for head, texts in groups for start in _starts(texts))
    for place, (head, texts) in enumerate(chunks):
        yield Line(text=f"- {one_line(head)}: " + ", ".join(f"`{one_line(text)}`" for text in texts), place=place)


def _starts(texts: list[str]) -> range:
    return range(0, len(texts), NAMES_A_LINE)


def _noted(said: Quote | Sentence) -> str:
    return one_line(f"- ({said.id}) {said.text}")


def _quoted(quote: Quote) -> str:
    return f"> ({one_line(quote.id)}) " + "\n> ".join(quote.text.splitlines())


def _task(task: Task) -> str:
    sign = "-" if task.status == "said" else "- [x]" if task.done else "- [ ]"
    # The status as its tool spells it: the next update of the plan has to use the same word.
    status = f" ({one_line(task.status)})" if task.status not in ("said", "") else ""
    note = f" / {one_line(task.note)}" if task.note else ""
    return f"{sign} {one_line(task.key) + ': ' if task.key else ''}{one_line(task.text)}{note}{status}"


def _file(file: File) -> str:
    parts = []
    if file.read:
        ranges = ", ".join(f"{first}-{last or ''}" for first, last in file.read if (first, last) != (1, 0))
        parts.append(f"read {ranges}".rstrip())
    if file.changes:
        parts.append(f"changed {file.changes}x" if file.changes > 1 else "changed")
    return f"- {one_line(file.path)} ({'; '.join(parts)})"


def _command(command: Command) -> str:
    end = {None: "no result seen", True: "failed", False: "ok"}[command.failed]
    code = f" (exit {command.exit})" if command.exit is not None else ""
    times = f" x{command.times}" if command.times > 1 else ""
    said = f": {one_line(command.said)[:LONGEST_SAID]}" if command.said else ""
    about = f" [{one_line(command.about)}]" if command.about else ""
    return f"- $ {one_line(command.command)}{about} -> {end}{code}{times}{said}"


def _trouble(trouble: Trouble) -> str:
    fix = f" -> {one_line(trouble.fix)}" if trouble.fix else " -> open"
    return f"- ({one_line(trouble.id)}) {one_line(trouble.text)} (from {one_line(trouble.source)[:LONGEST_SAID]}){fix}"


def _place(excerpt: Excerpt) -> str:
    lines = f":{excerpt.first}" if excerpt.first else ""
    return f"- {one_line(excerpt.path)}{lines}"
