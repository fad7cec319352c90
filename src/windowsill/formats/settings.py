"""What a request asks for beside its messages, and how each provider spells it: limits, sampling, stops, tool choice.

Only what means the same to every provider crosses from one to another; the other fields stay behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from windowsill.formats.foreign import safe_name
from windowsill.formats.gemini.render import own_name
from windowsill.formats.gemini.spelling import camel
from windowsill.formats.wire import any_decoder, decode, encode

Raws = Mapping[str, msgspec.Raw]

NUMBERS = {"maxOutputTokens": "max_tokens", "temperature": "temperature", "topP": "top_p"}
"""Names in Gemini's `generationConfig` -> names everywhere else."""

LIMITS = ("max_completion_tokens", "max_output_tokens")
"""OpenAI's other names for `max_tokens`; where several stand, these count."""

MAX_STOPS = {"openai": 4, "gemini": 5}
"""How many stop sequences a provider takes; those past it are left out, for the request would be refused."""

MAX_TEMPERATURE = {"anthropic": 1}
"""Where the scale ends earlier than the others', which go to 2."""

MODES = {"AUTO": "auto", "VALIDATED": "auto", "ANY": "required", "NONE": "none"}
"""Gemini's words for whether the model may call, and OpenAI's; Anthropic says `any` for `required`."""


class Choice(msgspec.Struct, frozen=True):
    """Whether the model may call a tool: `auto`, `none`, `required`, or the one named."""

    mode: str
    name: str = ""


def numbers(rest: Raws) -> dict[str, msgspec.Raw]:
    """The limit of the answer and the sampling, under the names most providers give them."""
    found = {name: rest[name] for name in NUMBERS.values() if name in rest}
    limit = next((rest[name] for name in LIMITS if name in rest), None)
    if limit is not None:
        found["max_tokens"] = limit
    config = _object(rest, "generationConfig")
    found |= {name: msgspec.Raw(encode(config[key])) for key, name in NUMBERS.items() if key in config}
    return {name: value for name, value in found.items() if bytes(value) != b"null"}


def spelled(rest: Raws, target: str, tool_names: Sequence[str]) -> dict[str, msgspec.Raw]:
    """All that crosses, as the body of `target` has it; `tool_names` are the tools that cross too."""
    found = numbers(rest)
    highest = MAX_TEMPERATURE.get(target)
    if highest is not None and "temperature" in found:
        found["temperature"] = _at_most(found["temperature"], highest)
    stopped = _stops(rest, target)
    choice = _choice(rest)
    if choice is not None and choice.mode == "one" and choice.name not in tool_names:
        choice = None
    if target == "gemini":
        return _for_gemini(found, stopped, choice if tool_names else None)
    if "stream" in rest:
        found["stream"] = rest["stream"]
    if stopped and target != "responses":
        # Responses has no such field.
        found["stop_sequences" if target == "anthropic" else "stop"] = msgspec.Raw(encode(stopped))
    if target == "responses" and "max_tokens" in found:
        found["max_output_tokens"] = found.pop("max_tokens")
    if choice is not None and tool_names:
        found["tool_choice"] = msgspec.Raw(encode(_tool_choice(choice, target)))
    return found


def _at_most(number: msgspec.Raw, highest: float) -> msgspec.Raw:
    value = any_decoder.decode(number)
    return msgspec.Raw(encode(highest)) if isinstance(value, int | float) and value > highest else number


def _stops(rest: Raws, target: str) -> list[str]:
    given = (
        _value(rest, "stop") or _value(rest, "stop_sequences") or _object(rest, "generationConfig").get("stopSequences")
    )
    listed = [given] if isinstance(given, str) else given if isinstance(given, list) else []
    # Anthropic refuses one of nothing but white space.
    kept = [each for each in listed if isinstance(each, str) and (each.strip() or (each and target != "anthropic"))]
    return kept[: MAX_STOPS.get(target)]


def _choice(rest: Raws) -> Choice | None:
    """What the request says of calling tools; `None` when it says nothing, or nothing that all providers know."""
    match _value(rest, "tool_choice"):
        case "auto" | "none" | "required" as mode:
            return Choice(mode)
        case {"type": "auto" | "none" as mode}:
            return Choice(mode)
        case {"type": "any"}:
            return Choice("required")
        case {"type": "function", "function": {"name": str(name)}} | {"type": "custom", "custom": {"name": str(name)}}:
            return Choice("one", name)
        case {"type": "function" | "custom" | "tool", "name": str(name)}:
            return Choice("one", name)
    match camel(_object(rest, "toolConfig")).get("functionCallingConfig"):
        case dict(config):
            return _configured(camel(config))
    return None


def _configured(config: dict[str, Any]) -> Choice | None:
    mode = MODES.get(str(config.get("mode", "")).upper())
    names = config.get("allowedFunctionNames")
    if mode is None or not names:
        return None if mode is None else Choice(mode)
    # Several names are a choice the others cannot state.
    return Choice("one", str(names[0])) if mode == "required" and isinstance(names, list) and len(names) == 1 else None


def _tool_choice(choice: Choice, target: str) -> Any:
    name = safe_name(choice.name)
    if target == "anthropic":
        kind = {"required": "any", "one": "tool"}.get(choice.mode, choice.mode)
        return {"type": kind, "name": name} if choice.mode == "one" else {"type": kind}
    if choice.mode != "one":
        return choice.mode
    return (
        {"type": "function", "name": name}
        if target == "responses"
        else {
            "type": "function",
            "function": {"name": name},
        }
    )


def _for_gemini(found: dict[str, msgspec.Raw], stopped: list[str], choice: Choice | None) -> dict[str, msgspec.Raw]:
    config: dict[str, Any] = {key: found[name] for key, name in NUMBERS.items() if name in found}
    if stopped:
        config["stopSequences"] = stopped
    fields = {"generationConfig": msgspec.Raw(encode(config))} if config else {}
    if choice is not None:
        asked: dict[str, Any] = {"mode": {"auto": "AUTO", "none": "NONE"}.get(choice.mode, "ANY")}
        if choice.mode == "one":
            asked["allowedFunctionNames"] = [own_name(choice.name)]
        fields["toolConfig"] = msgspec.Raw(encode({"functionCallingConfig": asked}))
    return fields


def _value(rest: Raws, name: str) -> Any:
    return decode(any_decoder, rest[name], name) if name in rest else None


def _object(rest: Raws, name: str) -> dict[str, Any]:
    """An object of Gemini's, under either spelling of its name."""
    key = next((key for key in rest if name in camel({key: key})), name)
    value = _value(rest, key)
    return camel(value) if isinstance(value, dict) else {}
