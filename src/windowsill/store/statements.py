"""Named SQL statements, read from the `.sql` files of one database."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType

import msgspec

_NAME = re.compile(r"^-- (?:name|(part)): (\w+)\n", re.MULTILINE)
_PART = re.compile(r"/\* (\w+) \*/")


class Migration(msgspec.Struct, frozen=True):
    """One step of a schema: what brings it from `version - 1` to `version`."""

    version: int
    name: str
    script: str


@cache
def statements(database: str) -> Mapping[str, str]:
    """Return every statement written for a database, by its name; a `part` stands in others as `/* its name */`."""
    found: dict[str, str] = {}
    parts: dict[str, str] = {}
    for name, text in _sql_files(_folder(database)):
        pieces = _NAME.split(text)[1:]
        for part, statement, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
            if statement in found or statement in parts:
                raise AssertionError(f"{name} names {statement!r} a second time")
            (parts if part else found)[statement] = body.strip().removesuffix(";")
    return MappingProxyType({name: _PART.sub(lambda match: parts[match[1]], text) for name, text in found.items()})


@cache
def migrations(database: str) -> tuple[Migration, ...]:
    """Return the schema's steps in order; the file `0001_journal.sql` is version 1."""
    return tuple(
        Migration(version=int(name.split("_", 1)[0]), name=name.removesuffix(".sql"), script=text)
        for name, text in _sql_files(_folder(database) / "migrations")
    )


def _folder(database: str) -> Traversable:
    return files("windowsill.store") / "sql" / database


def _sql_files(folder: Traversable) -> list[tuple[str, str]]:
    found = [file for file in folder.iterdir() if file.name.endswith(".sql")]
    return sorted((file.name, file.read_text(encoding="utf-8")) for file in found)
