"""Gathers the ledger of messages: one pass over them, on top of what earlier ledgers held."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from windowsill.history.voice import own_words
from windowsill.messages import Message, ToolResult, ToolUse
from windowsill.writers import excerpts, shell
from windowsill.writers.arguments import NAMES, TEXTS
from windowsill.writers.excerpts import REMINDER, Edited, Shown
from windowsill.writers.frame import unframed
from windowsill.writers.identifiers import Source, collected
from windowsill.writers.ledger import (
    CAPS,
    Command,
    File,
    Ledger,
    Quote,
    Task,
    Trouble,
    Value,
    add_range,
    capped,
    joined,
    same_command,
    task_key,
)
from windowsill.writers.outcomes import Outcome, outcome, output, refused
from windowsill.writers.rules import decisions, request, rules
from windowsill.writers.sentences import MOST_MESSAGES, quotes, sentences, telling
from windowsill.writers.shapes import Action, recognise
from windowsill.writers.troubles import Troubles

LONGEST_VALUE = 200
SHORTEST_VALUE = 4
"""Characters of an argument worth keeping: shorter ones are known by heart, longer ones are texts."""

LONGEST_KEY = 120
"""Characters of the names of tools and arguments."""

MOST_VALUES = 24
"""Values kept of one call."""

LONGEST_COMMAND = 600
MOST_SCANNED = 40_000
"""Characters of one message's words that are searched for rules, decisions and tasks."""

_CHECKBOX = re.compile(r"^[ \t]*+(?:[-*+]|\d{1,3}[.)])[ \t]++\[([ xX])\][ \t]++(.{3,300})$", re.MULTILINE)
_QUOTED = re.compile(r"^  > \(([^)\n]{1,80})\) (.*(?:\n  > (?!\().*)*)", re.MULTILINE)
_TASK_NUMBER = re.compile(r"#(\w{1,20})|\bid\W{1,4}(\w{1,40})")
_TEXTS_AND_PATHS = TEXTS.union(NAMES["path"])


class Gathering:
    """A ledger in the making."""

    def __init__(self, before: Ledger) -> None:
        self._before = before
        self._messages = before.messages
        self._requests = list(before.requests)
        self._rules = list(before.rules)
        self._decisions = [(0, one) for one in before.decisions]
        self._files = {file.path: file for file in before.files}
        self._commands = {one.command: one for one in before.commands}
        self._errors = Troubles(before.errors)
        self._tasks = {task_key(task): task for task in before.tasks}
        self._values = {value.text: value for value in before.values}
        self._shown: list[Shown | Edited] = []
        self._spoken: list[tuple[int, str, str]] = []
        """`(when, message id, words)` of the assistant."""
        self._sources: list[Source] = []
        self._waiting: dict[str, tuple[ToolUse, Action]] = {}

    def take(self, message: Message) -> None:
        """Take in the next message."""
        if message.metadata.get("windowsill"):
            self._summary(message)
            return
        self._messages += 1
        if words := own_words(message):
            self._own(words, message.id)
        elif message.role == "assistant" and (words := message.text):
            self._assistant(words, message.id)
        for block in message.blocks:
            if isinstance(block, ToolUse):
                self._call(block, message.id)
            elif isinstance(block, ToolResult):
                self._result(block, message.id)

    def ledger(self) -> Ledger:
        """All that was gathered, within the caps."""
        for use, action in self._waiting.values():
            if action.command:
                self._command(action, None, use.id)
        said = self._listen()
        return capped(
            Ledger(
                messages=self._messages,
                requests=joined(self._requests, lambda item: (item.id, item.text)),
                rules=joined(self._rules, lambda item: item.text),
                files=list(self._files.values()),
                commands=list(self._commands.values()),
                errors=self._errors.all(),
                decisions=joined([one for _, one in self._decisions], lambda item: item.text),
                tasks=list(self._tasks.values()),
                values=list(self._values.values()),
                names=joined([*self._before.names, *collected(self._sources, CAPS["names"])], lambda item: item.text),
                excerpts=excerpts.kept(self._before.excerpts, self._shown),
                sentences=joined([*self._before.sentences, *telling(said, CAPS["sentences"])], lambda item: item.text),
                state=self._before.state,
            )
        )

    def _summary(self, message: Message) -> None:
        """An earlier stand-in. Its ledger was merged already; what only its text has is kept as sentences or quotes."""
        text = message.text
        inside = unframed(text)
        if inside and inside.source != "offline":
            self._spoken.append((self._messages, message.id, inside.text[:MOST_SCANNED]))
        elif not inside:
            known = {quote.id for quote in self._requests}
            earlier = [
                Quote(text=words.replace("\n  > ", "\n"), id=id)
                for id, words in _QUOTED.findall(text)
                if id not in known
            ]
            self._requests = [*self._requests, *earlier]

    def _own(self, words: str, id: str) -> None:
        self._requests.append(request(words, id))
        words = words[:MOST_SCANNED]
        spoken = sentences(words)
        self._rules += rules(spoken, id)
        self._decisions += [(self._messages, one) for one in decisions(spoken, id)]
        self._checkboxes(words)
        self._sources.append(Source(text=words, id=id))

    def _assistant(self, words: str, id: str) -> None:
        words = words[:MOST_SCANNED]
        self._spoken.append((self._messages, id, words))
        self._checkboxes(words)
        self._sources.append(Source(text=words, id=id))

    def _listen(self) -> list[tuple[str, list[str]]]:
        """The sentences of the assistant's latest messages; decisions and open ends in them are noted."""
        said: list[tuple[str, list[str]]] = []
        for when, id, words in self._spoken[-MOST_MESSAGES:]:
            spoken = sentences(words)
            said.append((id, spoken))
            self._decisions += [(when, one) for one in decisions(spoken, id)]
            for left in quotes(spoken, "open", id):
                self._task(Task(text=left.text, status="said"))
        self._decisions.sort(key=lambda pair: pair[0])
        return said

    def _checkboxes(self, words: str) -> None:
        if "[" in words:
            for sign, text in _CHECKBOX.findall(words):
                self._task(Task(text=text.strip(), status="pending" if sign == " " else "completed"))

    def _task(self, task: Task) -> None:
        old = self._tasks.pop(task_key(task), None)
        if old and not task.text:
            task = msgspec.structs.replace(task, text=old.text, note=task.note or old.note)
        if task.text:
            self._tasks[task_key(task)] = task

    def _number(self, task: Task, answer: str) -> None:
        """A task that was just made goes by the number its tool gave it: later updates name nothing else."""
        number = _TASK_NUMBER.search(answer[:LONGEST_VALUE])
        if number and not task.key and self._tasks.pop(task_key(task), None):
            self._task(msgspec.structs.replace(task, key=number[1] or number[2]))

    def _call(self, use: ToolUse, id: str) -> None:
        arguments = use.input
        action = recognise(arguments)
        self._waiting[use.id] = (use, action)
        if action.kind == "plan":
            self._plan(action)
        # What a recognised call names is kept with its file, command or task.
        left_out = _TEXTS_AND_PATHS if action.kind in ("read", "change") else TEXTS
        for key, value in _values(arguments, left_out) if action.kind != "plan" else ():
            self._values.pop(value, None)
            self._values[value] = Value(text=value, key=key[:LONGEST_KEY], tool=use.name[:LONGEST_KEY], id=id)

    def _plan(self, action: Action) -> None:
        if action.replaces:
            self._tasks = {key: task for key, task in self._tasks.items() if task.status == "said"}
        for task in action.tasks:
            self._task(task)

    def _result(self, result: ToolResult, id: str) -> None:
        use, action = self._waiting.pop(result.tool_use_id, (None, None))
        text = output(result).partition(REMINDER)[0]
        if use is None or action is None:
            self._sources.append(Source(text=text, id=id))
            return
        shows = action.kind in ("read", "search", "other") or (
            action.kind == "command" and shell.shows_files(action.command)
        )
        is_error = result.is_error or (action.kind in ("read", "change") and refused(text))
        end = outcome(text, is_error=is_error, shows_files=shows or action.kind in ("change", "plan"))
        if action.command:
            self._command(action, end, id)
        if action.kind == "plan" and not action.replaces:
            self._number(action.tasks[0], text)
        if end.failed:
            self._failed(action, use, end, id)
        else:
            self._touch(action, text, id)
        self._sources.append(Source(text=text, id=id, contents=action.kind == "read"))

    def _command(self, action: Action, end: Outcome | None, id: str) -> None:
        new = Command(
            command=action.command[:LONGEST_COMMAND],
            failed=end.failed if end else None,
            exit=end.exit if end else None,
            said=end.said if end else "",
            about=action.about[:LONGEST_VALUE],
            id=id,
        )
        old = self._commands.pop(new.command, None)
        self._commands[new.command] = same_command(old, new) if old else new

    def _failed(self, action: Action, use: ToolUse, end: Outcome, id: str) -> None:
        about = action.command or ", ".join(one.path for one in action.touched) or use.name
        self._errors.add(Trouble(text=end.said, source=about[:LONGEST_COMMAND], id=id))

    def _touch(self, action: Action, text: str, id: str) -> None:
        """A call that went well: files it touched, and the troubles it ended."""
        for one in action.touched:
            old = self._files.pop(one.path, None) or File(path=one.path)
            read = old.read if one.changed else add_range(old.read, one.range)
            self._files[one.path] = File(path=one.path, read=read, changes=old.changes + one.changed, id=id)
        self._shown += [Edited(edit=edit, id=id) for edit in action.edits]
        shown = [one for one in action.touched if not one.changed]
        if len(shown) == 1 and len(action.touched) == 1:
            self._shown.append(Shown(path=shown[0].path, text=text, first=shown[0].range[0], id=id))
        changed = [one.path for one in action.touched if one.changed]
        if action.command or changed:
            # As long as what is kept of the command that failed: else a long one would never be the same.
            self._errors.ended(action.command[:LONGEST_COMMAND], changed)


def gather(messages: Sequence[Message], before: Ledger) -> Ledger:
    """The ledger of these messages on top of an earlier one."""
    gathering = Gathering(before)
    for message in messages:
        gathering.take(message)
    return gathering.ledger()


def _values(arguments: dict[str, Any], left_out: frozenset[str]) -> Iterator[tuple[str, str]]:
    """The short string arguments of a call with their keys."""
    waiting: list[tuple[str, Any]] = list(reversed(arguments.items()))
    count = 0
    while waiting and count < MOST_VALUES:
        key, value = waiting.pop()
        if isinstance(value, str):
            fits = SHORTEST_VALUE <= len(value) <= LONGEST_VALUE and "\n" not in value
            if fits and key not in left_out and any(map(str.isalnum, value)):
                yield key, value
                count += 1
        elif isinstance(value, dict):
            waiting.extend(reversed(value.items()))
        elif isinstance(value, list):
            waiting.extend((key, one) for one in reversed(value))
