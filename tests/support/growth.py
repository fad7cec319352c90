"""Compares how long a piece of code takes for a text and for one several times as long, without a limit in seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

TIMES = 8


def growth(act: Callable[[int], Any], size: int, *, rounds: int = 3) -> float:
    """Return how much longer `TIMES` the size takes: about as many times in linear time, their square in quadratic.

    Time of this thread alone, and the best of several rounds: what else the machine does counts little.
    """
    act(size)  # what is loaded on first use counts for neither
    small, large = (min(_seconds(act, each) for _ in range(rounds)) for each in (size, TIMES * size))
    return large / small


def _seconds(act: Callable[[int], Any], size: int) -> float:
    begin = time.thread_time()
    act(size)
    return max(time.thread_time() - begin, 1e-9)
