"""Writers, connections and the server of PostgreSQL are killed at random: nothing acknowledged is lost or doubled."""

import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack

import psycopg
import pytest

from support import postgres
from support.soak import SCALE, SEED, Tally
from support.stores import child_env
from windowsill import Session
from windowsill.session.integrity import problems
from windowsill.store.postgres import PostgresStore

pytestmark = pytest.mark.integration

ROUNDS = 8 * SCALE

WRITERS = 3

KINDS = ("kills of the server", "kills of connections", "kills of writers")
FAULTS = (*KINDS, "full disks") if shutil.which("prlimit") else KINDS

MEGABYTE = 1 << 20
"""The size of a file of the server's log, and the most that any file may have while the disk is full."""

CHILD = """
import itertools, os, sys, time
from windowsill import Session, StoreError
from windowsill.store.postgres import PostgresStore

while True:
    try:
        store = PostgresStore(sys.argv[1])
        shared = Session.open("shared", store=store, config=False)
        own = Session.open(sys.argv[2], store=store, model="gpt-4o", config=False)
        break
    except StoreError as error:
        print(error, file=sys.stderr)
        time.sleep(0.1)  # The server is down just now.
for number in itertools.count():
    for session in (shared, own):
        text = f"{os.getpid()}/{number}/{os.urandom(700).hex()}"
        try:
            session.add(text)
        except StoreError as error:
            os.write(1, f"failed {session.id} {text}\\n".encode())
        else:
            os.write(1, f"kept {session.id} {text}\\n".encode())
"""


class Writer:
    """A process that adds messages, and what it said of each; it comes back when it was killed."""

    def __init__(self, url: str, name: str) -> None:
        self._command = [sys.executable, "-c", CHILD, url, name]
        self.lines: list[str] = []
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, env=child_env(), text=True)
        self._thread = threading.Thread(target=lambda: self.lines.extend(self._process.stdout))
        self._thread.start()

    def kill(self, *, again: bool = True) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._thread.join()
        self._process.stdout.close()
        if again:
            self._start()


@pytest.fixture
def server():
    made = postgres.Server(durable=True, initdb=("--wal-segsize=1",))
    yield made
    made.remove()


def connections(server: postgres.Server) -> list[int]:
    with psycopg.connect(server.conninfo, autocommit=True) as db:
        return [pid for (pid,) in db.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'windowsill'")]


def cut_connections(server: postgres.Server) -> None:
    with psycopg.connect(server.conninfo, autocommit=True) as db:
        db.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) AS pid", [connections(server)])


def fill_disk(server: postgres.Server, seconds: float) -> None:
    """Let no connection make a table longer for a while: those of the server are longer than that already."""
    limited = connections(server)
    for most in (MEGABYTE, "unlimited"):
        for pid in limited:
            # As the user of the server. One that ended meanwhile has no limit.
            subprocess.run(["prlimit", f"--pid={pid}", f"--fsize={most}:"], check=False, **server.user)
        time.sleep(seconds)


def test_what_was_acknowledged_is_there_once_whatever_is_killed(tally: Tally, server: postgres.Server):
    """The server as by a loss of power, its connections in the middle of a statement, the writers, room on the disk."""
    url = server.url("kills", wait=30)
    moments = random.Random(SEED)
    with Session.open("shared", store=url, model="gpt-4o", config=False) as shared:
        shared.extend([moments.randbytes(1_200).hex() for _ in range(900)])
    writers = [Writer(url, f"own {number}") for number in range(WRITERS)]
    with ExitStack() as stack:
        for writer in writers:
            stack.callback(writer.kill, again=False)
        _wait(lambda: all(writer.lines for writer in writers))
        for turn in range(ROUNDS):
            time.sleep(moments.uniform(0.05, 0.4))
            what = FAULTS[turn % len(FAULTS)]
            tally.count(f"PostgreSQL: {what}")
            if what == "kills of the server":
                server.kill()
                server.start()
            elif what == "kills of connections":
                cut_connections(server)
            elif what == "full disks":
                fill_disk(server, moments.uniform(0.2, 0.6))
            else:
                moments.choice(writers).kill()
        said = [len(writer.lines) for writer in writers]
        _wait(lambda: all(len(writer.lines) > before + 5 for writer, before in zip(writers, said, strict=True)))
    lines = [line.split() for writer in writers for line in writer.lines if line.endswith("\n")]
    kept = Counter((" ".join(words[1:-1]), words[-1]) for words in lines if words[0] == "kept")
    store = PostgresStore(url)
    there: Counter[tuple[str, str]] = Counter()
    for info in store.sessions():
        assert problems(store, info) == []
        with Session.open(info.id, store=store, config=False) as session:
            there.update((info.id, message.text) for message in session.messages())
    lost = [f"{each} is lost" for each in kept if not there[each]]
    doubled = [f"{each} is there {count} times" for each, count in there.items() if count > 1]
    tally.count("PostgreSQL: acknowledged messages", [*lost, *doubled, *store.check()], tried=len(kept))
    tally.count("PostgreSQL: writes that were refused", tried=sum(words[0] == "failed" for words in lines))
    deadlocks = (server.folder / "log").read_text().count("deadlock detected")
    tally.count("PostgreSQL: deadlocks", ["two writers waited for each other"] * deadlocks, tried=deadlocks)
    tally.check()
    assert len(kept) > ROUNDS
    store.close()


def _wait(until) -> None:
    end = time.monotonic() + 120
    while not until():
        assert time.monotonic() < end, "the writers stand still"
        time.sleep(0.05)
