"""Workers for the campaign of kills: each runs in a process of its own, forked when everything is loaded."""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

from windowsill import Session, StoreError, WindowsillError
from windowsill.agent import Engine, tool

STRATEGIES = (None, "condense", "mask+summarize:threshold=3,batch=2", "outputs+tiered:immediate=1,short=2,batch=1")
PAYMENTS = 6


class Log:
    """A file to which each line is written at once."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, *values: Any) -> None:
        os.write(self._file, json.dumps(values).encode() + b"\n")


class Faults:
    """Fills the disk for this process and gives it room again, and sets the clock of the machine."""

    def __init__(self, store: str, rng: random.Random, log: Log) -> None:
        self._file, self._rng, self._log = Path(store) / "sessions.db-wal", rng, log
        self._real, self._jump = time.time, 0.0
        self._most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        time.time = self.time

    def time(self) -> float:
        return self._real() + self._jump

    @property
    def on_time(self) -> bool:
        return not self._jump

    def change(self) -> None:
        """Do one of them now and then."""
        dice = self._rng.random()
        if dice < 0.1 and self._file.exists():
            # Never so little that this process could not write down what it did.
            room = max(20_000, self._file.stat().st_size + self._rng.choice([0, 5_000, 50_000]))
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, self._most))
            self._log.write("fault", ["full disks"])
        elif dice < 0.3:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self._most, self._most))
        elif dice < 0.35:
            self._jump = self._rng.choice([-1, 1]) * self._rng.uniform(0, 100_000_000)
            self._log.write("fault", ["clocks set"])


def write(store: str, log_path: str, seed: int) -> None:
    """Do everything that changes a session, for ever, and write down what was acknowledged."""
    rng, log = random.Random(seed), Log(log_path)
    strategy = rng.choice(STRATEGIES)
    faults = Faults(store, rng, log)
    session = Session.open("s", store=store, clock=faults.time, **({"strategy": strategy} if strategy else {}))
    number = 0
    while True:
        number += 1
        try:
            faults.change()
            change(session, rng, log, f"{Path(log_path).stem}.{number}", on_time=faults.on_time)
        except StoreError:
            log.write("fault", ["writes that were refused"])
        except WindowsillError:
            # A fold that would break a unit, say.
            continue
        except Exception as error:  # noqa: BLE001 - the campaign counts it
            log.write("raised", f"{type(error).__name__}: {error}")


def change(session: Session, rng: random.Random, log: Log, tag: str, *, on_time: bool) -> None:
    dice = rng.random()
    if dice < 0.5:
        log.write("begun", [tag])
        session.add({"role": rng.choice(["user", "assistant"]), "content": f"#{tag}# " + "word " * rng.randint(1, 80)})
        log.write("done", [tag])
    elif dice < 0.7:
        batch(session, rng, log, tag)
    elif dice < 0.8:
        session.compose_sync(system="You count.")
    elif dice < 0.94:
        ids = [item.id for item in session.view.items if not item.fold]
        if len(ids) < 7:
            return
        place = rng.randrange(1, len(ids) - 3)
        act = rng.choice(["rewind", "fold", "unfold", "checkpoint"])
        if act == "rewind":
            session.rewind(ids[-rng.randint(1, 5)])
        elif act == "fold":
            session.fold(ids[place], ids[place + 1], text="by hand")
        elif act == "unfold" and session.folds:
            session.unfold(rng.choice(session.folds).id)
        else:
            session.checkpoint()
            session.state.set_goal(tag)
    elif on_time:
        keep_or_collect(session, rng, log, tag)


def keep_or_collect(session: Session, rng: random.Random, log: Log, tag: str) -> None:
    """Keep an output, or remove what nobody refers to: both by a clock that is right, as an hour is the limit."""
    if rng.random() < 0.67:
        lines = [f"{tag} line {place} {'z' * 90}\n" for place in range(rng.choice([10, 3_000]))]
        ref = session.outputs.keep(lines)
        log.write("kept", ref.id, hashlib.sha256("".join(lines).encode()).hexdigest())
    else:
        session.outputs.collect()


def batch(session: Session, rng: random.Random, log: Log, tag: str) -> None:
    """Add a few messages as one, the first two a call and its result."""
    tags = [f"{tag}.{place}" for place in range(rng.randint(2, 5))]
    call = {"type": "tool_use", "id": f"c-{tag}".replace(".", "-"), "name": "read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": f"#{tags[1]}# " + "out " * 300}
    log.write("begun", tags)
    session.extend(
        [
            {"role": "assistant", "content": [{"type": "text", "text": f"#{tags[0]}#"}, call]},
            {"role": "user", "content": [result]},
            *({"role": "user", "content": f"#{each}# " + "more " * 20} for each in tags[2:]),
        ]
    )
    log.write("done", tags)


def pay(store: str, log_path: str, seed: int) -> None:
    """Run an agent whose tool cannot be undone."""
    rng = random.Random(seed)

    @tool(category="write")
    def transfer(number: int) -> str:
        """Pay one of them."""
        Log(log_path).write(number)
        time.sleep(0.03 * rng.random())
        return f"paid {number}"

    def model(request: dict[str, Any]) -> Any:
        asked = [
            json.loads(call["function"]["arguments"])["number"]
            for message in request["messages"]
            for call in message.get("tool_calls") or ()
        ]
        number = max(asked, default=-1) + 1
        if number >= PAYMENTS:
            return "All are paid."
        function = {"name": "transfer", "arguments": json.dumps({"number": number})}
        call = {"id": f"c{number}", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    session = Session.open("s", model="gpt-5", window=20_000, store=store, format="openai")
    result = Engine(session, model=model, tools=[transfer], phases=("executing",)).run_sync("Pay all.")
    session.close()
    # Whole or not at all: the campaign looks for it.
    status = Path(log_path).with_name("status")
    status.write_text(result.status)
    status.rename(status.with_name("ended"))


def serve() -> None:
    """For each line on standard input start a worker, and say its process id."""
    # What they would load, without a thread or a connection that a fork would lose.
    with Session.open("w", model="claude-sonnet-4-5", window=3_000, store=":memory:") as session:
        for number in range(60):
            session.add({"role": ("user", "assistant")[number % 2], "content": "word " * 60})
        session.compose_sync(system="x")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        kind, store, log, seed = line.rstrip("\n").split("\t")
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                {"write": write, "pay": pay}[kind](store, log, int(seed))
            finally:
                os._exit(0)
        print(child, flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    serve()
