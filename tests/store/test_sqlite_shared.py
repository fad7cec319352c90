"""Threads, processes and forks at one SQLite file (X1)."""

import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.stores import child_env, everything, grow, is_chain
from windowsill.errors import StoreError
from windowsill.store.sqlite import SQLiteStore
from windowsill.store.sqlite.connections import IDLE_READERS

pytestmark = pytest.mark.integration

BATCHES = 8

WORKER = f"""
import sys
from support.stores import grow
from windowsill.store.sqlite import SQLiteStore

print("ready", flush=True)
sys.stdin.readline()
store = SQLiteStore(sys.argv[1])
for batch in range({BATCHES}):
    grow(store, 3, name=f"{{sys.argv[2]}}.{{batch}}.")
store.close()
"""

OPEN_AT_ONCE = """
import sys
from windowsill.store.sqlite import SQLiteStore

print("ready", flush=True)
sys.stdin.readline()
store = SQLiteStore(sys.argv[1])
store.create(sys.argv[2], at=1.0)
store.close()
"""

FORK = """
import ctypes, os, sys
from support.stores import grow
from windowsill.store.sqlite import SQLiteStore

fork = {"os": os.fork, "libc": ctypes.PyDLL(None).fork}[sys.argv[2]]
store = SQLiteStore(sys.argv[1])
grow(store, 1, name="parent")
inherited = store._connections._writer
go_in, go_out = os.pipe()
done_in, done_out = os.pipe()
if fork() == 0:
    os.close(go_out)
    grow(store, 1, name="child")
    assert store._connections._writer is not inherited
    os.write(done_out, b"1")
    os.read(go_in, 1)
    grow(store, 1, name="orphan")
    os._exit(0)
os.close(done_out)
os.read(done_in, 1)
grow(store, 1, name="parent")
if sys.argv[2] == "os":
    store.close()
os.write(go_out, b"1")
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def run(code: str, *args: object, **options) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", code, *map(str, args)], env=child_env(), text=True, **options)


@contextmanager
def at_once(code: str, path: Path, names: list[str]):
    """Children that begin together, once all of them are ready, and have to end well."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    children = [run(code, path, name, **pipes) for name in names]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    yield
    for child in children:
        child.communicate()
    assert [child.returncode for child in children] == [0] * len(children)


def test_nothing_is_lost_between_threads_and_processes(store: SQLiteStore):
    """Four threads and three processes append to one session: every batch is there, in one piece, in one chain."""

    def work(name: str) -> None:
        for batch in range(BATCHES):
            grow(store, 3, name=f"{name}.{batch}.")

    threads = [threading.Thread(target=work, args=(f"thread{number}",)) for number in range(4)]
    with at_once(WORKER, store.path, [f"process{number}" for number in range(3)]):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    entries = everything(store)
    batches = [entry.id.rpartition(".")[0] for entry in entries]
    assert len(entries) == 7 * BATCHES * 3
    assert batches[::3] == batches[1::3] == batches[2::3]
    assert len(set(batches[::3])) == 7 * BATCHES
    assert is_chain(entries)


def test_many_processes_create_one_database(tmp_path: Path):
    """Opened for the first time by eight processes at once, the database is made once and all of them can write."""
    path = tmp_path / "new" / "sessions.db"
    with at_once(OPEN_AT_ONCE, path, [f"s{number}" for number in range(8)]):
        pass
    store = SQLiteStore(path)
    assert sorted(info.id for info in store.sessions()) == [f"s{number}" for number in range(8)]
    store.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("fork", ["os", "libc"])
def test_a_forked_process_goes_on(store: SQLiteStore, fork: str):
    """Parent and child both append after a fork, seen by Python or not; the child outlives the parent's store."""
    with run(FORK, store.path, fork) as child:
        assert child.wait() == 0
    assert [entry.id for entry in everything(store)] == ["parent1", "child2", "parent3", "orphan4"]
    assert is_chain(everything(store))
    assert store.check() == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_no_connection_is_open_while_forking(store: SQLiteStore):
    """SQLite forgets nothing over a fork, so there must be nothing to remember: the child has no file of ours open."""
    everything(store)
    reader, writer = os.pipe()
    if os.fork() == 0:
        names = [os.path.realpath(fd) for fd in Path("/proc/self/fd").iterdir()]
        os.write(writer, str(sum(name.startswith(str(store.path)) for name in names)).encode())
        os._exit(0)
    os.wait()
    assert os.read(reader, 9) == b"0"
    os.close(reader)
    os.close(writer)
    grow(store, 1, name="still works")


def test_readers_do_not_wait_for_a_writer(store: SQLiteStore):
    """While a write is under way, others read what was there before."""
    grow(store, 1, name="m")
    with store._connections.writing() as db:
        db.execute("DELETE FROM entry")
        assert [entry.id for entry in everything(store)] == ["m1"]
        db.execute("ROLLBACK")
        db.execute("BEGIN")


def test_idle_readers_are_few(store: SQLiteStore):
    """However many threads read at once, only a few connections stay open."""
    barrier = threading.Barrier(IDLE_READERS + 4)

    def read() -> None:
        with store._connections.reading():
            barrier.wait()

    threads = [threading.Thread(target=read) for _ in range(barrier.parties)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store._connections._idle) == IDLE_READERS


def test_a_closed_store_says_so(store: SQLiteStore):
    """Using a closed store is an error of ours, for reading and for writing."""
    store.close()
    for call in (lambda: store.info("s"), lambda: store.create("t", at=1.0)):
        with pytest.raises(StoreError, match="is closed; open it again"):
            call()
