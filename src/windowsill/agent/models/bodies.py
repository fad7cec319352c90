"""Bodies of requests and answers: complete a request for its model; read an answer, or make one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from windowsill import providers
from windowsill.agent.models.base import Asked, Delta, Model
from windowsill.errors import FormatError, UnknownModelError
from windowsill.messages import Message, Reasoning, Text, ToolUse, Usage
from windowsill.models import find
from windowsill.providers import ProviderSpec
from windowsill.providers.faults import ModelError, reported_error
from windowsill.providers.gemini import camel
from windowsill.providers.streaming import CallDelta, CallStarted, Event, ReasoningDelta, TextDelta
from windowsill.providers.wire import Fields, any_decoder, decode, encode, fields_decoder, join_body, take_out

NO_NAME = "unknown"
"""The model of an answer where nobody says one: the providers' own clients want some name."""


# Requests


def request_fields(model: Model, max_output: int) -> dict[str, Any]:
    """Return the fields of a body that limit the answer and ask for a stream."""
    spec = providers.get(model.format).spec
    if spec.config_field:
        return {spec.config_field: {spec.limit_field(): max_output}} if max_output else {}
    fields: dict[str, Any] = {}
    if most := max_output or spec.default_limit:
        fields[model.limit_field or limit_field(model.format, model.name)] = most
    if model.stream:
        fields["stream"] = True
        if spec.stream_usage_option:
            fields["stream_options"] = {"include_usage": True}
    return fields


def complete_body(body: bytes, format: str, *, model: str, max_output: int, limit_field: str, stream: bool) -> bytes:
    """Add to a composed body what its model needs; the messages stay byte for byte.

    An empty `model` leaves the one that is there, and so does a `max_output` of 0. A limit that the body states itself
    keeps its name, and is only ever lowered: the window has no room for more than `max_output`.
    """
    spec = providers.get(format).spec
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


def decoded_request(asked: Asked, format: str, name: str) -> dict[str, Any]:
    """Return the decoded request, complete but for streaming, for models without an address."""
    known = name or (asked.payload.model.name if asked.payload.model is not None else "")
    body = complete_body(
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
    """Return the field of the limit where no address tells it: OpenAI's own models refuse the older name."""
    spec = providers.get(format).spec
    return spec.limit_field(newest=bool(spec.vendor) and _maker(model) == spec.vendor)


def _maker(model: str) -> str:
    try:
        return find(model).provider if model else ""
    except UnknownModelError:
        return ""


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


# Answers


def read_answer(body: bytes, format: str, hide_keys: Callable[[str], str]) -> list[Message]:
    """Read the messages of a whole answer as a session will; raise `ModelError` when it is not one."""
    try:
        providers.get(format).read_reply(body)
        messages = providers.read_added(body, format=format).messages
    except FormatError as error:
        what = f"the answer is not in its format: {hide_keys(error.what)}"
        unread = ModelError("malformed", what, remedy="check the address and the format")
        raise reported_error(body, hide_keys) or unread from None
    if not messages or any(message.role != "assistant" for message in messages):
        what = "the answer holds no message of the assistant"
        raise ModelError("malformed", what, remedy="check the address and the format")
    return messages


def has_content(messages: list[Message]) -> bool:
    """Tell whether an answer has text or a call; reasoning alone, without its end, is of no use to anybody."""
    return any(message.text.strip() or any(call.name for call in message.calls) for message in messages)


def deltas(messages: list[Message]) -> Iterator[Delta]:
    """List the deltas of an answer that came in one piece."""
    for message in messages:
        for block in message.blocks:
            match block:
                case Text(text=text) if text:
                    yield Delta("text", text)
                case Reasoning(text=text) if text:
                    yield Delta("reasoning", text)
                case ToolUse(name=name, arguments=arguments):
                    yield Delta("tool_call", name)
                    yield Delta("tool_call", arguments)


def delta_of(event: Event) -> Delta | None:
    """Return the delta of an event, if it has one."""
    match event:
        case TextDelta(text=text):
            return Delta("text", text)
        case ReasoningDelta(text=text):
            return Delta("reasoning", text)
        case CallStarted(name=name):
            return Delta("tool_call", name)
        case CallDelta(arguments=arguments):
            return Delta("tool_call", arguments)
    return None


def render_reply(
    message: Message, format: str, *, model: str = "", usage: Usage | None = None, whole: bool = True
) -> bytes:
    """Make an answer that holds this message; one that is not `whole` does not say that it ended."""
    return providers.get(format).render_reply(message, model=model or NO_NAME, usage=usage, whole=whole)
