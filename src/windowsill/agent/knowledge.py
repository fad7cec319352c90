"""Read what a task and the user's files tell an agent before it begins: criteria, preferences, skills, templates.

A folder of the user holds `preferences.toml` (a table for each category), and `skills/` and `templates/` with Markdown
files. A skill may be a file `skills/NAME.md`, or a folder `skills/NAME/` with a `SKILL.md`; `name` and `description`
stand between two lines of `---` at its start.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from windowsill.errors import InputError
from windowsill.state.changes import Change, Put
from windowsill.state.layers import Criterion, Element, Preference, Skill, State, Template
from windowsill.text import shorten

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
    if (text := _text(file)) is None:
        return
    try:
        tables = tomllib.loads(text)
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
        fields, body = _front_matter(_text(file) or "")
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
        fields, body = _front_matter(_text(file) or "")
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


def _text(file: Path) -> str | None:
    """Read a file; `None` when there is none, and `InputError` for one that cannot be used."""
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise InputError(f"{file} is larger than {MAX_BYTES:,} bytes", remedy="split it", place=str(file))
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {error}", remedy="save it as UTF-8", place=str(file)) from None
