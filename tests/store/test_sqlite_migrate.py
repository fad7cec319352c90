"""Schemas move forward, whole steps only, and never from a database that is not ours."""

import sqlite3
import threading
from pathlib import Path

import pytest

from windowsill.errors import StoreError
from windowsill.store.sqlite import SQLiteStore
from windowsill.store.sqlite.connections import translated
from windowsill.store.sqlite.migrate import make_ready, migrate, schema_version, split
from windowsill.store.statements import Migration

pytestmark = pytest.mark.integration

FIRST = Migration(version=1, name="first", script="CREATE TABLE note (text TEXT);\nINSERT INTO note VALUES ('a;b');")
SECOND = Migration(version=2, name="second", script="ALTER TABLE note ADD COLUMN at REAL NOT NULL DEFAULT 1.5;")
BROKEN = Migration(version=2, name="broken", script="CREATE TABLE other (x);\nINSERT INTO nowhere VALUES (1);")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


def ask(path: Path, question: str) -> list[tuple]:
    db = sqlite3.connect(path)
    answer = db.execute(question).fetchall()
    db.close()
    return answer


def test_an_older_database_keeps_its_content(path: Path):
    """What an older version wrote is there after the missing steps, and done steps are not done again."""
    make_ready(path, [FIRST])
    make_ready(path, [FIRST, SECOND])
    make_ready(path, [FIRST, SECOND])
    assert ask(path, "SELECT * FROM note") == [("a;b", 1.5)]
    assert ask(path, "PRAGMA user_version") == [(2,)]


def test_a_link_to_nowhere_is_named_with_what_it_points_to(path: Path):
    """It is not written through, and the folder is not blamed for it."""
    path.symlink_to("elsewhere/sessions.db")
    with pytest.raises(StoreError, match=r"sessions\.db is a link to elsewhere/sessions\.db, which does not exist"):
        make_ready(path, [FIRST])
    assert not (path.parent / "elsewhere").exists()


def test_a_step_that_fails_leaves_nothing(path: Path):
    """A step happens whole or not at all, and the steps before it stay."""
    with pytest.raises(StoreError, match="nowhere"):
        make_ready(path, [FIRST, BROKEN])
    assert ask(path, "SELECT name FROM sqlite_schema") == [("note",)]
    make_ready(path, [FIRST, SECOND])
    assert ask(path, "SELECT * FROM note") == [("a;b", 1.5)]


def test_a_newer_database_is_left_as_it_is(path: Path):
    """An older Windowsill asks for an upgrade and touches nothing."""
    make_ready(path, [FIRST, SECOND])
    before = path.read_bytes()
    with pytest.raises(StoreError, match="upgrade windowsill"):
        make_ready(path, [FIRST])
    assert path.read_bytes() == before


def test_a_newer_schema_than_the_package_knows(path: Path):
    """The store itself refuses a schema from the future."""
    SQLiteStore(path).close()
    ask(path, "PRAGMA user_version = 99")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="schema version 99"):
        SQLiteStore(path)
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_left_as_it_is(path: Path):
    """A SQLite file with other tables is not ours to write to."""
    ask(path, "CREATE TABLE bookmarks (url)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        SQLiteStore(path)
    assert path.read_bytes() == before


def test_a_step_that_another_process_did_meanwhile_is_not_done_twice(path: Path):
    """Under the lock the version is read again."""
    make_ready(path, [FIRST])
    slow, fast = (sqlite3.connect(path, isolation_level=None) for _ in range(2))

    def other_process_is_faster(statement: str) -> None:
        if statement == "BEGIN IMMEDIATE":
            slow.set_trace_callback(None)
            migrate(fast, [FIRST, SECOND], path)

    slow.set_trace_callback(other_process_is_faster)
    with translated(path):
        migrate(slow, [FIRST, SECOND], path)
    assert slow.execute("SELECT * FROM note").fetchall() == [("a;b", 1.5)]
    slow.close()
    fast.close()


def test_opening_waits_for_who_writes_to_an_unswitched_file(path: Path):
    """A database without write-ahead logging is switched to it as soon as the other writer lets go."""
    make_ready(path, [FIRST])
    writer = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    writer.execute("PRAGMA journal_mode = DELETE")
    writer.execute("BEGIN IMMEDIATE")
    release = threading.Timer(0.2, writer.close)
    release.start()
    make_ready(path, [FIRST])
    release.join()
    assert ask(path, "PRAGMA journal_mode") == [("wal",)]


def test_a_script_is_split_at_its_statements():
    """A semicolon inside text, a comment or a trigger does not end a statement."""
    trigger = "CREATE TRIGGER t AFTER INSERT ON a BEGIN\n DELETE FROM b;\n DELETE FROM c;\nEND;\n"
    script = f"SELECT ';';\n-- one; two\nSELECT 2;\n{trigger}SELECT 3"
    assert [part.strip() for part in split(script)] == [
        "SELECT ';';",
        "-- one; two\nSELECT 2;",
        trigger.strip(),
        "SELECT 3",
    ]


def test_a_database_that_another_process_is_creating_is_ours(path: Path):
    """Owner, version and tables are read at one moment, however the other process goes on between the statements."""
    path.touch()
    slow, fast = (sqlite3.connect(path, isolation_level=None) for _ in range(2))
    fast.execute("PRAGMA journal_mode = WAL")

    def other_process_creates_it(statement: str) -> None:
        if statement.startswith(("SELECT", "PRAGMA")):
            slow.set_trace_callback(None)
            migrate(fast, [FIRST], path)

    slow.set_trace_callback(other_process_creates_it)
    assert schema_version(slow, 1, path) in (0, 1)
    assert schema_version(slow, 1, path) == 1
    slow.close()
    fast.close()
