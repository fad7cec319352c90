"""Destinations of spans and metrics: providers of the application's choice, a file of spans, a Prometheus server."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from typing import IO, TYPE_CHECKING, Any

from windowsill.errors import InputError, WindowsillError
from windowsill.extras import extra
from windowsill.telemetry.names import SCOPE
from windowsill.telemetry.spans import harmless, meters, tracers

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider


# ruff: noqa: PLC0415 - the SDK and the Prometheus client are extras


def use(*, tracer_provider: Any = None, meter_provider: Any = None) -> None:
    """Use these providers in place of the ones that the application has set; without any, use those again."""
    tracers.use(tracer_provider)
    meters.use(meter_provider)


class MetricsServer(ExitStack):
    """A server that answers scrapes until it is closed."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__()
        self.host = host
        self.port = port


_open_files: list[IO[bytes]] = []
"""Files whose spans go through a provider of our own, as the application has none; it goes with the last of them."""
_lock = Lock()


def to_file(path: str | os.PathLike[str]) -> ExitStack:
    """Append every span of Windowsill to a file from now on, until what is returned is closed.

    A tracer provider that the application has set, here or globally, gets them as before, and so do other files.
    Without the extra `telemetry` it is an `InputError`.
    """
    with extra("telemetry", "writing spans"):
        from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
    if tracers.given is not None and not isinstance(tracers.given, TracerProvider):
        raise InputError(
            "spans cannot be written to a file beside a tracer provider that is not the SDK's",
            remedy="give telemetry.use() an opentelemetry.sdk.trace.TracerProvider",
        )

    class Lines(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            scope, context = span.instrumentation_scope, span.context
            if scope is not None and scope.name == SCOPE and context is not None and context.trace_flags.sampled:
                with harmless(), _lock:
                    if not file.closed:
                        # In one piece: several processes may write to the same file.
                        file.write((span.to_json(indent=None) + "\n").encode())

    file = Path(path).open("ab", buffering=0)  # noqa: SIM115 - it stays open until it is closed
    with _lock:
        provider = tracers.provider()
        if not isinstance(provider, TracerProvider):
            provider = _file_provider()
            tracers.use_for_files(provider)
        if provider is tracers.of_files:
            _open_files.append(file)
    provider.add_span_processor(Lines())
    closing = ExitStack()
    closing.callback(_close, file)
    return closing


def _close(file: IO[bytes]) -> None:
    with _lock:
        file.close()
        if file in _open_files:
            _open_files.remove(file)
            if not _open_files:
                tracers.use_for_files(None)


def _file_provider() -> TracerProvider:
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider

    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: SCOPE}))
    return TracerProvider(resource=resource, shutdown_on_exit=False)


def serve_metrics(port: int, host: str = "127.0.0.1") -> MetricsServer:
    """Serve what is measured from now on at `http://host:port/metrics`; port 0 takes a free one.

    A meter provider that the application has set gets it as before. There is no password: beyond loopback whoever
    reaches the port reads the figures. Without the extra `prometheus` it is an `InputError`.
    """
    with extra("prometheus", "serving metrics"):
        from opentelemetry.exporter.prometheus import PrometheusMetricReader
        from opentelemetry.sdk.metrics import MeterProvider
        from prometheus_client import CollectorRegistry, start_http_server
    registry = CollectorRegistry()
    try:
        server, thread = start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        raise WindowsillError(
            f"cannot serve metrics on {host}:{port}: {(error.strerror or str(error)).lower()}",
            remedy="give another port, or end what listens there",
        ) from None
    reader = PrometheusMetricReader(registry=registry, scope_info_enabled=False)
    provider = MeterProvider(metric_readers=[reader], shutdown_on_exit=False)
    meters.add(provider)
    serving = MetricsServer(host, server.server_port)
    for step in (provider.shutdown, thread.join, server.server_close, server.shutdown):  # last to first
        serving.callback(step)
    serving.callback(meters.remove, provider)
    return serving
