"""Which kinds of items there are, and which of them belong together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec
from msgspec import Raw

from windowsill.errors import FormatError
from windowsill.history.repair import rules
from windowsill.messages import (
    Block,
    Document,
    Image,
    Message,
    Reasoning,
    Reply,
    Request,
    Role,
    Text,
    Tool,
    ToolResult,
    ToolUse,
    Unknown,
    Usage,
)
from windowsill.providers.convert import (
    FAILED,
    data_url,
    image_url,
    in_words,
    is_web,
    result_text,
    safe_name,
    split_data_url,
)
from windowsill.providers.wire import (
    UNREADABLE,
    any_decoder,
    decode,
    encode,
    fields_decoder,
    items_decoder,
    join_body,
    read_each,
    read_items,
    take_out,
    text_decoder,
)

FUNCTION = "function_call"
CUSTOM = "custom_tool_call"
COMPUTER = "computer_call"
LOCAL_SHELL = "local_shell_call"
SHELL = "shell_call"
PATCH = "apply_patch_call"

CALLS = frozenset({FUNCTION, CUSTOM, COMPUTER, LOCAL_SHELL, SHELL, PATCH})
"""Calls that the program answers."""

SUFFIX = "_output"
OUTPUTS = {call + SUFFIX: call for call in CALLS}
"""The items that answer them; an answer to a call of another kind is refused."""

SAID_BY_PROGRAM = frozenset(
    {"mcp_approval_response", "compaction_trigger", "configuration_update", "additional_tools", *OUTPUTS}
)
"""Items beside messages that the program writes; all others come from the provider."""

SAID_BY_PROVIDER = frozenset(
    {
        "reasoning",
        "compaction",
        "item_reference",
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "tool_search_call",
        "tool_search_output",
        "mcp_list_tools",
        "mcp_approval_request",
        "mcp_call",
        "program",
        "program_output",
        *CALLS,
    }
)

ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}

INPUT_PARTS = frozenset({"input_text", "input_image", "input_file"})
OUTPUT_PARTS = frozenset({"output_text", "refusal"})
PARTS = {
    "user": INPUT_PARTS | {"input_audio"},
    "system": INPUT_PARTS,
    "developer": INPUT_PARTS,
    "assistant": OUTPUT_PARTS,
}
"""What each role may say."""

KNOWN_PARTS = frozenset().union(*PARTS.values())


def author(type: str) -> Role:
    """Whose an item is that is no message."""
    return "user" if type in SAID_BY_PROGRAM else "assistant"


class _Part(msgspec.Struct, gc=False):
    type: str
    text: str | None = None
    image_url: str | None = None
    detail: str | None = None
    file_id: str | None = None
    file_data: str | None = None
    file_url: str | None = None
    filename: str | None = None


class _Written(msgspec.Struct, tag_field="type", tag="input_text", forbid_unknown_fields=True, gc=False):
    text: str


class _Spoken(msgspec.Struct, tag_field="type", tag="output_text", forbid_unknown_fields=True, gc=False):
    text: str
    annotations: Raw = Raw(b"[]")
    logprobs: Raw = Raw(b"[]")


class _PartType(msgspec.Struct, gc=False):
    type: str


_parts_text = msgspec.json.Decoder(_Written | _Spoken)
"""What nearly every part is; all others, and those with a field more, take the longer way."""
_part = msgspec.json.Decoder(_Part)
_parts_type = msgspec.json.Decoder(_PartType)

TEXTS = frozenset({"input_text", "output_text"})
KNOWN = TEXTS | {"input_image", "input_file", "computer_screenshot"}


def read_parts(content: str | list[Raw] | None, where: str, field: str) -> tuple[Block, ...]:
    """Text, or a list of parts."""
    if isinstance(content, str):
        return (Text(text=content),)
    blocks: list[Block] = []
    for index, raw in enumerate(content or ()):
        own = bytes(raw)
        try:
            blocks.append(Text(text=_parts_text.decode(own).text, raw=own))
        except UNREADABLE:
            blocks.append(read_part(raw, f"{where}.{field}[{index}]".removeprefix(".")))
    return tuple(blocks)


def read_part(raw: Raw, where: str) -> Block:
    """One part; of a kind that is not known, its bytes."""
    own = bytes(raw)
    try:
        wire = _part.decode(raw)
    except UNREADABLE:
        kind = decode(_parts_type, raw, where).type
        if kind not in KNOWN:
            return Unknown(type=kind, raw=own)
        wire = decode(_part, raw, where)
    if wire.type not in KNOWN:
        return Unknown(type=wire.type, raw=own)
    if wire.type in TEXTS:
        if wire.text is None:
            raise FormatError(f"a part of type {wire.type} without text", where=where, remedy="leave it out")
        return Text(text=wire.text, raw=own)
    return _document(wire, own) if wire.type == "input_file" else _image(wire, own)


def _image(wire: _Part, raw: bytes) -> Image:
    inline = split_data_url(wire.image_url) if wire.image_url else None
    if inline is None:
        return Image(url=wire.image_url or wire.file_id, detail=wire.detail, raw=raw)
    return Image(media_type=inline[0], data=inline[1], detail=wire.detail, raw=raw)


def _document(wire: _Part, raw: bytes) -> Document:
    inline = split_data_url(wire.file_data) if wire.file_data else None
    media_type, data = inline if inline is not None else (None, wire.file_data)
    return Document(media_type=media_type, data=data, url=wire.file_url or wire.file_id, title=wire.filename, raw=raw)


def build_parts(blocks: Iterable[Block], *, native: bool, spoken: bool = False) -> list[Any]:
    """Parts for blocks: their own bytes where they are of this format; `spoken` by the assistant."""
    return [_build(block, native=native, spoken=spoken) for block in blocks]


def _build(block: Block, *, native: bool, spoken: bool) -> Any:
    if native and block.raw is not None and isinstance(block, Text | Image | Document | Unknown):
        return Raw(block.raw)
    if spoken:
        text = block.text if isinstance(block, Text) else in_words(block)
        return {"type": "output_text", "text": text, "annotations": []}
    if isinstance(block, Image) and (url := image_url(block)) is not None:
        return {"type": "input_image", "image_url": url, "detail": block.detail or "auto"}
    if isinstance(block, Document) and block.data is not None:
        file = data_url(block.media_type, block.data)
        return {"type": "input_file", "filename": block.title or "document", "file_data": file}
    if isinstance(block, Document) and is_web(block.url):
        return {"type": "input_file", "file_url": block.url}
    return {"type": "input_text", "text": block.text if isinstance(block, Text) else in_words(block)}


def text_or_parts(blocks: Iterable[Block], *, native: bool) -> Any:
    """Plain text where that says it all, else parts."""
    found = list(blocks)
    if not found:
        return ""
    if len(found) == 1 and isinstance(found[0], Text) and (found[0].raw is None or not native):
        return found[0].text
    return build_parts(found, native=native)


ABSENT = Raw(b"null")

BLANK = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
"""One pixel: a screenshot that was taken away must still be a picture."""


class _Printed(msgspec.Struct, gc=False):
    stdout: str = ""
    stderr: str = ""


_printed = msgspec.json.Decoder(list[_Printed])


def read_call(kind: str, id: str | None, name: str | None, said: Raw, where: str) -> ToolUse:
    """A call; `said` are its arguments, or the action it asks for."""
    name = name or (None if kind in {FUNCTION, CUSTOM} else kind.removesuffix("_call"))
    if id is None or name is None:
        raise FormatError(f"a {kind} without call_id and name", where=where, remedy="give it both, or leave it out")
    text = text_decoder.decode(said) if _first(said) == b'"' else str(said, "utf-8")
    if said is ABSENT:
        text = "" if kind == CUSTOM else "{}"
    return ToolUse(id=id, name=name, arguments=text, type="" if kind == FUNCTION else kind)


def read_output(kind: str, id: str | None, output: Raw, status: str | None, where: str) -> ToolResult | None:
    """The answer to a call of this kind; `None` when it does not say to which."""
    if id is None:
        return None
    return ToolResult(
        tool_use_id=id,
        content=_content(kind, output, where),
        is_error=kind == PATCH and status == "failed",
        type="" if kind == FUNCTION else kind,
    )


def _content(kind: str, output: Raw, where: str) -> tuple[Block, ...]:
    start = _first(output)
    place = f"{where}.output".removeprefix(".")
    if start == b"n":
        return ()
    if start == b'"':
        return (Text(text=decode(text_decoder, output, place)),)
    if kind == COMPUTER:
        return (read_part(output, place),)
    if kind == SHELL:
        printed = decode(_printed, output, place)
        return tuple(Text(text="\n".join(filter(None, (each.stdout, each.stderr)))) for each in printed)
    if start == b"[":
        return read_parts(decode(items_decoder, output, place), where, "output")
    raise FormatError("output that is neither text nor parts", where=place, remedy="write it as text")


def _first(raw: Raw) -> bytes:
    """The character a value begins with, which tells text from an object from a list."""
    return bytes(memoryview(raw)[:1])


def build_call(block: ToolUse, template: Mapping[str, Raw], *, native: bool) -> dict[str, Any]:
    """The item of a call; the fields it came with are kept."""
    kind = block.type if block.type in CALLS else FUNCTION
    fields: dict[str, Any] = {**template, "type": kind, "call_id": block.id}
    if kind in {FUNCTION, CUSTOM}:
        name = block.name if native else safe_name(block.name)
        return {**fields, "name": name, "arguments" if kind == FUNCTION else "input": block.arguments}
    if template:
        return fields
    action = "operation" if kind == PATCH else "actions" if block.arguments[:1] == "[" else "action"
    checks: dict[str, Any] = {"pending_safety_checks": []} if kind == COMPUTER else {}
    return {**fields, "id": block.id, "status": "completed", action: Raw(block.arguments.encode()), **checks}


def build_output(block: ToolResult, template: Mapping[str, Raw], *, native: bool) -> dict[str, Any]:
    """The item of an answer; a failed one says so in its text where there is no field for it."""
    kind = block.type if block.type in CALLS else FUNCTION
    key = "id" if kind == LOCAL_SHELL and "call_id" not in template else "call_id"
    fields: dict[str, Any] = {**template, "type": kind + SUFFIX, key: block.tool_use_id}
    words = result_text(block, flagged=kind != PATCH)
    if kind == COMPUTER:
        shown = next((url for each in block.content if isinstance(each, Image) and (url := image_url(each))), BLANK)
        return {**fields, "output": {"type": "computer_screenshot", "image_url": shown}}
    if kind == SHELL:
        outcome = {"type": "exit", "exit_code": int(block.is_error)}
        return {**fields, "output": [{"stdout": words, "stderr": "", "outcome": outcome}]}
    if kind == PATCH:
        return {**fields, "status": "failed" if block.is_error else "completed", "output": words}
    if kind == LOCAL_SHELL:
        return {**fields, "output": words}
    failed = (Text(text=FAILED.strip()),) if block.is_error else ()
    if block.is_error and all(isinstance(each, Text) for each in block.content):
        return {**fields, "output": words}
    return {**fields, "output": text_or_parts((*failed, *block.content), native=native)}


NAME = "responses"

ELSEWHERE = ("previous_response_id", "conversation", "prompt")
"""Fields that bring what stands before the input, or in its place."""


class Item(msgspec.Struct, gc=False):
    """The fields of all the items that are understood."""

    type: str | None = None
    role: str | None = None
    content: str | list[Raw] | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: Raw = ABSENT
    input: Raw = ABSENT
    action: Raw = ABSENT
    actions: Raw = ABSENT
    operation: Raw = ABSENT
    output: Raw = ABSENT
    status: str | None = None
    summary: list[Raw] | None = None
    encrypted_content: str | None = None


class _Said(msgspec.Struct, tag_field="type", tag="message", forbid_unknown_fields=True, gc=False):
    role: str
    content: str | list[Raw]
    id: str | None = None
    status: str | None = None


class _Asked(msgspec.Struct, tag_field="type", tag=FUNCTION, forbid_unknown_fields=True, gc=False):
    call_id: str
    name: str
    arguments: str
    id: str | None = None
    status: str | None = None


class _Answered(msgspec.Struct, tag_field="type", tag=FUNCTION + SUFFIX, forbid_unknown_fields=True, gc=False):
    call_id: str
    output: str
    id: str | None = None
    status: str | None = None


class _Type(msgspec.Struct, gc=False):
    type: str | None = None
    role: str | None = None


class _Words(msgspec.Struct, gc=False):
    text: str = ""


class _Tool(msgspec.Struct, gc=False):
    type: str
    name: str | None = None
    description: str | None = None
    parameters: dict[str, Any] | None = None


class _Details(msgspec.Struct, gc=False):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _Details | None = None


class _Incomplete(msgspec.Struct, gc=False):
    reason: str | None = None


class _Reply(msgspec.Struct, gc=False):
    output: Raw
    usage: _Usage | None = None
    model: str | None = None
    status: str | None = None
    incomplete_details: _Incomplete | None = None


_usual = msgspec.json.Decoder(_Said | _Asked | _Answered)
"""What nearly every item is; all others, and those with a field more, take the longer way."""
_item = msgspec.json.Decoder(Item)
_type = msgspec.json.Decoder(_Type)
_words = msgspec.json.Decoder(_Words)
_tool = msgspec.json.Decoder(_Tool)
_reply = msgspec.json.Decoder(_Reply)

_UNDERSTOOD = frozenset({"message", "reasoning", *OUTPUTS, *OUTPUTS.values()})


def read_message(raw: bytes, where: str) -> Message:
    """One item."""
    try:
        wire = _usual.decode(raw)
    except UNREADABLE:
        return _read_unusual(raw, where)
    if type(wire) is _Said:
        return _message(wire.role, wire.content, raw, where)
    if type(wire) is _Answered and wire.call_id:
        result = ToolResult(tool_use_id=wire.call_id, content=(Text(text=wire.output),))
        return Message(role="user", blocks=(result,), format=NAME, raw=raw)
    if type(wire) is _Asked and wire.name:
        call = ToolUse(id=wire.call_id, name=wire.name, arguments=wire.arguments)
        return Message(role="assistant", blocks=(call,), format=NAME, raw=raw)
    return _read_unusual(raw, where)


def _read_unusual(raw: bytes, where: str) -> Message:
    try:
        wire = _item.decode(raw)
    except UNREADABLE:
        found = decode(_type, raw, where)
        if found.type is not None and found.type not in _UNDERSTOOD:
            return _unknown(found.type, raw)
        wire = decode(_item, raw, where)
    kind = wire.type
    if kind == "message" or (kind is None and wire.role is not None):
        return _message(wire.role, wire.content, raw, where)
    if kind is None:
        if wire.id is None:
            raise FormatError("neither a message nor an item", where=where, remedy="give it a type, or a role")
        return _unknown("item_reference", raw)
    block = _block(kind, wire, raw, where)
    return _unknown(kind, raw) if block is None else Message(role=author(kind), blocks=(block,), format=NAME, raw=raw)


def _unknown(kind: str, raw: bytes) -> Message:
    return Message(role=author(kind), blocks=(Unknown(type=kind, raw=raw),), format=NAME, raw=raw)


def _message(spoken: str | None, content: str | list[Raw] | None, raw: bytes, where: str) -> Message:
    role = ROLES.get(spoken or "")
    if role is None:
        raise FormatError(
            f"no such role as {spoken!r} in the format of OpenAI's Responses",
            where=f"{where}.role".removeprefix("."),
            remedy=f"use one of {', '.join(ROLES)}; name the format if it is another one",
        )
    return Message(role=role, blocks=read_parts(content, where, "content"), format=NAME, raw=raw)


def _block(kind: str, wire: Item, raw: bytes, where: str) -> Block | None:
    """What an item that is no message says; `None` when only the provider can tell."""
    if kind == "reasoning":
        parts = wire.summary or (wire.content if isinstance(wire.content, list) else [])
        place = f"{where}.summary".removeprefix(".")
        text = "\n\n".join(decode(_words, part, place).text for part in parts)
        return Reasoning(text=text, data=wire.encrypted_content, raw=raw)
    if kind in OUTPUTS:
        call = OUTPUTS[kind]
        # For the local shell the id of the output is that of the call.
        id = wire.call_id or (wire.id if call == LOCAL_SHELL else None)
        return read_output(call, id, wire.output, wire.status, where)
    if kind in _UNDERSTOOD:
        given = (wire.arguments, wire.input, wire.action, wire.actions, wire.operation)
        said = next((each for each in given if each is not ABSENT), ABSENT)
        return read_call(kind, wire.call_id, wire.name, said, where)
    return None


def read_body(body: bytes) -> Request:
    """A request body or a list of items."""
    if body.lstrip()[:1] == b"[":
        return Request(format=NAME, messages=read_each(body, "", read_message), bare=True)
    fields, items = take_out(body, "input")
    if items is None and "input" not in fields and not any(each in fields for each in ELSEWHERE):
        raise FormatError("a request body without input", remedy="pass a body with `input`, or the list of items")
    if items is None:
        messages = _input(bytes(fields.pop("input", Raw(b"null"))))
    else:
        messages = read_items(items, "input", read_message)
    system = bytes(fields.pop("instructions", Raw(b"null")))
    tools = bytes(fields.pop("tools", Raw(b"null")))
    model = bytes(fields.pop("model", Raw(b"null")))
    return Request(
        format=NAME,
        messages=messages,
        system=None if system == b"null" else _system(system),
        tools=() if tools == b"null" else read_each(tools, "tools", read_tool),
        model=None if model == b"null" else decode(text_decoder, model, "model"),
        rest=fields,
    )


def _input(raw: bytes) -> tuple[Message, ...]:
    if raw == b"null":
        return ()
    if raw[:1] == b'"':
        # Plain text is short for one message of the user.
        return (read_message(b'{"role":"user","content":' + raw + b"}", "input"),)
    return read_each(raw, "input", read_message)


def read_system(value: Any) -> Message:
    """A system prompt: text, or a list of parts."""
    return value if isinstance(value, Message) else _system(encode(value, "instructions"))


def _system(raw: bytes) -> Message:
    value = decode(any_decoder, raw, "instructions")
    if isinstance(value, str):
        return Message(role="system", blocks=(Text(text=value),), format=NAME, raw=raw)
    if not isinstance(value, list):
        raise FormatError("neither text nor a list of parts", where="instructions", remedy="pass text")
    return read_message(b'{"role":"system","content":' + raw + b"}", "instructions")


def read_tool(raw: bytes, where: str) -> Tool:
    """A tool definition; what the provider runs itself goes by its type."""
    wire = decode(_tool, raw, where)
    return Tool(
        name=wire.name or wire.type,
        description=wire.description or "",
        schema=wire.parameters or {},
        format=NAME,
        raw=raw,
    )


def read_reply(body: bytes) -> Reply:
    """A response: every item of its output."""
    wire = decode(_reply, body)
    messages = read_each(wire.output, "output", read_message)
    if not messages:
        raise FormatError("a response without output", where="output", remedy="check for an error before adding it")
    details = wire.incomplete_details
    return Reply(
        message=messages[0],
        more=messages[1:],
        usage=None if wire.usage is None else _read_usage(wire.usage),
        model=wire.model,
        stop_reason=details.reason if details is not None and details.reason else wire.status,
    )


def _read_usage(wire: _Usage) -> Usage:
    details = wire.input_tokens_details or _Details()
    read, write = details.cached_tokens or 0, details.cache_write_tokens or 0
    return Usage(
        input=max((wire.input_tokens or 0) - read - write, 0),
        output=wire.output_tokens or 0,
        cache_write=write,
        cache_read=read,
    )


ID_PATTERN = r"[\s\S]{1,64}"
"""Any text, but no longer than this."""

Template = Mapping[str, Raw]


def render_message(message: Message) -> list[bytes]:
    """The message as items: its words, its calls and its results one each, in order."""
    native = message.format == NAME
    own = native and message.raw is not None and message.raw[:1] == b"{"
    if own and not message.edited and message.raw is not None:
        return [message.raw]
    template = decode(fields_decoder, message.raw) if own and message.raw is not None else {}
    items = list(_items(message, template, native=native))
    return items or [encode({"role": message.role, "content": rules.EMPTY})]


def _items(message: Message, template: Template, *, native: bool) -> Iterator[bytes]:
    kind = _text(template, "type") or ("message" if "role" in template else "")
    is_message = kind == "message"
    around = template if is_message else {}

    def stands_alone(block: Block) -> bool:
        if isinstance(block, Unknown):
            # A part of a message and an item may be of the same unknown kind: where it stood tells them apart.
            return native and not is_message and block.type not in KNOWN_PARTS
        return isinstance(block, Reasoning | ToolUse | ToolResult)

    for single, blocks in groupby(message.blocks, stands_alone):
        if not single:
            yield _render_message(message, list(blocks), around, native=native)
            around = {}
            continue
        for block in blocks:
            if isinstance(block, ToolUse):
                yield encode(build_call(block, template if kind in CALLS else {}, native=native))
            elif isinstance(block, ToolResult):
                yield encode(build_output(block, template if kind in OUTPUTS else {}, native=native))
            elif native and block.raw is not None:
                yield block.raw


def _text(template: Template, field: str) -> str:
    return decode(text_decoder, template[field]) if field in template else ""


def _render_message(message: Message, blocks: Sequence[Block], template: Template, *, native: bool) -> bytes:
    fields: dict[str, Any] = {"role": message.role, **template}
    if message.role != "assistant":
        return encode({**fields, "content": text_or_parts(blocks, native=native)})
    if "id" in template:
        return encode({**fields, "content": build_parts(blocks, native=native, spoken=True)})
    # Parts of the assistant belong to an item with the provider's id: without one its words are plain text.
    return encode({**fields, "content": _render_words(blocks)})


def _render_words(blocks: Iterable[Block]) -> str:
    return "\n".join(block.text if isinstance(block, Text) else in_words(block) for block in blocks)


def render_system(systems: Sequence[Message]) -> bytes | None:
    """The value of `instructions`."""
    if len(systems) == 1:
        raw = systems[0].raw
        if systems[0].format == NAME and not systems[0].edited and raw is not None and raw[:1] == b'"':
            return raw
    text = "\n\n".join(words for system in systems if (words := _render_words(system.blocks)))
    return encode(text) if text else None


def render_tool(tool: Tool) -> bytes:
    """A tool definition. Another format's schema was not written for the strict rules, which are the default here."""
    if tool.format == NAME and tool.raw is not None:
        return tool.raw
    fields: dict[str, Any] = {"type": "function", "name": safe_name(tool.name)}
    if tool.description:
        fields["description"] = tool.description
    return encode({**fields, "parameters": {"type": "object", **tool.schema}, "strict": False})


def render_body(
    *,
    messages: Sequence[bytes],
    system: bytes | None,
    tools: Sequence[bytes],
    model: str | None,
    rest: Mapping[str, Raw],
) -> bytes:
    """A request body, what a prompt cache looks at first standing first."""
    fields: dict[str, bytes | Raw] = {} if model is None else {"model": encode(model)}
    if system is not None:
        fields["instructions"] = system
    for key, value in rest.items():
        # The other formats' name for the same limit.
        fields["max_output_tokens" if key == "max_tokens" else key] = value
    if tools:
        fields["tools"] = b"[" + b",".join(tools) + b"]"
    return join_body(fields, messages, under=b"input")


_OWN_PARTS = frozenset({"input_text", "input_image", "input_file", "output_text"})


def detects(value: Any) -> bool:
    """Whether a decoded body, item list, item or reply is clearly of this format."""
    if isinstance(value, list):
        return any(detects(each) for each in value if isinstance(each, dict))
    if not isinstance(value, dict) or "messages" in value or "choices" in value:
        return False
    kind = value.get("type")
    if kind is None:
        return _is_body(value) or _is_reply(value) or _has_own_parts(value)
    if kind == "message":
        # Anthropic's response is of this type too: it is never the user's, and its content is never plain text.
        said = value.get("role") not in {"assistant", None} or isinstance(value.get("content"), str)
        return said or _has_own_parts(value)
    known = kind in SAID_BY_PROGRAM or kind in SAID_BY_PROVIDER
    return known or (isinstance(kind, str) and "role" not in value and kind.endswith(("_call", "_call_output")))


def _is_body(value: dict[str, Any]) -> bool:
    return isinstance(value.get("input"), str | list)


def _is_reply(value: dict[str, Any]) -> bool:
    return value.get("object") == "response" or isinstance(value.get("output"), list)


def _has_own_parts(value: dict[str, Any]) -> bool:
    content = value.get("content")
    parts = content if isinstance(content, list) else []
    return any(isinstance(part, dict) and part.get("type") in _OWN_PARTS for part in parts)
