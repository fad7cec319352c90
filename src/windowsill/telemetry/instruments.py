"""The instruments of one meter, and the figures that wait for it."""

from __future__ import annotations

import sys
from collections import deque
from contextlib import suppress
from threading import Lock
from typing import Any, Literal, NamedTuple, TypeAlias

from windowsill.telemetry import names
from windowsill.telemetry.faults import harmless

COLLECTING = "windowsill.collecting"

_TOKENS = tuple(4**power for power in range(14))
_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""The bounds that the conventions state."""
_OWN_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)
"""Composing takes about a millisecond, and as long as a model where one is waited for."""
_SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)


class About(NamedTuple):
    """What is said of a metric where it is made."""

    unit: str = ""
    text: str = ""
    bounds: tuple[float, ...] | None = None


ABOUT = {
    names.TOKEN_USAGE: About("{token}", "Number of input and output tokens used", _TOKENS),
    names.OPERATION_DURATION: About("s", "GenAI operation duration", _SECONDS),
    names.CACHE_HIT_RATIO: About("1", "Share of a request's tokens that the provider's cache served", _SHARES),
    names.CHECKPOINTS: About("{checkpoint}", "Checkpoints made"),
    names.COMPOSE_DURATION: About("s", "How long it took to compose a request", _OWN_SECONDS),
    names.COST: About("{USD}", "What model calls cost at list price"),
    names.FOLDS: About("{fold}", "Folds made"),
    names.FOLD_TOKENS_SAVED: About("{token}", "Tokens that a fold took out of the window", _TOKENS),
    names.TOKENS: About("{token}", "Tokens by what is paid for them: fresh, cached, written to the cache, answered"),
    names.UNFOLDS: About("{fold}", "Folds removed again"),
}


Figure: TypeAlias = tuple[Literal["counter", "histogram"], str, float, dict[str, Any]]
"""How it is told, the name of its metric, the value, and what it is about."""

MOST_WAITING = 10_000
"""Figures that wait to be handed over. A meter that nobody collects from gets them when there are so many."""


class Instruments:
    """Counters and histograms of one meter, each made when it is first used.

    An SDK takes many times longer over a figure than it takes to note it down. So figures are noted, and handed over
    when somebody collects: in the thread of the collector, not in that of a turn.
    """

    def __init__(self, meter: Any) -> None:
        self._meter = meter
        self._made: dict[str, Any] = {}
        self._waiting: deque[tuple[Figure, Any]] = deque()
        self._lock = Lock()
        with harmless:
            # It observes nothing, and so is no metric: its callback is how an SDK says that it collects.
            meter.create_observable_gauge(COLLECTING, callbacks=[self._collected])

    def note(self, *figures: Figure) -> None:
        """Take figures of one moment."""
        # With the context of now, or they could not be told with an example of a trace.
        context = sys.modules.get("opentelemetry.context")
        now = context.get_current() if context is not None else None
        for figure in figures:
            self._waiting.append((figure, now))
        if len(self._waiting) > MOST_WAITING:
            self.hand_over()

    def _collected(self, _: object) -> tuple[()]:
        self.hand_over()
        return ()

    def hand_over(self) -> None:
        """Give the meter what waits for it."""
        while self._waiting:
            # Another thread may take the last one; what a meter raises costs this figure alone.
            with harmless, suppress(IndexError):
                (kind, metric, value, attributes), context = self._waiting.popleft()
                made = self._made.get(metric) or self._make(metric, kind)
                (made.add if kind == "counter" else made.record)(value, attributes, context)

    def _make(self, metric: str, kind: str) -> Any:
        with self._lock:
            if metric not in self._made:
                unit, text, bounds = ABOUT.get(metric, About())
                more = {} if bounds is None else {"explicit_bucket_boundaries_advisory": bounds}
                create = getattr(self._meter, f"create_{kind}")
                self._made[metric] = create(metric, unit=unit, description=text, **more)
            return self._made[metric]
