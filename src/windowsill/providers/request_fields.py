"""What a request asks for beside its messages, and how each provider spells it: limits, sampling, stops, tool choice.

Only what means the same to every provider crosses from one to another; the other fields stay behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from windowsill.messages import NEUTRAL, Tool
from windowsill.providers.base import ProviderSpec
from windowsill.providers.convert import safe_name
from windowsill.providers.gemini.render import own_name
from windowsill.providers.gemini.tools import camel
from windowsill.providers.openai_chat.messages import DIALECTS
from windowsill.providers.registry import get, names, specs
from windowsill.providers.wire import any_decoder, decode, encode, fields_decoder

Raws = Mapping[str, msgspec.Raw]

SAMPLING = ("temperature", "top_p", "top_k")

CROSSING = frozenset({"max_tokens", "temperature", "top_p"})
"""Settings that mean the same to every provider."""

LIMIT = "max_tokens"
"""The common name of the limit of an answer. Where a body states it under several names, the others count."""

LIMITS = sorted(
    {name for spec in specs() if not spec.config_field for name in spec.limit_fields}, key=lambda name: name == LIMIT
)

MODES = {"AUTO": "auto", "VALIDATED": "auto", "ANY": "required", "NONE": "none"}
"""Gemini's words for whether the model may call, and OpenAI's; Anthropic says `any` for `required`."""


class Choice(msgspec.Struct, frozen=True):
    """Whether the model may call a tool: `auto`, `none`, `required`, or the one named."""

    mode: str
    name: str = ""


def settings_of(rest: Raws) -> dict[str, msgspec.Raw]:
    """The limit of the answer and the sampling, under the names most providers give them."""
    found = {name: rest[name] for name in SAMPLING if name in rest}
    limit = next((rest[name] for name in LIMITS if name in rest), None)
    if limit is not None:
        found[LIMIT] = limit
    for spec in specs():
        if spec.config_field:
            config = _object(rest, spec.config_field)
            names = dict.fromkeys(spec.limit_fields, LIMIT) | {spec.sampling_field(name): name for name in SAMPLING}
            found |= {name: msgspec.Raw(encode(config[key])) for key, name in names.items() if key in config}
    return {name: value for name, value in found.items() if bytes(value) != b"null"}


def spelled(rest: Raws, target: str, tool_names: Sequence[str]) -> dict[str, msgspec.Raw]:
    """All that crosses, as the body of `target` has it; `tool_names` are the tools that cross too."""
    found = {name: value for name, value in settings_of(rest).items() if name in CROSSING}
    spec = get(target).spec
    if spec.max_temperature is not None and "temperature" in found:
        found["temperature"] = _at_most(found["temperature"], spec.max_temperature)
    stopped = _stops(rest, spec)
    choice = _choice(rest)
    if choice is not None and choice.mode == "one" and choice.name not in tool_names:
        choice = None
    if target == "gemini":
        return _for_gemini(spec, found, stopped, choice if tool_names else None)
    if "stream" in rest:
        found["stream"] = rest["stream"]
    if stopped and spec.stop_field:
        found[spec.stop_field] = msgspec.Raw(encode(stopped))
    if LIMIT in found and LIMIT not in spec.limit_fields:
        found[spec.limit_field()] = found.pop(LIMIT)
    if choice is not None and tool_names:
        found["tool_choice"] = msgspec.Raw(encode(_tool_choice(choice, target)))
    return found


def _at_most(number: msgspec.Raw, highest: float) -> msgspec.Raw:
    value = any_decoder.decode(number)
    return msgspec.Raw(encode(highest)) if isinstance(value, int | float) and value > highest else number


def _stops(rest: Raws, spec: ProviderSpec) -> list[str]:
    given = (
        _value(rest, "stop") or _value(rest, "stop_sequences") or _object(rest, "generationConfig").get("stopSequences")
    )
    listed = [given] if isinstance(given, str) else given if isinstance(given, list) else []
    kept = [each for each in listed if isinstance(each, str) and (each.strip() or (each and spec.blank_stops))]
    return kept[: spec.max_stops]


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


def _for_gemini(
    spec: ProviderSpec, found: dict[str, msgspec.Raw], stopped: list[str], choice: Choice | None
) -> dict[str, msgspec.Raw]:
    names = {LIMIT: spec.limit_field()} | {name: spec.sampling_field(name) for name in SAMPLING}
    config: dict[str, Any] = {key: found[name] for name, key in names.items() if name in found}
    if stopped:
        config[spec.stop_field] = stopped
    fields = {spec.config_field: msgspec.Raw(encode(config))} if config else {}
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


_GEMINI_SCHEMAS = frozenset({"parameters", "parameters_json_schema"})
"""What `parametersJsonSchema` takes the place of: the first takes only a part of JSON Schema, and both are too many."""


def with_schema(tool: Tool, schema: dict[str, Any]) -> Tool:
    """The tool with this schema; every other field of its definition stays as it came."""
    changed = msgspec.structs.replace(tool, schema=schema)
    if tool.raw is None:
        return changed
    fields = fields_decoder.decode(tool.raw)
    value = msgspec.Raw(encode(schema))
    if tool.format in DIALECTS and "function" in fields:
        function = {**fields_decoder.decode(fields["function"]), "parameters": value}
        fields["function"] = msgspec.Raw(encode(function))
    elif tool.format in names() and tool.format not in DIALECTS:
        if tool.format == "gemini":
            fields = {key: each for key, each in fields.items() if key not in _GEMINI_SCHEMAS}
        fields[get(tool.format).spec.tool_schema_field] = value
    else:
        return msgspec.structs.replace(changed, format=NEUTRAL, raw=None)
    return msgspec.structs.replace(changed, raw=encode(fields))
