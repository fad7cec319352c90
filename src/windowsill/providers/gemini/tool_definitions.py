"""Reads and joins what stands under `tools`: function declarations one by one, everything else as it came."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw

from windowsill.messages import Tool
from windowsill.providers.gemini import SPEC, camel
from windowsill.providers.wire import any_decoder, decode, encode, fields_decoder, items_decoder

NAME = SPEC.name

OTHER_SCHEMAS = frozenset({"parameters", "parameters_json_schema"})
"""The other names for the schema of a function."""

DECLARED = "functionDeclarations"
_SCHEMAS = frozenset({"properties", "$defs", "defs", "patternProperties"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_ONE = frozenset({"items", "additionalProperties"})


class _Declaration(msgspec.Struct, gc=False):
    name: str
    description: str | None = None


_declaration = msgspec.json.Decoder(_Declaration)


def read_tools(raw: bytes | Raw, where: str) -> tuple[Tool, ...]:
    """Read one tool for each function declaration of a body's `tools`. What else stands there only Google can run."""
    return tuple(
        read_tool(each, f"{where}[{index}].{DECLARED}[{number}]")
        for index, entry in enumerate(_entries_of(raw, where))
        for number, each in enumerate(_apart(entry, f"{where}[{index}]")[0])
    )


def _entries_of(raw: bytes | Raw, where: str) -> list[bytes]:
    """Return the entries of `tools`; the API takes a single one without its list."""
    value = bytes(raw)
    return [value] if value[:1] == b"{" else [bytes(each) for each in decode(items_decoder, raw, where)]


def read_tool(raw: bytes, where: str) -> Tool:
    """Read a function declaration; or an entry of `tools`, which goes out as it came when it is not just one."""
    fields = camel(decode(fields_decoder, raw, where))
    if "name" in fields:
        wire = decode(_declaration, raw, where)
        return Tool(
            name=wire.name, description=wire.description or "", schema=_schema(fields, where), format=NAME, raw=raw
        )
    items = decode(items_decoder, fields[DECLARED], f"{where}.{DECLARED}") if DECLARED in fields else []
    if len(items) == len(fields) == 1:
        return read_tool(bytes(items[0]), f"{where}.{DECLARED}[0]")
    names = [decode(_declaration, item, where).name for item in items] or list(fields)
    return Tool(name=", ".join(names), schema={}, format=NAME, raw=raw)


def split_tool(tool: Tool, where: str) -> tuple[Tool, ...]:
    """Return the declarations of an entry, each as a tool, and what else the entry holds; any other tool alone."""
    if tool.format != NAME or tool.raw is None or is_declaration(tool.raw):
        return (tool,)
    declared, rest = _apart(tool.raw, where)
    if not declared:
        return (tool,)
    return tuple(read_tool(each, where) for each in (*declared, *rest))


def is_declaration(raw: bytes) -> bool:
    """Tell whether it declares one function, rather than being an entry of `tools`."""
    return "name" in decode(fields_decoder, raw, "tools")


def _apart(entry: bytes, where: str) -> tuple[list[bytes], list[bytes]]:
    """Return the declarations of an entry, and the entry without them unless nothing is left."""
    fields = decode(fields_decoder, entry, where)
    declared = camel(fields).get(DECLARED)
    if declared is None:
        return [], [entry]
    rest = {key: value for key, value in fields.items() if DECLARED not in camel({key: value})}
    items = decode(items_decoder, declared, f"{where}.{DECLARED}")
    return [bytes(item) for item in items], [encode(rest)] if rest else []


def join_tools(tools: Sequence[bytes], layout: Raw | None) -> bytes | None:
    """Return the value of `tools`; `None` when there are none.

    `layout` is that value as it came. With the same tools it goes out again as it is; with others, the declarations
    stand in one entry, and what only Google can run comes after them.
    """
    kept = [] if layout is None else _entries_of(layout, "tools")
    taken = [_apart(entry, "tools") for entry in kept]
    declared = [each for declarations, _ in taken for each in declarations]
    everything = [each for pair in taken for part in pair for each in part]
    if layout is not None and list(tools) in (declared, everything):
        return bytes(layout)
    others = [each for _, rest in taken for each in rest if each not in tools]
    functions = [tool for tool in tools if is_declaration(tool)]
    entries = [b'{"' + DECLARED.encode() + b'":[' + b",".join(functions) + b"]}"] if functions else []
    entries += [tool for tool in (*tools, *others) if tool not in functions]
    return b"[" + b",".join(entries) + b"]" if entries else None


def layout_of(definitions: Sequence[bytes]) -> Raw | None:
    """Return the definitions as one value, where that says more than the tools in them."""
    if not definitions or any(is_declaration(entry) for entry in definitions):
        return None
    value = b"[" + b",".join(definitions) + b"]"
    tools = [each for entry in definitions for part in _apart(entry, "tools") for each in part]
    return Raw(value) if value != join_tools(tools, None) else None


def _schema(fields: dict[str, Raw], where: str) -> dict[str, Any]:
    """Return the parameters as JSON Schema; Gemini's own dialect spells the types in capitals."""
    if "parametersJsonSchema" in fields:
        value = decode(any_decoder, fields["parametersJsonSchema"], where)
    else:
        value = _standard(decode(any_decoder, fields.get("parameters", Raw(b"{}")), where))
    return value if isinstance(value, dict) else {}


def _standard(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {}
    for key, each in value.items():
        if key == "type" and isinstance(each, str):
            found[key] = each.lower()
        elif key in _SCHEMAS and isinstance(each, dict):
            found[key] = {name: _standard(inner) for name, inner in each.items()}
        elif key in _LISTS and isinstance(each, list):
            found[key] = [_standard(inner) for inner in each]
        elif key in _ONE:
            found[key] = _standard(each)
        else:
            found[key] = each
    if found.pop("nullable", None) is True and isinstance(found.get("type"), str):
        found["type"] = [found["type"], "null"]
    return found
