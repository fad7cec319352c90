"""An acknowledged append survives the death of its process, at any moment (X3)."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from support.stores import child_env, everything, grow, is_chain
from windowsill.errors import DamagedError
from windowsill.store.sqlite import SQLiteStore

pytestmark = pytest.mark.integration

ROUNDS = 25

CHILD = """
import os, sys, time
from support.stores import grow
from windowsill.store.sqlite import SQLiteStore

for line in sys.stdin:
    path, turns = line.split("\\t")
    child = os.fork()
    if not child:
        os.write(1, b"%d\\n" % os.getpid())
        store = SQLiteStore(path)
        for turn in range(int(turns)):
            batch = grow(store, 1 + turn % 3, name=f"{os.getpid()}-", body=b"x" * (turn * 997 % 9000))
            os.write(1, b"%d\\n" % batch[-1].seq)
        os.write(1, b"done\\n")
        time.sleep(3600)
    os.waitpid(child, 0)
    os.write(1, b"killed\\n")
"""


@pytest.fixture(scope="module")
def writers():
    """A process that has loaded the store, and forks a writer for each line."""
    command = [sys.executable, "-c", CHILD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=child_env(), text=True) as parent:
        yield parent
        parent.stdin.close()


def append_until_killed(
    writers: subprocess.Popen[str], path: Path, turns: int, *, kill_after: float | None
) -> list[str]:
    """The lines a writer printed before it was killed: the last number of each acknowledged batch."""
    writers.stdin.write(f"{path}\t{turns}\n")
    writers.stdin.flush()
    writer, *lines = (writers.stdout.readline().strip() for _ in range(2))
    if kill_after is None:
        while lines[-1] != "done":
            lines.append(writers.stdout.readline().strip())
            assert lines[-1] not in {"", "killed"}, "the writer ended before its time"
    else:
        time.sleep(kill_after)
    os.kill(int(writer), signal.SIGKILL)
    return lines + list(iter(lambda: writers.stdout.readline().strip(), "killed"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    store = SQLiteStore(tmp_path / "sessions.db")
    store.create("s", at=1.0)
    store.close()
    return store.path


def test_every_acknowledged_entry_survives_kill_9(writers, path: Path):
    """Killed at random moments, again and again, the journal loses nothing that was acknowledged, and stays whole."""
    moments = random.Random(9)
    for _ in range(ROUNDS):
        acknowledged = append_until_killed(writers, path, 10**6, kill_after=moments.uniform(0, 0.06))
        store = SQLiteStore(path)
        entries = everything(store)
        assert len(entries) >= int(acknowledged[-1]) > 0
        assert store.info("s").version == len(entries)
        assert is_chain(entries)
        assert store.check() == []
        store.close()


@pytest.mark.parametrize("damage", ["cut", "garbled"])
def test_a_torn_log_loses_only_its_end(writers, path: Path, tmp_path: Path, damage: str):
    """When the write-ahead log ends anywhere, what comes before is there, whole, and can be continued."""
    assert append_until_killed(writers, path, 60, kill_after=None)[-1] == "done"
    log = path.with_name("sessions.db-wal")
    size, moments, kept = log.stat().st_size, random.Random(4), []
    for turn in range(20):
        copy = tmp_path / str(turn) / "sessions.db"
        copy.parent.mkdir()
        shutil.copy(path, copy)
        place = moments.randrange(size)
        tail = moments.randbytes(size - place) if damage == "garbled" else b""
        copy.with_name("sessions.db-wal").write_bytes(log.read_bytes()[:place] + tail)
        store = SQLiteStore(copy)
        entries = everything(store)
        assert store.info("s").version == len(entries)
        assert is_chain(entries)
        grow(store, 2, name="after")
        assert is_chain(everything(store))
        assert store.check() == []
        store.close()
        kept.append(len(entries))
    assert min(kept) < max(kept) <= 120


def test_a_log_that_was_removed_after_a_crash_is_missed(writers, path: Path):
    """SQLite would open without it, and the latest writes would be gone without a word."""
    append_until_killed(writers, path, 10**6, kill_after=0.05)
    log, index = path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")
    kept = log.rename(path.with_name("kept"))
    with pytest.raises(DamagedError, match=r"-wal is missing although .*-shm is there.*; put it back; or remove"):
        SQLiteStore(path)
    kept.rename(log)
    with closing(SQLiteStore(path)) as store:
        assert store.check() == []
    assert not index.exists()
