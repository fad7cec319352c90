"""Reads and renders Gemini's `generateContent`: what did not change goes out as it came, the rest is built anew."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from windowsill.errors import FormatError
from windowsill.history import repair_rules
from windowsill.history.repair import is_blank, is_media, numbered_name, safe_name
from windowsill.messages import (
    Block,
    Document,
    Image,
    Message,
    Reasoning,
    Reply,
    Request,
    Text,
    Tool,
    ToolResult,
    ToolUse,
    Usage,
)
from windowsill.models import Demands
from windowsill.providers.base import Format, Problem, RawFields, ToolChoice, at_most
from windowsill.providers.convert import all_in_words, arguments_object, in_words, is_web
from windowsill.providers.gemini import PLACEHOLDER, ROLES, SPEC, camel, read, rules, spelling
from windowsill.providers.gemini.stream import GeminiStream
from windowsill.providers.wire import (
    NULL,
    Fields,
    decode,
    encode,
    fields_decoder,
    items_decoder,
    text_decoder,
)

NAME = SPEC.name

IMAGE_TYPES = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")
"""The pictures Gemini looks at."""

FILE_TYPES = ("application/pdf", "text/", "audio/", "video/")
"""Beginnings of the media types of the files that Gemini reads."""

SUFFIXES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "pdf": "application/pdf",
    "txt": "text/plain",
}
"""Endings of addresses -> the media type, which Gemini asks for, where nobody stated it."""

UNWANTED = frozenset({"responseMimeType", "responseSchema", "responseJsonSchema", "stopSequences", "candidateCount"})
"""Settings that would make an answer something else than one whole text."""

_count = msgspec.json.Decoder(int)


class Gemini(Format):
    """The format of `POST /v1beta/models/{model}:generateContent`.

    `signature` is put on the first call of a content that Gemini did not sign, because another provider's model made
    it: Gemini 3 refuses such calls in the current turn without one. Pass `PLACEHOLDER` for these models; older ones
    need none.
    """

    spec = SPEC
    stream = GeminiStream

    def __init__(self, *, signature: str | None = None) -> None:
        self.signature = signature

    def with_demands(self, demands: Demands) -> Gemini:
        """Return the format that signs foreign calls, for a model that demands it."""
        return _SIGNED if demands.signed_calls else self

    def detects(self, value: Any) -> bool:
        """Tell whether a decoded body, list, content or reply is clearly Gemini's."""
        if isinstance(value, list):
            return any(isinstance(each, dict) and _is_content(each) for each in value)
        if not isinstance(value, dict):
            return False
        if value.get("contents") is not None:
            return value.get("messages") is None
        used = value.get("usageMetadata", value.get("usage_metadata"))
        return isinstance(value.get("candidates"), list) or used is not None or _is_content(value)

    read_message = staticmethod(read.read_content)
    read_system_value = staticmethod(read.read_system)
    read_tool = staticmethod(read.read_tool)
    split_tool = staticmethod(read.split_tool)
    tool_layout = staticmethod(read.layout_of)

    def read_body(self, body: bytes) -> Request:
        """Read a request body or a list of contents. `model` may be in it, but stands in the address of a request."""
        request = super().read_body(body)
        model = None if request.model is None else request.model.removeprefix("models/")
        linked = tuple(map(read.TurnLinker().link, request.messages))
        return msgspec.structs.replace(request, messages=linked, model=model)

    def read_conversation(self, raw: bytes, where: str) -> tuple[Message, ...]:
        """Read `contents` as the SDK takes it: a list, one content, or text."""
        return super().read_conversation(raw, where) if raw[:1] == b"[" else (self.read_message(raw, where),)

    def take_field(self, fields: Fields, name: str) -> Raw | None:
        """Take a field out of a body, under either spelling."""
        return super().take_field(fields, spelling(fields, name))

    def read_tools(self, fields: Fields) -> tuple[Tool, ...]:
        """Read the tools of a body. How they stood in their entries stays among the other fields, to go out again."""
        if fields.get("tools", NULL) == NULL:
            fields.pop("tools", None)
            return ()
        return read.read_tools(fields["tools"], "tools")

    def read_reply(self, body: bytes) -> Reply:
        """Read a response: its first candidate. One that was cut short may hold no parts at all."""
        fields = camel(decode(fields_decoder, body))
        candidates = decode(items_decoder, fields["candidates"], "candidates") if "candidates" in fields else []
        if not candidates:
            remedy = "check promptFeedback for why it was blocked before adding it"
            raise FormatError("a response without a candidate", where="candidates", remedy=remedy)
        candidate = camel(decode(fields_decoder, candidates[0], "candidates[0]"))
        usage, model, reason = fields.get("usageMetadata"), fields.get("modelVersion"), candidate.get("finishReason")
        return Reply(
            message=self.read_message(read.spoken_content(candidate.get("content")), "candidates[0].content"),
            usage=None if usage is None else self.read_usage(bytes(usage)),
            model=None if model is None else decode(text_decoder, model, "modelVersion"),
            stop_reason=None if reason is None else decode(text_decoder, reason, "candidates[0].finishReason"),
        )

    def read_usage(self, raw: bytes) -> Usage:
        """Read the usage of a call."""
        fields = camel(decode(fields_decoder, raw, "usageMetadata"))

        def count(key: str) -> int:
            return decode(_count, fields[key], f"usageMetadata.{key}") if key in fields else 0

        cached = count("cachedContentTokenCount")
        return Usage(
            input=max(count("promptTokenCount") - cached, 0) + count("toolUsePromptTokenCount"),
            output=count("candidatesTokenCount") + count("thoughtsTokenCount"),
            cache_read=cached,
        )

    linker = read.TurnLinker

    def is_portable(self, tool: Tool) -> bool:
        """Tell whether others can take a tool over: what only Google runs, such as its search, is for Gemini alone."""
        return tool.raw is None or read.is_declaration(tool.raw)

    def render_message(self, message: Message) -> list[bytes]:
        """Render a content as Gemini takes it."""
        native = message.format == NAME
        if message.role == "system":
            text = repair_rules.as_system("\n".join(in_words(block) for block in message.blocks))
            return [encode({"role": "user", "parts": [{"text": text}]})]
        first = next(iter(message.calls), None) if self.signature is not None else None
        unsigned = first if first is not None and first.signature is None else None
        if native and message.raw is not None and not message.edited and unsigned is None:
            return [message.raw]
        parts: list[bytes] = []
        attached: list[bytes] = []
        for block in message.blocks:
            if native and block.raw is not None:
                # A call of a model that signs nothing is signed for one that takes no call without a signature.
                fields = decode(fields_decoder, block.raw) if block is unsigned else {}
                parts.append(encode({**fields, "thoughtSignature": self.signature}) if fields else block.raw)
            elif isinstance(block, ToolUse):
                proof = block.signature if native and block.signature else self.signature if block is first else None
                parts.append(_render_call(block, proof, native=native))
            elif isinstance(block, ToolResult):
                parts.append(_render_response(block, native=native))
                attached += _attached(block, native=native)
            else:
                parts += _render_parts(block, native=native)
        content = Raw(b"[" + b",".join([*parts, *attached] or [_text(repair_rules.EMPTY)]) + b"]")
        role = "model" if message.role == "assistant" else "user"
        around = decode(fields_decoder, message.raw) if native and message.raw is not None else {}
        return [encode({**around, "role": role, "parts": content})]

    def render_system(self, systems: Sequence[Message]) -> bytes | None:
        """Render the value of `systemInstruction`."""
        if len(systems) == 1 and systems[0].format == NAME and not systems[0].edited and systems[0].raw is not None:
            return systems[0].raw
        parts: list[bytes] = []
        for message in systems:
            for block in message.blocks:
                if message.format == NAME and block.raw is not None:
                    parts.append(block.raw)
                elif not (isinstance(block, Text) and is_blank(block.text)):
                    parts.append(_text(in_words(block)))
        return b'{"parts":[' + b",".join(parts) + b"]}" if parts else None

    def render_reply(self, message: Message, *, model: str, usage: Usage | None = None, whole: bool = True) -> bytes:
        """Render a response that holds this message."""
        (chunk,) = self.render_message(message)
        finish = {"finishReason": SPEC.stops.done} if whole else {}
        id = hashlib.blake2b(chunk, digest_size=8).hexdigest()
        candidates = [{"content": Raw(chunk), "index": 0, **finish}]
        used = {} if usage is None else {"usageMetadata": self.render_usage(usage)}
        return encode({"candidates": candidates, "modelVersion": model, "responseId": id, **used})

    def render_usage(self, usage: Usage, reasoning: int = 0) -> dict[str, Any]:
        """Return a usage in Google's words, which leave out what is not there."""
        counts = {
            "promptTokenCount": usage.prompt,
            "cachedContentTokenCount": usage.cache_read,
            "candidatesTokenCount": usage.output - reasoning,
            "thoughtsTokenCount": reasoning,
            "totalTokenCount": usage.total,
        }
        return {name: count for name, count in counts.items() if count}

    def render_tool_choice(self, choice: ToolChoice) -> dict[str, Any]:
        """Return the field `toolConfig`."""
        config: dict[str, Any] = {"mode": {"auto": "AUTO", "none": "NONE"}.get(choice.mode, "ANY")}
        if choice.mode == "one":
            config["allowedFunctionNames"] = [self.tool_name(choice.name)]
        return {"toolConfig": {"functionCallingConfig": config}}

    def text_only(self, fields: dict[str, Any], *, limit: int, limit_field: str, tools: bool) -> dict[str, Any]:
        """Ask for one whole text, in `generationConfig`."""
        found = camel(fields)
        config = camel(found.get(SPEC.config_field) or {})
        most = at_most(config.get(SPEC.limit_field()), limit + self.thinking_tokens(fields))
        kept = {key: value for key, value in config.items() if key not in UNWANTED and key not in SPEC.limit_fields}
        choice = self.render_tool_choice(ToolChoice("none")) if tools else {}
        return {**found, SPEC.config_field: {**kept, SPEC.limit_field(): most}, **choice}

    def tool_name(self, name: str) -> str:
        """Return the name of a tool as Gemini takes it: without a digit or a dash in front."""
        return _own_name(name)

    def with_schema(self, raw: bytes, schema: dict[str, Any]) -> bytes:
        """Return a declaration with another schema; both fields for it are too many."""
        fields = {key: each for key, each in decode(fields_decoder, raw).items() if key not in read.OTHER_SCHEMAS}
        return encode({**fields, SPEC.tool_schema_field: schema})

    def body_fields(self, tools: Sequence[bytes], model: str | None, rest: Mapping[str, Raw]) -> RawFields:
        """Return the fields of a body. It does not name the model, which stands in the address."""
        names = {"max_tokens": SPEC.limit_field(), "temperature": "temperature", "top_p": SPEC.sampling_field("top_p")}
        fields: RawFields = {key: value for key, value in rest.items() if key not in {*names, "stream"}}
        if settings := {name: rest[key] for key, name in names.items() if key in rest}:
            spelled = spelling(rest, SPEC.config_field)
            config = decode(fields_decoder, rest.get(spelled, Raw(b"{}")), spelled)
            fields[spelled] = encode({**settings, **config})
        declared = read.join_tools(tools, rest.get("tools"))
        if declared is None:
            fields.pop("tools", None)
        return fields if declared is None else {**fields, "tools": declared}

    def validate(self, body: Any) -> list[Problem]:
        """Return what Gemini would refuse; field names count under either spelling."""
        return super().validate(camel(body) if isinstance(body, dict) else body)

    check_body = staticmethod(rules.check_body)
    check_messages = staticmethod(rules.check_messages)


_SIGNED = Gemini(signature=PLACEHOLDER)


def _is_content(value: dict[str, Any]) -> bool:
    """Tell whether it has parts as Gemini writes them: known by what they hold, where others have a `type`."""
    parts = value.get("parts")
    if not isinstance(parts, list) or value.get("role") not in (None, *ROLES):
        return False
    return all(isinstance(part, dict) and "type" not in part for part in parts)


def _own_name(name: str) -> str:
    return safe_name(name, SPEC.rules.name_pattern)


def _render_parts(block: Block, *, native: bool) -> Iterator[bytes]:
    match block:
        case Reasoning():
            if native:
                proof = {} if block.signature is None else {"thoughtSignature": block.signature}
                yield encode({"text": block.text, "thought": True, **proof})
        case Text():
            if not is_blank(block.text):
                yield _text(block.text)
        case Image() | Document() if (media := _media(block)) is not None:
            yield encode(media)
        case _:
            yield _text(in_words(block))


def _text(text: str) -> bytes:
    return encode({"text": text})


def _render_call(block: ToolUse, signature: str | None, *, native: bool) -> bytes:
    name = block.name if native else _own_name(block.name)
    call = {**_id(block.id), "name": name, "args": arguments_object(block)}
    return encode({"functionCall": call, **({} if signature is None else {"thoughtSignature": signature})})


def _id(id: str) -> dict[str, str]:
    """Return the id of a call or a response, unless it was made here because there was none."""
    return {"id": id} if id and numbered_name(id) is None else {}


def _render_response(block: ToolResult, *, native: bool) -> bytes:
    inside = [each for each in block.content if native and each.raw is not None]
    text = all_in_words(each for each in block.content if each not in inside and not is_media(each))
    name = block.name or numbered_name(block.tool_use_id) or block.tool_use_id
    response: dict[str, Any] = {
        **_id(block.tool_use_id),
        "name": name if native else _own_name(name),
        "response": {"error" if block.is_error else "output": text},
    }
    if inside:
        response["parts"] = [Raw(each.raw or b"") for each in inside]
    return encode({"functionResponse": response})


def _attached(block: ToolResult, *, native: bool) -> Iterator[bytes]:
    """Render what a tool returned beside text, to stand after the responses: only newer models take it inside."""
    media = [each for each in block.content if is_media(each) and not (native and each.raw is not None)]
    if media:
        yield _text(repair_rules.attached_heading(block.tool_use_id))
    for each in media:
        yield from _render_parts(each, native=native)


def _media(block: Image | Document) -> dict[str, Any] | None:
    """Return a picture or a file as Gemini takes it; `None` when it does not."""
    types = IMAGE_TYPES if isinstance(block, Image) else FILE_TYPES
    if block.data is not None and block.media_type is not None and block.media_type.startswith(types):
        return {"inlineData": {"mimeType": block.media_type, "data": block.data}}
    if block.url is None or not is_web(block.url):
        return None
    known = block.media_type or SUFFIXES.get(block.url.partition("?")[0].rpartition(".")[2].lower())
    return {"fileData": {**({"mimeType": known} if known else {}), "fileUri": block.url}}
