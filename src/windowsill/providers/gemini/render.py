"""Renders Gemini's `generateContent`: what did not change as it came, the rest built anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from windowsill.history.repair import rules
from windowsill.history.repair.mend import is_blank, is_media, numbered_name
from windowsill.messages import Block, Document, Image, Message, Reasoning, Text, Tool, ToolResult, ToolUse
from windowsill.providers.convert import in_words, is_web, result_text, safe_name
from windowsill.providers.gemini.tools import NAME, camel, listed
from windowsill.providers.wire import decode, encode, fields_decoder, join_body

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})
"""The pictures Gemini looks at."""

FILE_TYPES = ("application/pdf", "text/", "audio/", "video/")
"""How the media types of the files begin that Gemini reads."""

SUFFIXES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "pdf": "application/pdf",
    "txt": "text/plain",
}
"""What an address tells of a file whose type nobody stated; Gemini asks for the type."""

SETTINGS = {"max_tokens": "maxOutputTokens", "temperature": "temperature", "top_p": "topP"}
"""Fields of other providers' bodies that Gemini has in `generationConfig`."""


def render_message(message: Message, signature: str | None = None) -> list[bytes]:
    """The content as Gemini takes it; `signature` goes on a leading call that Gemini did not sign itself."""
    native = message.format == NAME
    if message.role == "system":
        text = rules.as_system("\n".join(in_words(block) for block in message.blocks))
        return [encode({"role": "user", "parts": [{"text": text}]})]
    own = message.raw if native and not message.edited else None
    if own is not None and signature is None:
        return [own]
    first = next(iter(message.calls), None)
    bare = first if first is not None and first.signature is None and signature is not None else None
    if own is not None and bare is None:
        return [own]
    parts: list[bytes] = []
    attached: list[bytes] = []
    for block in message.blocks:
        if native and block.raw is not None:
            parts.append(block.raw if block is not bare else _signed(block.raw, signature))
        elif isinstance(block, ToolUse):
            proof = block.signature if native and block.signature else signature if block is first else None
            parts.append(_call(block, proof, native=native))
        elif isinstance(block, ToolResult):
            parts.append(_response(block, native=native))
            attached += _attached(block, native=native)
        else:
            parts += _parts(block, native=native)
    content = Raw(b"[" + b",".join([*parts, *attached] or [_text(rules.EMPTY)]) + b"]")
    role = "model" if message.role == "assistant" else "user"
    around = decode(fields_decoder, message.raw) if native and message.raw is not None else {}
    return [encode({**around, "role": role, "parts": content})]


def _parts(block: Block, *, native: bool) -> Iterator[bytes]:
    if isinstance(block, Reasoning):
        if native:
            yield _thought(block)
    elif not isinstance(block, Text):
        yield _BUILDERS.get(type(block), _in_words)(block)
    elif not is_blank(block.text):
        yield _text(block.text)


def _text(text: str) -> bytes:
    return encode({"text": text})


def _in_words(block: Block) -> bytes:
    return _text(in_words(block))


def _thought(block: Reasoning) -> bytes:
    proof = {} if block.signature is None else {"thoughtSignature": block.signature}
    return encode({"text": block.text, "thought": True, **proof})


def _call(block: ToolUse, signature: str | None, *, native: bool) -> bytes:
    call = {**_id(block.id), "name": block.name if native else own_name(block.name), "args": _args(block)}
    return encode({"functionCall": call, **({} if signature is None else {"thoughtSignature": signature})})


def _signed(part: bytes, signature: str | None) -> bytes:
    """A call of a model that signs nothing, for one that takes no call without a signature."""
    fields: dict[str, Raw] = decode(fields_decoder, part)
    return encode({**fields, "thoughtSignature": Raw(encode(signature))})


def _id(id: str) -> dict[str, str]:
    """The id of a call or a response, unless it was made here because there was none."""
    return {"id": id} if id and numbered_name(id) is None else {}


def own_name(name: str) -> str:
    """A tool's name as Gemini takes it."""
    safe = safe_name(name)
    # Gemini wants no digit and no dash in front.
    return safe if safe[0].isalpha() or safe[0] == "_" else f"_{safe}"


def _args(block: ToolUse) -> Any:
    raw = block.arguments.encode()
    try:
        fields_decoder.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return {"_text": block.arguments}
    return Raw(raw)


def _response(block: ToolResult, *, native: bool) -> bytes:
    kept = tuple(each for each in block.content if not _is_inside(each, native=native) and not is_media(each))
    words = result_text(ToolResult(tool_use_id=block.tool_use_id, content=kept), flagged=False)
    name = block.name or numbered_name(block.tool_use_id) or block.tool_use_id
    response: dict[str, Any] = {
        **_id(block.tool_use_id),
        "name": name if native else own_name(name),
        "response": {"error" if block.is_error else "output": words},
    }
    inside = [Raw(each.raw) for each in block.content if each.raw is not None and _is_inside(each, native=native)]
    return encode({"functionResponse": {**response, "parts": inside} if inside else response})


def _is_inside(block: Block, *, native: bool) -> bool:
    return native and block.raw is not None


def _attached(block: ToolResult, *, native: bool) -> Iterator[bytes]:
    """What a tool returned beside words, to stand after the responses: only newer models take it inside."""
    media = [each for each in block.content if is_media(each) and not _is_inside(each, native=native)]
    if media:
        yield _text(rules.hoisted(block.tool_use_id))
    for each in media:
        yield from _parts(each, native=native)


def _image(block: Image) -> bytes:
    if block.data is not None and block.media_type in IMAGE_TYPES:
        return encode({"inlineData": {"mimeType": block.media_type, "data": block.data}})
    return _by_address(block.url, block.media_type) or _in_words(block)


def _document(block: Document) -> bytes:
    if block.data is not None and block.media_type is not None and block.media_type.startswith(FILE_TYPES):
        return encode({"inlineData": {"mimeType": block.media_type, "data": block.data}})
    return _by_address(block.url, block.media_type) or _in_words(block)


def _by_address(url: str | None, media_type: str | None) -> bytes | None:
    if url is None or not is_web(url):
        return None
    suffix = url.partition("?")[0].rpartition(".")[2].lower()
    known = media_type or SUFFIXES.get(suffix)
    return encode({"fileData": {**({"mimeType": known} if known else {}), "fileUri": url}})


_BUILDERS: dict[type, Callable[[Any], bytes]] = {Image: _image, Document: _document}


def render_system(systems: Sequence[Message]) -> bytes | None:
    """The value of `systemInstruction`."""
    if len(systems) == 1 and systems[0].format == NAME and not systems[0].edited and systems[0].raw is not None:
        return systems[0].raw
    parts = [part for message in systems for part in _instructions(message.blocks, native=message.format == NAME)]
    return b'{"parts":[' + b",".join(parts) + b"]}" if parts else None


def _instructions(blocks: Iterable[Block], *, native: bool) -> Iterator[bytes]:
    for block in blocks:
        if native and block.raw is not None:
            yield block.raw
        elif not (isinstance(block, Text) and is_blank(block.text)):
            yield _in_words(block)


def render_tool(tool: Tool) -> bytes:
    """A function declaration, or an entry of `tools` that was none."""
    if tool.format == NAME and tool.raw is not None:
        return tool.raw
    fields: dict[str, Any] = {"name": own_name(tool.name)}
    if tool.description:
        fields["description"] = tool.description
    # The other field for it, `parameters`, takes only a part of JSON Schema.
    return encode({**fields, "parametersJsonSchema": {"type": "object", **tool.schema}})


def render_body(
    *,
    messages: Sequence[bytes],
    system: bytes | None,
    tools: Sequence[bytes],
    model: str | None,  # noqa: ARG001 the model stands in the address, not in the body
    rest: Mapping[str, Raw],
) -> bytes:
    """A request body, what a prompt cache looks at first standing first. It does not name the model."""
    fields: dict[str, bytes | Raw] = {key: value for key, value in rest.items() if key not in {*SETTINGS, "stream"}}
    if settings := {name: rest[key] for key, name in SETTINGS.items() if key in rest}:
        spelled = next((key for key in rest if "generationConfig" in camel({key: key})), "generationConfig")
        config = decode(fields_decoder, rest.get(spelled, Raw(b"{}")), spelled)
        fields[spelled] = encode({**settings, **config})
    declared = listed(tools, rest.get("tools"))
    if declared is not None:
        fields["tools"] = declared
    else:
        fields.pop("tools", None)
    if system is not None:
        fields["systemInstruction"] = system
    return join_body(fields, messages, b"contents")


PLACEHOLDER = "context_engineering_is_the_way_to_go"
"""Stands for the signature of a call that Gemini did not make."""

SKIP = "skip_thought_signature_validator"
"""The other spelling the API documents."""

PLACEHOLDERS = frozenset({PLACEHOLDER, SKIP})


def unsigned(contents: Sequence[tuple[str, str, list[dict[str, Any]]]], *, signs: bool | None = None) -> Iterator[str]:
    """Where the current turn lacks a signature although the model signs: `contents` are role, place and parts.

    Whether it signs is told from the other calls of the turn, where `signs` does not say so.
    """
    turn = contents[_start(contents) :]
    if signs is False:
        return
    if signs is None and not any(
        _proof(part) not in {None, *PLACEHOLDERS} for _, _, parts in turn for part in parts if _calls(part)
    ):
        return
    before = ""
    called = False
    for role, place, parts in turn:
        # Contents of the model in a row are one step.
        called = called and before == "model"
        before = role
        first = next((index for index, part in enumerate(parts) if _calls(part)), None)
        if role == "model" and first is not None and not called:
            called = True
            if _proof(parts[first]) is None:
                yield f"{place}.parts[{first}]"


def _start(contents: Sequence[tuple[str, str, list[dict[str, Any]]]]) -> int:
    for index in range(len(contents) - 1, -1, -1):
        role, _, parts = contents[index]
        if role == "user" and parts and not any("functionResponse" in part for part in parts):
            return index
    return 0


def _calls(part: dict[str, Any]) -> bool:
    return "functionCall" in part


def _proof(part: dict[str, Any]) -> str | None:
    return part.get("thoughtSignature") or None
