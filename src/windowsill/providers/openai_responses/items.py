"""Reads and renders OpenAI Responses: one item is one message, and keeps the exact bytes it came as.

What the model did in one turn (reasoning, text, calls) are several items, so several messages of the assistant in a
row. Items of a kind that only the provider understands become one unknown block each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import msgspec
from msgspec import Raw

from windowsill.errors import FormatError
from windowsill.history import repair_rules
from windowsill.history.repair import safe_name
from windowsill.messages import (
    Block,
    Document,
    Image,
    Message,
    Reasoning,
    Reply,
    Text,
    ToolResult,
    ToolUse,
    Unknown,
    Usage,
)
from windowsill.providers.base import Format, ToolChoice, role_of, usage_of, without_format
from windowsill.providers.convert import (
    FAILED,
    all_in_words,
    data_url,
    image_url,
    in_words,
    is_web,
    read_image,
    result_text,
    split_data_url,
)
from windowsill.providers.openai_chat.messages import UsageDetails
from windowsill.providers.openai_responses import (
    CALLS,
    COMPUTER,
    CUSTOM,
    FUNCTION,
    KNOWN_PARTS,
    LOCAL_SHELL,
    OUTPUTS,
    PATCH,
    PROGRAM_ITEMS,
    PROVIDER_ITEMS,
    ROLES,
    SEARCH,
    SEARCH_OUTPUT,
    SHELL,
    SPEC,
    SUFFIX,
    author,
    rules,
)
from windowsill.providers.openai_responses.stream import ResponsesStream
from windowsill.providers.wire import (
    NULL,
    UNREADABLE,
    Fields,
    any_decoder,
    decode,
    encode,
    fields_decoder,
    items_decoder,
    kind_of,
    read_each,
    text_decoder,
    text_or_json,
)

NAME = SPEC.name

BLANK = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
"""One pixel: a screenshot that was taken away must still be a picture."""

TEXTS = frozenset({"input_text", "output_text"})
MEDIA = frozenset({"input_image", "input_file", "computer_screenshot"})

_UNDERSTOOD = frozenset({"message", "reasoning", *OUTPUTS, *CALLS})
_OWN_PARTS = frozenset({"input_text", "input_image", "input_file", "output_text"})
"""Parts by which a message is known to be of this format."""


class _Item(msgspec.Struct, gc=False):
    """The fields of all the items that are understood."""

    type: str | None = None
    role: str | None = None
    content: str | list[Raw] | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: Raw = NULL
    input: Raw = NULL
    action: Raw = NULL
    actions: Raw = NULL
    operation: Raw = NULL
    output: Raw = NULL
    execution: str | None = None
    tools: Raw = NULL
    status: str | None = None
    summary: list[Raw] | None = None
    encrypted_content: str | None = None


class _Call(msgspec.Struct, tag_field="type", tag=FUNCTION, gc=False):
    call_id: str
    name: str
    arguments: str


class _Answer(msgspec.Struct, tag_field="type", tag=FUNCTION + SUFFIX, gc=False):
    call_id: str
    output: str


class _Spoken(msgspec.Struct, tag_field="type", tag="message", gc=False):
    role: str
    content: str | list[Raw]


class _Type(msgspec.Struct, gc=False):
    type: str | None = None
    role: str | None = None


class _Part(msgspec.Struct, gc=False):
    type: str
    text: str | None = None
    image_url: str | None = None
    detail: str | None = None
    file_id: str | None = None
    file_data: str | None = None
    file_url: str | None = None
    filename: str | None = None


class _Summary(msgspec.Struct, gc=False):
    text: str = ""


class _Printed(msgspec.Struct, gc=False):
    stdout: str = ""
    stderr: str = ""


class _Usage(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: UsageDetails | None = None


class _Incomplete(msgspec.Struct, gc=False):
    reason: str | None = None


class _Reply(msgspec.Struct, gc=False):
    output: Raw
    usage: Raw = NULL
    model: str | None = None
    status: str | None = None
    incomplete_details: _Incomplete | None = None


_usual = msgspec.json.Decoder(_Call | _Answer | _Spoken)
_item = msgspec.json.Decoder(_Item)
_type = msgspec.json.Decoder(_Type)
_part = msgspec.json.Decoder(_Part)
_summary = msgspec.json.Decoder(_Summary)
_printed = msgspec.json.Decoder(list[_Printed])
_usage = msgspec.json.Decoder(_Usage)
_reply = msgspec.json.Decoder(_Reply)


class Responses(Format):
    """The format of `POST /v1/responses`."""

    spec = SPEC
    stream = ResponsesStream

    def detects(self, value: Any) -> bool:
        """Tell whether a decoded body, item list, item or reply is clearly of this format."""
        if isinstance(value, list):
            return any(self.detects(each) for each in value if isinstance(each, dict))
        if not isinstance(value, dict) or "messages" in value or "choices" in value:
            return False
        kind = value.get("type")
        if kind is None:
            is_body = isinstance(value.get("input"), str | list)
            is_reply = value.get("object") == "response" or isinstance(value.get("output"), list)
            return is_body or is_reply or _has_own_parts(value)
        if kind == "message":
            # Anthropic's response is of this type too: it is never the user's, and its content is never plain text.
            own = value.get("role") not in {"assistant", None} or isinstance(value.get("content"), str)
            return own or _has_own_parts(value)
        known = kind in PROGRAM_ITEMS or kind in PROVIDER_ITEMS
        return known or (isinstance(kind, str) and "role" not in value and kind.endswith(("_call", "_call_output")))

    def read_message(self, raw: bytes, where: str) -> Message:
        """Read one item. Nearly all are of three kinds, which are read at once."""
        try:
            usual = _usual.decode(raw)
        except UNREADABLE:
            return self._read_rare(raw, where)
        if isinstance(usual, _Answer):
            result = ToolResult(tool_use_id=usual.call_id, content=(Text(text=usual.output),))
            return Message(role="user", blocks=(result,), format=NAME, raw=raw)
        if isinstance(usual, _Spoken):
            role = role_of(usual.role, ROLES, NAME, where)
            return Message(role=role, blocks=_read_parts(usual.content, where, "content"), format=NAME, raw=raw)
        if not usual.name:
            return self._read_rare(raw, where)
        call = ToolUse(id=usual.call_id, name=usual.name, arguments=usual.arguments)
        return Message(role="assistant", blocks=(call,), format=NAME, raw=raw)

    @staticmethod
    def _read_rare(raw: bytes, where: str) -> Message:
        try:
            wire = _item.decode(raw)
        except UNREADABLE:
            found = decode(_type, raw, where)
            if found.type is not None and found.type not in _UNDERSTOOD:
                return _message(found.type, Unknown(type=found.type, raw=raw), raw)
            wire = decode(_item, raw, where)
        kind = wire.type
        if kind == "message" or (kind is None and wire.role is not None):
            role = role_of(wire.role, ROLES, NAME, where)
            return Message(role=role, blocks=_read_parts(wire.content, where, "content"), format=NAME, raw=raw)
        if kind is None and wire.id is None:
            raise FormatError("neither a message nor an item", where=where, remedy="give it a type, or a role")
        kind = kind or "item_reference"
        return _message(kind, _read_block(kind, wire, raw, where) or Unknown(type=kind, raw=raw), raw)

    def read_conversation(self, raw: bytes, where: str) -> tuple[Message, ...]:
        """Read an `input` that is absent, plain text (short for one message of the user), or a list."""
        if raw == b"null":
            return ()
        if raw[:1] == b'"':
            return (self.read_message(b'{"role":"user","content":' + raw + b"}", where),)
        return super().read_conversation(raw, where)

    def read_system_value(self, raw: bytes) -> Message:
        """Read a system prompt: text, or a list of parts."""
        value = decode(any_decoder, raw, "instructions")
        if isinstance(value, str):
            return Message(role="system", blocks=(Text(text=value),), format=NAME, raw=raw)
        if not isinstance(value, list):
            raise FormatError("neither text nor a list of parts", where="instructions", remedy="pass text")
        return self.read_message(b'{"role":"system","content":' + raw + b"}", "instructions")

    def read_reply(self, body: bytes) -> Reply:
        """Read a response: every item of its output."""
        wire = decode(_reply, body)
        messages = read_each(wire.output, "output", self.read_message)
        if not messages:
            raise FormatError("a response without output", where="output", remedy="check for an error before adding it")
        details = wire.incomplete_details
        return Reply(
            message=messages[0],
            more=messages[1:],
            usage=None if wire.usage == NULL else self.read_usage(bytes(wire.usage)),
            model=wire.model,
            stop_reason=details.reason if details is not None and details.reason else wire.status,
        )

    def read_usage(self, raw: bytes) -> Usage:
        """Read the usage of a call."""
        wire = decode(_usage, raw, "usage")
        details = wire.input_tokens_details or UsageDetails()
        read, written = details.cached_tokens, details.cache_write_tokens
        return usage_of(wire.input_tokens, wire.output_tokens, read=read, written=written)

    def render_message(self, message: Message) -> list[bytes]:
        """Render a message as items: its text, its calls and its results one each, in order."""
        native = message.format == NAME
        raw = message.raw if native and message.raw is not None and message.raw[:1] == b"{" else None
        if raw is not None and not message.edited:
            return [raw]
        items = list(_render_items(message, {} if raw is None else decode(fields_decoder, raw), native=native))
        return items or [encode({"role": message.role, "content": repair_rules.EMPTY})]

    def render_system(self, systems: Sequence[Message]) -> bytes | None:
        """Render the value of `instructions`."""
        if len(systems) == 1:
            raw = systems[0].raw
            if systems[0].format == NAME and not systems[0].edited and raw is not None and raw[:1] == b'"':
                return raw
        text = "\n\n".join(words for system in systems if (words := all_in_words(system.blocks)))
        return encode(text) if text else None

    def render_reply(self, message: Message, *, model: str, usage: Usage | None = None, whole: bool = True) -> bytes:
        """Render a response that holds this message."""
        chunks = self.render_message(message)
        id = hashlib.blake2b(b"".join(chunks), digest_size=8).hexdigest()
        status = SPEC.stops.done if whole else "incomplete"
        items = [
            _answered_item(decode(fields_decoder, chunk), f"{id}_{place}", status) for place, chunk in enumerate(chunks)
        ]
        around = {"created_at": 0, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
        head = {"id": f"resp_{id}", "object": "response", "status": status, **around, "model": model}
        return encode({**head, "output": items, **({} if usage is None else {"usage": self.render_usage(usage)})})

    def render_usage(self, usage: Usage, reasoning: int = 0) -> dict[str, Any]:
        """Return a usage in the words of this API."""
        return {
            "input_tokens": usage.prompt,
            "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": reasoning},
            "total_tokens": usage.total,
        }

    def render_tool_choice(self, choice: ToolChoice) -> dict[str, Any]:
        """Return the field `tool_choice`."""
        if choice.mode != "one":
            return {"tool_choice": choice.mode}
        return {"tool_choice": {"type": "function", "name": safe_name(choice.name)}}

    def text_only(self, fields: dict[str, Any], *, limit: int, limit_field: str, tools: bool) -> dict[str, Any]:
        """Ask for one whole text, which is neither of another format nor kept."""
        return super().text_only(without_format(fields, "text"), limit=limit, limit_field=limit_field, tools=tools)

    def wrap_tool(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return a definition without the strict rules, which are the default here: the schema was not written so."""
        return {"type": "function", **fields, "strict": False}

    check_body = staticmethod(rules.check_body)
    check_messages = staticmethod(rules.check_messages)


def _has_own_parts(value: dict[str, Any]) -> bool:
    content = value.get("content")
    parts = content if isinstance(content, list) else []
    return any(isinstance(part, dict) and part.get("type") in _OWN_PARTS for part in parts)


def _message(kind: str, block: Block, raw: bytes) -> Message:
    role = "user" if isinstance(block, ToolResult) else author(kind)
    return Message(role=role, blocks=(block,), format=NAME, raw=raw)


# Reading


def _read_block(kind: str, wire: _Item, raw: bytes, where: str) -> Block | None:
    """Read an item that is no message; `None` when only the provider understands it."""
    if kind in CALLS:
        return _read_call(kind, wire, where)
    if kind in OUTPUTS:
        return _read_output(OUTPUTS[kind], wire, where)
    if kind in (SEARCH, SEARCH_OUTPUT) and wire.execution == "client" and wire.call_id:
        if kind == SEARCH:
            return _read_call(kind, wire, where)
        return ToolResult(tool_use_id=wire.call_id, content=(Text(text=str(wire.tools, "utf-8")),))
    if kind != "reasoning":
        return None
    parts = wire.summary or (wire.content if isinstance(wire.content, list) else [])
    place = f"{where}.summary".removeprefix(".")
    text = "\n\n".join(decode(_summary, part, place).text for part in parts)
    return Reasoning(text=text, data=wire.encrypted_content, raw=raw)


def _read_call(kind: str, wire: _Item, where: str) -> ToolUse:
    """Read a call with its arguments, or the action it asks for."""
    name = wire.name or (None if kind in {FUNCTION, CUSTOM} else kind.removesuffix("_call"))
    if wire.call_id is None or name is None:
        raise FormatError(f"a {kind} without call_id and name", where=where, remedy="give it both, or leave it out")
    raw = wire.arguments
    if raw is NULL:
        fields = (wire.input, wire.action, wire.actions, wire.operation)
        raw = next((each for each in fields if each is not NULL), Raw(b'""' if kind == CUSTOM else b"{}"))
    try:
        text = text_or_json(raw)
    except UNREADABLE:
        text = decode(text_decoder, raw, where)
    return ToolUse(id=wire.call_id, name=name, arguments=text, type="" if kind in {FUNCTION, SEARCH} else kind)


def _read_output(call: str, wire: _Item, where: str) -> ToolResult | None:
    """Read the answer to a call of this kind; `None` when it does not say to which."""
    # For the local shell the id of the output is that of the call.
    id = (wire.call_id or wire.id) if call == LOCAL_SHELL else wire.call_id
    if id is None:
        return None
    return ToolResult(
        tool_use_id=id,
        content=_read_result(call, wire.output, where),
        is_error=call == PATCH and wire.status == "failed",
        type="" if call == FUNCTION else call,
    )


def _read_result(call: str, output: Raw, where: str) -> tuple[Block, ...]:
    start = bytes(memoryview(output)[:1])
    if start == b'"':
        return (Text(text=decode(text_decoder, output, where)),)
    if start == b"n":
        return ()
    place = f"{where}.output".removeprefix(".")
    if call == COMPUTER:
        return (_read_part(bytes(output), place),)
    if call == SHELL:
        printed = decode(_printed, output, place)
        return tuple(Text(text="\n".join(filter(None, (each.stdout, each.stderr)))) for each in printed)
    if start == b"[":
        return _read_parts(decode(items_decoder, output, place), where, "output")
    raise FormatError("output that is neither text nor parts", where=place, remedy="write it as text")


def _read_parts(content: str | list[Raw] | None, where: str, field: str) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(text=content),)
    try:
        return tuple([_read_part(bytes(raw), "") for raw in content or ()])
    except FormatError:
        place = f"{where}.{field}".removeprefix(".")
        return tuple([_read_part(bytes(raw), f"{place}[{index}]") for index, raw in enumerate(content or ())])


def _read_part(raw: bytes, where: str) -> Block:
    """Read one part; of a kind that is not known, its bytes."""
    try:
        wire = _part.decode(raw)
    except UNREADABLE:
        if (kind := kind_of(raw, where)) not in TEXTS | MEDIA:
            return Unknown(type=kind, raw=raw)
        wire = decode(_part, raw, where)
    if wire.type in TEXTS:
        if wire.text is None:
            raise FormatError(f"a part of type {wire.type} without text", where=where, remedy="leave it out")
        return Text(text=wire.text, raw=raw)
    if wire.type not in MEDIA:
        return Unknown(type=wire.type, raw=raw)
    if wire.type == "input_file":
        media_type, data = split_data_url(wire.file_data) or (None, wire.file_data)
        url = wire.file_url or wire.file_id
        return Document(media_type=media_type, data=data, url=url, title=wire.filename, raw=raw)
    return read_image(wire.image_url or wire.file_id, detail=wire.detail, raw=raw)


# Rendering


def _render_items(message: Message, template: Fields, *, native: bool) -> Iterator[bytes]:
    kind = decode(text_decoder, template["type"]) if "type" in template else "message" if "role" in template else ""
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
                yield encode(_render_call(block, template if kind in CALLS else {}, native=native))
            elif isinstance(block, ToolResult):
                yield encode(_render_output(block, template if kind in OUTPUTS else {}, native=native))
            elif native and block.raw is not None:
                yield block.raw


def _render_message(message: Message, blocks: Sequence[Block], template: Fields, *, native: bool) -> bytes:
    content: Any
    if message.role != "assistant":
        content = _text_or_parts(blocks, native=native)
    elif "id" in template:
        content = [_render_part(block, native=native, spoken=True) for block in blocks]
    else:
        # Parts of the assistant belong to an item with the provider's id: without one its words are plain text.
        content = all_in_words(blocks)
    return encode({"role": message.role, **template, "content": content})


def _text_or_parts(blocks: Iterable[Block], *, native: bool) -> Any:
    """Return plain text where that says it all, else parts."""
    found = list(blocks)
    if not found:
        return ""
    if len(found) == 1 and isinstance(found[0], Text) and (found[0].raw is None or not native):
        return found[0].text
    return [_render_part(block, native=native) for block in found]


def _render_part(block: Block, *, native: bool, spoken: bool = False) -> Any:
    if native and block.raw is not None and isinstance(block, Text | Image | Document | Unknown):
        return Raw(block.raw)
    text = block.text if isinstance(block, Text) else in_words(block)
    if spoken:
        return {"type": "output_text", "text": text, "annotations": []}
    if isinstance(block, Image) and (url := image_url(block)) is not None:
        return {"type": "input_image", "image_url": url, "detail": block.detail or "auto"}
    if isinstance(block, Document) and block.data is not None:
        file = data_url(block.media_type, block.data)
        return {"type": "input_file", "filename": block.title or "document", "file_data": file}
    if isinstance(block, Document) and is_web(block.url):
        return {"type": "input_file", "file_url": block.url}
    return {"type": "input_text", "text": text}


def _render_call(block: ToolUse, template: Fields, *, native: bool) -> dict[str, Any]:
    """Return the item of a call; the fields it came with are kept."""
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


def _render_output(block: ToolResult, template: Fields, *, native: bool) -> dict[str, Any]:
    """Return the item of an answer; a failed one says so in its text where there is no field for it."""
    kind = block.type if block.type in CALLS else FUNCTION
    key = "id" if kind == LOCAL_SHELL and "call_id" not in template else "call_id"
    fields: dict[str, Any] = {**template, "type": kind + SUFFIX, key: block.tool_use_id}
    if kind == COMPUTER:
        image = next((url for each in block.content if isinstance(each, Image) and (url := image_url(each))), BLANK)
        return {**fields, "output": {"type": "computer_screenshot", "image_url": image}}
    if kind == PATCH:
        status = "failed" if block.is_error else "completed"
        return {**fields, "status": status, "output": all_in_words(block.content)}
    text = result_text(block)
    if kind == SHELL:
        outcome = {"type": "exit", "exit_code": int(block.is_error)}
        return {**fields, "output": [{"stdout": text, "stderr": "", "outcome": outcome}]}
    if kind == LOCAL_SHELL or (block.is_error and all(isinstance(each, Text) for each in block.content)):
        return {**fields, "output": text}
    failed = (Text(text=FAILED.strip()),) if block.is_error else ()
    return {**fields, "output": _text_or_parts((*failed, *block.content), native=native)}


def _answered_item(item: Fields, id: str, status: str) -> dict[str, Any]:
    """Return an item as it is answered: text stands in parts, which it does not in a request."""
    if "type" in item:
        return {"id": f"fc_{id}", "status": status, **item}
    part = {"type": "output_text", "text": decode(any_decoder, item["content"]), "annotations": []}
    return {"id": f"msg_{id}", "type": "message", "status": status, "role": "assistant", "content": [part]}
