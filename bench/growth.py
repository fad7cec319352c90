"""What a turn costs as the history grows, and what opening a long session costs."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from bench.measure import best_of, show
from bench.trace import SYSTEM, TASK, turns
from windowsill import Session

BUDGET = 50_000
SAMPLE = 300


def run(*, quick: bool) -> None:
    """Print the figures."""
    most = 10_000 if quick else 100_000
    marks = [size for size in (1_000, 10_000, 100_000) if size <= most]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "growth.db"
        means = _grow(place, marks)
        first = means[marks[0]]
        for size in marks:
            taken = means[size]
            show(f"time per turn at message {size:,}", f"{taken * 1000:.2f} ms", f"{taken / first:.2f} x")
        ratio = means[marks[-1]] / first
        show(f"time per turn at message {marks[-1]:,} against 1,000", f"{ratio:.2f} x", "<= 1.3", met=ratio <= 1.3)
        _open(place, marks[-1])


def _grow(place: Path, marks: list[int]) -> dict[int, float]:
    means: dict[int, float] = {}
    with Session.open("growth", model="gpt-4o", budget=BUDGET, store=place) as session:
        session.add({"role": "user", "content": TASK})
        count, samples = 1, []
        for assistant, results in turns(10**9):
            start = time.perf_counter()
            session.compose_sync(system=SYSTEM).body()
            session.add(assistant)
            session.extend(results)
            samples.append(time.perf_counter() - start)
            count += 1 + len(results)
            for size in marks:
                if size not in means and count >= size:
                    # The mean, not the median: a fold is rare and dear, and belongs to the price.
                    means[size] = statistics.fmean(samples[-SAMPLE:])
            if len(means) == len(marks):
                return means
    return means


def _open(place: Path, size: int) -> None:
    def open_and_compose() -> None:
        with Session.open("growth", store=place) as session:
            session.compose_sync(system=SYSTEM).body()

    def read_all() -> None:
        with Session.open("growth", store=place) as session:
            for _ in session.messages():
                pass

    opening, reading = best_of(5, open_and_compose), best_of(2, read_all)
    share = opening / reading
    show(f"open and compose at {size:,} messages", f"{opening * 1000:.1f} ms")
    show(f"read all {size:,} messages", f"{reading * 1000:.0f} ms")
    show("open and compose against reading it all", f"{share:.1%}", "<= 5%", met=share <= 0.05)
