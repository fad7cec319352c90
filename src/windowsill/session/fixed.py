"""The parts of a request that are never cut: system prompt, tool definitions, further fields."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from windowsill import formats
from windowsill.messages import Message, Tool
from windowsill.tokens import Scale, Weight


class Fixed(msgspec.Struct, frozen=True):
    """These parts, read and weighed."""

    system: Message | None
    tools: tuple[Tool, ...]
    rest: dict[str, msgspec.Raw]
    system_weight: Weight
    tools_weight: Weight
    blobs: dict[str, tuple[str, bytes]]
    """Name of the part -> (blob id, bytes), so that the request can be built again."""


def key_of(system: Any, tools: Sequence[Any], rest: Mapping[str, Any], format: str) -> object:
    """What tells two sets of parts from each other."""
    return format, _encoded(system), tuple(_encoded(tool) for tool in tools), _encoded(dict(rest))


def read_fixed(
    system: Any, tools: Sequence[Any], rest: Mapping[str, Any], format: formats.Format, scale: Scale
) -> Fixed:
    """Read and weigh the parts, in whatever form they were given."""
    prompt = system if system is None or isinstance(system, Message) else format.read_system(system)
    read = formats.read_tools(tools)
    fields = {name: msgspec.Raw(_encoded(value)) for name, value in rest.items()}
    layout = formats.tool_layout(tools, format.name)
    if layout is not None:
        fields.setdefault("tools", layout)
    parts = {"system": prompt, "tools": read, "rest": fields}
    encoded = {name: msgspec.json.encode(part) for name, part in parts.items() if part}
    return Fixed(
        system=prompt,
        tools=read,
        rest=fields,
        system_weight=scale.weigh(prompt) if prompt is not None else Weight(),
        tools_weight=scale.weigh_tools(read),
        blobs={name: (hashlib.sha256(data).hexdigest()[:32], data) for name, data in encoded.items()},
    )


def _encoded(value: Any) -> bytes:
    if isinstance(value, (Message, Tool)):
        return value.raw if value.raw is not None else msgspec.json.encode(value)
    return formats.encode(value)
