"""Listens with the real SDK: every span and every figure that was told while a test ran."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from windowsill import telemetry


class Heard:
    """The spans and metrics that were told."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.meters = MeterProvider(metric_readers=[self._reader], shutdown_on_exit=False)

    @property
    def spans(self) -> list[Any]:
        """Every span that has ended, in the order they began."""
        return sorted(self._exporter.get_finished_spans(), key=lambda span: span.start_time)

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.spans]

    def span(self, name: str) -> Any:
        """The only span of this name."""
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def said(self, name: str) -> dict[str, Any]:
        """The attributes of the only span of this name."""
        return dict(self.span(name).attributes)

    def parent(self, span: Any) -> str | None:
        """The name of the span that one stands under."""
        named = {each.context.span_id: each.name for each in self.spans}
        return named[span.parent.span_id] if span.parent is not None else None

    def points(self, metric: str) -> list[Any]:
        """Return what was measured under this name, a point for each set of attributes."""
        data = self._reader.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data is not None else ())
            for scope in resource.scope_metrics
            for found in scope.metrics
            if found.name == metric
            for point in found.data.data_points
        ]

    def clear(self) -> None:
        self._exporter.clear()


@contextmanager
def listening() -> Iterator[Heard]:
    """Listen to everything that is told inside."""
    heard = Heard()
    telemetry.use(tracer_provider=heard.tracers, meter_provider=heard.meters)
    try:
        yield heard
    finally:
        telemetry.use()
        heard.tracers.shutdown()
        heard.meters.shutdown()
