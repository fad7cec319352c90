"""Reads and renders OpenAI Chat Completions: each message and part keeps the exact bytes it came as.

A `tool` message is a user message with one result; what stands beside the content (a refusal, audio, reasoning) becomes
a block without a place in the content, and stays a field of the message when it is rendered.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

import msgspec
from msgspec import Raw

from windowsill.errors import FormatError
from windowsill.history import repair_rules
from windowsill.history.repair import is_media, safe_name
from windowsill.messages import (
    Block,
    Document,
    Image,
    Message,
    Reasoning,
    Reply,
    Role,
    Text,
    ToolResult,
    ToolUse,
    Unknown,
    Usage,
)
from windowsill.providers.base import Format, ToolChoice, role_of, usage_of
from windowsill.providers.convert import FAILED, all_in_words, data_url, image_url, in_words, read_image, split_data_url
from windowsill.providers.openai_chat import DIALECTS, REASONING_FIELDS, SPEC, rules
from windowsill.providers.openai_chat.stream import OpenAIStream
from windowsill.providers.wire import (
    NULL,
    UNREADABLE,
    decode,
    encode,
    fields_decoder,
    kind_of,
    text_decoder,
    text_or_json,
)

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "user",
    "function": "user",
}

BESIDE = frozenset({"refusal", "audio"})
"""Kinds that stand beside the content, as fields of the message."""

REPLACED = frozenset({"role", "content", "tool_calls", "tool_call_id", "function_call"})
"""Fields that are written from the blocks."""

KNOWN_PARTS = frozenset({"text", "image_url", "file"})

_EMPTY_CALLS = re.compile(rb'"tool_calls"\s*:\s*\[\s*\]')


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


class _WrittenFunction(msgspec.Struct, gc=False):
    name: str
    arguments: str


class _WrittenCall(msgspec.Struct, gc=False):
    """A call as nearly all are: of a function, with its arguments as text."""

    id: str
    function: _WrittenFunction


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


class _Thought(msgspec.Struct, gc=False):
    text: str | None = None
    summary: str | None = None
    signature: str | None = None
    data: str | None = None


class UsageDetails(msgspec.Struct, gc=False):
    """The tokens of a prompt that a cache served and took; Responses has the same."""

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: UsageDetails | None = None
    prompt_cache_hit_tokens: int | None = None
    """DeepSeek's name for what was read from its cache."""
    cached_tokens: int | None = None
    """Kimi's."""


class _Choice(msgspec.Struct, gc=False):
    message: Raw
    finish_reason: str | None = None


class _Reply(msgspec.Struct, gc=False):
    choices: list[_Choice]
    usage: Raw = NULL
    model: str | None = None


_message = msgspec.json.Decoder(_Message)
_written_call = msgspec.json.Decoder(_WrittenCall)
_call = msgspec.json.Decoder(_Call)
_part = msgspec.json.Decoder(_Part)
_thoughts = msgspec.json.Decoder(list[_Thought])
_usage = msgspec.json.Decoder(_Usage)
_reply = msgspec.json.Decoder(_Reply)


class OpenAI(Format):
    """The format of `POST /v1/chat/completions`."""

    spec = SPEC
    stream = OpenAIStream

    def is_own(self, format: str) -> bool:
        """Tell whether bytes of `format` can be sent as they are: those of all dialects can."""
        return format in DIALECTS

    def read_message(self, raw: bytes, where: str) -> Message:
        """Read one message."""
        wire = decode(_message, raw, where)
        role = role_of(wire.role, ROLES, self.name, where)
        if role == "assistant":
            blocks = _read_assistant(wire, where)
        elif wire.role in {"tool", "function"}:
            blocks = (_read_result(wire, where),)
        else:
            blocks = _read_parts(wire.content, where)
        return Message(role=role, blocks=blocks, format=self.spec.name, raw=raw)

    def read_system_value(self, raw: bytes) -> Message:
        """Read a system prompt: text, or a list of text parts."""
        return self.read_message(b'{"role":"system","content":' + raw + b"}", "system")

    def unwrap_tool(self, raw: bytes, where: str) -> bytes:
        """Return the function or custom tool inside a definition."""
        fields = decode(fields_decoder, raw, where)
        return bytes(fields.get("function") or fields.get("custom") or raw)

    def read_reply(self, body: bytes) -> Reply:
        """Read a response: its first choice."""
        wire = decode(_reply, body)
        if not wire.choices:
            remedy = "check for an error before adding it"
            raise FormatError("a response without a choice", where="choices", remedy=remedy)
        choice = wire.choices[0]
        return Reply(
            message=self.read_message(bytes(choice.message), "choices[0].message"),
            usage=None if wire.usage == NULL else self.read_usage(bytes(wire.usage)),
            model=wire.model,
            stop_reason=choice.finish_reason,
        )

    def read_usage(self, raw: bytes) -> Usage:
        """Read the usage of a call."""
        wire = decode(_usage, raw, "usage")
        details = wire.prompt_tokens_details or UsageDetails()
        read = details.cached_tokens or wire.prompt_cache_hit_tokens or wire.cached_tokens
        return usage_of(wire.prompt_tokens, wire.completion_tokens, read=read, written=details.cache_write_tokens)

    def render_message(self, message: Message) -> list[bytes]:
        """Render a message as OpenAI takes it: reasoning of a dialect stays behind, as unknown fields are refused."""
        if message.format != self.spec.name and message.format in DIALECTS and message.role == "assistant":
            message = _without_reasoning(message)
        return render_chat(message)

    def render_system(self, systems: Sequence[Message]) -> bytes | None:
        """Render one system message."""
        if len(systems) == 1:
            return self.render_message(systems[0])[0]
        texts = ("\n".join(in_words(block) for block in system.blocks) for system in systems)
        text = "\n\n".join(each for each in texts if each)
        return encode({"role": "system", "content": text}) if text else None

    def render_reply(self, message: Message, *, model: str, usage: Usage | None = None, whole: bool = True) -> bytes:
        """Render a response that holds this message; of the dialects of a chat only requests differ."""
        chunk = OpenAI.render_message(self, message)[0]
        reason = (SPEC.stops.calls if message.calls else SPEC.stops.done) if whole else None
        choice = {"index": 0, "message": Raw(chunk), "logprobs": None, "finish_reason": reason}
        id = f"chatcmpl-{hashlib.blake2b(chunk, digest_size=8).hexdigest()}"
        head = {"id": id, "object": "chat.completion", "created": 0, "model": model}
        return encode({**head, "choices": [choice], **({} if usage is None else {"usage": self.render_usage(usage)})})

    def render_usage(self, usage: Usage, reasoning: int = 0) -> dict[str, Any]:
        """Return a usage in OpenAI's words."""
        return {
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.output,
            "total_tokens": usage.total,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read},
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        }

    def render_tool_choice(self, choice: ToolChoice) -> dict[str, Any]:
        """Return the field `tool_choice`."""
        if choice.mode != "one":
            return {"tool_choice": choice.mode}
        return {"tool_choice": {"type": "function", "function": {"name": safe_name(choice.name)}}}

    def wrap_tool(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the definition of a function."""
        return {"type": "function", "function": fields}

    def with_schema(self, raw: bytes, schema: dict[str, Any]) -> bytes | None:
        """Return the definition of a function with another schema."""
        fields = decode(fields_decoder, raw)
        if "function" not in fields:
            return None
        function = decode(fields_decoder, fields["function"])
        return encode({**fields, "function": {**function, "parameters": schema}})

    check_body = staticmethod(rules.check_body)
    check_messages = staticmethod(rules.check_messages)


def _read_assistant(wire: _Message, where: str) -> tuple[Block, ...]:
    blocks: list[Block] = []
    if wire.reasoning_content:
        blocks.append(Reasoning(text=wire.reasoning_content))
    elif (wire.reasoning is not NULL or wire.reasoning_details is not NULL) and (thought := _read_reasoning(wire)):
        blocks.append(thought)
    # Beside calls, empty text is the same as none.
    if wire.content or not wire.tool_calls:
        blocks.extend(_read_parts(wire.content, where))
    if wire.refusal is not NULL or wire.audio is not NULL:
        beside = (("refusal", bytes(wire.refusal)), ("audio", bytes(wire.audio)))
        blocks += [Unknown(type=type, raw=raw) for type, raw in beside if raw != b"null"]
    if wire.tool_calls:
        blocks += [_read_call(call, where, index) for index, call in enumerate(wire.tool_calls)]
    if wire.function_call is not None:
        name = wire.function_call.name
        blocks.append(ToolUse(id=name, name=name, arguments=text_or_json(wire.function_call.arguments)))
    return tuple(blocks)


def _read_reasoning(wire: _Message) -> Reasoning | None:
    """Read reasoning under its other names; both may say the same. What is not understood stays in the message."""
    details = _read_thoughts(wire.reasoning_details)
    text = "".join(each.text or each.summary or "" for each in details)
    raw = bytes(wire.reasoning)
    if not text and raw[:1] == b'"':
        text = text_decoder.decode(raw)
    signature = next((each.signature for each in details if each.signature), None)
    data = "".join(each.data or "" for each in details) or None
    return Reasoning(text=text, signature=signature, data=data) if text or signature or data else None


def _read_call(raw: Raw, where: str, index: int) -> ToolUse:
    try:
        written = _written_call.decode(raw)
        function = written.function
        return ToolUse(id=written.id, name=function.name, arguments=function.arguments, raw=bytes(raw))
    except UNREADABLE:
        place = f"{where}.tool_calls[{index}]".removeprefix(".")
        wire = decode(_call, raw, place)
    if wire.function is not None:
        arguments = text_or_json(wire.function.arguments)
        return ToolUse(id=wire.id, name=wire.function.name, arguments=arguments, raw=bytes(raw))
    if wire.custom is not None:
        return ToolUse(id=wire.id, name=wire.custom.name, arguments=wire.custom.input, raw=bytes(raw))
    raise FormatError("a call of neither a function nor a custom tool", where=place, remedy="give it `function`")


def _read_result(wire: _Message, where: str) -> ToolResult:
    id = wire.tool_call_id if wire.role == "tool" else wire.name
    if id is None:
        field = "tool_call_id" if wire.role == "tool" else "name"
        raise FormatError(f"a {wire.role} message without {field}", where=where, remedy=f"give it {field}")
    return ToolResult(tool_use_id=id, content=_read_parts(wire.content, where))


def _read_parts(content: str | list[Raw] | None, where: str) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(text=content),)
    if content is None:
        return ()
    return tuple([_read_part(bytes(raw), where, index) for index, raw in enumerate(content)])


def _read_part(raw: bytes, where: str, index: int) -> Block:
    try:
        wire = _part.decode(raw)
    except UNREADABLE:
        place = f"{where}.content[{index}]".removeprefix(".")
        if (kind := kind_of(raw, place)) not in KNOWN_PARTS:
            return Unknown(type=kind, raw=raw)
        wire = decode(_part, raw, place)
    if wire.type == "text" and wire.text is not None:
        return Text(text=wire.text, raw=raw)
    if wire.type == "image_url" and wire.image_url is not None:
        return read_image(wire.image_url.url, detail=wire.image_url.detail, raw=raw)
    if wire.type == "file" and wire.file is not None:
        file = wire.file
        media_type, data = split_data_url(file.file_data) or (None, file.file_data)
        return Document(media_type=media_type, data=data, url=file.file_id, title=file.filename, raw=raw)
    if wire.type == "thinking" and wire.thinking is not NULL:
        # Mistral's part of this kind has parts of its own.
        return Reasoning(text="".join(each.text or "" for each in _read_thoughts(wire.thinking)), raw=raw)
    if wire.type in KNOWN_PARTS:
        place = f"{where}.content[{index}]".removeprefix(".")
        raise FormatError(f"a part of type {wire.type} without {wire.type}", where=place, remedy="leave it out")
    return Unknown(type=wire.type, raw=raw)


def _read_thoughts(raw: Raw) -> list[_Thought]:
    """Read a list of thoughts; in any other form there are none."""
    try:
        return _thoughts.decode(raw)
    except msgspec.DecodeError:
        return []


def _without_reasoning(message: Message) -> Message:
    """Return the message without reasoning; the same object when it holds none."""
    kept = tuple(block for block in message.blocks if not isinstance(block, Reasoning))
    raw = message.raw
    has_field = (
        raw is not None and b'"reasoning' in raw and not decode(fields_decoder, raw).keys().isdisjoint(REASONING_FIELDS)
    )
    if len(kept) == len(message.blocks) and not has_field:
        return message
    return msgspec.structs.replace(message, blocks=kept, edited=True)


def render_chat(message: Message) -> list[bytes]:
    """Render a message as all dialects write it: results as one message each, then the rest."""
    native = message.format in DIALECTS
    if native and message.raw is not None and not message.edited:
        calls = message.calls if message.role == "assistant" else None
        if calls == ():
            return [_without_empty_calls(message.raw)]
        if calls is None or not any(map(_lacks_arguments, calls)):
            return [message.raw]
    template = decode(fields_decoder, message.raw) if native and message.raw is not None else {}
    role = decode(text_decoder, template["role"]) if "role" in template else message.role
    if message.role == "assistant":
        return [_render_assistant(message.blocks, template, native=native)]
    if message.role == "system":
        around = _around(template, "developer" if role == "developer" else "system")
        return [encode({**around, "content": _content(_spoken(message.blocks), native=native)})]
    return list(_render_user(message.blocks, template, role, native=native))


def _without_empty_calls(raw: bytes) -> bytes:
    """Leave out an empty list of calls: some servers write it, and OpenAI refuses it."""
    if not _EMPTY_CALLS.search(raw):
        return raw
    return encode({key: value for key, value in decode(fields_decoder, raw).items() if key != "tool_calls"})


def _lacks_arguments(call: ToolUse) -> bool:
    """Tell whether a call came without text for its arguments: some servers write none, or the object."""
    raw = call.raw or b""
    # The usual spellings need no second look.
    if b'"arguments":"' in raw or b'"arguments": "' in raw or b'"function"' not in raw:
        return False
    function = decode(fields_decoder, raw).get("function", NULL)
    return function != NULL and bytes(decode(fields_decoder, function).get("arguments", NULL))[:1] != b'"'


def _around(template: Mapping[str, Raw], role: str) -> dict[str, Any]:
    """Return the fields of the message that came, without what the blocks say."""
    return {"role": role, **{key: value for key, value in template.items() if key not in REPLACED}}


def _render_user(blocks: Sequence[Block], template: Mapping[str, Raw], role: str, *, native: bool) -> Iterator[bytes]:
    is_result = role in {"tool", "function"}
    rest: list[Block] = []
    for block in blocks:
        if not isinstance(block, ToolResult):
            rest.append(block)
            continue
        around = _around(template if is_result else {}, "tool")
        yield encode({**around, "tool_call_id": block.tool_use_id, "content": _render_result(block, native=native)})
        if media := [each for each in block.content if is_media(each)]:
            rest += [Text(text=repair_rules.attached_heading(block.tool_use_id)), *media]
    if rest or not blocks:
        content = _content(rest or [Text(text=repair_rules.EMPTY)], native=native)
        yield encode({**_around({} if is_result else template, "user"), "content": content})


def _render_result(block: ToolResult, *, native: bool) -> Any:
    """Render text only: what else a tool returned follows in a message of its own."""
    own = [each.raw for each in block.content if isinstance(each, Text) and each.raw]
    if native and not block.is_error and own and len(own) == len(block.content):
        return [Raw(raw) for raw in own]
    text = all_in_words(each for each in block.content if not is_media(each))
    return FAILED + text if block.is_error else text


def _render_assistant(blocks: Sequence[Block], template: Mapping[str, Raw], *, native: bool) -> bytes:
    around = _around(template, "assistant")
    if not any(isinstance(block, Reasoning) for block in blocks):
        around = {key: value for key, value in around.items() if key not in REASONING_FIELDS}
    beside = {block.type for block in blocks if _is_beside(block, native=native)}
    for kind in BESIDE - beside:
        around.pop(kind, None)
    calls = [_render_call(block, native=native) for block in blocks if isinstance(block, ToolUse)]
    if calls:
        around["tool_calls"] = calls
    said = [each for each in _spoken(blocks, thoughts=native) if not _is_beside(each, native=native)]
    if not said and not calls and not beside:
        said = [Text(text=repair_rules.EMPTY)]
    return encode({"role": "assistant", "content": _content(said, native=native) if said else None, **around})


def _is_beside(block: Block, *, native: bool) -> TypeGuard[Unknown]:
    """Tell whether a block is a field of the message rather than a part of its content."""
    if not native or not isinstance(block, Unknown) or block.raw is None:
        return False
    return block.type == "audio" or (block.type == "refusal" and block.raw[:1] == b'"')


def _spoken(blocks: Iterable[Block], *, thoughts: bool = False) -> list[Block]:
    """Return what the system and the assistant may say: text and parts of its own kind; media as text."""
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
        if not _lacks_arguments(block):
            return Raw(block.raw)
        fields = decode(fields_decoder, block.raw)
        written = {**decode(fields_decoder, fields["function"]), "arguments": _spelled(block.arguments)}
        return Raw(encode({**fields, "function": written}))
    function = {"name": safe_name(block.name), "arguments": _spelled(block.arguments)}
    return Raw(encode({"id": block.id, "type": "function", "function": function}))


def _spelled(arguments: str) -> str:
    """Return the arguments of a call; none at all are an empty object."""
    return "{}" if not arguments or arguments == "null" else arguments


def _content(blocks: Sequence[Block], *, native: bool) -> Any:
    """Return plain text where that says it all, which every server takes; else parts."""
    if all(isinstance(block, Text) and (block.raw is None or not native) for block in blocks):
        return "\n\n".join(block.text for block in blocks if isinstance(block, Text) and block.text)
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
