"""Processes that are killed at random moments: what was acknowledged is there, whole, once and in order."""

import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from support import postgres, soak_workers
from support.soak import Tally
from support.stores import child_env
from windowsill import Session, WindowsillError
from windowsill.messages import ORIGIN

pytestmark = pytest.mark.integration

KINDS = pytest.mark.parametrize(("kind", "trials"), [("sqlite", 2), ("postgres", 1)])
"""Stores, and how many sessions or runs of an agent are tried in each in `make test`."""
LIVES = 4
"""Times that each of them is killed and goes on."""


@pytest.fixture(scope="module")
def workers():
    """A process that forks workers which have everything loaded."""
    with subprocess.Popen(
        [sys.executable, soak_workers.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=child_env(),
    ) as process:
        yield process
        process.stdin.close()


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def places(tmp_path):
    """Make a folder and the address of an empty store for each trial."""
    numbers = iter(range(1_000_000))

    def place(kind: str) -> tuple[Path, str]:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        return folder, str(folder) if kind == "sqlite" else postgres.server().url()

    return place


def start(workers, what: str, store: str, log: Path, seed: int) -> int:
    workers.stdin.write(f"{what}\t{store}\t{log}\t{seed}\n")
    workers.stdin.flush()
    return int(workers.stdout.readline())


def acknowledged(log: Path) -> list[list]:
    """Return what a worker wrote down, without a line that it did not finish."""
    lines = log.read_bytes().split(b"\n")[:-1] if log.exists() else []
    return [json.loads(line) for line in lines]


@KINDS
def test_writers_that_are_killed_lose_nothing(tally: Tally, workers, places, kind, trials):
    """One to three at once, in the middle of messages, batches, requests, folds, rewinds and kept outputs.

    Meanwhile the disk is full now and then, and the clock is set by years.
    """

    def trial(rng: random.Random) -> list[str]:
        folder, store = places(kind)
        Session.open("s", model="claude-sonnet-4-5", window=3_000, store=store).close()
        logs: list[Path] = []
        for life in range(LIVES):
            pids = []
            for each in range(rng.randint(1, 3)):
                logs.append(folder / f"{life}-{each}.log")
                pids.append(start(workers, "write", store, logs[-1], rng.getrandbits(30)))
            for pid, log in zip(pids, logs[-len(pids) :], strict=True):
                # Most while they write, some while they open it.
                while rng.random() < 0.99 and not acknowledged(log):
                    time.sleep(0.01)
                time.sleep(rng.choice([0.01, 0.1, 0.3]) * rng.random())
                os.kill(pid, signal.SIGKILL)
                tally.count(f"{kind} kills: writers")
        return lost(tally, kind, store, logs)

    tally.run(f"{kind} kills: sessions", trials, trial)
    assert tally.rows[f"{kind} kills: acknowledged operations"][0] > trials
    tally.check()


def lost(tally: Tally, kind: str, store: str, logs: list[Path]) -> list[str]:
    """Hold what the workers were told against what the session has."""
    with Session.open("s", store=store) as session:
        problems = session.verify()
        places: dict[str, list[int]] = {}
        for entry in session.journal.store.read("s", 1, session.journal.version, kinds=("message",)):
            message = session.journal.decode(entry)
            if ORIGIN not in message.metadata:
                for tag in re.findall(r"#([^#]+)#", msgspec.json.encode(message.blocks).decode()):
                    places.setdefault(tag, []).append(entry.seq)
        problems += [f"{tag} is there {len(seqs)} times" for tag, seqs in places.items() if len(seqs) > 1]
        for log in logs:
            problems += missing(tally, kind, session, log, {tag: seqs[0] for tag, seqs in places.items()})
        session.add("go on")
        payload = session.compose_sync(system="You count.")
        sent = session.request(session.calls[-1].id) == payload.body()
        if not sent or payload.tokens > payload.report.limit:
            problems.append("the next request is above its limit, or not what is recorded of it")
    return problems


def missing(tally: Tally, kind: str, session: Session, log: Path, places: dict[str, int]) -> list[str]:
    """Go through what one worker wrote down, in order."""
    problems: list[str] = []
    last = 0
    for what, tags, *more in acknowledged(log):
        tally.count(f"{kind} kills: acknowledged operations", tried=what in ("done", "kept"))
        if what == "raised":
            problems.append(tags)
        elif what == "fault":
            tally.count(f"{kind} kills: {tags[0]}")
        elif what == "kept":
            problems += kept(session, tags, *more)
        else:
            found = [places[tag] for tag in tags if tag in places]
            if found and found != list(range(found[0], found[0] + len(tags))):
                problems.append(f"torn: {tags}")
            if what == "done":
                problems += [] if found and found[0] > last else [f"lost or out of order: {tags}"]
                last = found[-1] if found else last
    return problems


def kept(session: Session, ref: str, digest: str) -> list[str]:
    try:
        output = session.outputs.open(ref)
        whole = b"".join(output.data(part) for part in range(len(output.parts)))
    except WindowsillError as error:
        return [f"output {ref}: {error}"]
    return [] if hashlib.sha256(whole).hexdigest() == digest else [f"output {ref} is another one"]


@KINDS
def test_an_agent_that_is_killed_does_nothing_twice(tally: Tally, workers, places, kind, trials):
    """Its payments are made at most once each, and the run comes to its end."""

    def trial(rng: random.Random) -> list[str]:
        folder, store = places(kind)
        paid = folder / "paid.log"
        for _ in range(LIVES):
            pid = start(workers, "pay", store, paid, rng.getrandbits(30))
            while rng.random() < 0.99 and not paid.exists():
                time.sleep(0.01)
            time.sleep(rng.uniform(0.02, 0.3))
            # One that came to its end meanwhile was not killed.
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                tally.count(f"{kind} kills: agents")
        pid = start(workers, "pay", store, paid, 0)
        while _lives(pid) and not (folder / "ended").exists():
            time.sleep(0.02)
        effects = Counter(paid.read_text().split())
        twice = [f"{number} was paid {times} times" for number, times in effects.items() if times > 1]
        tally.count(f"{kind} kills: side effects", twice, tried=len(effects))
        status = (folder / "ended").read_text()
        return [] if status == "completed" else [status]

    tally.run(f"{kind} kills: runs of an agent", trials, trial)
    tally.check()
