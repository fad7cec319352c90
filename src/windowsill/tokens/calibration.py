"""Calibration: learns how many tokens a provider bills for each token of our vocabulary, by kind of content.

The state is a value: `observe` returns a new one. It is recursive least squares in Kalman form, with a prior at the
model's starting ratio, a forgetting factor, and a bounded influence of every single observation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec

from windowsill.tokens.weight import KINDS, Weight

Matrix: TypeAlias = tuple[tuple[float, ...], ...]

LOWEST, HIGHEST = 0.25, 4.0
"""No two vocabularies in use differ by more; a ratio beyond is a mistake in the data."""

SPREAD = 0.15
"""Standard deviation of a starting ratio: nearly all pairs of current tokenizers are within a third of each other."""

KINSHIP = 0.7
"""Correlation between kinds at the start: a tokenizer that is finer on prose is finer on code too, so that what is
learnt from one kind carries over to those not seen yet."""

NOISE = 0.1
"""Relative spread of single requests around a true ratio, as seen on recorded sessions of a coding agent."""

NOISE_FLOOR = 20.0
"""Tokens of spread that even a short request has: framing that nobody publishes."""

MEMORY = 0.995
"""Forgetting factor: the last 200 observations count, so that a tokenizer that changed is learnt anew."""

TRUST = 1.0
"""Standard deviations beyond which a surprise moves the ratio no further."""

SMALLEST = 50
"""Fewer counted tokens than this say nothing about a ratio."""

NONSENSE = 1_000_000_000
"""More tokens than this were never in one request."""

ERROR_SPAN = 50
"""Predictions that the shown error is averaged over."""

WORST_ERROR = 100.0
"""Percent at which one prediction's error is cut, so that one nonsense usage does not hide the others."""


def _prior() -> Matrix:
    variance = SPREAD * SPREAD
    size = range(len(KINDS))
    return tuple(tuple(variance * (1.0 if i == j else KINSHIP) for j in size) for i in size)


class Calibration(msgspec.Struct, frozen=True, omit_defaults=True):
    """Billed tokens for each counted token, by kind, and how far off the last predictions were."""

    prose: float = 1.0
    code: float = 1.0
    json: float = 1.0
    cjk: float = 1.0
    observations: int = 0
    error: float = 0.0
    """Mean absolute error of the predictions made before each observation, in percent."""
    fixed: bool = False
    """True for an exact tokenizer: the ratios stay, only the error is followed."""
    covariance: Matrix = ()

    @classmethod
    def starting(cls, ratio: float | Mapping[str, float]) -> Calibration:
        """Return a calibration that knows only the model's starting ratio, for all kinds or by kind."""
        by_kind = ratio if isinstance(ratio, Mapping) else dict.fromkeys(KINDS, ratio)
        prose, code, json, cjk = (_clip(float(by_kind.get(kind, 1.0))) for kind in KINDS)
        return cls(prose, code, json, cjk, covariance=_prior())

    @classmethod
    def exact(cls) -> Calibration:
        """Return the calibration of a tokenizer that needs none."""
        return cls(fixed=True)

    def estimate(self, weight: Weight) -> float:
        """Estimate the tokens a provider would bill for `weight`."""
        return (
            self.prose * weight.prose
            + self.code * weight.code
            + self.json * weight.json
            + self.cjk * weight.cjk
            + weight.fixed
            + weight.overhead
        )

    def estimates(self, weights: Iterable[Weight]) -> list[float]:
        """Estimate each of many weights: plans ask for thousands of them, and a call for each would be felt."""
        prose, code, json, cjk = self.ratios
        return [
            prose * weight.prose
            + code * weight.code
            + json * weight.json
            + cjk * weight.cjk
            + weight.fixed
            + weight.overhead
            for weight in weights
        ]

    @property
    def ratios(self) -> tuple[float, float, float, float]:
        """The ratios that an estimate depends on."""
        return (self.prose, self.code, self.json, self.cjk)

    def observe(self, counted: Weight, reported: int) -> Calibration:
        """Learn that a provider reported `reported` tokens for what we count as `counted`.

        Give the difference between two requests that follow each other where there are two: what both contain, known
        or not, then cancels out.
        """
        counts = (counted.prose, counted.code, counted.json, counted.cjk)
        if min(counts) < 0 or not SMALLEST <= sum(counts) <= NONSENSE or not 0 < reported <= NONSENSE:
            return self
        predicted = self.estimate(counted)
        seen = self.observations + 1
        off = min(WORST_ERROR, 100.0 * abs(predicted - reported) / reported)
        error = self.error + (off - self.error) / min(seen, ERROR_SPAN)
        if self.fixed:
            return msgspec.structs.replace(self, observations=seen, error=error)
        (prose, code, json, cjk), covariance = self._learn(counts, predicted, reported - predicted)
        return Calibration(prose, code, json, cjk, observations=seen, error=error, covariance=covariance)

    def _learn(self, counts: tuple[int, ...], predicted: float, surprise: float) -> tuple[list[float], Matrix]:
        before = self.covariance or _prior()
        gain = [sum(cell * count for cell, count in zip(row, counts, strict=True)) for row in before]
        known = sum(count * value for count, value in zip(counts, gain, strict=True))
        noise = (NOISE * predicted + NOISE_FLOOR) ** 2
        limit = TRUST * math.sqrt(known + noise)
        step = max(-limit, min(limit, surprise)) / (known + noise)
        start = (self.prose, self.code, self.json, self.cjk)
        ratios = [_clip(ratio + step * value) for ratio, value in zip(start, gain, strict=True)]
        # A surprise that was cut proves little, so it also leaves the certainty nearly as it was: one nonsense usage
        # is a small step, while a lasting change adds up quickly.
        doubt = known + noise * max(1.0, abs(surprise) / limit) ** 2
        size = range(len(start))
        after = [[(before[i][j] - gain[i] * gain[j] / doubt) / MEMORY for j in size] for i in size]
        # Forgetting must not grow the doubt about kinds that never come beyond what it was at the start.
        shrink = [min(1.0, SPREAD / math.sqrt(max(after[i][i], 1e-12))) for i in size]
        return ratios, tuple(tuple(after[i][j] * shrink[i] * shrink[j] for j in size) for i in size)


def _clip(ratio: float) -> float:
    return max(LOWEST, min(HIGHEST, ratio))
