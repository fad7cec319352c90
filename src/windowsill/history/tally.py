"""The tally: what the items and units of a survey are in tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, islice, pairwise, repeat
from operator import attrgetter, sub
from typing import TYPE_CHECKING

from windowsill.tokens import Calibration

if TYPE_CHECKING:
    from windowsill.history.survey import Survey

ALIKE = (1.0, 1.0, 1.0, 1.0)
"""The ratios under which a token is a token: nothing is rounded then, and sums of weights are sums of tokens."""


class Tally:
    """What the items and units of a survey are in tokens, under one calibration.

    It grows when it is asked: a plan that needs no more than the units counts no item.
    """

    def __init__(self, about: Survey, calibration: Calibration) -> None:
        self._about = about
        self._calibration = calibration
        self.ratios = calibration.ratios
        """What the tokens depend on."""
        self._exact = self.ratios == ALIKE
        self._estimates: list[float] = []
        self._each: list[int] = []
        self._sums = [0]
        self._units = [0]
        self._sizes: list[float] = []

    def is_by(self, calibration: Calibration) -> bool:
        """Whether another calibration counts alike."""
        return calibration is self._calibration or self.ratios == calibration.ratios

    def forget(self, same: int) -> None:
        """Units from this number on were joined by what came."""
        del self._units[same + 1 :]
        del self._sizes[same:]

    def count(self) -> None:
        """Count what came."""
        self.sums  # noqa: B018 - asking brings it up to date

    @property
    def estimates(self) -> list[float]:
        """The tokens of each item, not rounded."""
        missing = self._about.items[len(self._estimates) :]
        if missing:
            self._estimates += self._calibration.estimates(map(attrgetter("weight"), missing))
        return self._estimates

    @property
    def each(self) -> list[int]:
        """The tokens of each item, rounded up."""
        known = len(self._each)
        if known < len(self._about.items):
            if self._exact:
                sums = self.sums
                self._each.extend(map(sub, sums[known + 1 :], sums[known:]))
            else:
                self._each.extend(map(math.ceil, self.estimates[known:]))
        return self._each

    @property
    def sums(self) -> list[int]:
        """The tokens of all items before each position, each item rounded up."""
        known = len(self._sums)
        if known <= len(self._about.items):
            if self._exact:
                self._sums += [
                    weight.prose + weight.code + weight.json + weight.cjk + weight.fixed + weight.overhead
                    for weight in self._about.sums[known:]
                ]
            else:
                add_up(self._sums, self.each[known - 1 :])
        return self._sums

    @property
    def units(self) -> list[int]:
        """The tokens of all units before each number, each unit rounded up."""
        known = len(self._units) - 1
        about = self._about
        # The last unit may still grow: it is counted when it is asked for, and forgotten again.
        if known < len(about.starts):
            ends = [*about.starts[known:], len(about.items)]
            if self._exact:
                self._units.extend(map(self.sums.__getitem__, ends[1:]))
            else:
                reached = list(map(about.sums.__getitem__, ends))
                weights = map(sub, reached[1:], reached)
                add_up(self._units, list(map(math.ceil, self._calibration.estimates(weights))))
        return self._units

    @property
    def sizes(self) -> list[float]:
        """The tokens of each unit, not rounded: the sum of its items."""
        known = len(self._sizes)
        about = self._about
        if known < len(about.starts):
            ends = [*about.starts[known:], len(about.items)]
            if self._exact:
                reached = list(map(self.sums.__getitem__, ends))
                self._sizes.extend(map(float, map(sub, reached[1:], reached)))
            else:
                estimates = self.estimates
                self._sizes.extend(_total(estimates[start:stop]) for start, stop in pairwise(ends))
        return self._sizes


def add_up(sums: list[int], values: Sequence[int]) -> None:
    """Go on with the sums of all before each position."""
    if any(values):
        sums.extend(islice(accumulate(values, initial=sums[-1]), 1, None))
    else:
        sums.extend(repeat(sums[-1], len(values)))


def _total(values: list[float]) -> float:
    # One after the other: from Python 3.12 on `sum` rounds differently.
    total = 0.0
    for value in values:
        total += value
    return total
