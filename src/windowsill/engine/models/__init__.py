"""The models an engine asks: any endpoint that speaks as OpenAI, Anthropic or Google does, or a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from windowsill.engine.models.function import Function
from windowsill.engine.models.remote import Remote
from windowsill.engine.models.seam import Answer, Asked, Delta, DeltaKind, FaultKind, Model, ModelError
from windowsill.errors import InputError

__all__ = [
    "Answer",
    "Asked",
    "Delta",
    "DeltaKind",
    "FaultKind",
    "Function",
    "Model",
    "ModelError",
    "Remote",
    "model",
]


def model(what: str | Callable[..., Any] | Model, **settings: Any) -> Model:
    """A model, such as `"anthropic:claude-sonnet-5"` or `"openai:qwen3@http://127.0.0.1:8080/v1"`.

    Or a function, or a model that was made before. `settings` are those of `Remote` or of `Function`.
    """
    if isinstance(what, str):
        return Remote(what, **settings)
    if isinstance(what, Model) and not isinstance(what, type):
        if settings:
            raise InputError(
                f"a model that was made before takes no settings ({', '.join(settings)})",
                remedy="give them where it is made",
            )
        return what
    if not callable(what):
        raise InputError(
            f"{what!r:.80} is no model", remedy='give "provider:model", a function, or an object that asks'
        )
    return Function(what, **settings)
