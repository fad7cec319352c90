"""Collect the digest of messages: one pass over them, on top of what earlier digests held."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from windowsill import shell
from windowsill.history.entries import own_words
from windowsill.history.proposals import unframe
from windowsill.history.view import Item, View
from windowsill.messages import Image, Message, Origin, Text, ToolResult, ToolUse, text_of
from windowsill.providers.convert import is_web
from windowsill.secrets.documents import redact_for_reading
from windowsill.summaries.digest import (
    CAPS,
    DIGEST,
    KEYS,
    CallRecord,
    Command,
    Digest,
    Excerpt,
    Failure,
    File,
    Quote,
    Task,
    Value,
    add_range,
    cap,
    combine_commands,
    combine_files,
    join,
    load,
    merge_all,
    only_record,
    task_key,
    without_told,
)
from windowsill.summaries.quotes import (
    LARGEST_SCAN,
    REMINDER,
    Edited,
    Source,
    collect_names,
    current_excerpts,
    find_decisions,
    find_quotes,
    find_rules,
    has_cue,
    is_question,
    pick_telling,
    quote_request,
    split_sentences,
)
from windowsill.summaries.tool_calls import Action, recognise
from windowsill.text import cut_middle, one_line, strings
from windowsill.tool_arguments import TABLE, TEXTS

LONGEST_VALUE = 200
SHORTEST_VALUE = 4
"""Characters of an argument worth keeping: shorter ones are known by heart, longer ones are texts."""

LONGEST_KEY = 120
"""Characters of the names of tools and arguments."""

MOST_VALUES = 24
"""Values kept of one call."""

MOST_MESSAGES = 40
"""The assistant's latest messages, of which every sentence is looked at. Of those before only decisions are kept: the
rest was said again, or is stale."""

LONGEST_COMMAND = 600
LONGEST_MARKED = 1_000
"""Characters kept of a message that is marked as important."""

LONGEST_CALL, LONGEST_ANSWER = 200, 500
"""Characters of a call's arguments and of its result, in one line each."""

LARGEST_JSON = 60_000
"""Characters of an output that is read as JSON; of a larger one only the beginning is told."""

SHORT_ANSWER = 40
"""Characters up to which a message of the user's is told together with the question it answers."""

MOST_SCANNED = 40_000
"""Characters of one message's words that are searched for rules, decisions and tasks."""

EDGE = 3_000
"""Characters looked at from each end of an output: programs say first or last that they failed."""

LONGEST_LINE = 240
"""Characters of the line that is kept of an output."""

SHORTEST_FAULT = 8
"""Characters up to which a line says that something failed, and not what: a later line is looked for."""

LAST_LINES = 12
"""Lines at the end of an output among which the most telling one is looked for."""

OFFLINE = "offline"
"""The writer of what code wrote: nothing in it is new."""

PASSED = "passed later"
REJECTED = "rejected by the user"
"""The beginning of the error of a call that the user did not let run."""

ASKED, OPEN_QUESTION = "asked", "open question"
"""The status of a question that waits for the assistant's next answer, and of one that somebody called open."""

MOST_LAST = 3
"""Sentences at the end of an answer among which its question is looked for."""

_CHECKBOX = re.compile(r"^[ \t]*+(?:[-*+]|\d{1,3}[.)])[ \t]++\[([ xX])\][ \t]++(.{3,300})$", re.MULTILINE)
_QUOTED = re.compile(r"^  > \(([^)\n]{1,80})\) (.*(?:\n  > (?!\().*)*)", re.MULTILINE)
_TASK_NUMBER = re.compile(r"#(\w{1,20})|\bid\W{1,4}(\w{1,40})")
_TEXTS_AND_PATHS = TEXTS.union(TABLE["path"].names)
_TEXTS_AND_PURPOSE = TEXTS.union(TABLE["about"].names)

_EXIT = re.compile(
    r"(?:exit(?:ed)?(?: with)?(?: (?:code|status))?|return ?code|exit[_-]?(?:code|status))\W{0,3}[^\w-](-?\d{1,10})\b"
    r"|終了(?:コード|ステータス)[^\d\n-]{0,3}(-?\d{1,10})"
)
_ENDING = ("exit", "return", "終了")
_SUSPICIOUS = (
    "error", "err!", "exception", "fatal", "panic", "fail", "traceback", "not found", "no such file",
    "permission denied", "エラー", "失敗", "例外",
)  # fmt: skip
_SUSPECT = re.compile("|".join(_SUSPICIOUS))
_FAILURE = re.compile(
    r"""\W{0,4}(?:\[[^\]]{1,40}\]\s*)?\W{0,4}(?:
        [\w.]{0,80}(?:error|exception|fatal|panic|failure)(?:\s*[:\[(!]|$) | error\s
        | traceback\ \(most\ recent | fail(?:ed)?\b | (?:npm\ )?err! | error\ ts\d
        | [1-9]\d*\ (?:tests?\ )?failed\b | test\ result:\ failed | make(?:\[\d+\])?:\ \*\*\*\ .{0,120}\berror\ \d
        | .{0,120}(?:command\ not\ found | no\ such\ file\ or\ directory | permission\ denied)
        | [^\s:]{1,200}:\d+(?::\d+)?:\s+(?:fatal\ )?error\b
        | エラー | 失敗 | 例外
    )""",
    re.VERBOSE,
)
_TELLING = re.compile(
    r"\b\d+ (?:passed|failed|errors?|tests?)\b|\bok\b|\bdone\b|success|created|\[[^\]\n]+ [0-9a-f]{7,40}\]"
)
_RAISED = re.compile(r"[\w.]*(?:Error|Exception|Exit|Interrupt)\b")
_REFUSED = re.compile(r"<tool_use_error>|doesn't want to proceed|was rejected|error\"?\s*[:=]\s*(?:true|\")")
_REFUSING = ("error", "to proceed", "rejected")
"""Words of which a refusal has one."""
_USER_REFUSED = re.compile(
    r"user doesn't want to (?:proceed with|take) this(?:.{0,400}?the user said:\s*(.{0,400}))?", re.DOTALL
)
"""Answers that agents give for a user who does not let a call run, and the words of that user."""
_ERROR_TAG = re.compile(r"^<tool_use_error>|</tool_use_error>\s*\Z")
_HTTP_FAULT = re.compile(r"(?:http(?:/\d(?:\.\d)?)?|status(?:[ _]code)?)\W{0,3}[45]\d\d\b", re.IGNORECASE)
_FAULT_KEYS = ("error", "errors", "exception", "error_message", "errorMessage")
_QUESTION = ("?", "\uff1f")


def readable(view: View, item: Item) -> Message:
    """Read a message as a writer may see it.

    With what a mask hid: once the message is gone, its summary is all that is left in view. Without secrets: what a
    writer never read it cannot tell, nor send to another provider.
    """
    message = redact_for_reading(view.whole(item) if item.cuts else view.read(item))
    marks = frozenset(item.marks)
    return message if message.marks == marks else msgspec.structs.replace(message, marks=marks)


def stored_digests(items: Iterable[Item]) -> list[dict[str, Any]]:
    """Return the digests that the folds among these items keep, oldest first."""
    return [item.facts[DIGEST] for item in items if item.fold and DIGEST in item.facts]


def collect_hidden(view: View, items: Sequence[Item], messages: Sequence[Message] | None = None) -> Digest:
    """Return the digest of visible items, on top of what the folds among them keep; `messages` are theirs, if read.

    `offline.lay_out` writes it: with `details=0` the record alone, in as many tokens as it is given.
    """
    messages = [readable(view, item) for item in items] if messages is None else messages
    return collect(messages, merge_all(map(load, stored_digests(items))))


def collect_untold(view: View, items: Sequence[Item]) -> Digest:
    """Return the record of the folds among these items as far as none of their texts tells it."""
    folds = [item for item in items if item.fold and DIGEST in item.facts]
    if not folds:
        return Digest()
    shown = "\n".join(view.read(item).text for item in folds)
    return without_told(merge_all(only_record(load(one)) for one in stored_digests(folds)), shown)


def collect(messages: Sequence[Message], before: Digest) -> Digest:
    """Return the digest of these messages on top of an earlier one."""
    collector = _Collector(before)
    for message in messages:
        collector.take(message)
    return collector.digest()


class _Collector:
    """A digest in the making."""

    def __init__(self, before: Digest) -> None:
        self._before = before
        self._messages = before.messages
        self._requests = list(before.requests)
        self._rules = list(before.rules)
        self._decisions = [(0, one) for one in before.decisions]
        self._marked = list(before.marked)
        self._calls = {one.call: one for one in before.calls}
        self._files = {file.path: file for file in before.files}
        self._commands = {one.command: one for one in before.commands}
        self._failures = Failures(before.errors)
        self._tasks = {task_key(task): task for task in before.tasks}
        self._replans = before.replans
        self._values = {value.text: value for value in before.values}
        self._shown: list[Excerpt | Edited] = []
        self._spoken: list[tuple[int, str, str]] = []
        """`(when, message id, words)` of the assistant."""
        self._sources: list[Source] = []
        self._waiting: dict[str, tuple[ToolUse, Action]] = {}

    def take(self, message: Message) -> None:
        """Take in the next message."""
        if message.origin:
            self._summary(message)
            return
        self._messages += 1
        if "important" in message.marks or message.role == "system":
            text = message.text or "\n".join(text_of(result.content) for result in message.results)
            self._mark(text, message.id)
        if words := own_words(message):
            shown = [block.url for block in message.blocks if isinstance(block, Image) and is_web(block.url)]
            self._user(" ".join([words, *(f"[a picture: {url}]" for url in shown)]), message.id)
        elif message.role == "assistant" and (words := message.text):
            if (value := read_json(words)) is not None:
                # Some models answer in JSON: the sentences are among its values.
                words = "\n".join(strings(value))
            self._spoken.append((self._messages, message.id, words[:MOST_SCANNED]))
            self._words(words[:MOST_SCANNED], message.id)
            if not message.calls:
                self._answered()
        for block in message.blocks:
            if isinstance(block, ToolUse):
                self._call(block, message.id)
            elif isinstance(block, ToolResult):
                self._result(block, message.id)

    def digest(self) -> Digest:
        """Return all that was collected, within the caps."""
        for use, action in self._waiting.values():
            if action.command:
                self._command(action, None, use.id)
        sentences = self._assistant_sentences()
        lists: dict[str, list[Any]] = {
            "requests": self._requests,
            "rules": self._rules,
            "decisions": [one for _, one in self._decisions],
            "marked": self._marked,
            "names": [*self._before.names, *collect_names(self._sources, CAPS["names"])],
            "sentences": [*self._before.sentences, *pick_telling(sentences, CAPS["sentences"])],
        }
        return cap(
            Digest(
                messages=self._messages,
                replans=self._replans,
                files=_same_files(self._files.values()),
                calls=list(self._calls.values()),
                commands=list(self._commands.values()),
                errors=self._failures.all(),
                tasks=list(self._tasks.values()),
                values=list(self._values.values()),
                excerpts=current_excerpts(self._before.excerpts, self._shown),
                state=self._before.state,
                **{name: join(entries, KEYS[name]) for name, entries in lists.items()},
            )
        )

    def _summary(self, message: Message) -> None:
        """Take in an earlier stand-in: its digest was merged already, what only its text has is kept as quotes."""
        for place, text in enumerate(block.text for block in message.blocks if isinstance(block, Text)):
            inside = unframe(text)
            by_code = OFFLINE in (message.metadata.get("writer"), inside and inside.source)
            if inside and not by_code:
                self._spoken.append((self._messages, message.id, inside.text[:MOST_SCANNED]))
            elif not inside and message.origin == Origin.SUMMARY and not place:
                self._mark(text, message.id)
            elif not inside:
                known = {quote.id for quote in self._requests}
                self._requests += [
                    Quote(text=words.replace("\n  > ", "\n"), id=id)
                    for id, words in _QUOTED.findall(text)
                    if id not in known
                ]

    def _mark(self, text: str, id: str) -> None:
        if text.strip():
            self._marked.append(Quote(text=cut_middle(text.strip(), LONGEST_MARKED), id=id))

    def _user(self, words: str, id: str) -> None:
        question = self._question() if len(words) <= SHORT_ANSWER else ""
        self._requests.append(quote_request(words, id, answers=question))
        words = words[:MOST_SCANNED]
        spoken = split_sentences(words)
        called_open = {quote.text for quote in find_quotes(spoken, "questions", id)}
        for one in spoken:
            if one in called_open or is_question(one):
                self._task(Task(text=one, status=OPEN_QUESTION if one in called_open else ASKED))
        self._rules += find_rules(spoken, id)
        self._decisions += [(self._messages, one) for one in find_decisions(spoken, id)]
        self._words(words, id)

    def _question(self) -> str:
        """Return the question that the assistant's latest words end with."""
        spoken = split_sentences(self._spoken[-1][2][-EDGE:]) if self._spoken else []
        return next((one for one in reversed(spoken[-MOST_LAST:]) if one.endswith(_QUESTION)), "")

    def _answered(self) -> None:
        """Forget the questions of the user's that the assistant has answered by now."""
        self._tasks = {key: task for key, task in self._tasks.items() if task.status != ASKED}

    def _words(self, words: str, id: str) -> None:
        """Note the tasks and identifiers in what somebody said."""
        self._sources.append(Source(text=words, id=id))
        if "[" in words:
            for sign, text in _CHECKBOX.findall(words):
                self._task(Task(text=text.strip(), status="pending" if sign == " " else "completed"))

    def _assistant_sentences(self) -> list[tuple[str, list[str]]]:
        """Return the sentences of the assistant's latest messages; decisions and open ends in them are noted."""
        found: list[tuple[str, list[str]]] = []
        for place, (when, id, words) in enumerate(self._spoken, MOST_MESSAGES - len(self._spoken)):
            if place < 0 and not has_cue(words, "decisions"):
                continue
            spoken = split_sentences(words)
            self._decisions += [(when, one) for one in find_decisions(spoken, id)]
            if place < 0:
                continue
            found.append((id, spoken))
            for left in find_quotes(spoken, "open", id):
                self._task(Task(text=left.text, status="said"))
        self._decisions.sort(key=lambda pair: pair[0])
        return found

    def _task(self, task: Task) -> None:
        old = self._tasks.pop(task_key(task), None)
        if old and not task.text:
            task = msgspec.structs.replace(task, text=old.text, note=task.note or old.note)
        if task.text:
            self._tasks[task_key(task)] = task

    def _call(self, use: ToolUse, id: str) -> None:
        arguments = use.input
        action = recognise(arguments)
        self._waiting[use.id] = (use, action)
        if action.kind == "plan":
            if action.replaces:
                self._replans = True
                self._tasks = {key: task for key, task in self._tasks.items() if task.status == "said"}
            for task in action.tasks:
                self._task(task)
            return
        # What a recognised call names is kept with its file, command or task.
        left_out = TEXTS
        if action.kind in ("read", "change", "command"):
            left_out = _TEXTS_AND_PURPOSE if action.kind == "command" else _TEXTS_AND_PATHS
        for key, value in _values(arguments, left_out):
            self._values.pop(value, None)
            self._values[value] = Value(text=value, key=key[:LONGEST_KEY], tool=use.name[:LONGEST_KEY], id=id)

    def _result(self, result: ToolResult, id: str) -> None:
        use, action = self._waiting.pop(result.tool_use_id, (None, None))
        text = text_of(result.content).partition(REMINDER)[0]
        text = _ERROR_TAG.sub("", text) if "tool_use_error>" in text else text
        if use is None or action is None:
            self._sources.append(Source(text=text, id=id))
            return
        shows = action.kind in ("read", "search", "other") or (
            action.kind == "command" and shell.shows_files(action.command)
        )
        is_error = result.is_error or (action.kind in ("read", "change") and is_refused(text))
        if action.kind in ("other", "change", "plan") or "\n" not in text.strip():
            is_error = is_error or is_fault(text)
        end = read_outcome(text, is_error=is_error, shows_files=shows or action.kind in ("change", "plan"))
        if action.command:
            self._command(action, end, id)
        if action.kind == "plan" and not action.replaces:
            self._number(action.tasks[0], text)
        if end.failed:
            about = action.command or ", ".join(one.path for one in action.touched) or use.name
            failure = Failure(text=end.said, source=about[:LONGEST_COMMAND], id=id)
            self._failures.add(failure, use.name if action.kind == "read" else "")
        else:
            self._success(action, text, id)
            self._failures.note_call(use.name, action.touched[0].path if action.touched else "")
        if action.kind == "other":
            call = f"{one_line(use.name)}({cut_middle(flatten(use.input), LONGEST_CALL)})"
            value = read_json(text)
            told = one_line(text[: 4 * LONGEST_ANSWER]) if value is None else flatten(value)
            self._calls.pop(call, None)
            if told:
                self._calls[call] = CallRecord(call=call, result=cut_middle(told, LONGEST_ANSWER), id=id)
            # The keys of an object are the tool's own words: what a later call needs are their values.
            text = text if value is None else flatten(value, keys=False)
        self._sources.append(Source(text=text, id=id, contents=action.kind == "read"))

    def _number(self, task: Task, answer: str) -> None:
        """Key a task that was just made by the number its tool gave it: later updates name nothing else."""
        number = _TASK_NUMBER.search(answer[:LONGEST_VALUE])
        if number and not task.key and self._tasks.pop(task_key(task), None):
            self._task(msgspec.structs.replace(task, key=number[1] or number[2]))

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
        self._commands[new.command] = combine_commands(old, new) if old else new

    def _success(self, action: Action, text: str, id: str) -> None:
        """Note the files that a call touched, and the failures it ended."""
        for one in action.touched:
            old = self._files.pop(one.path, None) or File(path=one.path)
            read = old.read if one.changed else add_range(old.read, one.range)
            self._files[one.path] = File(path=one.path, read=read, changes=old.changes + one.changed, id=id)
        self._shown += [Edited(edit=edit, id=id) for edit in action.edits]
        shown = [one for one in action.touched if not one.changed]
        if len(shown) == 1 and len(action.touched) == 1:
            self._shown.append(Excerpt(path=shown[0].path, text=text, first=shown[0].range[0], id=id))
        changed = [one.path for one in action.touched if one.changed]
        if action.command or changed:
            # As long as what is kept of the command that failed: else a long one would never be the same.
            self._failures.note_success(action.command[:LONGEST_COMMAND], changed)


def _values(arguments: dict[str, Any], left_out: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield the short string arguments of a call with their keys."""
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


def _same_files(files: Iterable[File]) -> list[File]:
    """Join what is known of a file under its whole path and under the end of it."""
    found = {file.path: file for file in files}
    whole = [path for path in found if path.startswith(("/", "~")) or path[1:2] == ":"]
    for path in [path for path in found if path not in whole]:
        end = "/" + path.removeprefix("./")
        if (same := [one for one in whole if one.endswith(end)]) and len(same) == 1:
            both = combine_files(found[path], found[same[0]])
            found[same[0]] = msgspec.structs.replace(both, path=same[0])
            del found[path]
    return list(found.values())


def flatten(value: Any, *, keys: bool = True) -> str:
    """Write a value of JSON on one line, without brackets: what it holds, with or without the keys."""
    parts: list[str] = []
    waiting: list[tuple[str, Any]] = [("", value)]
    size = 0
    while waiting and size < LARGEST_SCAN:
        key, each = waiting.pop()
        if isinstance(each, dict):
            waiting.extend((str(name), inner) for name, inner in reversed(each.items()))
        elif isinstance(each, list):
            waiting.extend((key, inner) for inner in reversed(each))
        elif each not in (None, ""):
            parts.append(one_line(f"{key} {each}" if keys else str(each))[:LONGEST_VALUE])
            size += len(parts[-1])
    return ", ".join(parts)


def read_json(text: str) -> Any:
    """Read an output as JSON; `None` for anything else, and for what is too large."""
    if not text.lstrip().startswith(("{", "[")) or len(text) > LARGEST_JSON:
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


class Failures:
    """The latest errors, and what ended each: a later success of the same command, or a change of a file it names.

    There are no more of them than a digest holds, so that each success is checked quickly.
    """

    def __init__(self, before: Iterable[Failure]) -> None:
        self._held: dict[tuple[str, str], tuple[str, Failure]] = {}
        self._looked_up: dict[tuple[str, str], str] = {}
        """The tool of each error of a call that reads."""
        for one in before:
            self.add(one)

    def add(self, failure: Failure, reader: str = "") -> None:
        """Take in an error, of a tool that reads or of another; the same one again is one, and open again."""
        key = (failure.source, failure.text)
        if reader:
            self._looked_up[key] = reader
        self._held.pop(key, None)
        self._held[key] = (shell.without_trimming(failure.source), failure)
        if len(self._held) > CAPS["errors"]:
            del self._held[next(iter(self._held))]

    def note_success(self, command: str, changed: Sequence[str]) -> None:
        """Note a command that passed, or files that were changed."""
        passed = shell.without_trimming(command)
        names = [(path, path.replace("\\", "/").rpartition("/")[2]) for path in changed]
        names = [(path, name) for path, name in names if len(name) > 1]
        for key, (core, failure) in self._held.items():
            fix = ""
            if passed and core == passed and PASSED not in failure.fix:
                fix = f"{failure.fix}; {PASSED}" if failure.fix else PASSED
            elif not failure.fix:
                about = f"{failure.text}\n{failure.source}"
                fix = next((f"changed {path}" for path, name in names if name in about), "")
            if fix:
                self._held[key] = (core, msgspec.structs.replace(failure, fix=fix))

    def note_call(self, tool: str, path: str) -> None:
        """Note a call that passed: it ends the errors of the same tool, and of one that reads, the next file does."""
        for key, (core, failure) in self._held.items():
            if not failure.fix and (failure.source == tool or self._looked_up.get(key) == tool):
                fix = f"read {path}" if key in self._looked_up and path else PASSED
                self._held[key] = (core, msgspec.structs.replace(failure, fix=fix))

    def all(self) -> list[Failure]:
        """Return all of them, oldest first."""
        return [failure for _, failure in self._held.values()]


class Outcome(msgspec.Struct, frozen=True):
    """The end of a call: failed or not, its exit code, and the line that tells it."""

    failed: bool
    exit: int | None = None
    said: str = ""


def read_outcome(text: str, *, is_error: bool, shows_files: bool) -> Outcome:
    """Tell from the output how a call ended. Words in the contents of a file are not taken for an error."""
    if shows_files and not is_error:
        return Outcome(failed=False, said=_first_line(text[:EDGE]))
    edges = text if len(text) <= 2 * EDGE else f"{text[:EDGE]}\n{text[-EDGE:]}"
    lowered = edges.lower()
    code = _EXIT.search(lowered) if any(word in lowered for word in _ENDING) else None
    exit = int(code[1] or code[2]) if code else None
    line = _failure_line(edges, lowered)
    if is_error or exit or (line and exit is None):
        return Outcome(failed=True, exit=exit, said=line or _first_line(edges))
    return Outcome(failed=False, exit=exit, said=_last_line(edges[-EDGE:]))


def is_fault(text: str) -> bool:
    """Tell whether a tool, whichever it is, answers that it failed: with its first line, or in its object."""
    if len(text) > EDGE:
        return False
    value = read_json(text)
    if isinstance(value, dict):
        state = str(value.get("status", "")).lower()
        return any(map(value.get, _FAULT_KEYS)) or value.get("success") is False or state in ("error", "failed")
    line = text.strip().partition("\n")[0][:LONGEST_LINE]
    return _FAILURE.match(line.lower()) is not None or _HTTP_FAULT.match(line) is not None


def is_refused(text: str) -> bool:
    """Tell whether a short answer of a tool reads like a refusal to do it."""
    if len(text) >= EDGE:
        return False
    lowered = text[:400].lower()
    return any(word in lowered for word in _REFUSING) and _REFUSED.search(lowered) is not None


def _failure_line(text: str, lowered: str) -> str:
    """Return the first line that reports a failure; of a traceback, the error it ends with."""
    if not any(word in lowered for word in _SUSPICIOUS):
        return ""
    if len(text) != len(lowered):  # a few letters grow when lowered: places would no longer agree
        text = lowered
    searched, bare = 0, ""
    for suspect in _SUSPECT.finditer(lowered):
        if suspect.start() < searched:
            continue
        start = lowered.rfind("\n", 0, suspect.start()) + 1
        stop = lowered.find("\n", suspect.start())
        searched = stop if stop >= 0 else len(lowered)
        if _FAILURE.match(lowered[start : min(searched, start + 4 * LONGEST_LINE)]):
            if lowered.startswith("traceback", start):
                rest = [line.strip() for line in text[start:].splitlines()[1:]]
                return next((line for line in rest if _RAISED.match(line)), rest[-1] if rest else "")[:LONGEST_LINE]
            line = text[start:searched].strip()[:LONGEST_LINE]
            if len(line) > SHORTEST_FAULT:
                return line
            bare = bare or line
    return bare


def _first_line(text: str) -> str:
    """Return the first line that says something; one that only announces the next is told with it."""
    if (refused := _USER_REFUSED.search(text)) is not None:
        return f"{REJECTED}: {one_line(refused[1])}"[:LONGEST_LINE] if refused[1] else REJECTED
    told = filter(None, map(str.strip, text.strip().splitlines()[:LAST_LINES]))
    lines = list(itertools.islice(told, 3))
    if len(lines) > 1 and _EXIT.fullmatch(lines[0].lower()):
        lines = lines[1:]
    return " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1])[:LONGEST_LINE]


def _last_line(text: str) -> str:
    """Return the last line that tells a result, or simply the last one."""
    lines = text.rstrip().splitlines()[-LAST_LINES:]
    telling_lines = (line for line in reversed(lines) if _TELLING.search(line[: 4 * LONGEST_LINE]))
    return next(telling_lines, lines[-1] if lines else "").strip()[:LONGEST_LINE]
