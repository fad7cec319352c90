"""Counters and histograms, and the guard around whatever calls an SDK."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from opentelemetry import metrics

from windowsill.errors import log
from windowsill.messages import Usage
from windowsill.telemetry import names

Figure: TypeAlias = tuple[Literal["counter", "histogram"], str, float, dict[str, Any]]
"""The kind of instrument, the metric, the value, and its attributes under their full names."""

_TOKENS: Final = tuple(4**power for power in range(14))
_SECONDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""The bounds that the conventions state."""
_OWN_SECONDS: Final = (1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)
"""Composing takes about a millisecond, and as long as a model where one is waited for."""
_SHARES: Final = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)


class _Instrument(NamedTuple):
    unit: str = ""
    description: str = ""
    bounds: tuple[float, ...] | None = None


_INSTRUMENTS: Final = {
    names.TOKEN_USAGE: _Instrument("{token}", "Number of input and output tokens used", _TOKENS),
    names.OPERATION_DURATION: _Instrument("s", "GenAI operation duration", _SECONDS),
    names.CACHE_HIT_RATIO: _Instrument("1", "Share of a request's tokens that the provider's cache served", _SHARES),
    names.CHECKPOINTS: _Instrument("{checkpoint}", "Checkpoints made"),
    names.COMPOSE_DURATION: _Instrument("s", "How long it took to compose a request", _OWN_SECONDS),
    names.COST: _Instrument("{USD}", "What model calls cost at list price"),
    names.FOLDS: _Instrument("{fold}", "Folds made"),
    names.FOLD_TOKENS_SAVED: _Instrument("{token}", "Tokens that a fold took out of the window", _TOKENS),
    names.TOKENS: _Instrument("{token}", "Tokens by price: fresh, cached, written to the cache, answered"),
    names.UNFOLDS: _Instrument("{fold}", "Folds removed again"),
}


_logged: set[str] = set()
"""Kinds of errors that were logged: a collector that is down would fill the log with every turn."""


@contextmanager
def harmless() -> Iterator[None]:
    """Log what the block raises, each kind once, and let none of it out: telemetry never costs a turn."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - an SDK may raise anything
        kind = type(error).__qualname__
        if kind not in _logged:
            _logged.add(kind)
            log.warning("telemetry failed with %s: %s; further ones are not logged", kind, error)


class Meters:
    """The meter providers that measure: the application's, or one in its place, and those of `serve_metrics`."""

    def __init__(self) -> None:
        self._given: metrics.MeterProvider | None = None
        self._more: tuple[metrics.MeterProvider, ...] = ()

    def use(self, provider: metrics.MeterProvider | None) -> None:
        """Measure with this provider in place of the application's; `None` goes back to that."""
        self._given = provider

    def add(self, provider: metrics.MeterProvider) -> None:
        """Measure with one more provider."""
        self._more += (provider,)

    def remove(self, provider: metrics.MeterProvider) -> None:
        """Stop measuring with a provider that was added."""
        self._more = tuple(each for each in self._more if each is not provider)

    def providers(self) -> tuple[metrics.MeterProvider, ...]:
        """Return those that record something; the API's own providers do not."""
        provider = self._given or metrics.get_meter_provider()
        return self._more if _is_silent(type(provider)) else (provider, *self._more)

    def record(self, *figures: Figure) -> None:
        """Record figures with each provider."""
        for provider in self.providers():
            for kind, metric, value, attributes in figures:
                with harmless():
                    instrument = _instrument(provider, kind, metric)
                    (instrument.add if kind == "counter" else instrument.record)(value, attributes)


meters: Final = Meters()


@cache
def _is_silent(kind: type[metrics.MeterProvider]) -> bool:
    return kind.__module__.startswith("opentelemetry.metrics")


@lru_cache(1_000)
def _instrument(provider: metrics.MeterProvider, kind: str, metric: str) -> Any:
    meter = provider.get_meter(names.SCOPE, names.version())
    unit, description, bounds = _INSTRUMENTS.get(metric, _Instrument())
    if kind == "counter":
        return meter.create_counter(metric, unit, description)
    return meter.create_histogram(metric, unit, description, explicit_bucket_boundaries_advisory=bounds)


def is_measured() -> bool:
    """Tell whether anybody measures, for callers who would have to work out a figure."""
    return bool(meters.providers())


def count(metric: str, n: float = 1, /, **attributes: Any) -> None:
    """Add to a counter."""
    if is_measured():
        meters.record(("counter", metric, n, names.full_names(attributes)))


def record(metric: str, value: float, /, **attributes: Any) -> None:
    """Put a value into a histogram."""
    if is_measured():
        meters.record(("histogram", metric, value, names.full_names(attributes)))


def record_usage(used: Usage, *, model: str | None, provider: str, cost: float | None = None) -> None:
    """Record what a model call used: tokens, the share that the cache served, and dollars where prices are known."""
    if not is_measured():
        return
    about = names.full_names({"operation": names.CHAT, "model": model, "provider": names.provider_name(provider)})
    figures: list[Figure] = [
        ("histogram", names.TOKEN_USAGE, used.prompt, about | names.full_names({"token_type": "input"})),
        ("histogram", names.TOKEN_USAGE, used.output, about | names.full_names({"token_type": "output"})),
    ]
    # The conventions' two types overlap with the cache's; these four add up to what is paid for.
    figures += [
        ("counter", names.TOKENS, getattr(used, type), about | names.full_names({"type": type}))
        for type in ("input", "cache_read", "cache_write", "output")
        if getattr(used, type)
    ]
    if used.prompt:
        figures.append(("histogram", names.CACHE_HIT_RATIO, used.cache_read / used.prompt, about))
    if cost is not None:
        figures.append(("counter", names.COST, cost, about))
    meters.record(*figures)
