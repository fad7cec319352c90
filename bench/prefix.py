"""Prefix reuse: the share of a request that equals the start of the one before."""

from __future__ import annotations

import statistics

from bench.measure import show
from bench.trace import SYSTEM, TASK, turns
from windowsill import Session
from windowsill.store.memory import MemoryStore

TURNS = 400
BUDGET = 50_000


def same_start(one: bytes, other: bytes) -> int:
    """How many bytes at the start are the same."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def reuse(**settings) -> tuple[float, float]:
    """Return the mean share over all requests but the first, and the share of all bytes sent."""
    same, sizes = [], []
    before = b""
    stated = {"budget": BUDGET, **settings}
    with Session.open("prefix", model="gpt-4o", store=MemoryStore(), **stated) as session:
        session.add({"role": "user", "content": TASK})
        for assistant, results in turns(TURNS):
            body = session.compose_sync(system=SYSTEM).body("openai")
            if before:
                same.append(same_start(before, body))
                sizes.append(len(body))
            before = body
            session.add(assistant)
            session.extend(results)
    return statistics.fmean(part / whole for part, whole in zip(same, sizes, strict=True)), sum(same) / sum(sizes)


def run(*, quick: bool) -> None:
    """Print the figures."""
    del quick
    mean, weighted = reuse()
    show(f"prefix reuse at {BUDGET:,} tokens over {TURNS} turns", f"{mean:.3f}", ">= 0.97", met=mean >= 0.97)
    show("  as a share of all that was sent", f"{weighted:.3f}")
    for high, low in ((0.8, 0.3), (1.0, 0.5), (1.0, 0.3)):
        mean, weighted = reuse(high=high, low=low)
        show(f"  with marks at {high} and {low}", f"{mean:.3f}", f"{weighted:.3f} of all")
    # Nothing folded at all: the ceiling, as each turn adds something new.
    ceiling, _ = reuse(budget=None, window=100_000_000)
    show("  with nothing folded", f"{ceiling:.3f}")
