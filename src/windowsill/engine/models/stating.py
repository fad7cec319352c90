"""What a request to a model says besides the conversation: composed with it, it is part of what is recorded."""

from __future__ import annotations

from typing import Any

from windowsill import formats
from windowsill.engine.models.body import CONFIG, GEMINI_LIMIT, limit_field
from windowsill.engine.models.seam import Model


def stated(model: Model, max_output: int) -> dict[str, Any]:
    """The fields of the body: the limit of the answer, and whether it is streamed."""
    if model.format == "gemini":
        # Whether it is streamed is said by the address.
        return {CONFIG: {GEMINI_LIMIT: max_output}} if max_output else {}
    fields: dict[str, Any] = {}
    most = max_output or (formats.DEFAULT_MAX_TOKENS if model.format == "anthropic" else 0)
    if most:
        fields[getattr(model, "limit_field", "") or limit_field(model.format, model.name)] = most
    if getattr(model, "stream", False):
        fields["stream"] = True
        if model.format in formats.DIALECTS:
            # Without it a streamed chat does not say what it used.
            fields["stream_options"] = {"include_usage": True}
    return fields
