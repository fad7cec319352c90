"""When the disk, the file or another process is in the way: what is said, and that nothing stored is harmed."""

import os
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import closing
from pathlib import Path

import pytest

from support.stores import chain, child_env, everything, grow, is_chain
from windowsill.errors import DamagedError, NotFoundError, StoreError
from windowsill.store.sqlite import SQLiteStore

pytestmark = pytest.mark.integration

NOBODY = 65534

DISK_FULL = """
import os, resource, sys
from support.stores import everything, grow, is_chain
from windowsill.errors import StoreError
from windowsill.store.sqlite import SQLiteStore

store = SQLiteStore(sys.argv[1])
grow(store, 3, name="before")
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, most))
try:
    grow(store, 1, name="huge", body=os.urandom(1_000_000))
except StoreError as error:
    print(error)
print([entry.id for entry in everything(store)])
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
grow(store, 1, name="after")
print([entry.id for entry in everything(store)], is_chain(everything(store)), store.check())
store.close()
"""

READ_ONLY = """
import os, sys
from pathlib import Path
from windowsill.errors import StoreError
from windowsill.store.sqlite import SQLiteStore

# Once before, as another user may not be able to read Python itself.
SQLiteStore(Path(sys.argv[2]) / "other.db").close()
if os.geteuid() == 0:
    os.setuid(int(sys.argv[3]))
try:
    store = SQLiteStore(Path(sys.argv[1]))
    store.create("x", at=1.0)
except StoreError as error:
    print(error)
"""


def output(code: str, *args: object) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, args)], env=child_env(), text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_commits_wait_for_the_disk(store: SQLiteStore):
    """Write-ahead logging, a full sync at each commit, foreign keys checked: on the writer and on every reader."""
    for connection in (store._connections.writing(), store._connections.reading()):
        with connection as db:
            asked = [
                db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous", "foreign_keys")
            ]
        assert asked == ["wal", 2, 1]


def test_deleted_words_are_gone_from_the_file(store: SQLiteStore):
    """After a session is deleted, its text is neither in the file nor in the log of a store that stays open."""
    private = os.urandom(15_000)  # nothing makes it shorter: it is in the file as it came
    grow(store, 5, name="m", body=private)
    files = [store.path, store.path.with_name("sessions.db-wal")]
    assert any(private[:100] in file.read_bytes() for file in files)
    assert store.delete("s")
    assert not any(private[:100] in file.read_bytes() for file in files)


def test_readers_cannot_write(store: SQLiteStore):
    """A reader that tries to write is refused."""
    with pytest.raises(StoreError, match="cannot be written"), store._connections.reading() as db:
        db.execute("DELETE FROM session")
    assert store.info("s") is not None


def test_a_failing_disk_harms_nothing(store: SQLiteStore):
    """An append that the disk refuses fails with the remedy; what was there is intact, and with space it goes on."""
    said = output(DISK_FULL, store.path).splitlines()
    assert "the disk refused to read or write" in said[0]
    assert "check free space" in said[0]
    assert said[1] == "['before1', 'before2', 'before3']"
    assert said[2] == "['before1', 'before2', 'before3', 'after4'] True []"


def test_a_full_disk_harms_nothing(store: SQLiteStore):
    """A full database says so, keeps what it has, and takes more when there is space again."""
    grow(store, 3, name="before")
    with store._connections.writing() as db:
        pages = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(StoreError, match=r"the disk is full .*; free some space"):
        grow(store, 1, name="huge", body=os.urandom(100_000))
    with store._connections.writing() as db:
        db.execute("PRAGMA max_page_count = 1000000")
    grow(store, 1, name="after")
    assert [entry.id for entry in everything(store)] == ["before1", "before2", "before3", "after4"]
    assert is_chain(everything(store))


@pytest.mark.parametrize("frozen", ["file", "folder"])
def test_what_cannot_be_written_says_so(tmp_path: Path, frozen: str):
    """A read-only file or folder is named, with the remedy."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sessions.db"
        if frozen == "file":
            SQLiteStore(path).close()
            path.chmod(0o444)
        Path(folder).chmod(0o555)
        said = output(READ_ONLY, path, tmp_path, NOBODY)
        Path(folder).chmod(0o755)
    assert str(path) in said
    assert "allow this user to write" in said


def test_a_folder_is_not_a_database(tmp_path: Path):
    """A path that is a folder is refused."""
    (tmp_path / "sessions.db").mkdir()
    with pytest.raises(StoreError, match="is a folder"):
        SQLiteStore(tmp_path / "sessions.db")


def test_a_file_in_place_of_the_folder(tmp_path: Path):
    """A path through a file is refused."""
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(StoreError, match="notes"):
        SQLiteStore(tmp_path / "notes" / "sessions.db")


def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path):
    """Somebody's text is not overwritten."""
    path = tmp_path / "sessions.db"
    path.write_text("dear diary\n" * 1000)
    with pytest.raises(DamagedError, match=r"not a SQLite database.*; give another path"):
        SQLiteStore(path)
    assert path.read_text() == "dear diary\n" * 1000


def test_a_file_that_vanished_is_not_made_anew(store: SQLiteStore):
    """A store whose file was moved away does not go on with an empty one."""
    store._connections.pause()
    store._connections.resume()
    store.path.rename(store.path.with_name("moved.db"))
    with pytest.raises(StoreError, match="cannot be opened"):
        grow(store, 1, name="m")
    assert not store.path.exists()


def test_another_process_holds_the_file_for_too_long(store: SQLiteStore):
    """Waiting ends with an error that says what is in the way."""
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    hurried = SQLiteStore(store.path, busy_seconds=0.05)
    with pytest.raises(StoreError, match="another process kept the database locked"):
        hurried.append("s", 0, chain(1))
    other.execute("ROLLBACK")
    hurried.append("s", 0, chain(1))
    assert everything(store) == chain(1)
    other.close()
    hurried.close()


def test_who_is_interrupted_at_the_beginning_leaves_no_transaction(store: SQLiteStore, monkeypatch):
    """The next write begins one of its own."""
    calls = iter((threading.get_ident(), None))

    def interrupted() -> int:
        if (found := next(calls)) is None:
            raise KeyboardInterrupt
        return found

    with monkeypatch.context() as patched:
        patched.setattr("windowsill.store.sqlite.connections.threading.get_ident", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.append("s", 0, chain(1))
    store.append("s", 0, chain(1))
    assert everything(store) == chain(1)


def test_a_value_that_sqlite_cannot_keep(store: SQLiteStore):
    """A body beyond SQLite's limit is refused with the remedy."""
    with store._connections.writing() as db:
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 10_000)
    with pytest.raises(StoreError, match="larger than SQLite can keep"):
        store.append("s", 0, chain(1, body=os.urandom(20_000)))
    assert store.info("s").version == 0


def test_damage_never_passes_for_what_was_written(store: SQLiteStore, tmp_path: Path):
    """Bytes overwritten anywhere in the file raise `DamagedError`, break the chain, or touch nothing that is read."""
    dice = random.Random(3)
    written = grow(store, 150, name="m", body=dice.randbytes(1_200))
    store.close()
    whole, found = store.path.read_bytes(), 0
    for turn in range(40):
        copy = tmp_path / f"{turn}.db"
        place = dice.randrange(4096, len(whole) - 64)
        copy.write_bytes(whole[:place] + dice.randbytes(64) + whole[place + 64 :])
        try:
            damaged = SQLiteStore(copy)
        except DamagedError:
            found += 1
            continue
        try:
            entries = everything(damaged)
        except DamagedError:
            found += 1
        else:
            assert entries == written or not is_chain(entries) or len(entries) < damaged.info("s").version
            found += entries != written
        finally:
            damaged.check()
            damaged.close()
    assert found > 20


@pytest.mark.parametrize("overwrite", ["meta = 'text'", "hash = 7", "kind = CAST(x'ff' AS TEXT)"])
def test_a_row_of_the_wrong_kind_is_damage(store: SQLiteStore, overwrite: str):
    """A value that no entry could have is reported, not handed on to fail elsewhere."""
    grow(store, 1, name="m")
    with store._connections.writing() as db:
        db.execute(f"UPDATE entry SET {overwrite}")
    with pytest.raises(DamagedError, match=re.escape(str(store.path))):
        everything(store)


def test_the_check_sees_what_the_chain_cannot(store: SQLiteStore):
    """Entries that are missing, rows that belong to nobody and pages that are broken are named."""
    grow(store, 5, name="m")
    db = sqlite3.connect(store.path, isolation_level=None)
    db.execute("DELETE FROM entry WHERE seq = 3")
    db.execute("INSERT INTO blob (session, id, data) VALUES (77, 'a', x'00')")
    db.close()
    assert store.check("s") == [
        "a row of blob belongs to no session",
        "session 's' has 4 entries, but its last one is number 5",
        "1 bodies belong to no entry",
    ]


def test_the_check_of_a_broken_file_does_not_fail(store: SQLiteStore):
    """A file too broken to be read is reported as a problem, not raised."""
    grow(store, 100, name="m", body=b"x" * 3000)
    store.close()
    whole = store.path.read_bytes()
    middle = len(whole) // 8192 * 4096
    store.path.write_bytes(whole[:middle] + b"\xff" * 4096 + whole[middle + 4096 :])
    broken = SQLiteStore(store.path)
    assert broken.check() != []
    broken.close()


def test_a_deleted_session_is_not_appended_to_under_the_key_that_another_has_now(store: SQLiteStore):
    """A store remembers the keys of sessions, and a new session gets that of the last one, which was deleted."""
    one, two, three = chain(3)
    store.create("gone", at=1.0)
    store.append("gone", 0, [one, two])
    with closing(SQLiteStore(store.path)) as other:
        other.delete("gone")
        other.create("new", at=1.0)
        other.append("new", 0, [one, two])
        with pytest.raises(NotFoundError, match="'gone'"):
            store.append("gone", 2, [three])
        assert [entry.seq for entry in other.read("new", 1, 9)] == [1, 2]


@pytest.mark.parametrize("what", ["removed", "replaced"])
def test_a_write_to_a_file_that_is_gone_is_not_acknowledged(store: SQLiteStore, what: str):
    """A file that is removed while it is open takes everything that is written to it along, without an error."""
    grow(store, 1, name="before")
    other = store.path.with_name("other.db")
    SQLiteStore(other).close()
    for each in store.path.parent.glob(f"{store.path.name}*"):
        each.unlink()
    if what == "replaced":
        other.rename(store.path)
    with pytest.raises(StoreError, match="was removed or replaced while it was open: what was written is not kept"):
        grow(store, 1, name="after")


def test_a_folder_that_may_not_be_entered_says_so(tmp_path: Path):
    """It is one of our errors, with a remedy, wherever the folder stands on the way."""
    code = (
        "import os, sys\n"
        "from windowsill import StoreError, open_store\n"
        "open_store(':memory:')\n"
        "from windowsill.store.sqlite import SQLiteStore\n"
        "SQLiteStore(sys.argv[2]).close()\n"
        f"os.geteuid() or os.setuid({NOBODY})\n"
        "for make in (open_store, SQLiteStore):\n"
        "    try:\n"
        "        make(sys.argv[1] if make is open_store else sys.argv[1] + '/x.db')\n"
        "    except StoreError as error:\n"
        "        print(error)\n"
    )
    closed = tmp_path / "closed"
    (closed / "inner").mkdir(parents=True)
    closed.chmod(0)
    done = subprocess.run(
        [sys.executable, "-c", code, str(closed / "inner"), str(tmp_path / "other.db")],
        env=child_env(),
        capture_output=True,
        text=True,
        check=False,
    )
    closed.chmod(0o700)
    assert done.stdout.count("; allow this user to") == 2, done.stderr
