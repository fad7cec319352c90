"""Spans in a file, one JSON object a line: traces without a collector."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

from windowsill.errors import InputError
from windowsill.telemetry.faults import swallow
from windowsill.telemetry.listening import listeners
from windowsill.telemetry.names import SCOPE

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import SpanExportResult

# ruff: noqa: PLC0415 - OpenTelemetry is only there for those who installed it


class Lines:
    """Writes the spans of Windowsill, and no others, into a file as they end."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._lock = Lock()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write spans, each on a line of its own."""
        from opentelemetry.sdk.trace.export import SpanExportResult

        ours = [span for span in spans if span.instrumentation_scope and span.instrumentation_scope.name == SCOPE]
        try:
            with self._lock:
                if not self._file.closed:
                    # In one piece: several processes may write to the same file.
                    self._file.write("".join(span.to_json(indent=None) + "\n" for span in ours).encode())
        except OSError as error:
            swallow(error)
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Write no more."""
        with self._lock:
            self._file.close()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Everything is written at once."""
        del timeout_millis
        return True


class _Private:
    """The provider of all files where the application has none; it goes with the last of them."""

    def __init__(self) -> None:
        self.provider: TracerProvider | None = None
        self.files = 0
        self.before: Any = None
        """What `telemetry.use` had given that no file can be added to."""
        self.lock = Lock()


_private = _Private()


class Tracing:
    """Spans are written until it is closed."""

    def __init__(self, lines: Lines, *, private: bool) -> None:
        self._lines = lines
        self._private = private

    def close(self) -> None:
        """Write no more. Closing twice is fine."""
        self._lines.shutdown()
        with _private.lock:
            _private.files -= self._private
            if self._private and not _private.files:
                if listeners.given is _private.provider:
                    listeners.trace_with(_private.before)
                _private.provider = _private.before = None
            self._private = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def to_file(path: str | os.PathLike[str]) -> Tracing:
    """Append every span of Windowsill to a file from now on, until what is returned is closed.

    A tracer provider that the application has set, here or globally, hears them as before, and so do other files.
    Without the extra `telemetry` it is an `InputError`.
    """
    try:
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.trace import get_tracer_provider
    except ImportError as error:
        raise InputError(
            f"writing spans needs a package that is missing: {error.name}",
            remedy="pip install 'windowsill[telemetry]'",
        ) from None
    lines = Lines(Path(path).open("ab", buffering=0))  # noqa: SIM115 - it stays open until it is closed
    with _private.lock:
        provider = listeners.given if listeners.given is not None else get_tracer_provider()
        if not isinstance(provider, TracerProvider):
            provider, _private.before = _made(), listeners.given
            listeners.trace_with(provider)
            _private.provider = provider
        private = provider is _private.provider
        _private.files += private
    provider.add_span_processor(SimpleSpanProcessor(lines))  # type: ignore[arg-type] # it has what an exporter has
    return Tracing(lines, private=private)


def _made() -> TracerProvider:
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider

    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: SCOPE}))
    return TracerProvider(resource=resource, shutdown_on_exit=False)
