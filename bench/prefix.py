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


def reuse(**settings) -> float:
    """The mean share over all requests but the first."""
    shares = []
    before = b""
    with Session.open("prefix", model="gpt-4o", budget=BUDGET, store=MemoryStore(), **settings) as session:
        session.add({"role": "user", "content": TASK})
        for assistant, results in turns(TURNS):
            body = session.compose_sync(system=SYSTEM).body("openai")
            if before:
                shares.append(same_start(before, body) / len(body))
            before = body
            session.add(assistant)
            session.extend(results)
    return statistics.fmean(shares)


def run(*, quick: bool) -> None:
    """Print the figures."""
    del quick
    share = reuse()
    show(f"prefix reuse at {BUDGET:,} tokens over {TURNS} turns", f"{share:.3f}", ">= 0.97", met=share >= 0.97)
    for high, low in ((0.8, 0.3), (1.0, 0.5), (1.0, 0.3)):
        show(f"  with marks at {high} and {low}", f"{reuse(high=high, low=low):.3f}")
