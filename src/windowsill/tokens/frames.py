"""The tokens a provider puts around messages, calls and tool definitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from windowsill.errors import InputError
from windowsill.messages import Tool
from windowsill.tokens.counters import Counter

Definitions: TypeAlias = Literal["json", "functions"]


class Framing(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's framing, in tokens."""

    name: str
    message: int
    """Around each message, its role included."""
    reply: int
    """Once for each request: the start of the answer."""
    call: int
    """Around a tool call."""
    result: int
    """Around a tool result."""
    argument: int = 0
    """Around each argument of a call, its name included; 0 where the arguments are counted as the JSON they are."""
    ids: bool = True
    """True where ids of calls are counted; they are not where `call` and `result` were measured with them inside."""
    reasoning: float = 1.0
    """Billed tokens for each token of signed reasoning that is shown."""
    definitions: Definitions = "json"
    """The way tools are counted: as JSON, or by OpenAI's published rule for functions."""
    tool: int = 0
    """Around each tool definition."""
    tools: int = 0
    """Once when there are tools."""


# For Anthropic, `call`, `result`, `argument` and `reasoning` come from a fit to 4,300 recorded steps of Claude 4.5 and
# 4.6 (growth of the reported prompt against the messages in between; the tenth that did not fit was left out): a call
# with its result costs 37 to 58 tokens, its ids included, and each argument 16 to 24 beyond its value. Reasoning costs
# 1.4 times what is shown with 4.5 and 2 times with 4.6; the lower stands here, so 4.6 is undercounted there at first.
# OpenAI publishes three tokens for each message, one for its role, and one for a name besides the name itself.
# The other numbers without a published rule (calls and results elsewhere, Gemini, generic) are assumptions.
_FRAMINGS = (
    Framing(
        name="anthropic",
        message=4,
        reply=3,
        call=20,
        result=20,
        argument=20,
        ids=False,
        reasoning=1.4,
        tools=346,
        tool=8,
    ),
    Framing(name="gemini", message=4, reply=2, call=8, result=8, tool=8),
    Framing(name="generic", message=5, reply=3, call=10, result=6, tool=12),
    Framing(name="openai", message=4, reply=3, call=6, result=3, definitions="functions", tool=7, tools=12),
    # gpt-4 and gpt-3.5: the same rule, three tokens more for each function.
    Framing(name="openai-legacy", message=4, reply=3, call=6, result=3, definitions="functions", tool=10, tools=12),
)

FRAMINGS: dict[str, Framing] = {each.name: each for each in _FRAMINGS}


def framing(name: str) -> Framing:
    """Return the framing with this name."""
    try:
        return FRAMINGS[name]
    except KeyError:
        raise InputError(f"there is no framing {name!r}", remedy=f"use one of {', '.join(sorted(FRAMINGS))}") from None


PROPERTIES = 3
"""Once for each object that has properties."""

PROPERTY = 3
"""Around each property."""

ENUM = -3
"""Once for each list of allowed values."""

ENUM_VALUE = 3
"""Around each allowed value."""

DEEPEST = 32
"""Nesting at which a schema is counted as JSON instead: no real schema goes there, a hostile one might."""


def json_text(tool: Tool) -> str:
    """Encode a definition as compact JSON, the way providers without a published rule show it to the model."""
    fields = {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
    return msgspec.json.encode(fields).decode()


def function_tokens(tool: Tool, counter: Counter) -> int:
    """Count the tokens of one function by the published rule, without what the framing adds for each tool."""
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
