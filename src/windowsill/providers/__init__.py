"""Provider formats: read, render, validate, repair. No input or output; every format fulfils `Format`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from windowsill.history import repair as mending
from windowsill.history.repair import Repair
from windowsill.messages import Request, Tool, Usage
from windowsill.providers import read, request_fields
from windowsill.providers.base import Api, Format, Problem, ProviderSpec, StopReasons
from windowsill.providers.detect import AMBIGUOUS, detect, detect_body
from windowsill.providers.gemini import tools as gemini_tools
from windowsill.providers.openai_chat.messages import DIALECTS
from windowsill.providers.read import Added
from windowsill.providers.registry import (
    ALIASES,
    StopKind,
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
from windowsill.providers.request_fields import settings_of
from windowsill.providers.wire import any_decoder, decode, encode, to_bytes

__all__ = [
    "ALIASES",
    "DIALECTS",
    "Added",
    "Api",
    "Format",
    "Problem",
    "ProviderSpec",
    "RepairResult",
    "StopKind",
    "StopReasons",
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
]


class RepairResult(msgspec.Struct, frozen=True):
    """A conversation a provider accepts, as native messages, and what was mended to make it so."""

    messages: list[dict[str, Any]]
    repairs: tuple[Repair, ...]
    format: str


def read_request(source: bytes | str | Mapping[str, Any] | Sequence[Any], *, format: str | None = None) -> Request:
    """A request body or a message list, taken apart; without a format it is told from the content."""
    body = to_bytes(source)
    return get(format or detect_body(body)).read_body(body)


def read_added(source: Any, *, format: str | None = None, default: str = AMBIGUOUS) -> Added:
    """What a program adds to a conversation: a message, a reply with usage, SDK objects, text, or a list of these.

    `default` is the format of what could be of any, such as a role with plain text.
    """
    return read.take(source, format, get, default)


def read_tool(source: Any, where: str = "") -> Tool:
    """A tool definition in whatever format it is."""
    return read.read_tool(source, where, get)


def read_tools(sources: Sequence[Any]) -> tuple[Tool, ...]:
    """Tool definitions, each in whatever format it is; an entry that holds several gives one for each."""
    return tuple(
        tool
        for index, source in enumerate(sources)
        for tool in gemini_tools.one_by_one(read_tool(source, f"tools[{index}]"), f"tools[{index}]")
    )


def tool_layout(sources: Sequence[Any], format: str) -> msgspec.Raw | None:
    """How these definitions stand in entries of a body, where the format has entries and they are its own; else `None`.

    Put under `tools` of the other fields, it lets them go out exactly as they came.
    """
    own = get(format).name == "gemini" and not any(isinstance(source, Tool) for source in sources)
    if not own or any(read_tool(source).format != "gemini" for source in sources):
        return None
    return gemini_tools.layout_of([to_bytes(source) for source in sources])


def read_usage(usage: Any) -> Usage:
    """What a provider reported, from its own usage object."""
    return read.read_usage(usage, get)


def render_request(request: Request, *, format: str | None = None) -> bytes:
    """The request as bytes, in its own format or another; nothing is mended here."""
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
    return target.render_body(
        messages=chunks,
        system=prompt,
        tools=[target.render_tool(tool) for tool in request.tools if crosses(tool, target.name)],
        model=request.model,
        rest=request.rest if request.format == target.name else _carried(request, target),
    )


def shared_fields(rest: Mapping[str, msgspec.Raw], target: str, tools: Sequence[Tool] = ()) -> dict[str, msgspec.Raw]:
    """Return the fields of a body that mean the same to another provider, as the body of `target` has them.

    `tools` are those of the request: whether one is to be called is said only where it is defined.
    """
    name = get(target).name
    return request_fields.spelled(rest, name, [tool.name for tool in tools if crosses(tool, name)])


def answer_limit(rest: Mapping[str, msgspec.Raw]) -> int | None:
    """Return how many tokens a request allows its answer, under whichever name; `None` where it does not say."""
    stated = settings_of(rest).get("max_tokens")
    value = any_decoder.decode(stated) if stated is not None else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def crosses(tool: Tool, target: str) -> bool:
    """Whether a tool can be defined for this format: what only Google runs, such as its search, is for Gemini alone."""
    return tool.format != "gemini" or target == "gemini" or tool.raw is None or gemini_tools.is_declaration(tool.raw)


def _carried(request: Request, target: Format) -> dict[str, msgspec.Raw]:
    rest = shared_fields(request.rest, target.name, request.tools)
    if target.spec.default_limit:
        rest.setdefault(target.spec.limit_field(), msgspec.Raw(encode(target.spec.default_limit)))
    return rest


def repair(messages: Any, format: str | None = None) -> RepairResult:
    """Mend the messages of a request or a message list, and say what was mended; what was passed in stays as it is."""
    request = read_request(messages, format=format)
    target = get(request.format)
    mended = mending.repair(request.messages, target.rules)
    native = [decode(any_decoder, raw) for message in mended.messages for raw in target.render_message(message)]
    return RepairResult(native, mended.repairs, request.format)


def validate(request: Any, format: str | None = None) -> list[Problem]:
    """What the provider would refuse in a request body or message list; nothing when it is sound."""
    body = to_bytes(request)
    return get(format or detect_body(body)).validate(decode(any_decoder, body))
