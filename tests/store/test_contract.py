"""What every store does, whatever it keeps its sessions in."""

import math
import threading
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.examples import examples
from support.stores import STORES, chain, everything, grow, is_chain
from windowsill.errors import ConflictError, InputError, LockedError, NotFoundError, StoreError
from windowsill.history.entries import ROOT_HASH, seal
from windowsill.store import MOST_PLACES, Lock, Place, SessionInfo, Store
from windowsill.store.base import holder_name

pytestmark = pytest.mark.contract


@pytest.fixture(params=STORES)
def empty(request, tmp_path: Path):
    store = STORES[request.param](tmp_path)
    yield store
    store.close()


@pytest.fixture
def store(empty: Store) -> Store:
    empty.create("s", at=1.0)
    return empty


def test_fulfils_the_protocol(store: Store):
    """Every store has every method of the protocol."""
    assert isinstance(store, Store)


def test_create_writes_settings_only_once(empty: Store):
    """A second `create` changes nothing and says so."""
    assert empty.create("a", at=5.0, settings=b"1") is True
    assert empty.create("a", at=6.0, settings=b"2") is False
    assert empty.info("a") == SessionInfo("a", created=5.0, updated=5.0, version=0, settings=b"1")


@pytest.mark.parametrize("name", ["", "x" * 501, "a\0b", "\ud800"])
def test_refuses_a_name_that_cannot_be_kept(empty: Store, name: str):
    """A name that is empty, too long or not text is the caller's mistake."""
    with pytest.raises(InputError):
        empty.create(name, at=1.0)
    assert empty.sessions() == []


@pytest.mark.parametrize("name", ["x" * 500, "../../etc/passwd", "日本語 🪟", "a'; DROP TABLE entry; --", " "])
def test_takes_any_text_as_a_name(empty: Store, name: str):
    """A session may be called anything else."""
    empty.create(name, at=1.0)
    empty.append(name, 0, chain(1))
    assert [info.id for info in empty.sessions()] == [name]
    assert empty.find(name, "m1") == chain(1)[0]


def test_info_follows_the_last_entry(store: Store):
    """The version is the number of entries; the last use is the last entry's time."""
    store.append("s", 0, chain(3))
    assert store.info("s") == SessionInfo("s", created=1.0, updated=1003.0, version=3)


def test_sessions_come_last_used_first(empty: Store):
    """The list begins with the session that was used last; equals are in order of their names."""
    for name, at in (("b", 1.0), ("a", 1.0), ("c", 2.0)):
        empty.create(name, at=at)
    empty.append("a", 0, chain(1))
    assert [info.id for info in empty.sessions()] == ["a", "c", "b"]


def test_set_settings_replaces_them(store: Store):
    """Settings are replaced whole; a session that is not there is an error."""
    store.set_settings("s", b"new")
    assert store.info("s").settings == b"new"
    with pytest.raises(NotFoundError):
        store.set_settings("nobody", b"new")


def test_reads_back_what_was_appended(store: Store):
    """Entries come back as they went in, in order, and their chain is whole."""
    entries = chain(2, body=b"\0\xff" * 5000)
    entries += chain(1, after=entries[-1], body=b"")
    store.append("s", 0, entries[:1])
    store.append("s", 1, entries[1:])
    assert everything(store) == entries
    assert is_chain(everything(store))


@pytest.mark.parametrize(
    ("first", "last", "seqs"),
    [(1, 5, [1, 2, 3, 4, 5]), (2, 3, [2, 3]), (-9, 1, [1]), (5, 2**70, [5]), (6, 9, []), (3, 2, []), (-5, -1, [])],
)
def test_reads_a_range(store: Store, first: int, last: int, seqs: list[int]):
    """Both ends of a range belong to it; numbers that do not exist are no error."""
    store.append("s", 0, chain(5))
    assert [entry.seq for entry in store.read("s", first, last)] == seqs


def test_reads_without_bodies(store: Store):
    """Without bodies everything else is the same."""
    entries = chain(2)
    store.append("s", 0, entries)
    assert store.read("s", 1, 2, bodies=False) == [msgspec.structs.replace(entry, body=None) for entry in entries]


def test_reads_some_kinds(store: Store):
    """Only the asked kinds come back; no kind asked is nothing."""
    one, two = chain(2)
    store.append("s", 0, [one, msgspec.structs.replace(two, kind="fold")])
    assert [entry.seq for entry in store.read("s", 1, 2, kinds=["fold", "rewind"])] == [2]
    assert store.read("s", 1, 2, kinds=[]) == []


@given(at=st.floats(allow_nan=False, allow_infinity=False).filter(lambda at: repr(at) != "-0.0"))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(0.5))
def test_times_read_back_exactly(empty: Store, at: float):
    """A time is the same float afterwards, to the last bit: it is part of the hash."""
    empty.delete("t")
    empty.create("t", at=1.0)
    empty.append("t", 0, [seal(seq=1, parent=0, parent_hash=ROOT_HASH, kind="message", id="a", at=at, meta=b"")])
    assert repr(everything(empty, "t")[0].at) == repr(at)


def test_append_needs_the_current_version(store: Store):
    """Who appends after an old version learns the new one, and nothing is written."""
    store.append("s", 0, chain(2))
    with pytest.raises(ConflictError) as caught:
        store.append("s", 1, chain(2, name="late")[1:])
    assert (caught.value.expected, caught.value.found) == (1, 2)
    assert [entry.id for entry in everything(store)] == ["m1", "m2"]


def test_append_needs_the_session(empty: Store):
    """Appending to a session that is not there is an error."""
    with pytest.raises(NotFoundError, match="create it first"):
        empty.append("s", 0, chain(1))


ONE, TWO, THREE = chain(3)


@pytest.mark.parametrize(
    ("entries", "names"),
    [
        ([TWO], "'m2' is numbered 2, not 1"),
        ([ONE, THREE], "'m3' is numbered 3, not 2"),
        ([ONE, msgspec.structs.replace(TWO, id="m1")], "already has an entry 'm1'"),
        ([msgspec.structs.replace(ONE, parent=1)], "has the parent 1"),
        ([msgspec.structs.replace(ONE, body=None)], "without its body"),
        ([msgspec.structs.replace(ONE, at=math.nan)], "has the time nan"),
        ([msgspec.structs.replace(ONE, at=-0.0)], "has the time -0.0"),
        ([msgspec.structs.replace(ONE, at=7)], "has the time 7"),
        ([msgspec.structs.replace(ONE, id="\ud800")], "has an id that cannot be kept"),
    ],
)
def test_append_refuses_what_would_not_read_back(store: Store, entries: list, names: str):
    """A batch with one bad entry is refused whole, and the error names the entry."""
    with pytest.raises(StoreError, match=names):
        store.append("s", 0, entries)
    assert store.info("s").version == 0


def test_no_number_is_larger_than_a_database_can_keep(store: Store):
    """An entry past the last number is refused with a remedy, and a version past it is not the current one."""
    with pytest.raises(StoreError, match="is numbered 4294967296; go on in another session"):
        store.append("s", 2**32 - 1, [msgspec.structs.replace(ONE, seq=2**32)])
    with pytest.raises(ConflictError):
        store.append("s", 2**70, [])


def test_append_refuses_an_id_that_is_there(store: Store):
    """An id belongs to one entry of a session; the batch, its snapshot and its blob are refused with it."""
    store.append("s", 0, [ONE])
    with pytest.raises(StoreError, match="already has an entry 'm1'"):
        store.append("s", 1, [TWO, msgspec.structs.replace(THREE, id="m1")], snapshots=[(2, b"v")], blobs=[("b", b"x")])
    assert everything(store) == [ONE]
    assert store.snapshot("s", 9) is None
    assert store.blob("s", "b") is None


def test_two_sessions_may_use_the_same_ids(store: Store):
    """Ids, snapshots and blobs of one session are unknown to another."""
    store.create("other", at=1.0)
    store.append("s", 0, chain(1), snapshots=[(1, b"v")], blobs=[("b", b"x")])
    store.append("other", 0, chain(1, body=b"other"))
    assert store.find("s", "m1").body == b"body"
    assert store.find("other", "m1").body == b"other"
    assert store.snapshot("other", 9) is None
    assert store.blob("other", "b") is None


def test_an_empty_append_still_checks_the_version(store: Store):
    """Snapshots and blobs may come alone, and only at the current version."""
    store.append("s", 0, [], blobs=[("b", b"x")])
    assert store.blob("s", "b") == b"x"
    with pytest.raises(ConflictError):
        store.append("s", 1, [])


def test_jumps_are_entries_that_do_not_follow_the_one_before(store: Store):
    """Each jump is listed with its parent, in order; a journal without rewinds has none."""
    first = chain(3)
    store.append("s", 0, first)
    assert store.jumps("s") == []
    second = chain(2, after=first[-1], jump=1)
    store.append("s", 3, second)
    store.append("s", 5, chain(1, after=second[-1], jump=0))
    assert store.jumps("s") == [(4, 1), (6, 0)]


def test_find_by_id(store: Store):
    """An entry is found whole by its id; an unknown one is `None`."""
    store.append("s", 0, chain(2))
    assert store.find("s", "m2") == TWO
    assert store.find("s", "m3") is None


def test_the_last_snapshot_at_or_before(store: Store):
    """The nearest earlier snapshot is found; a later one for the same entry replaces it."""
    store.append("s", 0, chain(5), snapshots=[(2, b"two"), (4, b"four")])
    store.append("s", 5, [], snapshots=[(4, b"four again")])
    assert store.snapshot("s", 1) is None
    assert store.snapshot("s", 3) == (2, b"two")
    assert store.snapshot("s", 4) == store.snapshot("s", 2**70) == (4, b"four again")


def test_a_snapshot_cannot_be_ahead_of_its_journal(store: Store):
    """A snapshot of an entry that is not there is refused."""
    with pytest.raises(StoreError, match="a snapshot at 2, but the journal ends at 1"):
        store.append("s", 0, chain(1), snapshots=[(2, b"")])


def test_a_blob_is_written_once(store: Store):
    """The same id again changes nothing: it names its content."""
    store.append("s", 0, [], blobs=[("sha", b"first"), ("sha", b"second")])
    store.append("s", 0, [], blobs=[("sha", b"third")])
    assert store.blob("s", "sha") == b"first"
    assert store.blob("s", "other") is None


def test_blobs_are_put_without_the_journal(store: Store):
    """They are written once, whatever the version, and need a session and a name that can be kept."""
    store.append("s", 0, chain(1))
    store.put_blobs("s", [("a", b"first"), ("b", b"")])
    store.put_blobs("s", iter([("a", b"second")]))
    assert (store.blob("s", "a"), store.blob("s", "b"), store.info("s").version) == (b"first", b"", 1)
    with pytest.raises(NotFoundError):
        store.put_blobs("nobody", [("a", b"")])
    with pytest.raises(InputError):
        store.put_blobs("s", [("c", b"kept with it or not at all"), ("", b"")])
    assert store.blob_ids("s", "") == ["a", "b"]


@pytest.mark.parametrize("size", [0, 1, 4_000, 65_536, 65_537, 3_000_000])
def test_a_blob_of_any_size_reads_back(store: Store, size: int):
    """Byte for byte, on either side of every border."""
    data = bytes(range(251)) * (size // 251 + 1)
    store.put_blobs("s", [("a", b"other"), ("b", data[:size])])
    assert store.blob("s", "b") == data[:size]


def test_blob_ids_are_found_by_their_beginning(store: Store):
    """Letter for letter, in order, and only of this session."""
    store.create("other", at=1.0)
    store.put_blobs("other", [("a/9", b"")])
    store.put_blobs("s", [(id, b"") for id in ("a/2", "a/1", "a", "A/3", "a/\U0010ffff", "a0", "a%", "é/1", "b")])
    assert store.blob_ids("s", "a/") == ["a/1", "a/2", "a/\U0010ffff"]
    assert store.blob_ids("s", "é") == ["é/1"]
    assert store.blob_ids("s", "a%") == ["a%"]
    assert len(store.blob_ids("s", "")) == 9
    assert store.blob_ids("nobody", "") == []


def test_blobs_are_dropped(store: Store):
    """How many there were is told; others, and those of another session, stay."""
    store.create("other", at=1.0)
    for session in ("s", "other"):
        store.put_blobs(session, [("a", b"1"), ("b", b"2"), ("c", b"3")])
    assert store.drop_blobs("s", iter(["a", "b", "b", "x"])) == 2
    assert (store.blob_ids("s", ""), store.blob_ids("other", "")) == (["c"], ["a", "b", "c"])
    store.put_blobs("s", [("a", b"new")])
    assert store.blob("s", "a") == b"new"
    with pytest.raises(NotFoundError):
        store.drop_blobs("nobody", ["a"])


def test_delete_leaves_nothing(store: Store):
    """A deleted session that is made again begins empty; another one is untouched."""
    store.create("other", at=1.0)
    store.append("other", 0, chain(2))
    store.append("s", 0, chain(2), snapshots=[(1, b"v")], blobs=[("b", b"x")])
    store.lock("s", "me", seconds=60, now=0.0)
    assert store.delete("s") is True
    assert store.delete("s") is False
    store.create("s", at=1.0)
    assert (everything(store), store.jumps("s"), store.find("s", "m1")) == ([], [], None)
    assert (store.snapshot("s", 9), store.blob("s", "b"), store.locked("s", now=0.0)) == (None, None, None)
    assert everything(store, "other") == chain(2)
    assert store.check() == []


def test_reading_what_is_not_there_finds_nothing(empty: Store):
    """A session that does not exist reads as an empty one."""
    assert (empty.info("s"), everything(empty), empty.jumps("s"), empty.find("s", "m")) == (None, [], [], None)
    assert (empty.snapshot("s", 9), empty.blob("s", "b"), empty.delete("s")) == (None, None, False)


def test_a_name_that_nothing_can_have_finds_nothing(store: Store):
    """Reading by it is no error; writing is the error of a session that is not there."""
    name = "s\0"
    assert (store.info(name), store.find(name, "m"), store.find("s", name), store.recall(name)) == (None,) * 4
    assert (store.blob("s", name), store.blob_ids("s", name), store.drop_blobs("s", [name]), store.facts(name)) == (
        None,
        [],
        0,
        {},
    )
    assert (store.delete(name), store.unlock(name), store.forget(name), store.locked(name)) == (False,) * 3 + (None,)
    assert store.search_index().sessions([name]) == []
    with pytest.raises(NotFoundError):
        store.append(name, 0, chain(1))
    with pytest.raises(NotFoundError):
        store.put_blobs(name, [("b", b"")])


def test_facts_are_kept_across_sessions(empty: Store):
    """A fact is replaced by a newer one, and found by its key, letter for letter."""
    for key in ("window/a", "window/a%", "Window/b", "window_c"):
        empty.remember(key, b"old")
    empty.remember("window/a", b"new")
    assert empty.recall("window/a") == b"new"
    assert empty.recall("nothing") is None
    assert [empty.recall(key) for key in ("window/a%", "Window/b", "window_c", "window/b")] == [b"old"] * 3 + [None]


def test_a_lock_keeps_others_out_until_its_time_is_over(store: Store):
    """Another holder is told who has it; when the time is over, the lock is free."""
    assert store.lock("s", "me", seconds=10, now=100.0) == Lock("s", "me", 110.0)
    with pytest.raises(LockedError) as caught:
        store.lock("s", "you", seconds=10, now=109.0)
    assert caught.value.holder == "me"
    assert store.locked("s", now=109.0) == Lock("s", "me", 110.0)
    assert store.locked("s", now=110.0) is None
    assert store.lock("s", "you", seconds=10, now=110.0).holder == "you"


def test_a_holder_renews_its_lock(store: Store):
    """The same holder may take it again, for longer."""
    store.lock("s", "me", seconds=10, now=100.0)
    assert store.lock("s", "me", seconds=10, now=105.0).expires == 115.0


def test_a_dead_holder_has_no_lock(store: Store):
    """A lock whose process is gone is free at once."""
    host, pid, _, thread = holder_name().rsplit(":", 3)
    store.lock("s", f"{host}:{pid}:1:{thread}", seconds=1e6, now=100.0)
    assert store.locked("s", now=101.0) is None
    assert store.lock("s", holder_name(), seconds=10, now=101.0).holder == holder_name()
    assert store.locked("s", now=102.0) is not None


def test_only_its_holder_or_force_releases_a_lock(store: Store):
    """Somebody else's `unlock` does nothing; without a name it is by force."""
    store.lock("s", "me", seconds=10, now=100.0)
    assert store.unlock("s", "you") is False
    assert store.unlock("s", "me") is True
    assert store.unlock("s", "me") is False
    store.lock("s", "me", seconds=10, now=100.0)
    assert store.unlock("s") is True
    assert store.locked("s", now=100.0) is None


def test_those_who_wait_get_the_lock_in_the_order_they_came(store: Store):
    """A place in the line is kept while its holder asks; whoever comes later is refused, also when it is free."""
    store.lock("s", "me", seconds=10, now=100.0)
    for holder in ("first", "second", "first"):
        with pytest.raises(LockedError, match="locked by me"):
            store.lock("s", holder, seconds=10, now=101.0, patience=5)
    store.unlock("s", "me")
    for holder, patience in (("second", 5), ("late", 0), ("me", 0)):
        with pytest.raises(LockedError, match="locked by first"):
            store.lock("s", holder, seconds=10, now=102.0, patience=patience)
    assert store.lock("s", "first", seconds=10, now=103.0).expires == 113.0
    store.unlock("s", "first")
    with pytest.raises(LockedError, match="locked by second"):
        store.lock("s", "late", seconds=10, now=104.0)
    assert store.lock("s", "late", seconds=10, now=108.0).holder == "late"


def test_a_place_in_the_line_is_given_back(store: Store):
    """Whoever waits no longer, and whoever died, keeps nobody waiting."""
    host, pid, _, thread = holder_name().rsplit(":", 3)
    store.lock("s", "me", seconds=10, now=100.0)
    for holder in (f"{host}:{pid}:1:{thread}", "gone"):
        with pytest.raises(LockedError):
            store.lock("s", holder, seconds=10, now=101.0, patience=60)
    assert store.unlock("s", "gone") is False
    store.unlock("s", "me")
    assert store.lock("s", "late", seconds=10, now=102.0).holder == "late"


def test_a_clock_that_is_set_moves_no_lock(store: Store, monkeypatch):
    """A day ahead, a lock is still there; a day back, another one still ends in time."""
    store.lock("s", "me", seconds=3_600)
    store.lock("other", "me", seconds=0.05)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 86_400)
    with pytest.raises(LockedError):
        store.lock("s", "you", seconds=10)
    monkeypatch.setattr(time, "time", lambda: real() - 86_400)
    assert store.locked("s").holder == "me"
    time.sleep(0.1)
    assert store.locked("other") is None
    assert store.lock("other", "you", seconds=10).holder == "you"


def test_a_healthy_store_has_no_problems(store: Store):
    """The check of a whole store, and of one session, is empty."""
    store.append("s", 0, chain(3))
    assert store.check() == store.check("s") == []


def test_closing_twice_is_fine(store: Store):
    """A second `close` does nothing."""
    store.close()
    store.close()


def test_a_place_is_found_by_the_first_key_that_is_known(empty: Store):
    """In all sessions, newer ones first, or in one; the later entry of a session counts."""
    for name in ("a", "b"):
        empty.create(name, at=1.0)
    empty.append("a", 0, chain(2), places=[(b"one", 1), (b"two", 2)])
    empty.append("b", 0, chain(1), places=[(b"one", 1)])
    empty.append("a", 2, chain(1, after=chain(2)[-1]), places=[(b"two", 3)])
    assert empty.places([b"none", b"one", b"two"]) == [Place(b"one", "b", 1), Place(b"one", "a", 1)]
    assert empty.places(iter([b"two"])) == [Place(b"two", "a", 3)]
    assert empty.places([b"one"], session="a") == [Place(b"one", "a", 1)]
    assert empty.places([b"two"], session="b") == empty.places([b"none"]) == empty.places([]) == []


def test_an_entry_is_found_by_each_of_its_keys(empty: Store):
    """A message may have two keys, and an entry of an earlier append may get one; a session that is gone has none."""
    keys = [b"%04d-of-a-digest" % number for number in range(4)]
    empty.create("a", at=1.0)
    empty.append("a", 0, chain(2), places=[(keys[0], 2), (keys[1], 2), (keys[2], 1)])
    empty.append("a", 2, [], places=[(keys[3], 1)])
    assert [empty.places([key])[0].seq for key in keys] == [2, 2, 1, 1]
    assert empty.places(keys[:1], session="gone") == []


def test_no_more_places_than_a_few_are_returned(empty: Store):
    """However many sessions begin alike."""
    for number in range(MOST_PLACES + 3):
        empty.create(f"s{number}", at=1.0)
        empty.append(f"s{number}", 0, chain(1), places=[(b"hi", 1)])
    found = empty.places([b"hi"])
    assert [each.session for each in found] == [f"s{number}" for number in range(MOST_PLACES + 2, 2, -1)]


def test_a_deleted_session_leaves_no_place(store: Store):
    """Nor does an append that was refused."""
    store.append("s", 0, chain(1), places=[(b"one", 1)])
    with pytest.raises(ConflictError):
        store.append("s", 0, chain(1), places=[(b"two", 1)])
    assert store.places([b"two"]) == []
    store.delete("s")
    assert store.places([b"one"]) == []
    store.create("s", at=1.0)
    assert store.places([b"one"]) == []


def test_facts_are_listed_by_their_beginning_and_forgotten(store: Store):
    """In the order of their keys, and no others."""
    for key in ("window/b", "window/a", "windows", "calibration/a"):
        store.remember(key, key.encode())
    assert list(store.facts("window/").items()) == [("window/a", b"window/a"), ("window/b", b"window/b")]
    assert store.forget("window/a") is True
    assert store.forget("window/a") is False
    assert store.recall("window/a") is None
    assert list(store.facts("window/")) == ["window/b"]


def test_whoever_is_alone_keeps_other_writers_waiting(store: Store):
    """They wait, and build on what was written meanwhile; whoever is alone reads and writes as ever."""
    order: list[str] = []

    def rival() -> None:
        grow(store, 1, name="theirs")
        order.append("theirs")

    with store.exclusive("s"):
        waiting = threading.Thread(target=rival)
        waiting.start()
        grow(store, 1, name="ours")
        order.append("ours")
    waiting.join()
    assert order == ["ours", "theirs"]
    assert is_chain(everything(store))
    assert len(everything(store)) == 2
