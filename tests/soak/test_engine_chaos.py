"""An engine over HTTP while everything goes wrong: the provider, a second writer, and `kill -9` at any moment."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from threading import Event, Thread

import pytest
from hypothesis import settings

from support import chaos_agent
from support.soak import SEED
from windowsill import Session
from windowsill.errors import ConflictError
from windowsill.testing import Answer, Call, Server

pytestmark = pytest.mark.end_to_end

SHARDS, RUNS = (20, 50) if settings().max_examples > 600 else (1, 5)
"""A thousand runs in `make soak`, a few in `make test`; `SOAK_SEED=2` begins where those of 1 end."""

STEPS = 6
ATTEMPTS = 12
"""Starts of one task; the last ones are left in peace."""

OVERFLOW = "Your input exceeds the context window of this model. Please adjust your input and try again."


class Provider:
    """A model behind a server that fails in every way; each call that it asks for is another one."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.server = Server(self.respond)
        self.did = Counter()
        self.peace = False
        self._asked = 0
        self._files = 0
        self._left = 0
        self.reached = Event()

    def reach(self, requests):
        """Tell when so many more requests have come."""
        self._left = requests
        self.reached = Event()
        return self.reached

    def fault(self):
        """Decide what happens to the next request."""
        self.server.break_off_after = None
        kind = (
            "ok"
            if self.peace or self.chance.random() > 0.4
            else self.chance.choice(
                ["500", "529", "cut", "overflow", "overflow-number", "malformed", "unknown-tool", "empty"]
            )
        )
        self.did[kind] += 1
        if kind == "500":
            self.server.fail(500, "something broke")
        elif kind == "529":
            self.server.fail(529, "Overloaded", times=self.chance.randint(1, 20))
        elif kind == "overflow":
            self.server.fail(400, OVERFLOW)
        elif kind == "overflow-number":
            self.server.fail(400, "prompt is too long: 9000 tokens > 8000 maximum")
        elif kind == "cut":
            self.server.break_off_after = self.chance.randint(1, 6)
        return kind

    def respond(self, body):
        del body
        self._asked += 1
        self._left -= 1
        if self._left <= 0:
            self.reached.set()
        kind = self.fault()
        if kind == "empty":
            return Answer(text=" ")
        if kind == "unknown-tool":
            return Answer(calls=(Call("no_such_tool", {"x": 1}),))
        if kind == "malformed":
            return Answer(calls=(Call("put", {"path": 5}),))
        if self._asked == 1:
            return Answer(calls=(Call("update_plan", {"steps": [{"description": "a", "status": "completed"}]}),))
        if self._asked == 2 or self._asked > STEPS + 2:
            return Answer(text="I have a plan." if self._asked == 2 else "All done.")
        calls = []
        for _ in range(self.chance.randint(1, 3)):
            self._files += 1
            calls.append(Call(self.chance.choice(["put", "put", "look"]), {"path": f"f{self._files}"}))
        return Answer(text="Next.", calls=tuple(calls))


class Writer:
    """Another program that writes to the same session all the time."""

    def __init__(self, store):
        self._store = store
        self._stop = Event()
        self.wrote = 0
        self.said = []
        self._thread = Thread(target=self._write)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _write(self):
        with Session.open("s", model="claude-sonnet-4-5", store=self._store, budget=9_000) as session:
            while not self._stop.is_set():
                with suppress(ConflictError):
                    session.state.put("memory.short_term.variables", {"name": "beat", "value": self.wrote})
                    self.wrote += 1
                if self.wrote == 5:
                    with suppress(ConflictError):
                        self.said.append(session.add("And hurry, please."))
                time.sleep(0.02)


@pytest.fixture(scope="module")
def agents():
    """A process that forks agents which have everything loaded."""
    with subprocess.Popen(
        [sys.executable, chaos_agent.__file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.stdin.close()


def start(agents, folder, url, reached, delay):
    """Start an agent, kill it so many seconds after something was reached; tell whether it came to its end."""
    agents.stdin.write(f"{folder}\t{url}\n")
    agents.stdin.flush()
    child = int(agents.stdout.readline())
    over = Event()

    def kill():
        while not reached.wait(0.01):
            if over.is_set():
                return
        if not over.wait(delay):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)

    killer = Thread(target=kill)
    if reached is not None:
        killer.start()
    code = int(agents.stdout.readline())
    if reached is not None:
        over.set()
        killer.join()
    assert code in (0, -signal.SIGKILL), f"the process ended with {code}"
    return code == 0


def messages(store):
    """Every message that was ever recorded, on every branch, by its id and its hash."""
    with Session.open("s", model="claude-sonnet-4-5", store=store, budget=9_000) as session:
        journal = session.journal
        entries = journal.walk([(1, journal.version)], kinds=("message",))
        return {entry.id: entry.hash for entry in entries}, session.verify()


def run_one(agents, folder, seed, counts):
    """One task from its beginning to its end, however often it is started."""
    provider = Provider(seed)
    chance = random.Random(-seed - 1)
    store, recorded, ended = folder / "store", {}, {"status": "killed", "error": ""}
    with provider.server as server:
        for attempt in range(ATTEMPTS):
            provider.peace = attempt >= ATTEMPTS // 2
            kills = attempt < ATTEMPTS // 4 and chance.random() < 0.6
            reached, delay = provider.reach(chance.randint(0, 5)) if kills else None, chance.uniform(0.0, 0.1)
            if kills and chance.random() < 0.1:
                reached.set()
            beside = Writer(store) if attempt == 1 and chance.random() < 0.5 else None
            if beside is None:
                whole = start(agents, folder, server.url, reached, delay)
            else:
                with beside:
                    whole = start(agents, folder, server.url, reached, delay)
                counts["second writer"] += 1
                counts["writes beside"] += beside.wrote
            counts["starts"] += 1
            counts["kills"] += not whole
            if (store / "sessions.db").exists():
                now, problems = messages(store)
                assert problems == []
                assert recorded.items() <= now.items(), f"seed {seed}: messages were lost"
                assert beside is None or set(beside.said) <= set(now)
                recorded = now
            if not whole:
                continue
            ended = json.loads((folder / "ended.json").read_text())
            if ended["status"] == "completed":
                break
            assert ended["error"], f"seed {seed}: {ended} does not say why"
            counts[f"ended {ended['status']}"] += 1
    assert ended["status"] == "completed", f"seed {seed}: {ended}"
    log = folder / "done.log"
    done = log.read_text().split() if log.exists() else []
    assert len(done) == len(set(done)), f"seed {seed}: {Counter(done).most_common(2)} was done twice"
    counts["completed"] += 1
    counts["side effects"] += len(done)
    counts["messages"] += len(recorded)
    counts.update({f"fault {kind}": times for kind, times in provider.did.items()})


@pytest.mark.parametrize("shard", range(SHARDS))
def test_an_engine_survives_chaos_over_http(agents, tmp_path, shard):
    """Each task is completed in the end, nothing is done twice, no recorded message is lost, and ends say why."""
    counts = Counter()
    first = ((SEED - 1) * SHARDS + shard) * RUNS
    for seed in range(first, first + RUNS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        run_one(agents, folder, seed, counts)
    assert counts["completed"] == RUNS
    assert counts["kills"]
    assert counts["fault 529"]
    print(dict(sorted(counts.items())))  # noqa: T201 - `make soak` shows what it did
