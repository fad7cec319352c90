"""Read what an agent knows before it begins: its task, its role, and the user's preferences, skills and templates.

A folder of the user holds `preferences.toml` (a table for each category), and `skills/` and `templates/` with Markdown
files. A skill may be a file `skills/NAME.md`, or a folder `skills/NAME/` with a `SKILL.md`; `name` and `description`
stand between two lines of `---` at its start.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec

from windowsill.config.load import read_text
from windowsill.errors import InputError
from windowsill.state.changes import Change, Drop, Put, Set
from windowsill.state.layers import (
    About,
    Criterion,
    Element,
    OutputFormat,
    Policy,
    Preference,
    Resources,
    Role,
    Skill,
    State,
    System,
    TaskLimits,
    Template,
)
from windowsill.text import shorten

MAX_GOAL_CHARACTERS = 2_000
"""Characters of a goal. A task stands in its own message already: a large one must not be sent twice."""

TASK_PATHS: dict[str, Any] = {
    "task.success_criteria": None,
    "task.output_format": OutputFormat(),
    "task.limits": TaskLimits(),
    "task.about": About(),
    "work.scratchpad": "",
}
"""The parts of the state that belong to one task, and their values when the next begins."""

MAX_CRITERIA = 20
MAX_CHARACTERS = 300
"""Criteria that are taken from a task, and characters of each."""

MAX_FILES = 200
MAX_BYTES = 64 * 1024
"""Files of a folder, and bytes of each: what is larger is no instruction for an agent."""

_HEADING = re.compile(
    r"^[\s#*_>\d.)-]*+(?:"
    r"(?:(?:success|acceptance|completion|exit) criteria|criteria (?:of|for) success|definition of done"
    r"|成功条件|成功基準|完了条件|完了基準|受け?入れ?条件|受け?入れ?基準)[\s*_]*(?:$|[:\uff1a])"
    r"|(?:it is |you are )?done (?:when|if)\b:?)[\s*_]*(.*)$",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^\s*(?:(?:[-*]|\d{1,2}[.)])\s+|[•・]\s*)(?:\[[ xX]\]\s+)?(.+)$")


def goal_of(task: str) -> str:
    """Return the goal of a task: the task itself, or the beginning of a long one with a hash that tells it apart."""
    if len(task) <= MAX_GOAL_CHARACTERS:
        return task
    digest = hashlib.blake2b(task.encode(errors="backslashreplace"), digest_size=8).hexdigest()
    return (
        f"{task[:MAX_GOAL_CHARACTERS]}... [the beginning of the user's message of {len(task):,} characters, {digest}]"
    )


def task_changes(
    task: str, criteria: Sequence[str | Criterion], state: State, left: Collection[str]
) -> tuple[list[Criterion], list[Change]]:
    """Return the criteria of a task that begins, and the changes of the state that take it in.

    `left` are the paths of `TASK_PATHS` that the task before has left.
    """
    replaced = () if not criteria and "task.success_criteria" not in left else state.task.success_criteria
    kept = () if replaced else state.task.success_criteria
    wanted = [each if isinstance(each, Criterion) else Criterion(description=each) for each in criteria]
    wanted = wanted or ([] if kept else find_criteria(task))
    emptied = ("runtime.failures", "work.changes", "work.hypotheses", "work.drafts") if left else ()
    return wanted or [*kept], [
        Set("task.goal", goal_of(task)),
        *(Drop("task.success_criteria", each.key) for each in replaced),
        *(Put("task.success_criteria", each) for each in wanted),
        *(Set(path, value) for path, value in TASK_PATHS.items() if path in left and value is not None),
        *(Drop(path, each.key) for path in ("work.plan.steps", *emptied) for each in attrgetter(path)(state)),
        Set("work.plan.current", ""),
        Set("runtime.resources", Resources()),
    ]


def role_changes(role: Role | None, policies: tuple[Policy, ...] | None, now: System) -> list[Change]:
    """Return the changes that state the role and the policies of an engine, where the state has others."""
    changes: list[Change] = [Set("system.role", role)] if role is not None and role != now.role else []
    if policies is not None and policies != tuple(msgspec.structs.replace(each, at=0.0) for each in now.policies):
        changes += [Drop("system.policies", each.key) for each in now.policies]
        changes += [Put("system.policies", each) for each in policies]
    return changes


def find_criteria(task: str) -> list[Criterion]:
    """Return the success criteria that a task lists under a heading of its own; none where it has no such list."""
    found: list[str] = []
    listed = False
    for line in task.splitlines():
        if heading := _HEADING.match(line):
            listed = True
            if heading[1]:
                found.append(heading[1])
        elif listed and (bullet := _BULLET.match(line)):
            found.append(bullet[1])
        elif line.strip():
            listed = False
    texts = dict.fromkeys(shorten(each.strip(" .;*_"), MAX_CHARACTERS) for each in found)
    return [Criterion(description=each) for each in islice(filter(None, texts), MAX_CRITERIA)]


def load_knowledge(folder: Path, state: State) -> list[Change]:
    """Return the changes that bring preferences, skills and templates of a folder into a state that has others."""
    semantic, procedural = state.memory.semantic, state.memory.procedural
    read = (
        ("memory.semantic.preferences", semantic.preferences, _preferences(folder / "preferences.toml")),
        ("memory.procedural.skills", procedural.skills, _skills(folder / "skills")),
        ("memory.procedural.templates", procedural.templates, _templates(folder / "templates")),
    )
    changes: list[Change] = []
    for path, elements, found in read:
        known = {each.key: msgspec.structs.replace(each, at=0.0) for each in elements}
        changes += [Put(path, each) for each in found if known.get(each.key) != each]
    return changes


def _preferences(file: Path) -> Iterator[Element]:
    try:
        tables = tomllib.loads(_text(file))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file} is not TOML: {error}", remedy="correct that line", place=str(file)) from None
    for category, table in tables.items():
        if not isinstance(table, dict):
            remedy = f"put it into a table, such as [general]\n{category} = ..."
            raise InputError(f"{file}: {category!r} stands in no table", remedy=remedy, place=str(file))
        for name, value in table.items():
            plain = msgspec.to_builtins(value, str_keys=True)
            yield Preference(id=f"{category}/{name}", category=category, name=name, value=plain)


def _skills(folder: Path) -> Iterator[Element]:
    for file in _files(folder, "*/SKILL.md", "*.md"):
        fields, body = _front_matter(_text(file))
        name = fields.get("name") or (file.parent.name if file.name == "SKILL.md" else file.stem)
        steps = [bullet[1] for line in body.splitlines() if (bullet := _BULLET.match(line))] or body.split("\n\n")
        yield Skill(
            id=name,
            name=name,
            description=fields.get("description", ""),
            steps=tuple(each.strip() for each in steps if each.strip()),
        )


def _templates(folder: Path) -> Iterator[Element]:
    for file in _files(folder, "*.md", "*.txt"):
        fields, body = _front_matter(_text(file))
        name = fields.get("name") or file.stem
        yield Template(id=name, name=name, content=body.strip(), category=fields.get("category", ""))


def _files(folder: Path, *patterns: str) -> list[Path]:
    found = sorted(each for pattern in patterns for each in folder.glob(pattern) if each.is_file())
    return found[:MAX_FILES]


def _front_matter(text: str) -> tuple[dict[str, str], str]:
    """Split a text into the fields between two lines of dashes at its start, and the rest."""
    if not text.startswith("---\n"):
        return {}, text
    head, dashes, body = text[4:].partition("\n---")
    if not dashes:
        return {}, text
    pairs = (line.partition(":") for line in head.splitlines())
    return {key.strip(): value.strip().strip("\"'") for key, _, value in pairs}, body.lstrip("-")


def _text(file: Path) -> str:
    """Read a file; empty when there is none."""
    return read_text(file, MAX_BYTES).replace("\r\n", "\n") if file.exists() else ""
