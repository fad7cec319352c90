"""The bodies that ask a model for a summary: behind the request that is about to be sent, or apart from it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from windowsill import providers
from windowsill.errors import WindowsillError
from windowsill.history.repair import repair, without_open_calls
from windowsill.messages import (
    Block,
    Document,
    Image,
    Message,
    Reasoning,
    Request,
    Text,
    ToolResult,
    ToolUse,
    Unknown,
    text_message,
)
from windowsill.providers.convert import words
from windowsill.providers.endpoints import Endpoint
from windowsill.providers.gemini.tools import camel
from windowsill.summaries import Shared
from windowsill.summaries.errors import UnusableError
from windowsill.text import cut_middle

THOUGHTS = 8_192
"""Tokens added to the limit of an answer where a provider counts the model's thoughts against it: what is not used is
not paid for, and without it a model that thinks has none left for words."""

UNWANTED = frozenset(
    {
        "stream",
        "stream_options",
        "stop",
        "stop_sequences",
        "response_format",
        "output_format",
        "context_management",
        "n",
        "logprobs",
        "top_logprobs",
        "background",
    }
)
"""Fields that would make the answer something else than one whole text, or need a header we do not have."""

UNWANTED_BY_GEMINI = frozenset(
    {"responseMimeType", "responseSchema", "responseJsonSchema", "stopSequences", "candidateCount", "maxOutputTokens"}
)

Fields = dict[str, Any]


def speaks(endpoint: Endpoint, format: str) -> bool:
    """Whether a request in this format can go to this endpoint."""
    own = endpoint.provider.name
    return format == own or (own in providers.DIALECTS and format in providers.DIALECTS)


def behind(shared: Shared, instruction: str, *, endpoint: Endpoint, limit: int) -> bytes:
    """The same request with the instruction as its last message; what stands before stays byte for byte.

    `UnusableError` when that would be no sound request.
    """
    try:
        request = providers.read_request(shared.body, format=shared.format)
        target = providers.get(request.format)
        # Mended before the instruction is there: otherwise it might be put into the message before it.
        mended = repair(without_open_calls(request.messages), target.rules)
        messages = (*mended.messages, text_message("user", instruction))
        rest = {key: msgspec.Raw(providers.encode(value)) for key, value in _fields(request, endpoint, limit).items()}
        body = providers.render_request(msgspec.structs.replace(request, messages=messages, rest=rest))
        named = {"model": endpoint.model or "unnamed"} if target.name == "gemini" else {}
        problems = providers.validate({**msgspec.json.decode(body), **named}, target.name)
    except (WindowsillError, msgspec.DecodeError, RecursionError) as error:
        if isinstance(error, UnusableError):
            raise
        raise UnusableError("prefix", f"the request cannot be read: {type(error).__name__}") from None
    if problems:
        raise UnusableError("prefix", f"the request would break {problems[0].rule}")
    return body


def _fields(request: Request, endpoint: Endpoint, limit: int) -> Fields:
    """The other fields of the request, so changed that one whole text comes back."""
    given: Fields = {key: msgspec.json.decode(value) for key, value in request.rest.items()}
    if given.get("conversation") is not None:
        raise UnusableError("prefix", "the provider keeps this conversation and would add the question to it")
    limits = providers.get(request.format).spec.limit_fields
    fields = {key: value for key, value in given.items() if key not in UNWANTED and key not in limits}
    if request.format == "gemini":
        return _gemini(fields, limit, tools=bool(request.tools))
    name = next((key for key in limits if given.get(key)), endpoint.limit_field)
    if request.format == "anthropic":
        return _anthropic(fields, {name: _within(given.get(name), limit + _thinking(fields))})
    fields[name] = _within(given.get(name), limit + THOUGHTS)
    if request.format == "responses":
        text = {key: value for key, value in (fields.pop("text", None) or {}).items() if key != "format"}
        fields |= {"store": False, **({"text": text} if text else {})}
    if request.tools:
        fields["tool_choice"] = "none"
    return fields


def _within(stated: Any, wanted: int) -> int:
    """The limit of an answer: never above the request's own, for which the window has room."""
    return min(stated, wanted) if isinstance(stated, int) else wanted


def _thinking(fields: Fields) -> int:
    """Tokens that Anthropic's models may think, which count against the limit and stand below it."""
    thinking = fields.get("thinking") or {}
    return int(thinking.get("budget_tokens") or (THOUGHTS if thinking.get("type") == "adaptive" else 0))


def _anthropic(fields: Fields, limit: Fields) -> Fields:
    """Whether tools may be called is left as it is: Anthropic's cache forgets all messages when that changes.

    Only a call that is demanded is forbidden: nothing else could come back.
    """
    if (fields.get("tool_choice") or {}).get("type") in {"any", "tool"}:
        fields = {**fields, "tool_choice": {"type": "none"}}
    output = {key: value for key, value in (fields.pop("output_config", None) or {}).items() if key != "format"}
    return {**fields, **({"output_config": output} if output else {}), **limit}


def _gemini(fields: Fields, limit: int, *, tools: bool) -> Fields:
    found = camel(fields)
    config = camel(found.get("generationConfig") or {})
    most = _within(config.get("maxOutputTokens"), limit + THOUGHTS)
    kept = {key: value for key, value in config.items() if key not in UNWANTED_BY_GEMINI}
    fields = {**found, "generationConfig": {**kept, "maxOutputTokens": most}}
    return {**fields, **({"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}} if tools else {})}


def apart(prompt: str, role: str, *, endpoint: Endpoint, model: str, limit: int) -> bytes:
    """A small request of its own: who the model is, and everything it needs to read."""
    format = endpoint.provider.name
    fields: Fields = {endpoint.limit_field: limit}
    if format == "gemini":
        fields = {"generationConfig": {"maxOutputTokens": limit}}
    elif format == "responses":
        fields["store"] = False
    request = Request(
        format=format,
        system=text_message("system", role),
        messages=(text_message("user", prompt),),
        model=model,
        rest={key: msgspec.Raw(providers.encode(value)) for key, value in fields.items()},
    )
    return providers.render_request(request)


LARGEST_SHARE = 6
"""Where not everything fits, no message gets more than this part of the room: one output must not push out the rest."""

HEAD_SHARE = 4
"""This part of the room is for the beginning, the rest for the end: what came last is what the work goes on with."""

NOTE_TOKENS = 40
"""Kept free for the note that says how much was left out."""


def mark_for(messages: Sequence[Message]) -> str:
    """How a message begins: the same for the same messages. Who writes one of them cannot know it."""
    digest = hashlib.blake2b(digest_size=6)
    for message in messages:
        digest.update(told(message).encode("utf-8", "replace") + b"\0")
    return f"=== {digest.hexdigest()}"


def transcript(messages: Sequence[Message], *, mark: str, room: int, count: Callable[[str], int]) -> str:
    """The messages as text of at most `room` tokens: long ones cut in their middle, then the middle ones left out."""
    whole = [_framed(message, number, mark) for number, message in enumerate(messages, 1)]
    sizes = [count(text) for text in whole]
    if sum(sizes) > room:
        most = max(1, room // LARGEST_SHARE)
        whole = [_cut(text, size, most) for text, size in zip(whole, sizes, strict=True)]
        sizes = [count(text) for text in whole]
    while True:
        chosen, left_out = _choose(whole, sizes, room)
        text = "\n\n".join(chosen)
        if count(text) <= room or not chosen:
            return text
        # Joined, the pieces weigh a little more than apart.
        room -= max(NOTE_TOKENS, room // 20)
        if left_out == len(whole):
            return ""


def _choose(texts: list[str], sizes: list[int], room: int) -> tuple[list[str], int]:
    if sum(sizes) <= room:
        return texts, 0
    room -= NOTE_TOKENS
    head, used = 0, 0
    while head < len(texts) and used + sizes[head] <= room // HEAD_SHARE:
        used += sizes[head]
        head += 1
    tail = len(texts)
    while tail > head and used + sizes[tail - 1] <= room:
        tail -= 1
        used += sizes[tail]
    left_out = tail - head
    note = f"[{left_out:,} messages were left out here: there was no room for them.]"
    return ([*texts[:head], note, *texts[tail:]] if left_out < len(texts) else []), left_out


def _cut(text: str, size: int, most: int) -> str:
    if size <= most:
        return text
    first, _, rest = text.partition("\n")
    return f"{first}\n{cut_middle(rest, len(rest) * most // size)}"


def _framed(message: Message, number: int, mark: str) -> str:
    who = "earlier summary" if message.origin else message.role
    return f"{mark} message {number}: {who}\n{told(message)}"


def told(message: Message) -> str:
    """What a message says, calls and results in words; reasoning is left out."""
    return "\n".join(text for block in message.blocks if (text := _block(block)))


def _block(block: Block) -> str:
    match block:
        case Text():
            return block.text
        case ToolUse():
            return f"[calls {block.name}: {block.arguments}]"
        case ToolResult():
            inner = "\n".join(text for each in block.content if (text := _block(each)))
            return f"[result{' (an error)' if block.is_error else ''} of {block.name or block.tool_use_id}]\n{inner}"
        case Image():
            return "[a picture]"
        case Document():
            return f"[a document{f': {block.title}' if block.title else ''}]\n{block.text or ''}".rstrip()
        case Unknown():
            return words(block.type, block.raw) if block.raw is not None else ""
        case Reasoning():
            return ""
