"""The body of a request as a model takes it: its name, the limit of the answer, and whether to stream."""

from __future__ import annotations

from typing import Any

import msgspec

from windowsill import formats
from windowsill.engine.models.seam import Asked
from windowsill.errors import UnknownModelError
from windowsill.formats.gemini.spelling import camel
from windowsill.formats.wire import Fields, any_decoder, decode, encode, fields_decoder, join_body, take_out
from windowsill.models import find

LIMITS = {
    "anthropic": ("max_tokens",),
    "openai": ("max_completion_tokens", "max_tokens"),
    "deepseek": ("max_completion_tokens", "max_tokens"),
    "responses": ("max_output_tokens",),
}
"""The names under which each format states the most tokens of an answer; Gemini has a place of its own for it."""

CONFIG = "generationConfig"
GEMINI_LIMIT = "maxOutputTokens"


def fitted(body: bytes, format: str, *, model: str, max_output: int, limit_field: str, stream: bool) -> bytes:
    """A composed body with what the model needs to be asked; its messages stay byte for byte.

    An empty `model` leaves the one that is there, and so does a `max_output` of 0. A limit that the body states itself
    keeps its name, and is only ever lowered: the window has no room for more than `max_output`.
    """
    under = formats.get(format).rules.under
    fields, items = take_out(body, under)
    changed = _gemini(fields, max_output) if format == "gemini" else _named(fields, format, model, max_output)
    if format != "gemini":
        if not changed.keys() & set(LIMITS[format]):
            changed |= _limit(format, limit_field, max_output)
        changed = _streamed(changed, format, stream=stream)
    if changed == fields:
        # What was composed with all of it is sent as it was recorded.
        return body
    return encode(changed) if items is None else join_body(changed, items, under.encode())


def request_of(asked: Asked, format: str, name: str) -> dict[str, Any]:
    """The decoded request, complete but for streaming, for those who ask without an address."""
    known = name or (asked.payload.model.name if asked.payload.model is not None else "")
    body = fitted(
        asked.payload.body(format),
        format,
        model=name,
        max_output=asked.max_output,
        limit_field=limit_field(format, known),
        stream=False,
    )
    request: dict[str, Any] = decode(any_decoder, body)
    return request


def limit_field(format: str, model: str) -> str:
    """The name of the limit where no address tells it: OpenAI's own models refuse the older one."""
    if format == "gemini":
        return GEMINI_LIMIT
    newer, *older = LIMITS[format]
    return newer if not older or (format == "openai" and _made_by(model) == "openai") else older[0]


def _made_by(model: str) -> str:
    try:
        return find(model).provider if model else ""
    except UnknownModelError:
        return ""


def _named(fields: Fields, format: str, model: str, max_output: int) -> Fields:
    named = {"model": _raw(model)} if model else {}
    limits = {name: _lowered(fields[name], max_output) for name in LIMITS[format] if _stated(fields, name)}
    rest = {key: value for key, value in fields.items() if key not in LIMITS[format]}
    return {**named, **rest, **named, **limits}


def _limit(format: str, name: str, max_output: int) -> Fields:
    if max_output:
        return {name: _raw(max_output)}
    return {name: _raw(formats.DEFAULT_MAX_TOKENS)} if format == "anthropic" else {}


def _streamed(fields: Fields, format: str, *, stream: bool) -> Fields:
    kept = {key: value for key, value in fields.items() if key not in {"stream", "stream_options"}}
    if not stream:
        return kept
    kept["stream"] = _raw(value=True)
    stated = decode(any_decoder, fields.get("stream_options", b"null"), "stream_options")
    options = stated if isinstance(stated, dict) else {}
    if format in formats.DIALECTS:
        # Without it a streamed chat does not say what it used.
        options = {"include_usage": True, **options}
    return {**kept, "stream_options": _raw(options)} if options else kept


def _gemini(fields: Fields, max_output: int) -> Fields:
    """The limit in its place; whether to stream is said by the address."""
    rest = {key: value for key, value in fields.items() if key != "stream"}
    if not max_output:
        return rest
    spelled = next((key for key in rest if CONFIG in camel({key: key})), CONFIG)
    given = decode(fields_decoder, rest[spelled], spelled) if _stated(rest, spelled) else {}
    name = next((key for key in given if GEMINI_LIMIT in camel({key: key})), GEMINI_LIMIT)
    limit = _lowered(given[name], max_output) if _stated(given, name) else _raw(max_output)
    return {**rest, spelled: _raw({**given, name: limit})}


def _stated(fields: Fields, name: str) -> bool:
    return name in fields and bytes(fields[name]) != b"null"


def _lowered(stated: msgspec.Raw, most: int) -> msgspec.Raw:
    value = decode(any_decoder, stated)
    return _raw(most) if most and isinstance(value, int) and value > most else stated


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(encode(value))
