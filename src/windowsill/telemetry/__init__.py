"""Spans and metrics in the names of OpenTelemetry's GenAI conventions.

They go through `opentelemetry-api`, which records nothing until the application sets up an SDK.
"""

from __future__ import annotations

from windowsill.telemetry.export import serve_metrics, to_file, use
from windowsill.telemetry.metrics import count, measures, record, usage
from windowsill.telemetry.spans import ModelCall, Span, ToolRun, carried, model_call, retrieval, span, tool_run

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
