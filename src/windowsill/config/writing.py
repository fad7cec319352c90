"""Which writer a model's name stands for."""

from __future__ import annotations

from windowsill import formats, models
from windowsill.errors import UnknownModelError

OFFLINE = "offline"
BY_PROFILE = "profile"
"""The writer that leaves the choice of a model to the profile."""

ENDPOINTS = {spec.vendor: spec.name for spec in formats.specs() if spec.vendor}
"""The endpoint at which the models of a provider are asked."""


def writer_of(model: str) -> str | None:
    """The writer that asks this model, such as `gemini:gemini-2.5-flash`; `None` when nobody knows where it is served.

    A name that begins with an endpoint is a writer already.
    """
    if model == OFFLINE or model.partition(":")[0] in ENDPOINTS.values():
        return model
    try:
        endpoint = ENDPOINTS.get(models.find(model).provider)
    except UnknownModelError:
        return None
    return f"{endpoint}:{model}" if endpoint is not None else None
