"""Spans and metrics in the names of OpenTelemetry's GenAI conventions; nothing at all where no SDK listens.

OpenTelemetry is never imported here: once the application has set up an SDK, it hears us.
"""

from __future__ import annotations

from typing import Any

from windowsill.telemetry.calls import ModelCall, ToolRun, model_call, retrieval, tool_run
from windowsill.telemetry.files import to_file
from windowsill.telemetry.listening import listeners
from windowsill.telemetry.metrics import count, measures, record, usage
from windowsill.telemetry.prometheus import serve_metrics
from windowsill.telemetry.spans import Span, carried, span

__all__ = [
    "ModelCall",
    "Span",
    "ToolRun",
    "carried",
    "count",
    "measures",
    "model_call",
    "record",
    "retrieval",
    "serve_metrics",
    "span",
    "to_file",
    "tool_run",
    "usage",
    "use",
]


def use(*, tracer_provider: Any = None, meter_provider: Any = None) -> None:
    """Tell these providers, in place of the ones that the application has set; without any, look those up again."""
    listeners.trace_with(tracer_provider)
    listeners.measure_with(meter_provider)
