"""Counting tool definitions: as the JSON they are, or by OpenAI's published rule for functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from windowsill.messages import Tool
from windowsill.tokens.counters import Counter

PROPERTIES = 3
"""Once for each object that has properties."""

PROPERTY = 3
"""For each property."""

ENUM = -3
"""Once for each list of allowed values."""

ENUM_VALUE = 3
"""For each allowed value."""

DEEPEST = 32
"""Nesting at which a schema is counted as JSON instead: no real schema goes there, a hostile one might."""


def json_text(tool: Tool) -> str:
    """A definition as compact JSON, the way providers without a published rule show it to the model."""
    fields = {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
    return msgspec.json.encode(fields).decode()


def function_tokens(tool: Tool, counter: Counter) -> int:
    """Tokens of one function by the published rule, without what the framing adds for each tool."""
    line = f"{tool.name}:{tool.description.removesuffix('.')}"
    return counter.count(line) + _object_tokens(tool.schema, counter, 0)


def _object_tokens(schema: Mapping[str, Any], counter: Counter, depth: int) -> int:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return 0
    if depth >= DEEPEST:
        return counter.count(msgspec.json.encode(properties).decode())
    return PROPERTIES + sum(_property_tokens(name, value, counter, depth) for name, value in properties.items())


def _property_tokens(name: object, value: object, counter: Counter, depth: int) -> int:
    if not isinstance(value, Mapping):
        return PROPERTY + counter.count(f"{name}:{value}")
    tokens = PROPERTY
    values = value.get("enum")
    if isinstance(values, list | tuple):
        tokens += ENUM + sum(ENUM_VALUE + counter.count(str(each)) for each in values)
    description = str(value.get("description", "")).removesuffix(".")
    tokens += counter.count(f"{name}:{value.get('type', 'any')}:{description}")
    # The published rule stops at the first level; what is nested is sent as well, so it is counted the same way.
    tokens += _object_tokens(value, counter, depth + 1)
    items = value.get("items")
    if isinstance(items, Mapping):
        tokens += _property_tokens("items", items, counter, depth + 1) if depth < DEEPEST else 0
    return tokens
