import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import threading

import pytest

from support.archives import asked, said
from windowsill.errors import DamagedError, StoreError
from windowsill.search import Archive
from windowsill.search import archive as batches
from windowsill.store.sqlite import SQLiteStore
from windowsill.store.sqlite.fts import SQLiteIndex

pytestmark = pytest.mark.integration


@pytest.fixture
def store(tmp_path):
    made = SQLiteStore(tmp_path / "sessions.db")
    yield made
    made.close()


def rows(store, statement: str) -> list[tuple[object, ...]]:
    db = sqlite3.connect(store.path)
    found = db.execute(statement).fetchall()
    db.close()
    return found


def everything(store) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(store.path.parent.iterdir()))


def test_deleting_a_session_leaves_no_word_of_it(tmp_path):
    """After a deletion neither the passages nor the words of the index are in the file; other sessions are found."""
    store = SQLiteStore(tmp_path / "x" / "sessions.db")
    said("the xylophonic zebraquux", "東京のひみつ", store=store)
    said("other matters", store=store, id="other")
    assert len(asked(store, "zebraquux 東京")) == 2
    assert asked(store, "matters", session="other") == ["other matters"]
    store.delete("s")
    store.close()
    left = everything(store).lower()
    assert not [word for word in ("zebraquux", "xylophon", "ひみ", "東京") if word.encode() in left]
    store = SQLiteStore(store.path)
    assert asked(store, "matters zebraquux", scope="all", session="other") == ["other matters"]
    assert rows(store, "SELECT count(*) FROM passage_progress") == [(1,)]
    store.close()


def test_forgetting_leaves_no_word_in_the_index(store):
    """What was stored by hand is gone from the file once it is forgotten."""
    said("hello", store=store)
    with Archive(store, "s") as archive:
        archive.store(["the xylophonic zebraquux"])
        assert len(archive.retrieve("zebraquux")) == 1
        archive.forget()
    store.close()
    assert b"zebraquux" not in everything(store)


def test_the_index_is_sound_after_all_kinds_of_changes(store):
    """Words and passages agree after replacing, forgetting and rebuilding."""
    said(*(f"number {place} camelCase 東京" for place in range(20)), store=store)
    said("more", store=store, id="other")
    with Archive(store, "s", scope="all") as archive:
        archive.store(["first camelCase"])
        archive.rebuild()
        archive.forget("other")
        archive.retrieve("more")
    db = sqlite3.connect(store.path)
    # Fails when the words that the index holds are not those of the passages.
    db.execute("INSERT INTO passage_words (passage_words, rank) VALUES ('integrity-check', 1)")
    db.close()


def test_a_crash_in_the_middle_loses_nothing(store, monkeypatch):
    """What was indexed before stays, and the next question goes on from there."""
    monkeypatch.setattr(batches, "BATCH", 4)
    said(*(f"walnut {'abcdefghij'[place]}" for place in range(10)), store=store)
    whole = SQLiteIndex.add

    def failing(self, before, seq, passages, words):
        if before.seq:
            raise KeyboardInterrupt
        return whole(self, before, seq, passages, words)

    monkeypatch.setattr(SQLiteIndex, "add", failing)
    with pytest.raises(KeyboardInterrupt):
        asked(store, "walnut")
    assert 0 < len(rows(store, "SELECT key FROM passage")) < 10
    monkeypatch.setattr(SQLiteIndex, "add", whole)
    assert len(set(asked(store, "walnut", 50))) == 10
    assert rows(store, "SELECT count(*) FROM passage") == [(10,)]


def _ask(path: str) -> None:
    store = SQLiteStore(path)
    found = asked(store, "hazelnut", 1_000)
    store.close()
    sys.exit(0 if len(set(found)) == 150 else 1)


def test_processes_that_catch_up_at_once_do_not_index_twice(store, monkeypatch):
    """Each entry is indexed once, whoever is faster, and everybody finds everything."""
    monkeypatch.setattr(batches, "BATCH", 20)
    letters = "abcdefghij"
    said(*(f"hazelnut {letters[n // 100]}{letters[n // 10 % 10]}{letters[n % 10]}" for n in range(150)), store=store)
    many = [multiprocessing.get_context("spawn").Process(target=_ask, args=(str(store.path),)) for _ in range(2)]
    for each in many:
        each.start()
    found = []
    threads = [threading.Thread(target=lambda: found.append(len(asked(store, "hazelnut", 1_000)))) for _ in range(3)]
    for each in (*threads,):
        each.start()
    for each in (*threads, *many):
        each.join()
    assert [each.exitcode for each in many] == [0, 0]
    assert found == [150] * 3
    assert rows(store, "SELECT count(*), count(DISTINCT id) FROM passage") == [(150, 150)]


def test_a_session_that_goes_while_it_is_indexed_stays_gone(store):
    """Work on a deleted session is thrown away."""
    said("pecan", store=store)
    index = store.search_index()
    (before,) = index.sessions(["s"])
    passages = batches.passages_between(store, "s", 1, 1)
    store.delete("s")
    assert index.add(before, 1, passages, [passage.text for passage in passages]) is None
    assert rows(store, "SELECT count(*) FROM passage") == [(0,)]


def _catch_up_and_die(path: str) -> None:
    adding = SQLiteIndex.add

    def once(self, before, seq, passages, words):
        if before.seq:
            os.kill(os.getpid(), signal.SIGKILL)
        return adding(self, before, seq, passages, words)

    SQLiteIndex.add = once
    batches.BATCH = 4
    asked(SQLiteStore(path), "walnut")


def test_a_process_killed_while_it_indexes_leaves_a_sound_index(store):
    """What it had finished counts, the rest is indexed by whoever asks next, and nothing twice."""
    said(*(f"walnut {'abcdefghij'[place]}" for place in range(10)), store=store)
    process = multiprocessing.get_context("spawn").Process(target=_catch_up_and_die, args=(str(store.path),))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert rows(store, "SELECT count(*) FROM passage") == [(4,)]
    assert len(set(asked(store, "walnut", 50))) == 10
    assert rows(store, "SELECT count(*) FROM passage") == [(10,)]


def _write(path: str) -> None:
    store = SQLiteStore(path)
    for place in range(20):
        said(f"almond {place}", store=store, at=2_000.0 + 60 * place)
    store.close()


def test_questions_while_another_process_writes_find_what_is_there(store):
    """Nobody fails, nothing is found twice, and in the end everything is found."""
    said("almond tree", store=store)
    writer = multiprocessing.get_context("spawn").Process(target=_write, args=(str(store.path),))
    writer.start()
    failed: list[Exception] = []

    def ask() -> None:
        try:
            while writer.is_alive():
                found = asked(store, "almond", 100)
                assert len(found) == len(set(found))
        except Exception as error:  # noqa: BLE001 - whatever a thread raises fails the test
            failed.append(error)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for each in threads:
        each.start()
    for each in (*threads, writer):
        each.join()
    assert (failed, writer.exitcode) == ([], 0)
    assert len(asked(store, "almond", 100)) == 21


def test_what_is_indexed_is_found_while_somebody_else_holds_the_database(store):
    """A question that has nothing to catch up with writes nothing."""
    said("one chestnut", store=store)
    assert asked(store, "chestnut") == ["one chestnut"]
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert asked(store, "chestnut") == ["one chestnut"]
    other.execute("ROLLBACK")
    other.close()


def test_what_cannot_be_indexed_now_says_why(store):
    """Nothing is left out in silence: the error names the cause, and the next question finds everything."""
    said("one chestnut", store=store)
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    impatient = SQLiteStore(store.path, busy_seconds=0.1)
    archive = Archive(impatient, "s")
    with pytest.raises(StoreError, match="locked"):
        archive.retrieve("chestnut")
    other.execute("ROLLBACK")
    other.close()
    assert [found.text for found in archive.retrieve("chestnut")] == ["one chestnut"]
    impatient.close()


def damaged(store, damage: str) -> Archive:
    said("one chestnut", store=store)
    with Archive(store, "s") as archive:
        archive.store(["another chestnut"])
        archive.catch_up()
    db = sqlite3.connect(store.path, isolation_level=None)
    db.execute(damage)
    db.close()
    return Archive(store, "s")


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM passage_words_data WHERE id > 10",
        "UPDATE passage_words_data SET block = zeroblob(8) WHERE id > 10",
        "UPDATE passage_words_data SET block = x'ff' WHERE id = 10",
        "DELETE FROM passage_words_docsize",
    ],
)
def test_a_damaged_index_can_be_made_again(store, damage):
    """The journal is whole, and what was stored by hand is there too."""
    with damaged(store, damage) as archive:
        archive.rebuild()
        assert {found.text for found in archive.retrieve("chestnut")} == {"one chestnut", "another chestnut"}


def test_damage_that_shows_names_its_remedy(store):
    """Nobody has to look for a backup because of an index."""
    with (
        damaged(store, "DELETE FROM passage_words_data WHERE id > 10") as archive,
        pytest.raises(DamagedError, match=r"archive\.rebuild\(\)"),
    ):
        archive.retrieve("chestnut")


_MEASURED = """
import sys
from windowsill.search import Archive
from windowsill.store.sqlite import SQLiteStore

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

archive = Archive(SQLiteStore(sys.argv[1]), "s")
archive.retrieve("nothing", sessions=[])
before = peak()
archive.catch_up()
print((peak() - before) // 1024)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak from /proc")
def test_large_outputs_take_no_more_memory_than_small_ones(store):
    """However many megabytes a session holds, a few of them are in memory at once."""
    line = "".join(f"{number} " for number in range(20))
    said(*(f"{place} {line}\n" * 32_000 for place in range(24)), store=store, tokenizer="bytes/4")
    run = subprocess.run([sys.executable, "-c", _MEASURED, str(store.path)], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 64
