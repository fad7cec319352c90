"""A tool definition with another schema, in the provider's own words where it came in them."""

from __future__ import annotations

import msgspec

from windowsill.formats import DIALECTS
from windowsill.messages import NEUTRAL, Tool
from windowsill.state.projection.paths import Schema

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_FLAT = {"anthropic": "input_schema", "responses": "parameters", "gemini": "parametersJsonSchema"}
_GEMINI_SCHEMAS = frozenset({"parameters", "parameters_json_schema"})
"""What `parametersJsonSchema` takes the place of: the first takes only a part of JSON Schema, and both are too many."""


def with_schema(tool: Tool, schema: Schema) -> Tool:
    """The tool with this schema; every other field of its definition stays as it came."""
    changed = msgspec.structs.replace(tool, schema=schema)
    if tool.raw is None:
        return changed
    fields = _fields.decode(tool.raw)
    value = msgspec.Raw(msgspec.json.encode(schema))
    if tool.format in DIALECTS and "function" in fields:
        function = {**_fields.decode(fields["function"]), "parameters": value}
        fields["function"] = msgspec.Raw(msgspec.json.encode(function))
    elif tool.format in _FLAT:
        if tool.format == "gemini":
            fields = {key: each for key, each in fields.items() if key not in _GEMINI_SCHEMAS}
        fields[_FLAT[tool.format]] = value
    else:
        return msgspec.structs.replace(changed, format=NEUTRAL, raw=None)
    return msgspec.structs.replace(changed, raw=msgspec.json.encode(fields))
