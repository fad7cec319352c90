"""The body of a request, completed for its model: its name, the limit of the answer, and whether to stream."""

from __future__ import annotations

from typing import Any

import msgspec

from windowsill.errors import UnknownModelError
from windowsill.models import find
from windowsill.providers.base import ProviderSpec
from windowsill.providers.gemini import camel
from windowsill.providers.lookup import get
from windowsill.providers.wire import Fields, any_decoder, decode, encode, fields_decoder, join_body, take_out


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
    try:
        maker = find(model).provider if model else ""
    except UnknownModelError:
        maker = ""
    return spec.limit_field(newest=bool(spec.vendor) and maker == spec.vendor)


def _set_model(fields: Fields, spec: ProviderSpec, model: str, max_output: int) -> Fields:
    named = {"model": _raw(model)} if model else {}
    limits = {name: _lower(fields[name], max_output) for name in spec.limit_fields if _is_set(fields, name)}
    rest = {key: value for key, value in fields.items() if key not in spec.limit_fields}
    return {**named, **rest, **named, **limits}


def _set_stream(fields: Fields, spec: ProviderSpec, *, stream: bool) -> Fields:
    kept = {key: value for key, value in fields.items() if key not in {"stream", "stream_options"}}
    if not stream:
        return kept
    kept["stream"] = _raw(value=True)
    stated = decode(any_decoder, fields.get("stream_options", b"null"), "stream_options")
    options = stated if isinstance(stated, dict) else {}
    if spec.stream_usage_option:
        options = {"include_usage": True, **options}
    return {**kept, "stream_options": _raw(options)} if options else kept


def _set_config_limit(fields: Fields, spec: ProviderSpec, max_output: int) -> Fields:
    """Set the limit inside its object; the address asks for a stream."""
    rest = {key: value for key, value in fields.items() if key != "stream"}
    if not max_output:
        return rest
    config, limited = spec.config_field, spec.limit_field()
    spelled = next((key for key in rest if config in camel({key: key})), config)
    given = decode(fields_decoder, rest[spelled], spelled) if _is_set(rest, spelled) else {}
    name = next((key for key in given if limited in camel({key: key})), limited)
    limit = _lower(given[name], max_output) if _is_set(given, name) else _raw(max_output)
    return {**rest, spelled: _raw({**given, name: limit})}


def _is_set(fields: Fields, name: str) -> bool:
    return name in fields and bytes(fields[name]) != b"null"


def _lower(stated: msgspec.Raw, most: int) -> msgspec.Raw:
    value = decode(any_decoder, stated)
    return _raw(most) if most and isinstance(value, int) and value > most else stated


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(encode(value))
