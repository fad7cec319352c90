"""The models an engine asks: any endpoint that speaks as OpenAI, Anthropic or Google does, or a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from windowsill.agent.models.base import Answer, Delta, DeltaKind, FunctionModel, Model, ModelRequest
from windowsill.agent.models.http_model import HttpModel
from windowsill.errors import InputError
from windowsill.providers.faults import FaultKind, ModelError

__all__ = [
    "Answer",
    "Delta",
    "DeltaKind",
    "FaultKind",
    "FunctionModel",
    "HttpModel",
    "Model",
    "ModelError",
    "ModelRequest",
    "model",
]


def model(what: str | Callable[..., Any] | Model, **settings: Any) -> Model:
    """Return a model, such as `"anthropic:claude-sonnet-5"` or `"openai:qwen3@http://127.0.0.1:8080/v1"`.

    `what` may also be a function, or a model. `settings` are those of `HttpModel` or of `FunctionModel`.
    """
    if isinstance(what, str):
        return HttpModel(what, **settings)
    if isinstance(what, Model):
        if settings:
            raise InputError(
                f"a model that was made before takes no settings ({', '.join(settings)})",
                remedy="give them where it is made",
            )
        return what
    if not callable(what):
        raise InputError(
            f"{what!r:.80} is not a model", remedy='give "provider:model", a function, or an object that asks'
        )
    return FunctionModel(what, **settings)
