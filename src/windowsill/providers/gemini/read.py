"""Reads the contents, parts and tools of Gemini's `generateContent`, each with the exact bytes it came as.

A call without an id, which is the usual case, gets one made of its tool's name and its place among the calls of that
tool; a response without one gets the same, so that name and order tie them together. `link` does that over several
contents: streams write one content for each call, and responses may lack the id that their call has. Only the neutral
ids change; the bytes stay as they came.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from windowsill.errors import FormatError
from windowsill.history.repair import is_blank, numbered_id, numbered_name
from windowsill.messages import (
    Block,
    Document,
    Image,
    Message,
    Reasoning,
    Role,
    Text,
    Tool,
    ToolResult,
    ToolUse,
    Unknown,
)
from windowsill.providers.base import Linker, role_of
from windowsill.providers.gemini import BESIDE, ROLES, SPEC, camel
from windowsill.providers.wire import (
    UNREADABLE,
    Fields,
    any_decoder,
    decode,
    encode,
    fields_decoder,
    items_decoder,
    text_decoder,
    text_or_json,
)

WRAPPED = frozenset({"output", "result", "error"})
"""Fields of which one alone holds the text of a response; the API documents the first and the last."""

Seen = dict[str, int]
"""Tool -> the number of its last call, or response, in this content."""


class _Content(msgspec.Struct, gc=False):
    role: str | None = None
    parts: list[Raw] | None = None


class _Call(msgspec.Struct, gc=False):
    name: str
    id: str | None = None
    args: Raw = Raw(b"{}")


class _Response(msgspec.Struct, gc=False):
    name: str
    id: str | None = None
    response: Fields | None = None
    parts: list[Raw] | None = None


class _Output(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    output: str | UnsetType = UNSET
    result: str | UnsetType = UNSET


class _Answer(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    name: str
    response: _Output
    id: str | None = None


class _Part(msgspec.Struct, forbid_unknown_fields=True, rename="camel", gc=False):
    """A part as nearly all are; others, and what is spelled in another way, take the longer way."""

    text: str | None = None
    function_call: _Call | None = None
    function_response: _Answer | None = None
    thought_signature: str | None = None


_part = msgspec.json.Decoder(_Part)
_content = msgspec.json.Decoder(_Content)
_call = msgspec.json.Decoder(_Call)
_response = msgspec.json.Decoder(_Response)
_flag = msgspec.json.Decoder(bool | None)


def read_content(raw: bytes, where: str) -> Message:
    """Read one content; text alone is the user's."""
    if raw.lstrip()[:1] == b'"':
        raw = b'{"role":"user","parts":[' + _text_part(raw) + b"]}"
    wire = decode(_content, raw, where)
    role = role_of(wire.role or "user", ROLES, SPEC.name, where)
    if wire.parts is None and (wire.role is None or "content" in decode(fields_decoder, raw, where)):
        raise FormatError(
            "a content without parts", where=where, remedy="give it `parts`; name the format if it is another one"
        )
    return Message(role=role, blocks=_read_parts(wire.parts or (), role, where), format=SPEC.name, raw=raw)


def read_system(raw: bytes) -> Message:
    """Read a system prompt: text, parts, or a content."""
    where = SPEC.system_field
    start = raw.lstrip()[:1]
    if start == b'"':
        raw = b'{"parts":[' + _text_part(raw) + b"]}"
    elif start == b"[":
        items = [bytes(item) for item in decode(items_decoder, raw, where)]
        raw = b'{"parts":[' + b",".join(_text_part(item) if item[:1] == b'"' else item for item in items) + b"]}"
    elif "parts" not in decode(fields_decoder, raw, where):
        raw = b'{"parts":[' + raw + b"]}"
    parts = decode(_content, raw, where).parts or ()
    return Message(role="system", blocks=_read_parts(parts, "system", where), format=SPEC.name, raw=raw)


def spoken_content(content: Raw | None) -> bytes:
    """Return the content of a response under the model's role, which it may leave out and a request may not."""
    raw = b"{}" if content is None else bytes(content)
    fields = camel(decode(fields_decoder, raw, "candidates[0].content"))
    if "role" in fields and "parts" in fields:
        return raw
    return encode({"role": "model", "parts": [], **fields})


def _text_part(raw: bytes) -> bytes:
    return b'{"text":' + raw + b"}"


def _read_parts(parts: Sequence[Raw], role: Role, where: str) -> tuple[Block, ...]:
    calls: Seen = {}
    answers: Seen = {}
    try:
        return tuple([_read_part(bytes(raw), role, calls, answers, "") for raw in parts])
    except FormatError:
        place = f"{where}.parts".removeprefix(".")
        return tuple(_read_part(bytes(raw), role, {}, {}, f"{place}[{index}]") for index, raw in enumerate(parts))


def _read_part(raw: bytes, role: Role, calls: Seen, answers: Seen, where: str) -> Block:
    try:
        wire = _part.decode(raw)
    except UNREADABLE:
        return _read_rare(raw, role, calls, answers, where)
    if wire.function_call is not None and wire.function_response is None:
        return _tool_use(wire.function_call, raw, calls, wire.thought_signature)
    if (answer := wire.function_response) is not None:
        said = answer.response
        words = said.output if said.result is UNSET else said.result if said.output is UNSET else UNSET
        if words is not UNSET:
            return _tool_result(answer, words, raw, answers)
    elif wire.text is not None:
        return _words(wire.text, raw, wire.thought_signature)
    return _read_rare(raw, role, calls, answers, where)


def _read_rare(raw: bytes, role: Role, calls: Seen, answers: Seen, where: str) -> Block:
    fields = camel(decode(fields_decoder, raw, where))
    if "functionResponse" in fields:
        wire = decode(_response, fields["functionResponse"], f"{where}.functionResponse")
        words, failed = _output(wire.response or {}, where)
        media = []
        for index, part in enumerate(wire.parts or ()):
            place = f"{where}.functionResponse.parts[{index}]"
            media.append(_other(camel(decode(fields_decoder, part, place)), bytes(part), "user", place))
        return _tool_result(wire, words, raw, answers, media, failed=failed)
    if "functionCall" not in fields:
        return _other(fields, raw, role, where)
    call = decode(_call, fields["functionCall"], f"{where}.functionCall")
    return _tool_use(call, raw, calls, _signature(fields, where))


def _tool_use(wire: _Call, raw: bytes, seen: Seen, signature: str | None) -> ToolUse:
    arguments = str(wire.args, "utf-8")
    return ToolUse(
        id=_id(wire.id, wire.name, seen),
        name=wire.name,
        arguments="{}" if arguments == "null" else arguments,
        signature=signature,
        raw=raw,
    )


def _tool_result(
    wire: _Response | _Answer, words: str, raw: bytes, seen: Seen, media: Sequence[Block] = (), *, failed: bool = False
) -> ToolResult:
    # An empty output is a whole response: there is nothing in it to fill or to leave out.
    content = () if is_blank(words) else (Text(text=words),)
    return ToolResult(
        tool_use_id=_id(wire.id, wire.name, seen),
        content=(*content, *media) if media else content,
        is_error=failed,
        name=wire.name,
        raw=raw,
    )


def _output(response: Fields, where: str) -> tuple[str, bool]:
    """Return what a tool said, and whether it failed: the one documented field, or the whole object as JSON."""
    if not response:
        return "", False
    only = next(iter(response))
    if len(response) > 1 or only not in WRAPPED:
        # The slices are of JSON that was read: they can be put together as they are.
        inner = (msgspec.json.encode(key).decode() + ":" + bytes(value).decode() for key, value in response.items())
        return "{" + ",".join(inner) + "}", False
    try:
        return text_or_json(response[only]), only == "error"
    except UNREADABLE:
        return decode(text_decoder, response[only], f"{where}.functionResponse.response"), only == "error"


def _id(id: str | None, name: str, seen: Seen) -> str:
    number = seen[name] = seen.get(name, -1) + 1
    return id or numbered_id(name, number)


def _other(fields: Fields, raw: bytes, role: Role, where: str) -> Block:
    if "text" in fields:
        text = decode(text_decoder, fields["text"], f"{where}.text")
        thought = "thought" in fields and decode(_flag, fields["thought"], f"{where}.thought")
        return _words(text, raw, _signature(fields, where), thought=bool(thought))
    if not fields:
        return Text(text="", raw=raw)
    # What a model drew or recorded is kept as it came: pictures and files as such are the user's.
    if role == "user" and ("inlineData" in fields or "fileData" in fields):
        return _media(fields, raw, where)
    kinds = [key for key in fields if key not in BESIDE] or list(fields)
    return Unknown(type=kinds[0], raw=raw)


def _words(text: str, raw: bytes, signature: str | None, *, thought: bool = False) -> Text | Reasoning:
    # A stream ends with a signature on empty text: that is proof, not words.
    if (thought and text) or (signature is not None and is_blank(text)):
        return Reasoning(text=text, signature=signature, raw=raw)
    return Text(text=text, raw=raw)


def _media(fields: Fields, raw: bytes, where: str) -> Image | Document:
    key = "inlineData" if "inlineData" in fields else "fileData"
    inner = camel(decode(fields_decoder, fields[key], f"{where}.{key}"))
    wanted = ("mimeType", "data", "fileUri", "displayName")
    found = {name: decode(text_decoder, inner[name], f"{where}.{key}.{name}") for name in wanted if name in inner}
    if "data" not in found and "fileUri" not in found:
        raise FormatError(f"{key} without its data", where=f"{where}.{key}", remedy="give it `data` or `fileUri`")
    media_type, data, url = found.get("mimeType"), found.get("data"), found.get("fileUri")
    if media_type is not None and media_type.startswith("image/"):
        return Image(media_type=media_type, data=data, url=url, raw=raw)
    return Document(media_type=media_type, data=data, url=url, title=found.get("displayName"), raw=raw)


def _signature(fields: Fields, where: str) -> str | None:
    value = fields.get("thoughtSignature")
    return None if value is None else decode(text_decoder, value, f"{where}.thoughtSignature")


class TurnLinker(Linker):
    """Ties the contents of a conversation as they come. A turn begins where the model begins to speak."""

    def __init__(self) -> None:
        self._before = ""
        self._begin()

    def _begin(self) -> None:
        self._by_id: dict[str, list[int]] = {}
        """The numbers of the calls with ids of their own that may wait, oldest first."""
        self._by_name: dict[str, list[int]] = {}
        """The numbers of all calls that may wait, by their tool."""
        self._calls: list[ToolUse] = []
        self._answered: set[int] = set()
        self._seen: Seen = {}

    def link(self, message: Message) -> Message:
        """Return the message with the ids that it has in its turn."""
        if message.role == "assistant" != self._before:
            self._begin()
        self._before = message.role
        blocks = [
            self._call(block)
            if isinstance(block, ToolUse)
            else self._answer(block)
            if isinstance(block, ToolResult)
            else block
            for block in message.blocks
        ]
        same = all(map(is_, blocks, message.blocks))
        return message if same else msgspec.structs.replace(message, blocks=tuple(blocks))

    def _call(self, block: ToolUse) -> ToolUse:
        """Return the call under the number it has in its turn, unless it has an id of its own."""
        number = self._seen[block.name] = self._seen.get(block.name, -1) + 1
        id = numbered_id(block.name, number)
        if block.id != id:
            if numbered_name(block.id) is not None:
                block = msgspec.structs.replace(block, id=id)
            else:
                self._by_id.setdefault(block.id, []).append(len(self._calls))
        self._by_name.setdefault(block.name, []).append(len(self._calls))
        self._calls.append(block)
        return block

    def _answer(self, block: ToolResult) -> ToolResult:
        """Return the result under the id of the first open call it can answer."""
        name = numbered_name(block.tool_use_id)
        waiting = self._by_id.get(block.tool_use_id) if name is None else self._by_name.get(name)
        while waiting:
            number = waiting.pop(0)
            if number not in self._answered:
                self._answered.add(number)
                id = self._calls[number].id
                return block if id == block.tool_use_id else msgspec.structs.replace(block, tool_use_id=id)
        return block


# What stands under `tools`: function declarations one by one, everything else as it came


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
            name=wire.name, description=wire.description or "", schema=_schema(fields, where), format=SPEC.name, raw=raw
        )
    items = decode(items_decoder, fields[DECLARED], f"{where}.{DECLARED}") if DECLARED in fields else []
    if len(items) == len(fields) == 1:
        return read_tool(bytes(items[0]), f"{where}.{DECLARED}[0]")
    names = [decode(_declaration, item, where).name for item in items] or list(fields)
    return Tool(name=", ".join(names), schema={}, format=SPEC.name, raw=raw)


def split_tool(tool: Tool, where: str) -> tuple[Tool, ...]:
    """Return the declarations of an entry, each as a tool, and what else the entry holds; any other tool alone."""
    if tool.format != SPEC.name or tool.raw is None or is_declaration(tool.raw):
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
