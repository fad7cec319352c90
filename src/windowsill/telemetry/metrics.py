"""Counts and values. Where nobody measures, each is one call that does nothing."""

from __future__ import annotations

import sys
from typing import Any

from windowsill.messages import Usage
from windowsill.telemetry import names
from windowsill.telemetry.faults import harmless
from windowsill.telemetry.instruments import Figure
from windowsill.telemetry.listening import METRICS, listeners
from windowsill.telemetry.names import KEYS


def measures() -> bool:
    """Whether anybody measures: for callers who would have to work out what they tell."""
    return METRICS in sys.modules and bool(listeners.meters())


def count(metric: str, n: float = 1, /, **attributes: Any) -> None:
    """Add to a counter."""
    if METRICS in sys.modules:
        tell(("counter", metric, n, keyed(attributes)))


def record(metric: str, value: float, /, **attributes: Any) -> None:
    """Put a value into a histogram."""
    if METRICS in sys.modules:
        tell(("histogram", metric, value, keyed(attributes)))


def usage(used: Usage, *, model: str | None, provider: str, cost: float | None = None) -> None:
    """Tell what a model call used: tokens, the share that the cache served, and dollars where prices are known."""
    if METRICS not in sys.modules:
        return
    about = keyed({"operation": names.CHAT, "model": model, "provider": names.provider_name(provider)})
    figures: list[Figure] = [
        ("histogram", names.TOKEN_USAGE, used.prompt, {**about, names.TOKEN_TYPE: "input"}),
        ("histogram", names.TOKEN_USAGE, used.output, {**about, names.TOKEN_TYPE: "output"}),
    ]
    # Beside the conventions' two types, which overlap with the cache's, four that add up to what is paid for.
    figures += [
        ("counter", names.TOKENS, getattr(used, type), {**about, KEYS["type"]: type})
        for type in ("input", "cache_read", "cache_write", "output")
        if getattr(used, type)
    ]
    if used.prompt:
        figures.append(("histogram", names.CACHE_HIT_RATIO, used.cache_read / used.prompt, about))
    if cost is not None:
        figures.append(("counter", names.COST, cost, about))
    tell(*figures)


def tell(*figures: Figure) -> None:
    """Tell all who measure."""
    for meter in listeners.meters():
        with harmless:
            meter.note(*figures)


def keyed(attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes under their full names; what is not known is left out."""
    return {KEYS[name]: value for name, value in attributes.items() if value is not None}
