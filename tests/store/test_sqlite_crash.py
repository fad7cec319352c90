"""An acknowledged append survives the death of its process, at any moment (X3)."""

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
import os, sys
from support.stores import grow
from windowsill.store.sqlite import SQLiteStore

store = SQLiteStore(sys.argv[1])
for turn in range(int(sys.argv[2])):
    batch = grow(store, 1 + turn % 3, name=f"{os.getpid()}-", body=b"x" * (turn * 997 % 9000))
    os.write(1, b"%d\\n" % batch[-1].seq)
os.write(1, b"done\\n")
sys.stdin.read()
"""


def append_until_killed(path: Path, turns: int, *, kill_after: float | None) -> list[str]:
    """The lines a child printed before it was killed: the last number of each acknowledged batch."""
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), str(turns)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=child_env(),
        text=True,
    ) as child:
        lines = [child.stdout.readline().strip()]
        if kill_after is None:
            while lines[-1] != "done":
                lines.append(child.stdout.readline().strip())
                assert lines[-1], "the child ended before its time"
        else:
            time.sleep(kill_after)
        child.send_signal(signal.SIGKILL)
        return lines + child.stdout.read().split()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    store = SQLiteStore(tmp_path / "sessions.db")
    store.create("s", at=1.0)
    store.close()
    return store.path


def test_every_acknowledged_entry_survives_kill_9(path: Path):
    """Killed at random moments, again and again, the journal loses nothing that was acknowledged, and stays whole."""
    moments = random.Random(9)
    for _ in range(ROUNDS):
        acknowledged = append_until_killed(path, 10**6, kill_after=moments.uniform(0, 0.06))
        store = SQLiteStore(path)
        entries = everything(store)
        assert len(entries) >= int(acknowledged[-1]) > 0
        assert store.info("s").version == len(entries)
        assert is_chain(entries)
        assert store.check() == []
        store.close()


@pytest.mark.parametrize("damage", ["cut", "garbled"])
def test_a_torn_log_loses_only_its_end(path: Path, tmp_path: Path, damage: str):
    """When the write-ahead log ends anywhere, what comes before is there, whole, and can be continued."""
    assert append_until_killed(path, 60, kill_after=None)[-1] == "done"
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


def test_a_log_that_was_removed_after_a_crash_is_missed(path: Path):
    """SQLite would open without it, and the latest writes would be gone without a word."""
    append_until_killed(path, 10**6, kill_after=0.05)
    log, index = path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")
    kept = log.rename(path.with_name("kept"))
    with pytest.raises(DamagedError, match=r"-wal is missing although .*-shm is there.*; put it back; or remove"):
        SQLiteStore(path)
    kept.rename(log)
    with closing(SQLiteStore(path)) as store:
        assert store.check() == []
    assert not index.exists()
