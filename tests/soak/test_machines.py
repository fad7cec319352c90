"""Two machines with clocks a day apart share a session in PostgreSQL; one of them loses its power again and again.

A machine is a process with a network, a host name and process numbers of its own, as far as the system allows that.
"""

import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest

from support import postgres
from support.soak import SCALE, SEED, Tally
from support.stores import child_env
from windowsill import Session
from windowsill.session.integrity import problems
from windowsill.store.postgres import PostgresStore

pytestmark = pytest.mark.integration

ROUNDS = 2 * SCALE
LEASE = 4
DAY = 86_400

CHILD = f"""
import itertools, os, sys, time
name, jump, url = sys.argv[1], float(sys.argv[2]), sys.argv[3]
real = time.time
time.time = lambda: real() + jump
from windowsill import Session
from windowsill.store.base import holder_name
session = Session.open("shared", store=url, config=False)
for number in itertools.count():
    session.journal.hold(holder_name(), seconds={LEASE}, wait=120)
    for word in ("in", "out"):
        text = f"{{word}} {{name}}-{{real()}}-{{number}}" if word == "in" else text.replace("in ", "out ", 1)
        session.add(text)
        os.write(1, f"{{text}}\\n".encode())
    session.journal.store.unlock(session.id, holder_name())
"""


def own_machine() -> list[str]:
    """Return what to put before a command, so that it sees neither the network nor the processes of this machine."""
    apart = ["unshare", *(["--user", "--map-root-user"] if os.geteuid() else []), "--net", "--uts", "--pid", "--fork"]
    command = [*apart, "--kill-child", "--mount-proc"]
    usable = shutil.which("unshare") and subprocess.run([*command, "true"], capture_output=True, check=False)
    return (
        [*command, "sh", "-c", 'hostname "$0"; exec "$@"']
        if usable and usable.returncode == 0
        else ["sh", "-c", 'exec "$@"']
    )


class Machine:
    """One of them, and what it says; it comes back when its power was lost."""

    def __init__(self, name: str, jump: float, url: str) -> None:
        self._command = [*own_machine(), name, sys.executable, "-c", CHILD, name, str(jump), url]
        self.lines: list[str] = []
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, env=child_env(), text=True)
        self._thread = threading.Thread(target=lambda: self.lines.extend(self._process.stdout))
        self._thread.start()

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._thread.join()
        self._process.stdout.close()


def test_machines_take_turns_whatever_their_clocks_say(tally: Tally):
    """No message that was acknowledged is lost or doubled, and nobody works while another holds the session."""
    server = postgres.Server(durable=True)
    url = server.url("machines", wait=30)
    Session.open("shared", store=url, model="gpt-4o", config=False).close()
    machines = [Machine("early", -DAY, url), Machine("late", DAY, url)]
    moments = random.Random(SEED)
    try:
        for turn in range(ROUNDS):
            _wait_for_more(machines)
            time.sleep(moments.uniform(0, 0.2))
            machines[turn % 2].kill()
            machines[turn % 2].start()
            tally.count("two machines: losses of power")
        _wait_for_more(machines)
    finally:
        for machine in machines:
            machine.kill()
    kept = Counter(line.strip() for machine in machines for line in machine.lines if line.endswith("\n"))
    with Session.open("shared", store=url, config=False) as session:
        there = [message.text for message in session.messages()]
    lost = [f"{each} is lost" for each in kept if each not in there]
    doubled = [f"{each} is there {count} times" for each, count in Counter(there).items() if count > 1]
    tally.count("two machines: acknowledged messages", [*lost, *doubled], tried=len(kept))
    tally.count("two machines: turns", _interrupted(there), tried=sum(each.startswith("in ") for each in there))
    store = PostgresStore(url)
    assert problems(store, store.info("shared")) == []
    store.close()
    server.remove()
    tally.check()
    assert len(kept) > ROUNDS


def _interrupted(there: list[str]) -> list[str]:
    """List the turns in which another began before they ended; one that lost its power has no end."""
    ends = {text.removeprefix("out ") for text in there if text.startswith("out ")}
    turns = [text.split(" ", 1) for text in there]
    return [
        f"{other} worked while {turn} did"
        for (word, turn), (_, other) in itertools.pairwise(turns)
        if word == "in" and turn in ends and other != turn
    ]


def _wait_for_more(machines: list[Machine]) -> None:
    before, end = [len(machine.lines) for machine in machines], time.monotonic() + 120
    while not all(len(machine.lines) > count + 4 for machine, count in zip(machines, before, strict=True)):
        assert time.monotonic() < end, "the machines stand still"
        time.sleep(0.05)
