"""Verify covers everything that is stored: nothing that was changed is called sound."""

import os
import re
import shutil
import sqlite3
from contextlib import closing
from types import SimpleNamespace

import pytest

from support.cli_calls import call
from windowsill import DamagedError, Session, StoreError
from windowsill.store.codec import Packing
from windowsill.store.sqlite import SQLiteStore
from windowsill.store.sqlite.connections import connect
from windowsill.store.sqlite.migrate import migrate
from windowsill.store.statements import migrations

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A session that has something of everything."""
    folder = tmp_path_factory.mktemp("stored")
    with Session.open("a", model="claude-sonnet-4-5", window=4_000, store=folder) as session:
        session.add("task")
        for number in range(30):
            session.add({"role": "assistant", "content": f"step {number} " + "word " * 40})
            session.add(f"then {number}")
            session.compose_sync(system="Never delete files.")
        session.rewind(session.view.items[-3].id)
        ref = session.outputs.keep(["balance 1000 EUR\n"] * 300)
        for id in ("t", "u"):
            session.add({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "r", "input": {}}]})
            result = {"type": "tool_result", "tool_use_id": id, "content": "output " * 300}
            session.add({"role": "user", "content": [result]}, outputs={"t": ref} if id == "t" else None)
        session.archive.retrieve("step", 1)
    return folder


@pytest.fixture
def place(stored, tmp_path):
    """A copy of it."""
    shutil.copytree(stored, tmp_path / "copy")
    return tmp_path / "copy"


def run(place, *statements):
    with closing(sqlite3.connect(place / "sessions.db")) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()


def test_a_whole_session_is_sound(place):
    """Nothing is listed where nothing was changed."""
    with Session.open("a", store=place) as session:
        assert session.verify() == []
    assert call("sessions", "verify", "--store", str(place)).out == "a: sound\n"


LAST = "(SELECT max(seq) FROM entry)"
CHANGES = {
    "settings": (
        "UPDATE session SET settings = CAST(replace(settings, '4000', '9000') AS BLOB)",
        "the settings of session 'a'",
    ),
    "a part of a request": ("UPDATE blob SET data = x'22' WHERE id NOT LIKE '%/%'", "of a request is not what was"),
    "a lost part": ("DELETE FROM blob WHERE id NOT LIKE '%/%'", "the system of request '.*' is missing"),
    "a kept output": ("UPDATE blob SET data = zeroblob(5100) WHERE id LIKE 'output/part/%'", "tool output '.*' is dam"),
    "a lost output": (
        "UPDATE blob SET id = 'x' || id WHERE id LIKE 'output/index/%'",
        "tool output '.*' of message '.*' is",
    ),
    "the index of one": ("UPDATE blob SET data = x'00' WHERE id LIKE 'output/index/%'", "its index is not what was"),
    "a note": ("UPDATE blob SET data = x'93010203' WHERE id LIKE 'same/%'", "note '.*' does not say where"),
    "a stored view": (
        "UPDATE snapshot SET data = x'00' || data",
        "the view stored at entry .* is not what was written",
    ),
    "a passage": ("UPDATE passage SET words = replace(words, 'step 3', 'step 9')", "passages? of the archive are not"),
    "a place": (f"DELETE FROM place WHERE seq > {LAST} - 3", "is not found by what was said"),
    "a message": ("UPDATE body SET data = x'7b7d' WHERE key & 4294967295 = 2", "is not what was written"),
    "a lost tail": (f"DELETE FROM entry WHERE seq = {LAST}", "ended with entry [0-9]+, but its last one is [0-9]+"),
    "another end": ("UPDATE tip SET hash = x'00'", "ends with another entry"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_noticed(what, place):
    """Whatever it is that was changed, the session and the command say so."""
    statement, said = CHANGES[what]
    run(place, statement)
    with Session.open("a", store=place) as session:
        found = "\n".join(session.verify())
    done = call("sessions", "verify", "--store", str(place))
    assert re.search(said, found)
    assert (done.code, bool(re.search(said, done.out))) == (1, True)


def test_a_part_of_a_request_that_was_changed_is_refused(place):
    """A past request is never shown other than it was sent."""
    run(place, "UPDATE blob SET data = x'6e756c6c' WHERE id NOT LIKE '%/%'")
    with Session.open("a", store=place) as session:
        last = session.calls[-1].id
        with pytest.raises(DamagedError, match="the system of this request is not what was written"):
            session.request(last)


def seen(session: Session) -> tuple:
    folds = [(fold.id, fold.active) for fold in session.folds]
    return session.branches, folds, [(item.id, item.role) for item in session.view.items], session.audit


@pytest.mark.parametrize("index", ["entry_rare", "entry_jump", "entry_by_id"])
def test_an_index_that_lost_or_changed_rows_is_made_again(index, place, monkeypatch):
    """No list is read from an index that says other than the entries."""
    monkeypatch.setattr("windowsill.store.sqlite.store.SHORT", 0)
    with Session.open("a", store=place) as session:
        before = seen(session)
    damage_index(place, index)
    with closing(SQLiteStore(place / "sessions.db")) as store:
        assert any(index in problem for problem in store.check("a"))
    with Session.open("a", store=place) as session:
        assert seen(session) == before
        assert (session.verify() == []) is (index != "entry_by_id")


def damage_index(place, index) -> None:
    """Take the last row of a leaf page of an index away, as one flipped byte does."""
    file = place / "sessions.db"
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        (size,) = db.execute("PRAGMA page_size").fetchone()
        wanted = "SELECT pageno, ncell FROM dbstat WHERE name = ? AND pagetype = 'leaf' AND ncell > 0 LIMIT 1"
        page, rows = db.execute(wanted, (index,)).fetchone()
    data = bytearray(file.read_bytes())
    start = (page - 1) * size
    data[start + 3 : start + 5] = (rows - 1).to_bytes(2, "big")
    file.write_bytes(data)


@pytest.mark.parametrize("version", [3, 4])
def test_a_database_of_an_earlier_schema_opens_and_is_sound(tmp_path, place, version):
    """Its tips are counted and its messages found by a client's list; views without a checksum are stored anew."""
    with Session.open("a", store=place) as session:
        before = seen(session)
    old = tmp_path / "old.db"
    old.touch()
    with closing(connect(old)) as db:
        migrate(db, migrations("sqlite")[:version], old)
        db.execute("ATTACH ? AS new", (str(place / "sessions.db"),))
        db.create_function("unpacked", 1, lambda data: Packing().unpack(data, "a", ""))
        db.execute("INSERT INTO session SELECT key, id, created, settings FROM new.session")
        columns = "session, seq, parent, kind, id, at, unpacked(meta), hash, body_hash"
        db.execute(f"INSERT INTO entry SELECT {columns} FROM new.entry")
        if version > 3:
            db.execute("INSERT INTO place SELECT * FROM new.place")
        db.execute("INSERT INTO body SELECT key, unpacked(data) FROM new.body")
        db.execute("INSERT INTO blob SELECT key, session, id, unpacked(data) FROM new.blob")
        db.execute("INSERT INTO snapshot SELECT key, session, seq, substr(unpacked(data), 17) FROM new.snapshot")
    with Session.open("a", store=old) as session:
        assert (seen(session), session.verify()) == (before, [])
        session.add("more")
        assert session.verify() == []
    store = SQLiteStore(old)
    assert store.snapshot("a", 10_000)[0] == store.info("a").version
    store.close()


def test_a_store_on_a_read_only_disk_can_be_read(place, monkeypatch):
    """Everything that only reads works, nothing is made beside the database, and a write says why it is refused."""
    true = os.statvfs
    flags = SimpleNamespace(f_flag=os.ST_RDONLY)
    monkeypatch.setattr(os, "statvfs", lambda path: flags if "copy" in str(path) else true(path))
    with Session.open("a", store=place) as session:
        assert (len(list(session.messages())), session.verify()) == (63, [])
        with pytest.raises(StoreError, match="cannot be written"):
            session.add("more")
    assert call("sessions", "list", "--store", str(place)).code == 0
    assert call("store", "check", "--store", str(place)).out == "sound\n"
    assert [file.name for file in place.iterdir() if "sessions.db" in file.name] == ["sessions.db"]


def test_a_log_on_a_read_only_disk_is_not_passed_over(place, monkeypatch):
    """What stands only in the log would be missing without a word: the store is refused, with the remedy."""
    (place / "sessions.db-wal").write_bytes(b"x" * 32)
    monkeypatch.setattr(os, "statvfs", lambda _path: SimpleNamespace(f_flag=os.ST_RDONLY))
    with pytest.raises(StoreError, match=r"sessions\.db-wal holds what is not yet in it; copy both files"):
        SQLiteStore(place / "sessions.db")
