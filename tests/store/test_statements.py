"""SQL in files: named statements and numbered migrations."""

import re
from pathlib import Path

import pytest

import windowsill.store
from windowsill.store.statements import migrations, statements

pytestmark = pytest.mark.unit


def test_statements_are_found_by_name():
    """A statement is the text under its name, without the closing semicolon."""
    assert statements("sqlite")["recall"] == "SELECT value FROM fact WHERE key = ?"


READS = {"read_meta", "read_whole", "read_rare_meta", "read_rare_whole", "is_rare_index_whole", "is_jump_index_whole"}
"""Chosen by what is read, so their names are put together in the code."""


def test_every_statement_is_used_and_every_used_one_exists():
    """The code and the files name the same statements."""
    home = Path(windowsill.__file__).parent
    files = [*(home / "store" / "sqlite").glob("*.py"), home / "store" / "base.py"]
    source = "".join(file.read_text() for file in files)
    used = set(re.findall(r'sql\["(\w+)"\]|(?:_one|_all|\brun)\(\s*"(\w+)"', source))
    assert {one or other for one, other in used} | READS == set(statements("sqlite"))


def test_migrations_are_numbered_from_one_without_gaps():
    """The file's number is the version it leads to."""
    steps = migrations("sqlite")
    assert [step.version for step in steps] == list(range(1, len(steps) + 1))
    assert steps[0].name == "0001_journal"
