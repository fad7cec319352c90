"""Reads what stands under `tools`: function declarations one by one, everything else as it came."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from windowsill.formats.gemini.spelling import camel
from windowsill.formats.wire import any_decoder, decode, encode, fields_decoder, items_decoder
from windowsill.messages import Tool

NAME = "gemini"

DECLARED = "functionDeclarations"
_SCHEMAS = frozenset({"properties", "$defs", "defs", "patternProperties"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_ONE = frozenset({"items", "additionalProperties"})


class _Declaration(msgspec.Struct, gc=False):
    name: str
    description: str | None = None


_declaration = msgspec.json.Decoder(_Declaration)


def read_tools(raw: bytes | Raw, where: str) -> tuple[tuple[Tool, ...], list[bytes]]:
    """One tool for each function declaration, and the other entries, such as `googleSearch`, without declarations."""
    tools: list[Tool] = []
    others: list[bytes] = []
    entries = decode(items_decoder, raw, where)
    for index, entry in enumerate(entries):
        place = f"{where}[{index}]"
        fields = decode(fields_decoder, entry, place)
        declared = camel(fields).get(DECLARED)
        if declared is None:
            others.append(bytes(entry))
            continue
        items = decode(items_decoder, declared, f"{place}.{DECLARED}")
        tools += [read_tool(bytes(item), f"{place}.{DECLARED}[{number}]") for number, item in enumerate(items)]
        if rest := {key: value for key, value in fields.items() if DECLARED not in camel({key: value})}:
            others.append(encode(rest))
    return tuple(tools), others


def read_tool(raw: bytes, where: str) -> Tool:
    """A function declaration; or an entry of `tools`, which goes out again as it came when it is not just one."""
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


def _schema(fields: dict[str, Raw], where: str) -> dict[str, Any]:
    """The parameters as JSON Schema; Gemini's own dialect spells the types in capitals."""
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
