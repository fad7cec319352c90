"""Reads and renders Anthropic Messages: each message and block keeps the exact bytes it came as."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from windowsill.errors import FormatError
from windowsill.history import repair_rules
from windowsill.history.repair import is_blank, safe_id, safe_name
from windowsill.messages import (
    Block,
    Cleared,
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
from windowsill.providers.anthropic import ID_PATTERN, IMAGE_TYPES, SPEC, rules
from windowsill.providers.anthropic.stream import AnthropicStream
from windowsill.providers.base import THOUGHTS, Format, ToolChoice, role_of, without_format
from windowsill.providers.convert import arguments_object, in_words, is_web
from windowsill.providers.wire import (
    NULL,
    UNREADABLE,
    any_decoder,
    decode,
    encode,
    fields_decoder,
    items_decoder,
    kind_of,
)

NAME = SPEC.name
ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
PDF = "application/pdf"

_id = re.compile(ID_PATTERN)


class _Message(msgspec.Struct, gc=False):
    role: str
    content: str | list[Raw] | None = None


class _Block(msgspec.Struct, gc=False):
    type: str
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = Raw(b"{}")
    tool_use_id: str | None = None
    content: str | list[Raw] | None = None
    is_error: bool | None = None
    source: Raw = Raw(b"{}")
    title: str | None = None


class _Source(msgspec.Struct, gc=False):
    type: str = ""
    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    content: str | list[Raw] | None = None


class _Usage(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class _Edit(msgspec.Struct, gc=False):
    cleared_tool_uses: int = 0
    cleared_input_tokens: int = 0


class _Edits(msgspec.Struct, gc=False):
    applied_edits: list[_Edit] = []


class _Reply(msgspec.Struct, gc=False):
    content: Raw
    usage: Raw = NULL
    model: str | None = None
    stop_reason: str | None = None
    context_management: _Edits | None = None


_message = msgspec.json.Decoder(_Message)
_block = msgspec.json.Decoder(_Block)
_source = msgspec.json.Decoder(_Source)
_usage = msgspec.json.Decoder(_Usage)
_reply = msgspec.json.Decoder(_Reply)

_NEEDED = {
    "text": "text",
    "tool_use": "id and name",
    "tool_result": "tool_use_id",
    "thinking": "thinking",
    "redacted_thinking": "data",
    "image": "source",
    "document": "source",
}
"""Kinds of blocks that are understood, and the fields that each must have."""


class Anthropic(Format):
    """The format of `POST /v1/messages`."""

    spec = SPEC
    stream = AnthropicStream

    def read_message(self, raw: bytes, where: str) -> Message:
        """Read one message."""
        wire = decode(_message, raw, where)
        role = role_of(wire.role, ROLES, NAME, where)
        return Message(role=role, blocks=_read_content(wire.content, where), format=NAME, raw=raw)

    def read_system_value(self, raw: bytes) -> Message:
        """Read a system prompt: text or a list of text blocks."""
        value = decode(any_decoder, raw, "system")
        if not isinstance(value, str | list):
            raise FormatError("neither text nor a list of blocks", where="system", remedy="pass text")
        content = value if isinstance(value, str) else items_decoder.decode(raw)
        return Message(role="system", blocks=_read_content(content, "system", "system"), format=NAME, raw=raw)

    def read_reply(self, body: bytes) -> Reply:
        """Read a response. The message keeps what may be sent again: the role and the content, as it came."""
        wire = decode(_reply, body)
        raw = b'{"role":"assistant","content":' + bytes(wire.content) + b"}"
        edits = wire.context_management.applied_edits if wire.context_management is not None else []
        uses = sum(edit.cleared_tool_uses for edit in edits)
        tokens = sum(edit.cleared_input_tokens for edit in edits if edit.cleared_tool_uses)
        return Reply(
            message=self.read_message(raw, ""),
            usage=None if wire.usage == NULL else self.read_usage(bytes(wire.usage)),
            model=wire.model,
            stop_reason=wire.stop_reason,
            cleared=Cleared(uses, tokens) if uses else None,
        )

    def read_usage(self, raw: bytes) -> Usage:
        """Read the usage of a call."""
        wire = decode(_usage, raw, "usage")
        return Usage(
            input=wire.input_tokens or 0,
            output=wire.output_tokens or 0,
            cache_write=wire.cache_creation_input_tokens or 0,
            cache_read=wire.cache_read_input_tokens or 0,
        )

    def render_message(self, message: Message) -> list[bytes]:
        """Render a message as Anthropic takes it."""
        native = message.format == NAME
        if native and message.raw is not None and not message.edited:
            return [message.raw]
        if message.role == "system" and not native:
            text = repair_rules.as_system("\n".join(in_words(block) for block in message.blocks))
            return [encode({"role": "user", "content": text})]
        blocks = list(_render_blocks(message.blocks, native=native)) or [_text(repair_rules.EMPTY)]
        content = b"[" + b",".join(blocks) + b"]"
        if native and message.raw is not None:
            fields = decode(fields_decoder, message.raw)
            return [encode({**fields, "content": Raw(content)})]
        return [b'{"role":' + encode(message.role) + b',"content":' + content + b"}"]

    def render_system(self, systems: Sequence[Message]) -> bytes | None:
        """Render the value of `system`."""
        if len(systems) == 1 and systems[0].format == NAME and not systems[0].edited:
            raw = systems[0].raw or b""
            # What stood under `system` is text or a list; in a message it is an object.
            if raw[:1] in {b'"', b"["}:
                return raw
        blocks = [
            rendered
            for message in systems
            for block in message.blocks
            if not (isinstance(block, Text) and is_blank(block.text))
            for rendered in _render_blocks(
                [block if isinstance(block, Text) else Text(text=in_words(block))], native=message.format == NAME
            )
        ]
        return b"[" + b",".join(blocks) + b"]" if blocks else None

    def render_reply(self, message: Message, *, model: str, usage: Usage | None = None, whole: bool = True) -> bytes:
        """Render a response that holds this message."""
        (chunk,) = self.render_message(message)
        reason = (SPEC.stops.calls if message.calls else SPEC.stops.done) if whole else None
        head = {"id": f"msg_{hashlib.blake2b(chunk, digest_size=8).hexdigest()}", "type": "message", "model": model}
        end = {"stop_reason": reason, "stop_sequence": None}
        used = {} if usage is None else {"usage": self.render_usage(usage)}
        fields = decode(fields_decoder, chunk)
        return encode({**head, **fields, **end, **used})

    def render_usage(self, usage: Usage, reasoning: int = 0) -> dict[str, Any]:
        """Return a usage in Anthropic's words, which do not tell reasoning apart."""
        return {
            "input_tokens": usage.input,
            "cache_creation_input_tokens": usage.cache_write,
            "cache_read_input_tokens": usage.cache_read,
            "output_tokens": usage.output,
        }

    def render_tool_choice(self, choice: ToolChoice) -> dict[str, Any]:
        """Return the field `tool_choice`."""
        if choice.mode == "one":
            return {"tool_choice": {"type": "tool", "name": safe_name(choice.name)}}
        return {"tool_choice": {"type": "any" if choice.mode == "required" else choice.mode}}

    def text_only(self, fields: dict[str, Any], *, limit: int, limit_field: str, tools: bool) -> dict[str, Any]:
        """Ask for one whole text. The choice of tools stays: Anthropic's cache forgets all messages when it changes.

        Only a call that is demanded is forbidden: nothing else could come back.
        """
        demanded = tools and (fields.get("tool_choice") or {}).get("type") in {"any", "tool"}
        plain = without_format(fields, "output_config")
        return super().text_only(plain, limit=limit, limit_field=limit_field, tools=demanded)

    def thinking_tokens(self, fields: dict[str, Any]) -> int:
        """Return the tokens of `thinking`, which count against the limit and stand below it."""
        thinking = fields.get("thinking") or {}
        return int(thinking.get("budget_tokens") or (THOUGHTS if thinking.get("type") == "adaptive" else 0))

    def fit_fields(
        self, fields: dict[str, Raw], messages: Sequence[bytes], *, bound_reasoning: bool = False
    ) -> dict[str, Raw]:
        """Take back a demand to think while the running turn does not begin with thinking: it was cut, or came without.

        Models that bind their reasoning to the past lose it with every fold; they may still choose to think.
        """
        if "thinking" not in fields:
            return fields
        thinking = decode(any_decoder, fields["thinking"], "thinking")
        if not rules.thinks(thinking):
            return fields
        turn: list[Any] = []
        for chunk in reversed(messages):
            turn.insert(0, decode(any_decoder, chunk))
            if turn[0].get("role") == "user" and b'"tool_result"' not in chunk:
                break
        if rules.lacks_thinking(turn, thinking) is None:
            return fields
        if bound_reasoning:
            return {**fields, "thinking": Raw(encode({"type": "adaptive"}))}
        return {key: value for key, value in fields.items() if key != "thinking"}

    check_body = staticmethod(rules.check_body)
    check_messages = staticmethod(rules.check_messages)


def _read_content(content: str | list[Raw] | None, where: str, field: str = "") -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(text=content),)
    if content is None:
        return ()
    place = field or f"{where}.content".removeprefix(".")
    return tuple([_read_block(bytes(raw), place, index) for index, raw in enumerate(content)])


def _read_block(raw: bytes, list_place: str, index: int) -> Block:
    """Read one block; of a kind that is not known, its bytes."""
    try:
        wire = _block.decode(raw)
    except UNREADABLE:
        place = f"{list_place}[{index}]"
        if (kind := kind_of(raw, place)) not in _NEEDED:
            return Unknown(type=kind, raw=raw)
        wire = decode(_block, raw, place)
    match wire.type:
        case "text" if wire.text is not None:
            return Text(text=wire.text, raw=raw)
        case "tool_use" if wire.id is not None and wire.name is not None:
            return ToolUse(id=wire.id, name=wire.name, arguments=str(wire.input, "utf-8"), raw=raw)
        case "tool_result" if wire.tool_use_id is not None:
            content = _read_content(wire.content, f"{list_place}[{index}]") if wire.content else ()
            return ToolResult(tool_use_id=wire.tool_use_id, content=content, is_error=bool(wire.is_error), raw=raw)
        case "thinking" if wire.thinking is not None:
            # An empty signature is that of a stream that broke off: there is none.
            return Reasoning(text=wire.thinking, signature=wire.signature or None, raw=raw)
        case "redacted_thinking" if wire.data is not None:
            return Reasoning(data=wire.data, raw=raw)
        case "image" | "document":
            return _read_media(wire, raw, f"{list_place}[{index}].source")
    needed = _NEEDED.get(wire.type)
    if needed is None:
        return Unknown(type=wire.type, raw=raw)
    what = f"a {wire.type} block without {needed}"
    raise FormatError(what, where=f"{list_place}[{index}]", remedy=f"give it {needed}, or leave it out")


def _read_media(wire: _Block, raw: bytes, where: str) -> Image | Document:
    source = decode(_source, wire.source, where)
    url = source.url or source.file_id
    if wire.type == "image":
        return Image(media_type=source.media_type, data=source.data, url=url, raw=raw)
    text = source.data if source.type == "text" else _inner_text(source.content)
    data = None if text is not None else source.data
    return Document(media_type=source.media_type, data=data, url=url, text=text, title=wire.title, raw=raw)


def _inner_text(content: str | list[Raw] | None) -> str | None:
    """Return the text of a document that was given as blocks of its own."""
    if isinstance(content, str) or content is None:
        return content
    return "\n".join(text for raw in content if (text := _part_text(any_decoder.decode(raw))))


def _part_text(value: Any) -> str:
    kind = value.get("type") if isinstance(value, dict) else None
    return str(value.get("text") or "") if kind == "text" else f"({kind})"


def _render_blocks(blocks: Iterable[Block], *, native: bool) -> Iterator[bytes]:
    for block in blocks:
        rendered = block.raw if native and block.raw is not None else _render_block(block, native=native)
        if rendered is not None:
            yield rendered


def _render_block(block: Block, *, native: bool) -> bytes | None:
    match block:
        case Text():
            return None if is_blank(block.text) else _text(block.text)
        case Reasoning(data=str(data)) if native:
            return encode({"type": "redacted_thinking", "data": data})
        case Reasoning(signature=str(signature)) if native:
            return encode({"type": "thinking", "thinking": block.text, "signature": signature})
        case Reasoning():
            return None
        case ToolUse():
            name = safe_name(block.name)
            return encode({"type": "tool_use", "id": _own_id(block.id), "name": name, "input": arguments_object(block)})
        case ToolResult():
            return _tool_result(block, native=native)
        case Image() | Document() if (source := _source_of(block)) is not None:
            title = {"title": block.title} if isinstance(block, Document) and block.title else {}
            kind = "image" if isinstance(block, Image) else "document"
            return encode({"type": kind, "source": source, **title})
    return _text(in_words(block))


def _text(text: str) -> bytes:
    return encode({"type": "text", "text": text})


def _own_id(id: str) -> str:
    return id if _id.fullmatch(id) else safe_id(id)


def _tool_result(block: ToolResult, *, native: bool) -> bytes:
    fields: dict[str, Any] = {"type": "tool_result", "tool_use_id": _own_id(block.tool_use_id)}
    if len(block.content) == 1 and isinstance(block.content[0], Text) and block.content[0].raw is None:
        fields["content"] = block.content[0].text
    elif block.content:
        fields["content"] = [Raw(each) for each in _render_blocks(block.content, native=native)]
    if block.is_error:
        fields["is_error"] = True
    return encode(fields)


def _source_of(block: Image | Document) -> dict[str, str | None] | None:
    """Return where the provider finds a picture or a document; `None` when it takes no such thing."""
    if isinstance(block, Document) and block.text is not None and block.text.strip():
        return {"type": "text", "media_type": "text/plain", "data": block.text}
    types = IMAGE_TYPES if isinstance(block, Image) else {PDF}
    if block.data is not None and block.media_type in types:
        return {"type": "base64", "media_type": block.media_type, "data": block.data}
    return {"type": "url", "url": block.url} if is_web(block.url) else None
