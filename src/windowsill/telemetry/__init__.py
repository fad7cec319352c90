"""Spans and metrics in the names of OpenTelemetry's GenAI conventions.

They go through `opentelemetry-api`, which records nothing until the application sets up an SDK.
"""

from __future__ import annotations

from windowsill.telemetry.spans import (
    ModelCall,
    Span,
    ToolRun,
    count,
    is_measured,
    model_call,
    record,
    record_usage,
    retrieval,
    serve_metrics,
    span,
    to_file,
    tool_run,
    under_current_span,
    use,
)

__all__ = [
    "ModelCall",
    "Span",
    "ToolRun",
    "count",
    "is_measured",
    "model_call",
    "record",
    "record_usage",
    "retrieval",
    "serve_metrics",
    "span",
    "to_file",
    "tool_run",
    "under_current_span",
    "use",
]
