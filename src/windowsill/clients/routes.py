"""Tells from its address which call of a provider's API is a model call."""

from __future__ import annotations

import re

import msgspec

from windowsill import providers


class Route(msgspec.Struct, frozen=True):
    """A model call: the format of its body, and what the address says about it."""

    format: str
    model: str | None = None
    streamed: bool = False
    """The address alone says that the answer is streamed."""


_ROUTES = [(re.compile(route), spec.name) for spec in providers.specs() for route in spec.routes]


def route(path: str) -> Route | None:
    """Return the model call at this path, or `None` when it is something else (counting, files, batches ...)."""
    path = path.partition("?")[0].rstrip("/")
    for pattern, format in _ROUTES:
        if found := pattern.search(path):
            groups = found.groupdict()
            model = groups.get("model")
            return Route(format, model and model.partition("@")[0], groups.get("stream") is not None)
    return None
