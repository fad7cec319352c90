"""Reads OpenAI Chat Completions: each message and part keeps the exact bytes it came as.

A `tool` message is a user message with one result; what stands beside the content (a refusal, audio, reasoning) becomes
a block without a place in the content, and stays a field of the message when it is rendered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from windowsill.errors import FormatError
from windowsill.history.repair import rules
from windowsill.history.repair.mend import is_media
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
from windowsill.providers.convert import FAILED, data_url, image_url, in_words, result_text, safe_name, split_data_url
from windowsill.providers.wire import (
    UNREADABLE,
    decode,
    encode,
    fields_decoder,
    join_body,
    read_each,
    read_items,
    take_out,
    text_decoder,
)

NAME = "openai"
DEEPSEEK = "deepseek"
DIALECTS = frozenset({NAME, DEEPSEEK})
"""Formats that write the same messages, but for the reasoning beside them."""

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details")
"""Where servers put what a model thought: DeepSeek, Kimi and GLM; vLLM and Groq; OpenRouter and MiniMax."""

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "user",
    "function": "user",
}

NULL = Raw(b"null")


class _Function(msgspec.Struct, gc=False):
    name: str
    arguments: Raw = Raw(b'"{}"')


class _Message(msgspec.Struct, gc=False):
    role: str
    content: str | list[Raw] | None = None
    tool_calls: list[Raw] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    reasoning_content: str | None = None
    reasoning: Raw = NULL
    reasoning_details: Raw = NULL
    refusal: Raw = NULL
    audio: Raw = NULL
    function_call: _Function | None = None


class _Custom(msgspec.Struct, gc=False):
    name: str
    input: str = ""


class _Call(msgspec.Struct, gc=False):
    id: str
    function: _Function | None = None
    custom: _Custom | None = None


class _ImageUrl(msgspec.Struct, gc=False):
    url: str
    detail: str | None = None


class _File(msgspec.Struct, gc=False):
    file_data: str | None = None
    file_id: str | None = None
    filename: str | None = None


class _Part(msgspec.Struct, gc=False):
    type: str
    text: str | None = None
    image_url: _ImageUrl | None = None
    file: _File | None = None
    thinking: Raw = NULL


class _Type(msgspec.Struct, gc=False):
    type: str


class _Thought(msgspec.Struct, gc=False):
    text: str | None = None
    summary: str | None = None
    signature: str | None = None
    data: str | None = None


class _Definition(msgspec.Struct, gc=False):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class _Tool(msgspec.Struct, gc=False):
    function: _Definition | None = None
    custom: _Definition | None = None
    type: str = ""


class _Details(msgspec.Struct, gc=False):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    prompt_cache_hit_tokens: int | None = None
    """DeepSeek's name for what was read from its cache."""
    cached_tokens: int | None = None
    """Kimi's."""


class _Choice(msgspec.Struct, gc=False):
    message: Raw
    finish_reason: str | None = None


class _Reply(msgspec.Struct, gc=False):
    choices: list[_Choice]
    usage: _Usage | None = None
    model: str | None = None


_message = msgspec.json.Decoder(_Message)
_call = msgspec.json.Decoder(_Call)
_part = msgspec.json.Decoder(_Part)
_type = msgspec.json.Decoder(_Type)
_thoughts = msgspec.json.Decoder(list[_Thought])
_tool = msgspec.json.Decoder(_Tool)
_reply = msgspec.json.Decoder(_Reply)

KNOWN = frozenset({"text", "image_url", "file"})


def read_message(raw: bytes, where: str) -> Message:
    """One message."""
    try:
        wire = _message.decode(raw)
    except UNREADABLE:
        wire = decode(_message, raw, where)
    role = ROLES.get(wire.role)
    if role is None:
        raise FormatError(
            f"no such role as {wire.role!r} in OpenAI's format",
            where=f"{where}.role".removeprefix("."),
            remedy=f"use one of {', '.join(ROLES)}; name the format if it is another one",
        )
    if role == "assistant":
        blocks = _assistant(wire, where)
    elif wire.role in {"tool", "function"}:
        blocks = (_result(wire, where),)
    else:
        blocks = _parts(wire.content, where)
    return Message(role=role, blocks=blocks, format=NAME, raw=raw)


def _assistant(wire: _Message, where: str) -> tuple[Block, ...]:
    blocks: list[Block] = []
    if wire.reasoning_content:
        blocks.append(Reasoning(text=wire.reasoning_content))
    elif (wire.reasoning is not NULL or wire.reasoning_details is not NULL) and (thought := _reasoning(wire)):
        blocks.append(thought)
    # Beside calls, empty text is the same as none.
    if wire.content or not wire.tool_calls:
        blocks.extend(_parts(wire.content, where))
    if wire.refusal is not NULL or wire.audio is not NULL:
        beside = (("refusal", bytes(wire.refusal)), ("audio", bytes(wire.audio)))
        blocks += [Unknown(type=type, raw=raw) for type, raw in beside if raw != b"null"]
    if wire.tool_calls:
        blocks += [_tool_use(call, where, index) for index, call in enumerate(wire.tool_calls)]
    if wire.function_call is not None:
        name = wire.function_call.name
        blocks.append(ToolUse(id=name, name=name, arguments=_arguments(wire.function_call.arguments)))
    return tuple(blocks)


def _reasoning(wire: _Message) -> Reasoning | None:
    """What was thought, under the other names; both may say the same. What is not understood stays in the message."""
    try:
        details = _thoughts.decode(wire.reasoning_details) if wire.reasoning_details is not NULL else []
    except msgspec.DecodeError:
        details = []
    text = "".join(each.text or each.summary or "" for each in details)
    raw = bytes(wire.reasoning)
    if not text and raw[:1] == b'"':
        text = text_decoder.decode(raw)
    signature = next((each.signature for each in details if each.signature), None)
    data = "".join(each.data or "" for each in details) or None
    return Reasoning(text=text, signature=signature, data=data) if text or signature or data else None


def _tool_use(raw: Raw, where: str, index: int) -> ToolUse:
    try:
        wire = _call.decode(raw)
    except UNREADABLE:
        wire = decode(_call, raw, f"{where}.tool_calls[{index}]".removeprefix("."))
    if wire.function is not None:
        arguments = _arguments(wire.function.arguments)
        return ToolUse(id=wire.id, name=wire.function.name, arguments=arguments, raw=bytes(raw))
    if wire.custom is not None:
        return ToolUse(id=wire.id, name=wire.custom.name, arguments=wire.custom.input, raw=bytes(raw))
    raise FormatError(
        "a call of neither a function nor a custom tool",
        where=f"{where}.tool_calls[{index}]".removeprefix("."),
        remedy="give it `function`",
    )


def _arguments(raw: Raw) -> str:
    """The text of the arguments; some servers write the object itself."""
    text = str(raw, "utf-8")
    return text_decoder.decode(raw) if text[:1] == '"' else text


def _result(wire: _Message, where: str) -> ToolResult:
    id = wire.tool_call_id if wire.role == "tool" else wire.name
    if id is None:
        field = "tool_call_id" if wire.role == "tool" else "name"
        raise FormatError(f"a {wire.role} message without {field}", where=where, remedy=f"give it {field}")
    return ToolResult(tool_use_id=id, content=_parts(wire.content, where))


def _parts(content: str | list[Raw] | None, where: str) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(text=content),)
    if content is None:
        return ()
    return tuple([_read_part(raw, where, index) for index, raw in enumerate(content)])


def _read_part(raw: Raw, where: str, index: int) -> Block:
    own = bytes(raw)
    try:
        wire = _part.decode(raw)
    except UNREADABLE:
        place = _place(where, index)
        kind = decode(_type, raw, place).type
        if kind not in KNOWN:
            return Unknown(type=kind, raw=own)
        wire = decode(_part, raw, place)
    if wire.type == "text" and wire.text is not None:
        return Text(text=wire.text, raw=own)
    if wire.type == "image_url" and wire.image_url is not None:
        return _image(wire.image_url, own)
    if wire.type == "file" and wire.file is not None:
        return _document(wire.file, own)
    if wire.type == "thinking" and wire.thinking is not NULL:
        return Reasoning(text=_thinking(wire.thinking), raw=own)
    if wire.type in KNOWN:
        place = _place(where, index)
        raise FormatError(f"a part of type {wire.type} without {wire.type}", where=place, remedy="leave it out")
    return Unknown(type=wire.type, raw=own)


def _thinking(raw: Raw) -> str:
    """The words of Mistral's part of this kind: parts of its own."""
    try:
        return "".join(each.text or "" for each in _thoughts.decode(raw))
    except msgspec.DecodeError:
        return ""


def _place(where: str, index: int) -> str:
    return f"{where}.content[{index}]".removeprefix(".")


def _image(wire: _ImageUrl, raw: bytes) -> Image:
    inline = split_data_url(wire.url)
    if inline is None:
        return Image(url=wire.url, detail=wire.detail, raw=raw)
    return Image(media_type=inline[0], data=inline[1], detail=wire.detail, raw=raw)


def _document(wire: _File, raw: bytes) -> Document:
    inline = split_data_url(wire.file_data) if wire.file_data else None
    media_type, data = inline if inline is not None else (None, wire.file_data)
    return Document(media_type=media_type, data=data, url=wire.file_id, title=wire.filename, raw=raw)


def read_body(body: bytes) -> Request:
    """A request body or a list of messages."""
    if body.lstrip()[:1] == b"[":
        return Request(format=NAME, messages=read_each(body, "", read_message), bare=True)
    fields, items = take_out(body, "messages")
    if items is None and "messages" not in fields:
        raise FormatError("a request body without messages", remedy="pass a body with `messages`, or the list itself")
    if items is None:
        messages = read_each(fields.pop("messages"), "messages", read_message)
    else:
        messages = read_items(items, "messages", read_message)
    tools = fields.pop("tools", None)
    model = fields.pop("model", None)
    return Request(
        format=NAME,
        messages=messages,
        tools=() if tools is None or bytes(tools) == b"null" else read_each(tools, "tools", read_tool),
        model=None if model is None else decode(text_decoder, model, "model"),
        rest=fields,
    )


def read_system(value: Any) -> Message:
    """A system prompt: text, or a list of text parts."""
    if isinstance(value, Message):
        return value
    return read_message(b'{"role":"system","content":' + encode(value, "system") + b"}", "system")


def read_tool(raw: bytes, where: str) -> Tool:
    """A tool definition."""
    wire = decode(_tool, raw, where)
    known = wire.function or wire.custom or _Definition(name=wire.type)
    return Tool(
        name=known.name, description=known.description or "", schema=known.parameters or {}, format=NAME, raw=raw
    )


def read_reply(body: bytes) -> Reply:
    """A response: its first choice."""
    wire = decode(_reply, body)
    if not wire.choices:
        raise FormatError("a response without a choice", where="choices", remedy="check for an error before adding it")
    choice = wire.choices[0]
    return Reply(
        message=read_message(bytes(choice.message), "choices[0].message"),
        usage=None if wire.usage is None else _read_usage(wire.usage),
        model=wire.model,
        stop_reason=choice.finish_reason,
    )


def _read_usage(wire: _Usage) -> Usage:
    details = wire.prompt_tokens_details or _Details()
    read = details.cached_tokens or wire.prompt_cache_hit_tokens or wire.cached_tokens or 0
    write = details.cache_write_tokens or 0
    return Usage(
        input=max((wire.prompt_tokens or 0) - read - write, 0),
        output=wire.completion_tokens or 0,
        cache_write=write,
        cache_read=read,
    )


BESIDE = frozenset({"refusal", "audio"})
"""Kinds that stand beside the content, as fields of the message."""

REPLACED = frozenset({"role", "content", "tool_calls", "tool_call_id", "function_call"})
"""Fields that are written from the blocks."""


def render_message(message: Message) -> list[bytes]:
    """The message as OpenAI takes it: reasoning of a dialect stays behind, as unknown fields are refused."""
    if message.format != NAME and message.format in DIALECTS and message.role == "assistant":
        message = without_reasoning(message)
    return render_chat(message)


def without_reasoning(message: Message) -> Message:
    """The message without what the model thought; the same object when it holds nothing of it."""
    kept = tuple(block for block in message.blocks if not isinstance(block, Reasoning))
    if len(kept) == len(message.blocks) and not (message.raw is not None and _has_field(message.raw)):
        return message
    return msgspec.structs.replace(message, blocks=kept, edited=True)


def _has_field(raw: bytes) -> bool:
    """Whether a field for reasoning is there, be it empty."""
    return b'"reasoning' in raw and not decode(fields_decoder, raw).keys().isdisjoint(REASONING_FIELDS)


def render_chat(message: Message) -> list[bytes]:
    """The message as all dialects write it: results as one message each, then the rest."""
    native = message.format in DIALECTS
    if native and message.raw is not None and not message.edited:
        return [message.raw]
    template = decode(fields_decoder, message.raw) if native and message.raw is not None else {}
    role = decode(text_decoder, template["role"]) if "role" in template else message.role
    if message.role == "assistant":
        return [_render_assistant(message.blocks, template, native=native)]
    if message.role == "system":
        around = _around(template, "developer" if role == "developer" else "system")
        return [encode({**around, "content": _content(_words(message.blocks), native=native)})]
    return list(_user(message.blocks, template, role, native=native))


def _around(template: Mapping[str, Raw], role: str) -> dict[str, Any]:
    """The fields of the message that came, without what the blocks say, and without a null for what is not there."""
    return {"role": role, **{key: value for key, value in template.items() if key not in REPLACED}}


def _user(blocks: Sequence[Block], template: Mapping[str, Raw], role: str, *, native: bool) -> Iterator[bytes]:
    is_result = role in {"tool", "function"}
    rest: list[Block] = []
    for block in blocks:
        if not isinstance(block, ToolResult):
            rest.append(block)
            continue
        around = _around(template if is_result else {}, "tool")
        yield encode({**around, "tool_call_id": block.tool_use_id, "content": _render_result(block, native=native)})
        if media := [each for each in block.content if is_media(each)]:
            rest += [Text(text=rules.hoisted(block.tool_use_id)), *media]
    if rest or not blocks:
        content = _content(rest or [Text(text=rules.EMPTY)], native=native)
        yield encode({**_around({} if is_result else template, "user"), "content": content})


def _render_result(block: ToolResult, *, native: bool) -> Any:
    """Text only: what else a tool returned follows in a message of its own."""
    text = [each for each in block.content if isinstance(each, Text)]
    if native and not block.is_error and text and len(text) == len(block.content) and all(each.raw for each in text):
        return [Raw(each.raw) for each in text if each.raw is not None]
    kept = tuple(each for each in block.content if not is_media(each))
    words = result_text(ToolResult(tool_use_id=block.tool_use_id, content=kept), flagged=False)
    return FAILED + words if block.is_error else words


def _render_assistant(blocks: Sequence[Block], template: Mapping[str, Raw], *, native: bool) -> bytes:
    around = _around(template, "assistant")
    if not any(isinstance(block, Reasoning) for block in blocks):
        around = {key: value for key, value in around.items() if key not in REASONING_FIELDS}
    beside = {block.type for block in blocks if isinstance(block, Unknown) and _is_beside(block, native=native)}
    for kind in BESIDE - beside:
        around.pop(kind, None)
    calls = [_render_call(block, native=native) for block in blocks if isinstance(block, ToolUse)]
    if calls:
        around["tool_calls"] = calls
    words = [
        each
        for each in _words(blocks, thoughts=native)
        if not (isinstance(each, Unknown) and _is_beside(each, native=native))
    ]
    if not words and not calls and not beside:
        words = [Text(text=rules.EMPTY)]
    return encode({"role": "assistant", "content": _content(words, native=native) if words else None, **around})


def _is_beside(block: Unknown, *, native: bool) -> bool:
    """Whether a block is a field of the message rather than a part of its content."""
    if not native or block.raw is None:
        return False
    return block.type == "audio" or (block.type == "refusal" and block.raw[:1] == b'"')


def _words(blocks: Iterable[Block], *, thoughts: bool = False) -> list[Block]:
    """What the system and the assistant may say: text and parts of its own kind; pictures and files as words."""
    found: list[Block] = []
    for block in blocks:
        is_thought = thoughts and isinstance(block, Reasoning) and block.raw is not None
        if isinstance(block, Text | Unknown) or is_thought:
            found.append(block)
        elif not isinstance(block, Reasoning | ToolUse):
            found.append(Text(text=in_words(block)))
    return found


def _render_call(block: ToolUse, *, native: bool) -> Raw:
    if native and block.raw is not None:
        return Raw(block.raw)
    function = {"name": safe_name(block.name), "arguments": block.arguments}
    return Raw(encode({"id": block.id, "type": "function", "function": function}))


def _content(blocks: Sequence[Block], *, native: bool) -> Any:
    """Plain text where that says it all, else parts."""
    if not blocks:
        return ""
    only = blocks[0]
    if len(blocks) == 1 and isinstance(only, Text) and (only.raw is None or not native):
        return only.text
    return [_render_part(block, native=native) for block in blocks]


def _render_part(block: Block, *, native: bool) -> Any:
    if native and block.raw is not None and block.raw[:1] == b"{":
        return Raw(block.raw)
    if isinstance(block, Image) and (url := image_url(block)) is not None:
        detail = {"detail": block.detail} if block.detail else {}
        return {"type": "image_url", "image_url": {"url": url, **detail}}
    if isinstance(block, Document) and block.data is not None:
        file = {"filename": block.title or "document", "file_data": data_url(block.media_type, block.data)}
        return {"type": "file", "file": file}
    return {"type": "text", "text": block.text if isinstance(block, Text) else in_words(block)}


def render_system(systems: Sequence[Message]) -> bytes | None:
    """One system message."""
    if len(systems) == 1:
        return render_message(systems[0])[0]
    text = "\n\n".join(words for system in systems if (words := _system_text(system)))
    return encode({"role": "system", "content": text}) if text else None


def _system_text(system: Message) -> str:
    return "\n".join(in_words(block) for block in system.blocks)


def render_tool(tool: Tool) -> bytes:
    """A tool definition."""
    if tool.format in DIALECTS and tool.raw is not None:
        return tool.raw
    function: dict[str, Any] = {"name": safe_name(tool.name)}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = {"type": "object", **tool.schema}
    return encode({"type": "function", "function": function})


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
    fields.update(rest)
    if tools:
        fields["tools"] = b"[" + b",".join(tools) + b"]"
    return join_body(fields, messages if system is None else [system, *messages])
