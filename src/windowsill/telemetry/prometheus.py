"""Metrics for Prometheus, over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from windowsill.errors import InputError, WindowsillError
from windowsill.telemetry.listening import listeners

# ruff: noqa: PLC0415 - these packages are only there for those who installed them


class Serving:
    """A server that answers scrapes until it is closed."""

    def __init__(self, host: str, port: int, stop: Callable[[], None]) -> None:
        self.host = host
        self.port = port
        self._stop: Callable[[], None] | None = stop

    def close(self) -> None:
        """Stop serving. Closing twice is fine."""
        stop, self._stop = self._stop, None
        if stop is not None:
            stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def serve_metrics(port: int, host: str = "127.0.0.1") -> Serving:
    """Serve what is measured from now on at `http://host:port/metrics`; port 0 takes a free one.

    A meter provider that the application has set hears it as before. There is no password: beyond loopback whoever
    reaches the port reads the figures. Without the extra `prometheus` it is an `InputError`.
    """
    try:
        from opentelemetry.exporter.prometheus import PrometheusMetricReader
        from opentelemetry.sdk.metrics import MeterProvider
        from prometheus_client import CollectorRegistry, start_http_server
    except ImportError as error:
        raise InputError(
            f"serving metrics needs a package that is missing: {error.name}",
            remedy="pip install 'windowsill[prometheus]'",
        ) from None
    registry = CollectorRegistry()
    try:
        server, thread = start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        raise WindowsillError(
            f"cannot serve metrics on {host}:{port}: {(error.strerror or str(error)).lower()}",
            remedy="give another port, or end what listens there",
        ) from None
    provider = MeterProvider(
        metric_readers=[PrometheusMetricReader(registry=registry, scope_info_enabled=False)], shutdown_on_exit=False
    )
    instruments = listeners.listen(provider)

    def stop() -> None:
        listeners.leave(instruments)
        server.shutdown()
        server.server_close()
        thread.join()
        provider.shutdown()

    return Serving(host, server.server_port, stop)
