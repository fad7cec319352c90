"""Campaigns: many random trials from stated seeds, how large they are, and the table of what was tried and failed.

`SOAK=40` makes every campaign forty times as long, `SOAK_SEED=7` begins at other seeds.
"""

from __future__ import annotations

import os
import random
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path

SCALE = int(os.environ.get("SOAK", "1"))
SEED = int(os.environ.get("SOAK_SEED", "1"))
SHOWN = 5
"""Failures that are printed."""


class Tally:
    """Counts what a campaign tried and what of it failed."""

    def __init__(self) -> None:
        self.rows: dict[str, list[int]] = {}
        self.failures: list[str] = []
        self._trial = ""

    def count(self, what: str, problems: Iterable[object] = (), *, tried: int = 1) -> None:
        """Count trials; each problem is one of them that failed."""
        found = [f"{what}{self._trial}: {problem}" for problem in problems]
        row = self.rows.setdefault(what, [0, 0])
        row[0] += tried
        row[1] += len(found)
        self.failures += found

    def run(self, what: str, trials: int, trial: Callable[[random.Random], Iterable[object]]) -> None:
        """Make trials, each with a generator of its own; what one raises is a failure, and the next one follows."""
        for seed in range(SEED * 1_000_003, SEED * 1_000_003 + trials * SCALE):
            self._trial = f", seed {seed}"
            try:
                self.count(what, trial(random.Random(seed)))
            except Exception as error:  # noqa: BLE001 - a campaign counts whatever goes wrong
                place = traceback.extract_tb(error.__traceback__)[-1]
                raised = f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}: {error}"
                self.count(what, [raised])

    def check(self) -> None:
        """Fail with the first failures."""
        assert not self.failures, "\n".join([f"{len(self.failures)} failures", *self.failures[:SHOWN]])
