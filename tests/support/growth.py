"""Compares how long a piece of code takes for a text and for one several times as long, without a limit in seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

TIMES, ROUNDS = 8, 3


def is_linear(act: Callable[[int], Any], size: int) -> bool:
    """Tell whether `TIMES` the size takes about as many times as long: at most three times that, and not its square.

    Time of this thread alone, and the best of several rounds: what else the machine does counts little.
    """
    act(size)  # what is loaded on first use counts for neither
    small = min(_seconds(act, size) for _ in range(ROUNDS))
    return any(_seconds(act, TIMES * size) < 3 * TIMES * small for _ in range(ROUNDS))


def _seconds(act: Callable[[int], Any], size: int) -> float:
    begin = time.thread_time()
    act(size)
    return max(time.thread_time() - begin, 1e-9)
