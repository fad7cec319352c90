"""Values as databases keep them: compressed, and encrypted where there is a key."""

import os
import sqlite3
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path

import msgspec
import psycopg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support import postgres
from support.cli_calls import call
from support.stores import chain, child_env, everything
from windowsill import Session, open_store
from windowsill.config import load
from windowsill.errors import DamagedError, InputError, StoreError
from windowsill.session.copies import copy_facts, copy_session
from windowsill.store import codec
from windowsill.store.codec import FACTS, MARK, VARIABLE, Key, Packing, new_key

WORD = "xylophone-7731"
"""What must not be found in a file."""

META = (
    b"\xdc\x00\x11\xa4user\x99.\x00\x00\x00\x00\x04\xcc\xfc\x00\x00\xbdo200k_base/openai/openai-4o/2\xa6openai\xc4\x10"
    b"\xe8\xe4\xe5\xda\xc3\x05C\xe3\xac\x89W\x1c)\xf6\xe2\x1a\x90\x90\x90\x90\xc2\xc3\x80\xc2\xc4\x10"
    b"N\xe2?\x0c\x18v\xfcWw\xef\xd4-\xea\xd1\xe6\xd8\xc4\x00\x90\x90"
)
"""The meta of a message, with two fingerprints that cannot be made shorter."""


@pytest.fixture
def key(monkeypatch) -> str:
    made = new_key()
    monkeypatch.setenv(VARIABLE, made)
    return made


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """A place for a store, and the folder with its files."""
    if request.param == "sqlite":
        yield str(tmp_path / "kept"), tmp_path / "kept"
        return
    server = postgres.Server(durable=False)
    try:
        yield server.url("kept"), server.folder / "data"
    finally:
        server.remove()


def has_word(folder: Path, word: bytes = WORD.encode()) -> bool:
    """Tell whether a word is in any file of a folder, logs included."""
    if (server := folder if folder.name == "data" else folder.parent).name == "data":
        with psycopg.connect(f"host={server.parent} user=postgres dbname=postgres", autocommit=True) as db:
            db.execute("CHECKPOINT")
    return any(word in file.read_bytes() for file in folder.rglob("*") if file.is_file())


@pytest.mark.unit
@pytest.mark.parametrize("key", [None, Key(new_key())], ids=["plain", "encrypted"])
@given(data=st.one_of(st.binary(), st.text().map(str.encode), st.binary(max_size=20).map(lambda piece: piece * 300)))
@example(data=b"\xc1")
@example(data=b"\xc1\x00\xc1")
@example(data=b"\xc1\x01not deflated")
@example(data=b"\xc1\x02not encrypted")
def test_everything_reads_back(key: Key | None, data: bytes):
    """Any bytes are unpacked as they were packed, and take at most two more, or thirty with a key."""
    packing = Packing(key)
    packed = packing.pack(data, "s", "body 1")
    assert packing.unpack(packed, "s", "body 1") == data
    assert len(packed) <= len(data) + (2 if key is None else 32)


@pytest.mark.unit
def test_a_message_takes_less_than_half():
    """A message of a few hundred bytes is made shorter, by what messages have in common."""
    body = (
        b'{"role":"assistant","content":[{"type":"text","text":"Let me look."},{"type":"tool_use","id":"toolu_01A",'
        b'"name":"Bash","input":{"command":"git status","description":"Show the state of the work tree"}}]}'
    )
    assert len(Packing().pack(body, "s", "body 1")) < len(body) / 2


@pytest.mark.unit
@pytest.mark.parametrize("key", [None, Key(new_key())], ids=["plain", "encrypted"])
@given(meta=st.one_of(st.binary(), st.binary(min_size=700, max_size=2_000), st.just(META)))
@example(meta=b"\xc1\x03")
def test_a_meta_reads_back_and_takes_little(key: Key | None, meta: bytes):
    """The meta of an entry is unpacked as it was; that of a message takes about half."""
    packing = Packing(key)
    entry = msgspec.structs.replace(chain(1)[0], meta=meta)
    ((stored, body),) = packing.pack_entries("s", [entry])
    row = (entry.seq, entry.parent, entry.kind, entry.id, entry.at, stored, body, entry.hash, entry.body_hash)
    assert packing.to_entry("s", row) == entry
    assert key or meta != META or len(stored) < 0.6 * len(meta)


@pytest.mark.unit
def test_a_part_of_an_output_is_kept_as_it_came():
    """A search reads all of them: unpacking would take most of its time."""
    data = b"a line of a log\n" * 10_000
    assert Packing().pack(data, "s", "blob 1") is data
    assert len(Packing().pack(data, "s", "body 1")) < len(data) / 2


@pytest.mark.unit
@pytest.mark.parametrize("place", ["body 2", "blob 1"])
def test_what_is_moved_or_changed_is_noticed(place: str):
    """A value that stands in another place than it was encrypted for, or was changed, is damage."""
    packing = Packing(Key(new_key()))
    packed = packing.pack(b"words " * 40, "s", "body 1")
    for wrong in (packed, packed[:-1], packed[:20] + b"x" + packed[21:]):
        with pytest.raises(DamagedError, match=f"the {place} of session 's' is not what was written"):
            packing.unpack(wrong, "s", place)


@pytest.mark.unit
@pytest.mark.parametrize("text", ["secret", "A" * 43, "x y z", "ä" * 44, "A" * 43 + "=A"])
def test_what_is_no_key_is_refused(monkeypatch, tmp_path, text: str):
    """A key that nobody could have made here is an error that says how one is made; no store is made."""
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(InputError, match=r"WINDOWSILL_KEY is not a key; `windowsill store key` makes one"):
        open_store(tmp_path / "kept")


@pytest.mark.usefixtures("key")
@pytest.mark.integration
def test_no_word_of_an_encrypted_store_is_in_its_files(place):
    """Messages, metadata, summaries, kept outputs, labels, state, settings and facts are nowhere in the files."""
    address, folder = place
    with Session.open("a session", model="gpt-4o", store=address, config=False) as session:
        session.add(f"Remember {WORD}")
        session.add({"role": "assistant", "content": f"I will remember {WORD}."})
        session.add({"role": "user", "content": f"{WORD} " * 20_000})
        for number in range(20):
            session.add({"role": "user" if number % 2 else "assistant", "content": f"{WORD} {number} " * 20})
        session.checkpoint(f"before {WORD}")
        session.fold("m4", "m9", text=f"About {WORD}", reason=f"{WORD} is long")
        kept = session.outputs.keep([f"{WORD}\n" * 100_000])
        session.write_snapshot(folder.parent / "snapshots")
        session.compose_sync(system=f"You know {WORD}")
        session.journal.store.remember("learned", WORD.encode())
        before = session.compose_sync(system=f"You know {WORD}").body()
        assert session.verify() == []
    assert not has_word(folder)
    assert not has_word(folder.parent / "snapshots")
    assert has_word(folder, b"a session")
    again = Session.from_snapshot(folder.parent / "snapshots", store=":memory:")
    assert WORD in again.message("m1").text
    with Session.open("a session", store=address) as session:
        assert session.compose_sync(system=f"You know {WORD}").body() == before
        assert session.journal.store.recall("learned") == WORD.encode()
        assert WORD in session.outputs.read(kept.id)


@pytest.mark.integration
def test_without_its_key_a_store_is_not_opened(place, key, monkeypatch):
    """A missing key, another key: each is said, and nothing is written. With several, the one that fits is taken."""
    address, _ = place
    with closing(open_store(address)) as store:
        store.create("s", at=1.0, settings=b'{"budget": 1000}')
        store.append("s", 0, chain(3), blobs=[("b", b"blob")], snapshots=[(3, b"view")])
        assert store.about().encrypted
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(StoreError, match=r"are encrypted, and there is no key; set WINDOWSILL_KEY"):
        open_store(address)
    monkeypatch.setenv(VARIABLE, new_key())
    with pytest.raises(StoreError, match=r"are encrypted, with another key than that in WINDOWSILL_KEY"):
        open_store(address)
    monkeypatch.setenv(VARIABLE, f"{new_key()}, {key}")
    with closing(open_store(address)) as store:
        assert everything(store) == chain(3)
        assert (store.blob("s", "b"), store.snapshot("s", 9), store.info("s").settings) == (
            b"blob",
            (3, b"view"),
            b'{"budget": 1000}',
        )
        assert store.check() == []


@pytest.mark.integration
def test_a_process_that_opened_before_writes_nothing_readable(place, monkeypatch):
    """Whoever opened an empty store without a key is refused once another process has marked it as encrypted."""
    address, _ = place
    with closing(open_store(address)) as early:
        monkeypatch.setenv(VARIABLE, new_key())
        with closing(open_store(address)) as store:
            store.create("s", at=1.0)
            store.append("s", 0, chain(1))
            one, two, three = chain(3)
            for write in (
                lambda: early.create("plain", at=1.0),
                lambda: early.set_settings("s", b"{}"),
                lambda: early.append("s", 1, [two]),
                lambda: early.append("s", 1, [two, three]),
                lambda: early.append("s", 1, [], snapshots=[(1, b"view")]),
                lambda: early.append("s", 1, [], blobs=[("b", b"blob")]),
                lambda: early.put_blobs("s", [("b", b"blob")]),
                lambda: early.remember("learned", b"fact"),
            ):
                with pytest.raises(StoreError, match=r"encrypted after this process had opened it.*WINDOWSILL_KEY"):
                    write()
            assert [info.id for info in store.sessions()] == ["s"]
            assert (everything(store), store.snapshot("s", 9), store.blob("s", "b")) == ([one], None, None)
            assert store.facts("learned") == {}


@pytest.mark.integration
@pytest.mark.parametrize("first", ["session", "mark"])
def test_of_a_plain_session_and_a_mark_one_comes_first(place, key, monkeypatch, first):
    """While one process makes a plain session and another marks the store, either waits for the other."""
    address, _ = place
    monkeypatch.delenv(VARIABLE)
    with closing(open_store(address)) as early, closing(open_store(address)) as late, ThreadPoolExecutor(1) as other:
        if first == "session":
            with early.exclusive("s"):
                early.create("s", at=1.0)
                monkeypatch.setenv(VARIABLE, key)
                opened = other.submit(lambda: open_store(address))
                assert not wait([opened], timeout=0.3).done
            with closing(opened.result()) as store:
                assert (store.about().encrypted, len(store.sessions())) == (False, 1)
        else:
            with late.exclusive(MARK):
                late.remember(MARK, b"1" + Key(key).encrypt(b"", FACTS, MARK))
                made = other.submit(lambda: early.create("s", at=1.0))
                assert not wait([made], timeout=0.3).done
            assert isinstance(made.exception(), StoreError)
            assert late.sessions() == []


@pytest.mark.integration
def test_a_key_is_changed_by_a_copy(tmp_path, key, monkeypatch):
    """A copy goes to the first of the keys, with every fact but the mark of the key, and both verify."""
    with Session.open("s", model="gpt-4o", store=tmp_path / "old", config=False) as session:
        session.add(f"Remember {WORD}")
        session.journal.store.remember("learned", b"fact")
    monkeypatch.setenv(VARIABLE, f"{(new := new_key())},{key}")
    with closing(open_store(tmp_path / "old")) as old, closing(open_store(tmp_path / "new")) as goal:
        copy_session(old, goal, "s")
        copy_facts(old, goal)
        assert everything(goal) == everything(old)
    monkeypatch.setenv(VARIABLE, new)
    with Session.open("s", store=tmp_path / "new") as session:
        assert session.verify() == []
        assert session.journal.store.recall("learned") == b"fact"
    assert not has_word(tmp_path)


@pytest.mark.integration
def test_a_store_made_without_a_key_stays_as_it_is(tmp_path, monkeypatch, caplog):
    """It opens with a warning that says how its sessions get into an encrypted one."""
    with closing(open_store(tmp_path)) as store:
        store.create("s", at=1.0)
        store.append("s", 0, chain(1))
    monkeypatch.setenv(VARIABLE, new_key())
    with closing(open_store(tmp_path)) as store:
        assert (everything(store), store.about().encrypted, store.recall(MARK)) == (chain(1), False, None)
    assert "was made without a key and stays readable; `windowsill store copy`" in caplog.text


@pytest.mark.usefixtures("key")
@pytest.mark.integration
@pytest.mark.parametrize("mark", ["whole", "damaged"])
def test_a_damaged_encrypted_file_is_repaired_with_its_key(tmp_path, mark):
    """What is left is saved, encrypted; without the key it is an error, not a loss."""
    store = ["--store", str(tmp_path / "old")]
    with Session.open("s", model="gpt-4o", store=tmp_path / "old", config=False) as session:
        session.extend([f"{WORD} {number}" for number in range(5)])
    with closing(sqlite3.connect(tmp_path / "old" / "sessions.db")) as db:
        db.execute("UPDATE body SET data = x'c102' || randomblob(50) WHERE key & 4294967295 = 3")
        if mark == "damaged":
            db.execute("UPDATE fact SET value = randomblob(29) WHERE key = ?", [MARK])
        db.commit()
    done = call("store", "repair", str(tmp_path / "new"), *store)
    assert (done.code, done.out.count("entry 3 is lost (message m3)"), done.out.count("lost")) == (1, 1, 1)
    with Session.open("s", store=tmp_path / "new") as session:
        assert [each.id for each in session.messages()] == ["m1", "m2", "m4", "m5"]
    assert not has_word(tmp_path)
    without = subprocess.run(
        [sys.executable, "-m", "windowsill", "store", "repair", str(tmp_path / "third"), *store],
        env={name: value for name, value in child_env().items() if name != VARIABLE},
        text=True,
        capture_output=True,
        check=False,
    )
    assert (without.returncode, "and there is no key" in without.stderr) == (1, True)


@pytest.mark.usefixtures("key")
@pytest.mark.unit
def test_the_missing_package_is_named(tmp_path, monkeypatch):
    """A key without the extra is an error that says what to install."""
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    with pytest.raises(InputError, match=r"WINDOWSILL_KEY needs a package that is missing.*encryption"):
        open_store(tmp_path)


@pytest.mark.usefixtures("key")
@pytest.mark.unit
def test_a_key_is_not_taken_for_a_setting():
    """The variable is known, and its value is in no note."""
    assert load().notes == ()


@pytest.mark.integration
def test_a_key_is_printed_that_can_be_used():
    """`windowsill store key` prints another key each time."""
    one, two = (call("store", "key").out.strip() for _ in range(2))
    assert Key(one).decrypt(Key(one).encrypt(b"x", "s", "p"), "s", "p") == b"x"
    assert one != two


@pytest.mark.integration
def test_what_was_deleted_is_gone_after_vacuum():
    """The files of a server hold a deleted session until then, which `store info` says; its log is its own."""
    server = postgres.Server(durable=False)
    try:
        address, word = server.url("kept"), os.urandom(40)
        tables = server.folder / "data" / "base"
        with closing(open_store(address)) as store:
            for id in ("s", "other"):
                store.create(id, at=1.0)
                store.append(id, 0, chain(3, body=word + id.encode()), blobs=[("b", word)])
            store.delete("s")
            assert (store.about().deleted, everything(store, "other")[0].body) == (1, word + b"other")
            store.delete("other")
            assert has_word(tables, word)
            said = call("store", "info", "--store", address).out
            assert "deleted: 2" in said
            assert "are in the server's files until `windowsill store vacuum`" in said
            assert call("store", "vacuum", "--store", address).code == 0
            assert not has_word(tables, word)
            assert store.about().deleted == 0
            assert store.check() == []
    finally:
        server.remove()


@pytest.mark.parametrize("size", [100, 5_000, 13_999, 14_000, 60_000])
def test_a_smaller_window_packs_into_the_same_bytes(size: int) -> None:
    """A window as small as the data allows, which is quicker to make, packs no worse than the widest one."""
    data = " ".join(f"{number}:{number * number % 997}" for number in range(size)).encode()[:size]
    packer = zlib.compressobj(6, wbits=-zlib.MAX_WBITS, zdict=codec._DICTIONARY)
    assert Packing(None).pack(data, "session", "body 1")[2:] == packer.compress(data) + packer.flush()
