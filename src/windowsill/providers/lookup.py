"""The formats there are, by name, and what follows from the facts about all of them."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from windowsill.errors import NotFoundError
from windowsill.messages import Tool
from windowsill.models import Demands, Model
from windowsill.providers.anthropic.messages import Anthropic
from windowsill.providers.base import Format, ProviderSpec
from windowsill.providers.gemini.messages import Gemini
from windowsill.providers.openai_chat.deepseek import DeepSeek
from windowsill.providers.openai_chat.messages import OpenAI
from windowsill.providers.openai_responses.items import Responses
from windowsill.providers.wire import UNREADABLE

_FORMATS: dict[str, Format] = {each.name: each for each in (Anthropic(), DeepSeek(), Gemini(), OpenAI(), Responses())}

ALIASES = {alias: name for name, each in _FORMATS.items() for alias in each.spec.aliases}

LINKERS = {name: each.linker for name, each in _FORMATS.items() if each.linker is not None}
"""Formats whose results may lack the ids of their calls, each with what finds them."""

StopKind: TypeAlias = Literal["length", "refused", "paused", "unfinished", "other"]
"""The reason why an answer ended: at a limit of tokens, by refusal, to be asked again, broken off, or as it should."""

_KINDS: tuple[StopKind, ...] = ("unfinished", "paused", "refused", "length")

_STOPS: dict[str, StopKind] = {
    reason.lower(): kind for each in _FORMATS.values() for kind in _KINDS for reason in getattr(each.spec.stops, kind)
}


def names() -> tuple[str, ...]:
    """Return the names of the formats."""
    return tuple(_FORMATS)


def specs() -> tuple[ProviderSpec, ...]:
    """Return the facts about each provider."""
    return tuple(each.spec for each in _FORMATS.values())


def all_formats() -> tuple[Format, ...]:
    """Return every format."""
    return tuple(_FORMATS.values())


def get(name: str, demands: Demands | None = None) -> Format:
    """Return the format of this name, as a model with these demands takes it."""
    found = _FORMATS.get(name) or _FORMATS.get(ALIASES.get(name, name))
    if found is None:
        raise NotFoundError(f"no format {name!r}", remedy=f"use one of {', '.join(_FORMATS)}")
    return found if demands is None else found.with_demands(demands)


def crosses(tool: Tool, target: str) -> bool:
    """Tell whether a tool can be defined for the format `target`."""
    return tool.format == target or tool.format not in _FORMATS or _FORMATS[tool.format].is_portable(tool)


def dialect(model: Model) -> str:
    """Return the format of a chat with this model, where it speaks as OpenAI's do."""
    return "deepseek" if model.reasoning_content == "required" else "openai"


def for_model(model: Model) -> str:
    """Return the format in which this model is asked; OpenAI's chat where its maker has none of its own."""
    own = {spec.vendor: spec.name for spec in specs() if spec.vendor and spec.name != "openai"}
    return own.get(model.provider) or dialect(model)


def stop_kind(reason: str | None) -> StopKind:
    """Tell why an answer ended. Servers mix the words of the providers, so those of all of them count."""
    return _STOPS.get((reason or "").lower(), "other")


def sdk_format(kind: type) -> str | None:
    """Return the format of the objects of a class, where it comes from a provider's own package."""
    module = kind.__module__ + "."
    found = [(len(each), spec.name) for spec in specs() for each in spec.sdk_modules if module.startswith(each + ".")]
    return max(found)[1] if found else None


class _Named(msgspec.Struct):
    model: str | None = None


def model_of(body: bytes) -> str:
    """Return the model that a request body or a response names; empty when it names none, as with Gemini."""
    try:
        return msgspec.json.decode(body, type=_Named).model or ""
    except UNREADABLE:
        return ""


_ID_FIELDS = sorted({each.spec.id_field for each in _FORMATS.values()})
_identified = msgspec.json.Decoder(
    msgspec.defstruct("_Identified", [(field, str | None, None) for field in _ID_FIELDS])
)


def response_id(body: bytes) -> str | None:
    """Return the id of a response, if it has one."""
    try:
        found = _identified.decode(body)
    except UNREADABLE:
        return None
    return next((id for field in _ID_FIELDS if (id := getattr(found, field))), None)
