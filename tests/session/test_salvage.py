"""What is left of a damaged database is saved, and what is missing is named."""

import random
import sqlite3
from pathlib import Path

import pytest

from support.cli_calls import call
from windowsill import Session, WindowsillError, open_store
from windowsill.session.copies import salvage_session
from windowsill.session.integrity import problems
from windowsill.store import Store
from windowsill.store.memory import MemoryStore
from windowsill.store.sqlite.salvage import read_remains

pytestmark = pytest.mark.integration

COUNT = 60


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two sessions of long messages, closed: everything is in the one file."""
    for id in ("a", "b"):
        with Session.open(id, store=tmp_path, model="gpt-4o", config=False) as session:
            for number in range(COUNT):
                session.add(f"message {number} of {id}: " + f"{number:04} " * 300)
    with sqlite3.connect(tmp_path / "sessions.db") as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return tmp_path / "sessions.db"


def saved(path: Path) -> tuple[Store, dict[str, list[str]]]:
    target = MemoryStore()
    return target, {left.id: salvage_session(left, target) for left in read_remains(path)}


def texts(store: Store, id: str) -> list[str]:
    with Session.open(id, store=store, config=False) as session:
        return [message.text for message in session.messages()]


def test_a_whole_database_is_saved_as_it_is(path: Path):
    """Nothing is missing, and every hash is the same."""
    source = open_store(path)
    target, missing = saved(path)
    assert missing == {"a": [], "b": []}
    assert target.read("a", 1, 999) == source.read("a", 1, 999)
    source.close()


def test_lost_entries_are_named_and_the_others_saved(path: Path):
    """What comes before a lost entry is as it was, what comes after is bound to it anew, and the session goes on."""
    before = texts(open_store(path), "a")
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM entry WHERE session = 1 AND seq = 20")
        db.execute("UPDATE body SET data = 'other' WHERE key = (1 << 32) | 40")
    target, missing = saved(path)
    assert missing["b"] == []
    assert missing["a"] == ["entry 20 is lost (nothing of it can be read)", "entry 40 is lost (message m40)"]
    assert texts(target, "a") == [text for number, text in enumerate(before, 1) if number not in (20, 40)]
    assert problems(target, target.info("a")) == []
    with Session.open("a", store=target, config=False) as session:
        session.add("it goes on")


@pytest.mark.parametrize("seed", range(6))
def test_overwritten_pages_cost_only_what_was_in_them(path: Path, seed: int):
    """With any two pages gone, nothing is saved that was not written, and most of the messages are."""
    known = {id: set(texts(open_store(path), id)) for id in ("a", "b")}
    data, moments = bytearray(path.read_bytes()), random.Random(seed)
    for _ in range(2):
        place = moments.randrange(1, len(data) // 4096) * 4096
        data[place : place + 4096] = moments.randbytes(4096)
    path.write_bytes(data)
    try:
        target, missing = saved(path)
    except WindowsillError:
        return  # A page that names the tables is gone: the error says so.
    for id in missing:
        assert set(texts(target, id)) <= known[id]
        assert missing[id] or set(texts(target, id)) == known[id]


def test_the_command_saves_to_a_new_place_only(path: Path, tmp_path: Path):
    """It lists what is missing, its exit code says so, and the damaged file stays as it is."""
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM entry WHERE session = 2 AND seq = 3")
    before = path.read_bytes()
    done = call("store", "repair", tmp_path / "new", "--store", path)
    assert done.code == 1
    assert done.out.splitlines() == [
        "a: whole",
        "b: 1 missing or damaged",
        "  entry 3 is lost (nothing of it can be read)",
    ]
    assert path.read_bytes() == before
    assert call("sessions", "verify", "--store", tmp_path / "new").code == 0
    again = call("store", "repair", tmp_path / "new", "--store", path)
    assert "TARGET has sessions already" in again.err
