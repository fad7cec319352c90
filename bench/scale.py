"""What very long sessions and very many of them cost: to open, to checkpoint, to list, to search, and on disk."""

from __future__ import annotations

import gzip
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from bench.measure import best_of, show
from bench.recorded import DATA, FILES
from bench.stores import TESTS
from bench.trace import prose
from windowsill import Session, open_store
from windowsill.search.archive import Archive
from windowsill.store import Store

BUDGET = 20_000
BATCH = 1_000
ROUNDS = 15


def run(*, quick: bool) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        _long(Path(folder), 20_000 if quick else 1_000_000)
        _checkpoints(Path(folder), 10_000 if quick else 100_000)
        _many(Path(folder), 1_000 if quick else 10_000)
    if not quick:
        _room()


def _long(folder: Path, most: int) -> None:
    """Compare opening and composing of two sessions that were folded alike, of which one is far longer."""
    sizes = (1_000, most)
    for size in sizes:
        _grow(folder / f"{size}.db", size)
    taken = _in_turns([lambda size=size: _open_and_compose(folder / f"{size}.db") for size in sizes])
    for size, seconds in zip(sizes, taken, strict=True):
        show(f"open and compose at {size:,} messages", f"{seconds * 1000:.1f} ms")
    ratio = taken[1] / taken[0]
    show(f"open and compose at {most:,} messages against 1,000", f"{ratio:.2f} x", "<= 1.5", met=ratio <= 1.5)


def _grow(place: Path, size: int) -> None:
    """Add messages, and fold all but the last few of each batch: both sessions end with a view of the same size."""
    rng = random.Random(5)
    with Session.open("long", model="gpt-4o", budget=BUDGET, store=place, config=False) as session:
        session.add("Find out why the nightly import fails.")
        session.add({"role": "assistant", "content": "I look into it."})
        for _ in range(0, size, BATCH):
            ids = session.extend(
                {"role": ("user", "assistant")[n % 2], "content": prose(rng, 120)} for n in range(BATCH)
            )
            session.fold(session.view.items[1].id, ids[-20], text="What was done so far.")
        session.compose_sync()


def _open_and_compose(place: Path) -> None:
    with Session.open("long", store=place) as session:
        session.compose_sync()


def _checkpoints(folder: Path, most: int) -> None:
    sizes = (100, most)
    sessions = []
    for size in sizes:
        session = Session.open(f"{size}", model="gpt-4o", budget=10**9, window=10**9, store=folder / "c", config=False)
        for start in range(0, size, BATCH):
            session.extend({"role": "user", "content": f"message {start + n}"} for n in range(min(BATCH, size - start)))
        sessions.append(session)
    taken = _in_turns([session.checkpoint for session in sessions])
    ratio = taken[1] / taken[0]
    show(f"checkpoint of {most:,} messages against 100", f"{ratio:.2f} x", "<= 3", met=ratio <= 3)
    for session in sessions:
        session.close()


def _many(folder: Path, most: int) -> None:
    """Compare a store of many sessions with one of a hundred."""
    stores = [_filled(folder / f"many{count}.db", count) for count in (100, most)]
    listed = [best_of(5, store.sessions) / count for store, count in zip(stores, (100, most), strict=True)]
    show(
        f"list {most:,} sessions",
        f"{listed[1] * most * 1000:.0f} ms",
        f"each {listed[1] / listed[0]:.2f} x that of 100",
    )

    def open_one(store: Store) -> None:
        with Session.open("s50", store=store) as session:
            session.compose_sync()

    def search_one(store: Store) -> None:
        Archive(store, "s50").retrieve("invoice ledger", 5)

    def search_all(store: Store) -> None:
        Archive(store, "s50", scope="all").retrieve("invoice ledger", 5)

    for what, act, limit in (("open", open_one, 1.5), ("search in", search_one, 1.5)):
        few, many = _in_turns([lambda act=act, store=store: act(store) for store in stores])
        show(
            f"{what} one of {most:,} sessions against one of 100",
            f"{many / few:.2f} x",
            f"<= {limit}",
            met=many / few <= limit,
        )
    few, many = (best_of(3, lambda store=store: search_all(store)) for store in stores)
    show(f"search all of {most:,} sessions", f"{many * 1000:.0f} ms", f"{many / few:.1f} x the time of 100")
    for store in stores:
        store.close()


def _filled(place: Path, count: int) -> Store:
    rng = random.Random(3)
    store = open_store(place)
    for number in range(count):
        with Session.open(f"s{number}", model="gpt-4o", store=store, config=False) as session:
            session.extend({"role": "user", "content": prose(rng, 200)} for _ in range(4))
    return store


def _in_turns(acts: list[Callable[[], object]]) -> list[float]:
    """Return the median time of each act, done in turns, as the machine is not always as fast."""
    taken: list[list[float]] = [[] for _ in acts]
    for _ in range(ROUNDS):
        for act, times in zip(acts, taken, strict=True):
            start = time.perf_counter()
            act()
            times.append(time.perf_counter() - start)
    return [median(times) for times in taken]


def _room() -> None:
    """Measure what recorded sessions take on disk, beside the bytes of their messages."""
    sys.path.insert(0, str(TESTS))
    from support import postgres

    server = postgres.Server(durable=False)
    for name in FILES:
        file = DATA / f"{name}.jsonl.gz"
        if not file.exists():
            show(f"bytes on disk of {name}", "not here", "looked for in ../shared/data")
            continue
        with tempfile.TemporaryDirectory() as folder:
            for kind, place in (("SQLite", folder), ("PostgreSQL", server.url(name.replace("-", "_")))):
                ratio = _kept(file, place)
                show(f"{kind}: bytes on disk for each byte of {name}", f"{ratio:.2f}", "<= 1.3", met=ratio <= 1.3)
    server.remove()


def _kept(file: Path, place: str) -> float:
    told, store = 0, open_store(place)
    with gzip.open(file, "rt") as lines:
        for line in lines:
            recorded = json.loads(line)
            with Session.open(recorded["id"], model="gpt-4o", store=store, config=False) as session:
                session.extend(recorded["messages"])
            dumped = (json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in recorded["messages"])
            told += sum(len(each.encode()) for each in dumped)
    store.close()
    # Opened again, the write-ahead log of SQLite is in its file.
    store = open_store(place)
    size = store.about().bytes
    store.close()
    return size / told
