"""The fields of a request beside its messages: limits, sampling, stops, tool choice, model and stream.

Only what means the same to every provider crosses from one to another; the other fields stay behind. A composed body is
completed for its model, and its messages stay byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from windowsill.messages import NEUTRAL, Tool
from windowsill.models import find_known
from windowsill.providers.base import LIMIT, ProviderSpec, ToolChoice
from windowsill.providers.gemini import camel, spelling
from windowsill.providers.lookup import crosses, get, names, specs
from windowsill.providers.wire import any_decoder, decode, encode, fields_decoder, join_body, take_out

Fields = Mapping[str, msgspec.Raw]

SAMPLING = ("temperature", "top_p", "top_k")

CROSSING = frozenset({LIMIT, "temperature", "top_p"})
"""Settings that mean the same to every provider."""

LIMITS = sorted(
    {name for spec in specs() if not spec.config_field for name in spec.limit_fields}, key=lambda name: name == LIMIT
)
"""Names of the limit of an answer in a body; where several are stated, the first counts."""

UNCACHED = frozenset({
    *SAMPLING, *LIMITS, "stream", "stream_options", "stop", "stop_sequences", "n", "seed", "logprobs", "top_logprobs",
    "frequency_penalty", "presence_penalty", "logit_bias", "metadata", "user", "store", "service_tier", "include",
})  # fmt: skip
"""Fields that change an answer but not what the model reads: a prompt cache serves requests that differ in them."""

MODES = {"AUTO": "auto", "VALIDATED": "auto", "ANY": "required", "NONE": "none"}
"""Gemini's words for whether the model may call, and OpenAI's; Anthropic says `any` for `required`."""


def settings_of(rest: Fields) -> dict[str, msgspec.Raw]:
    """Return the limit of the answer and the sampling, under the names most providers give them."""
    found = {name: rest[name] for name in SAMPLING if name in rest}
    limit = next((rest[name] for name in LIMITS if name in rest), None)
    if limit is not None:
        found[LIMIT] = limit
    for spec in specs():
        if spec.config_field:
            config = _object(rest, spec.config_field)
            own = _own_names(spec)
            found |= {name: _raw(config[own[name]]) for name in own if own[name] in config}
    return {name: value for name, value in found.items() if bytes(value) != b"null"}


def answer_limit(rest: Fields) -> int | None:
    """Return how many tokens a request allows its answer, under whichever name; `None` where it does not say."""
    raw = next((rest[name] for name in LIMITS if name in rest), None) or settings_of(rest).get(LIMIT)
    value = any_decoder.decode(raw) if raw is not None else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def shared_fields(rest: Fields, target: str, tools: Sequence[Tool] = ()) -> dict[str, msgspec.Raw]:
    """Return the fields of a body that mean the same to another provider, as the body of `target` has them.

    `tools` are those of the request: whether one is to be called is said only where it is defined.
    """
    format = get(target)
    spec = format.spec
    found = {name: value for name, value in settings_of(rest).items() if name in CROSSING}
    if spec.max_temperature is not None and "temperature" in found:
        value = any_decoder.decode(found["temperature"])
        if isinstance(value, int | float) and value > spec.max_temperature:
            found["temperature"] = _raw(spec.max_temperature)
    stops = _stops(rest, spec)
    if spec.config_field:
        own = _own_names(spec)
        config: dict[str, Any] = {own[name]: found[name] for name in (LIMIT, *SAMPLING) if name in found}
        if stops:
            config[spec.stop_field] = stops
        fields = {spec.config_field: _raw(config)} if config else {}
    else:
        limit = LIMIT if LIMIT in spec.limit_fields else spec.limit_field()
        fields = {limit if name == LIMIT else name: value for name, value in found.items()}
        if stops and spec.stop_field:
            fields[spec.stop_field] = _raw(stops)
    if spec.stream_in_body and "stream" in rest:
        fields["stream"] = rest["stream"]
    known = [tool.name for tool in tools if crosses(tool, format.name)]
    choice = _choice(rest)
    if choice is not None and (choice.name in known if choice.mode == "one" else known):
        fields |= {key: _raw(value) for key, value in format.render_tool_choice(choice).items()}
    return fields


def _own_names(spec: ProviderSpec) -> dict[str, str]:
    return {LIMIT: spec.limit_field()} | {name: spec.sampling_field(name) for name in SAMPLING}


def _stops(rest: Fields, spec: ProviderSpec) -> list[str]:
    given: Any = None
    for each in specs():
        if each.stop_field and not given:
            holder = _object(rest, each.config_field).get(each.stop_field) if each.config_field else None
            given = holder or _value(rest, each.stop_field)
    listed = [given] if isinstance(given, str) else given if isinstance(given, list) else []
    kept = [each for each in listed if isinstance(each, str) and (each.strip() or (each and spec.blank_stops))]
    return kept[: spec.max_stops]


def _choice(rest: Fields) -> ToolChoice | None:
    """Read what the request says of calling tools; `None` when it says nothing, or nothing that all providers know."""
    match _value(rest, "tool_choice"):
        case "auto" | "none" | "required" as mode:
            return ToolChoice(mode)
        case {"type": "auto" | "none" as mode}:
            return ToolChoice(mode)
        case {"type": "any"}:
            return ToolChoice("required")
        case {"type": "function", "function": {"name": str(name)}} | {"type": "custom", "custom": {"name": str(name)}}:
            return ToolChoice("one", name)
        case {"type": "function" | "custom" | "tool", "name": str(name)}:
            return ToolChoice("one", name)
    config = _object(rest, "toolConfig").get("functionCallingConfig")
    return _configured(camel(config)) if isinstance(config, dict) else None


def _configured(config: dict[str, Any]) -> ToolChoice | None:
    mode = MODES.get(str(config.get("mode", "")).upper())
    allowed = config.get("allowedFunctionNames")
    if mode is None or not allowed:
        return None if mode is None else ToolChoice(mode)
    # Several names are a choice the others cannot state.
    one = mode == "required" and isinstance(allowed, list) and len(allowed) == 1
    return ToolChoice("one", str(allowed[0])) if one else None


def _value(rest: Fields, name: str) -> Any:
    return decode(any_decoder, rest[name], name) if name in rest else None


def _object(rest: Fields, name: str) -> dict[str, Any]:
    """Return an object of Gemini's, under either spelling of its name."""
    value = _value(rest, spelling(rest, name))
    return camel(value) if isinstance(value, dict) else {}


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(encode(value))


def with_schema(tool: Tool, schema: dict[str, Any]) -> Tool:
    """Return the tool with this schema; every other field of its definition stays as it came."""
    raw = get(tool.format).with_schema(tool.raw, schema) if tool.raw is not None and tool.format in names() else None
    format = tool.format if raw is not None or tool.raw is None else NEUTRAL
    return msgspec.structs.replace(tool, schema=schema, raw=raw, format=format)


# A composed body, completed for its model


def complete_body(body: bytes, format: str, *, model: str, max_output: int, limit_field: str, stream: bool) -> bytes:
    """Add to a composed body what its model needs; the messages stay byte for byte.

    An empty `model` leaves the one that is there, and so does a `max_output` of 0. A limit that the body states itself
    keeps its name, and is only ever lowered: the window has no room for more than `max_output`.
    """
    spec = get(format).spec
    under = spec.messages_field
    fields, items = take_out(body, under)
    if spec.config_field:
        changed = _set_config_limit(fields, spec, max_output)
    else:
        changed = _set_model(fields, spec, model, max_output)
        if not changed.keys() & set(spec.limit_fields) and (most := max_output or spec.default_limit):
            changed[limit_field] = _raw(most)
        changed = _set_stream(changed, spec, stream=stream)
    if changed == fields:
        # What was composed with all of it is sent as it was recorded.
        return body
    return encode(changed) if items is None else join_body(changed, items, under.encode())


def limit_field(format: str, model: str) -> str:
    """Return the field of the limit where no address tells it: OpenAI's own models refuse the older name."""
    spec = get(format).spec
    known = find_known(model or None)
    return spec.limit_field(newest=known is not None and known.provider == spec.vendor)


def _set_model(fields: Fields, spec: ProviderSpec, model: str, max_output: int) -> dict[str, msgspec.Raw]:
    named = {"model": _raw(model)} if model else {}
    limits = {name: _lower(fields[name], max_output) for name in spec.limit_fields if _is_set(fields, name)}
    rest = {key: value for key, value in fields.items() if key not in spec.limit_fields}
    return {**named, **rest, **named, **limits}


def _set_stream(fields: Fields, spec: ProviderSpec, *, stream: bool) -> dict[str, msgspec.Raw]:
    kept = {key: value for key, value in fields.items() if key not in {"stream", "stream_options"}}
    if not stream:
        return kept
    kept["stream"] = _raw(value=True)
    stated = decode(any_decoder, fields.get("stream_options", b"null"), "stream_options")
    options = stated if isinstance(stated, dict) else {}
    if spec.stream_usage_option:
        options = {"include_usage": True, **options}
    return {**kept, "stream_options": _raw(options)} if options else kept


def _set_config_limit(fields: Fields, spec: ProviderSpec, max_output: int) -> dict[str, msgspec.Raw]:
    """Set the limit inside its object; the address asks for a stream."""
    rest = {key: value for key, value in fields.items() if key != "stream"}
    if not max_output:
        return rest
    config, limited = spec.config_field, spec.limit_field()
    spelled = spelling(rest, config)
    given = decode(fields_decoder, rest[spelled], spelled) if _is_set(rest, spelled) else {}
    name = spelling(given, limited)
    limit = _lower(given[name], max_output) if _is_set(given, name) else _raw(max_output)
    return {**rest, spelled: _raw({**given, name: limit})}


def _is_set(fields: Fields, name: str) -> bool:
    return name in fields and bytes(fields[name]) != b"null"


def _lower(stated: msgspec.Raw, most: int) -> msgspec.Raw:
    value = decode(any_decoder, stated)
    return _raw(most) if most and isinstance(value, int) and value > most else stated
