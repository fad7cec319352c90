"""Provider formats: read, render, validate, repair. No input or output; every provider is a `Format` with a spec."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from windowsill.errors import FormatError, UnknownModelError
from windowsill.history import repair as mending
from windowsill.history.repair_rules import Repair
from windowsill.messages import Request, Tool
from windowsill.models import find
from windowsill.providers.base import Api, Format, Linker, Problem, ProviderSpec
from windowsill.providers.lookup import (
    ALIASES,
    LINKERS,
    crosses,
    dialect,
    for_model,
    get,
    model_of,
    names,
    response_id,
    sdk_format,
    specs,
    stop_kind,
)
from windowsill.providers.openai_chat import DIALECTS
from windowsill.providers.read import (
    Added,
    detect,
    detect_body,
    read_added,
    read_request,
    read_tool,
    read_tools,
    read_usage,
)
from windowsill.providers.request_fields import UNCACHED, answer_limit, settings_of, shared_fields, with_schema
from windowsill.providers.wire import any_decoder, decode, encode, to_bytes
from windowsill.tokens import Calibration, Scale, counter, framing, image_rule

__all__ = [
    "ALIASES",
    "DIALECTS",
    "LINKERS",
    "UNCACHED",
    "Added",
    "Api",
    "Format",
    "Linker",
    "Problem",
    "ProviderSpec",
    "RepairResult",
    "answer_limit",
    "crosses",
    "detect",
    "dialect",
    "encode",
    "for_model",
    "get",
    "model_of",
    "names",
    "read_added",
    "read_request",
    "read_tool",
    "read_tools",
    "read_usage",
    "render_request",
    "repair",
    "response_id",
    "sdk_format",
    "settings_of",
    "shared_fields",
    "specs",
    "stop_kind",
    "tool_layout",
    "validate",
    "with_schema",
]


class RepairResult(msgspec.Struct, frozen=True):
    """A conversation a provider accepts, as native messages, and what was mended to make it so."""

    messages: list[dict[str, Any]]
    repairs: tuple[Repair, ...]
    format: str


def tool_layout(sources: Sequence[Any], format: str) -> msgspec.Raw | None:
    """Return how these definitions stand in entries of a body, where the format has entries; else `None`.

    Put under `tools` of the other fields, it lets them go out exactly as they came.
    """
    target = get(format)
    if any(isinstance(source, Tool) or not target.is_own(read_tool(source).format) for source in sources):
        return None
    return target.tool_layout([to_bytes(source) for source in sources])


def render_request(request: Request, *, format: str | None = None) -> bytes:
    """Render a request, in its own format or another; nothing is mended here."""
    target = get(format or request.format)
    system = [request.system] if request.system is not None else []
    messages = list(request.messages)
    if target.rules.system_apart and request.format != target.name:
        while messages and messages[0].role == "system":
            system.append(messages.pop(0))
    chunks = [chunk for message in messages for chunk in target.render_message(message)]
    prompt = target.render_system(system)
    if request.bare and prompt is None:
        return b"[" + b",".join(chunks) + b"]"
    rest = request.rest
    if request.format != target.name:
        rest = shared_fields(rest, target.name, request.tools)
        if target.spec.default_limit:
            rest.setdefault(target.spec.limit_field(), msgspec.Raw(encode(target.spec.default_limit)))
    return target.render_body(
        messages=chunks,
        system=prompt,
        tools=[target.render_tool(tool) for tool in request.tools if crosses(tool, target.name)],
        model=request.model,
        rest=rest,
    )


def repair(messages: Any, format: str | None = None) -> RepairResult:
    """Mend the messages of a request or a message list, and say what was mended; what was passed in stays as it is."""
    request = read_request(messages, format=format)
    target = get(request.format)
    mended = mending.repair(request.messages, target.rules, continued=target.continues(request.rest))
    native = [decode(any_decoder, raw) for message in mended.messages for raw in target.render_message(message)]
    return RepairResult(native, mended.repairs, request.format)


COUNT_ERROR = 1.05
"""A count of another model's vocabulary may be too high by this much: what may still fit is not called too long."""


def validate(request: Any, format: str | None = None, *, model: str | None = None) -> list[Problem]:
    """Return what the provider would refuse in a request body or message list; nothing when it is sound.

    Where the body or `model` names a model, a request that is longer than its window is a problem too.
    """
    body = to_bytes(request)
    target = get(format or detect_body(body))
    return [*target.validate(decode(any_decoder, body)), *_too_long(body, target, model or model_of(body))]


def _too_long(body: bytes, target: Format, model: str) -> Iterator[Problem]:
    try:
        known = find(model)
        limit = min(known.window, known.max_input)
        # No token is less than a byte: most requests need no count.
        request = target.read_body(body) if len(body) > limit else None
    except (UnknownModelError, FormatError):
        return
    if request is None:
        return
    scale = Scale(
        counter(known.tokenizer),
        framing=framing(known.framing),
        images=image_rule(known.image_rule),
        calibration=Calibration.starting(msgspec.structs.asdict(known.ratio)),
    )
    messages = request.messages if request.system is None else (request.system, *request.messages)
    weights = [*(scale.weigh(message) for message in messages), scale.weigh_tools(request.tools)]
    tokens = sum(map(scale.tokens, weights))
    if tokens > limit * (1 if known.exact else COUNT_ERROR):
        what = f"{tokens:,} tokens, and {known.name} takes {limit:,}"
        yield Problem(f"{target.name}.too-long", target.spec.messages_field, what, "make it fit (`windowsill fit`)")
