"""What the inspector costs: the first answers of long sessions against short ones, and following a running agent.

Processor time, so that a busy machine does not count; prices and modules are loaded before.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from bench.measure import show
from windowsill import Session
from windowsill.history.head import Call
from windowsill.inspector import calls, window
from windowsill.inspector.opened import OpenSessions
from windowsill.inspector.server import encode
from windowsill.store import Store, open_store

BATCH, STEP = 5_000, 100
"""Messages between two folds, and between two calls."""

SHORT, EVERY = 1_000, 10**9
LEFT = 100
"""Messages of each batch that stay visible."""
OUTPUT = "def check(value):\n    return value is not None\n" * 5


def turn(number: int) -> list[dict[str, object]]:
    """Return a turn of an agent that reads a file: four messages."""
    call = {"type": "tool_use", "id": f"t{number}", "name": "read_file", "input": {"path": f"src/{number}.py"}}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": OUTPUT}
    return [
        {"role": "user", "content": f"Please look at file {number}."},
        {"role": "assistant", "content": [{"type": "text", "text": "I read it."}, call]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": f"File {number} is fine."},
    ]


def make(store: Store, id: str, messages: int, *, folded: bool) -> None:
    """Keep a session of so many messages with calls among them, most of them behind folds or none."""
    with Session.open(id, store=store, config=False, model="claude-sonnet-5") as session:
        added: list[str] = []
        for start in range(0, messages // 4, STEP // 4):
            stop = min(start + STEP // 4, messages // 4)
            turns = [each for number in range(start, stop) for each in turn(number)]
            session.journal.queue_call(Call(at=session.journal.version, format="anthropic", tokens=1_000), {})
            added += session.extend(turns, format="anthropic")
            if folded and len(added) >= BATCH:
                session.fold(added[4], added[-LEFT - 1], text="Earlier files were fine.")
                added = []


def first_answers(store: Store, id: str) -> float:
    """Return the milliseconds of what a page shows first: the bar, the last items, the calls."""
    taken = []
    for _ in range(3):
        sessions = OpenSessions(store)
        start = time.process_time()
        with sessions.use(id) as opened:
            bar = window.window(opened)
            encode(bar)
            encode(window.items(opened, (bar["items"] - 1) // window.PAGE))
            encode(calls.calls(opened))
        taken.append(1_000 * (time.process_time() - start))
    return min(taken)


def update(store: Store, id: str, rounds: int) -> float:
    """Return the milliseconds that a message of a running agent costs the server of one page."""
    sessions, taken = OpenSessions(store), []
    with sessions.use(id) as opened:
        # The sums over all calls are made once, in the first seconds of a page.
        opened.ledger.catch_up(opened.version)
        opened.ledger.reach(calls=EVERY)
    with Session.open(id, store=store, config=False) as session:
        for number in range(rounds):
            session.add(f"Message {number}.")
            start = time.process_time()
            store.info(id)
            with sessions.use(id) as opened:
                bar = window.window(opened)
                encode(bar)
                encode(window.items(opened, (bar["items"] - 1) // window.PAGE))
                encode(calls.calls(opened))
            taken.append(1_000 * (time.process_time() - start))
    return statistics.median(taken[1:])


def run(*, quick: bool = False) -> None:
    """Measure sessions that were folded, as agents leave them, and ones that never were."""
    long = 20_000 if quick else 100_000
    with tempfile.TemporaryDirectory() as place:
        store = open_store(Path(place))
        for folded in (True, False):
            kind = "folded" if folded else "never folded"
            make(store, f"short {folded}", SHORT, folded=folded)
            make(store, f"long {folded}", long, folded=folded)
            first_answers(store, f"short {folded}")
            short, many = (first_answers(store, f"{size} {folded}") for size in ("short", "long"))
            show(f"first answers, {SHORT:,} messages, {kind}, ms", f"{short:.0f}")
            show(f"first answers, {long:,} messages, {kind}, ms", f"{many:.0f}", "<= 1,000", met=many <= 1_000)
            ratio = many / short
            show(f"first answers, {long:,} against {SHORT:,}, {kind}", f"{ratio:.1f}", "<= 1.5", met=ratio <= 1.5)
            cost = update(store, f"long {folded}", 20)
            show(f"an update of {long:,} messages, {kind}, ms", f"{cost:.1f}", "<= 5", met=cost <= 5)
        store.close()
