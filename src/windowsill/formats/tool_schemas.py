"""A tool definition with another schema, in the provider's own words where it came in them."""

from __future__ import annotations

from typing import Any

import msgspec

from windowsill.formats.openai.read import DIALECTS
from windowsill.formats.registry import get, names
from windowsill.formats.wire import encode, fields_decoder
from windowsill.messages import NEUTRAL, Tool

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
