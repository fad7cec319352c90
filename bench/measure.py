"""Clocks and figures."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import contextmanager


@contextmanager
def stopwatch():
    """Yield a list that holds the seconds afterwards."""
    taken: list[float] = []
    start = time.perf_counter()
    yield taken
    taken.append(time.perf_counter() - start)


def best_of(times: int, action: Callable[[], object]) -> float:
    """Return the shortest of several runs: noise only ever adds."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best


def show(figure: str, value: str, target: str = "", *, met: bool | None = None) -> None:
    """One line of the report."""
    sign = {True: "ok  ", False: "MISS", None: "    "}[met]
    print(f"{sign} {figure:<66} {value:>14}  {target}", flush=True)
