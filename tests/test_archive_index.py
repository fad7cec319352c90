import multiprocessing
import sqlite3
import sys
import threading

import pytest

from archives import asked, said
from windowsill.archive import Archive
from windowsill.archive import catching_up as batches
from windowsill.archive.index import Index
from windowsill.archive.place import place_of
from windowsill.store.sqlite import SQLiteStore

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
    whole = Index.add

    def failing(self, before, seq, passages):
        if before.seq:
            raise KeyboardInterrupt
        return whole(self, before, seq, passages)

    monkeypatch.setattr(Index, "add", failing)
    with pytest.raises(KeyboardInterrupt):
        asked(store, "walnut")
    assert 0 < len(rows(store, "SELECT key FROM passage")) < 10
    monkeypatch.setattr(Index, "add", whole)
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
    index = Index(place_of(store), mirrors=False)
    (before,) = index.progress([store.info("s")])
    store.delete("s")
    assert index.add(before, 1, batches.passages_between(store, "s", 1, 1)) is None
    index.close()
    assert rows(store, "SELECT count(*) FROM passage") == [(0,)]
