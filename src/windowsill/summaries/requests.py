"""The requests that ask a model for a summary: behind the request that is about to be sent, or apart from it.

Apart from it, the conversation is text. Its messages are divided by a mark that is made from all of them, so that none
of them can hold it: what a message says cannot pass for another message. The reasons why a model gave no summary that
can be used stand here too, each by its name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from windowsill import providers
from windowsill.errors import WindowsillError
from windowsill.history.folds import Brief
from windowsill.history.repair import repair, without_open_calls
from windowsill.messages import Message, Request, Text, Usage, json_value, text_message
from windowsill.models import learn_window
from windowsill.models.catalog import key as model_key
from windowsill.providers.base import THOUGHTS
from windowsill.providers.convert import message_text
from windowsill.providers.faults import FaultKind as ModelFaultKind
from windowsill.providers.faults import ModelError
from windowsill.providers.http import Endpoint
from windowsill.summaries import Material, Shared, prompts
from windowsill.text import cut_middle

FaultKind: TypeAlias = Literal[
    "no-key",  # there is none, or the provider does not accept it
    "no-model",  # nobody says which model is to write
    "prefix",  # the request that is about to be sent cannot be asked again
    "too-long",  # the request does not fit the model's window
    "rejected",  # the provider does not take the request
    "rate-limited",
    "server-error",
    "unreachable",
    "timeout",
    "unreadable",  # an answer that is not in the provider's format
    "failed",  # a function of the user's raised
    "empty",
    "refusal",
    "tool-calls",  # calls in the place of words
    "truncated",
    "no-summary-tag",
    "no-retain-tag",
    "tag-twice",
    "tag-nested",
    "tag-unclosed",
    "outside-tags",  # words beside what was asked for
    "not-json",
    "json-twice",
    "not-an-object",
    "schema",  # the object breaks the schema
    "broken-schema",  # the schema itself is not valid
    "larger",  # not smaller than what it replaces
    "over-room",
    "language",  # another script than the user's
    "ledger",  # no room for what code recorded
]
"""Every name a note of a model writer may begin with, after the stage it happened in."""


class UnusableError(WindowsillError):
    """The model gave no text that can be used. `kind` names the reason, `notes` hold those of earlier stages too."""

    def __init__(
        self,
        kind: FaultKind,
        what: str,
        *,
        remedy: str = "",
        notes: tuple[str, ...] = (),
        usage: Usage | None = None,
        window: int | None = None,
        **about: Any,
    ) -> None:
        self.kind = kind
        self.notes = notes
        self.usage = usage
        """The cost of the attempt."""
        self.window = window
        """The window in tokens that the provider named, where the request was too long."""
        super().__init__(what, remedy=remedy, **about)

    @classmethod
    def of(cls, error: ModelError) -> UnusableError:
        """Return the fault of a model call as the reason why there is no text."""
        return cls(_KINDS[error.kind], error.what, remedy=error.remedy, window=learn_window(error.provider_message))


_KINDS: dict[ModelFaultKind, FaultKind] = {
    "no-key": "no-key",
    "rate-limited": "rate-limited",
    "unreachable": "unreachable",
    "timeout": "timeout",
    "overflow": "too-long",
    "refused": "rejected",
    "server": "server-error",
    "malformed": "unreadable",
}


def note(stage: str, kind: FaultKind, what: str) -> str:
    """Write a fault as a note: where it happened, its name, and what it was."""
    return f"{stage}: {kind}: {what}" if stage else f"{kind}: {what}"


LONGEST = 4_000
"""Tokens of an answer where the brief has no room of its own."""

SHORTEST = 256
"""Tokens that an answer may always have: tags and a sentence need some."""

AIM = 0.7
"""The share of the limit that the prompt asks for: models write more than they are asked to."""

MARGIN = 0.1
"""The share of the window that is kept free: the count is of another model's tokens."""

LARGEST_SHARE = 2
"""A message that is larger than the room is cut in its middle to this part of it."""

MOST_PARTS = 16
"""Parts in which a model reads what is larger than its window: more would take longer than anybody waits."""

MARK_TOKENS = 24
"""Tokens of the line that begins a message."""

Fields = dict[str, Any]


def accepts_format(endpoint: Endpoint, format: str) -> bool:
    """Tell whether a request in this format can go to this endpoint."""
    own = endpoint.provider.name
    return format == own or (own in providers.DIALECTS and format in providers.DIALECTS)


def shares_cache(endpoint: Endpoint, shared: Shared) -> bool:
    """Tell whether the request that is about to be sent goes to the same model: only then its cache is of use.

    Gemini's bodies do not name the model; it is taken to be the same.
    """
    model = providers.model_of(shared.body)
    return accepts_format(endpoint, shared.format) and (not model or model_key(model) == model_key(endpoint.model))


def answer_limit(brief: Brief, material: Material) -> int:
    """Return the most tokens an answer may have."""
    return max(SHORTEST, min(brief.room or LONGEST, material.tokens))


def extend_request(shared: Shared, brief: Brief, material: Material, *, endpoint: Endpoint) -> bytes:
    """Return the same request with an instruction as its last message; what stands before stays byte for byte.

    `UnusableError` when that would not be a valid request.
    """
    limit = answer_limit(brief, material)
    instruction = f"{prompts.shared_head(material.messages)}\n\n{_instruction(brief, material)}"
    try:
        request = providers.read_request(shared.body, format=shared.format)
        target = providers.get(request.format)
        # Mended before the instruction is there: otherwise it might be put into the message before it.
        continued = target.continues(request.rest)
        mended = repair(without_open_calls(request.messages), target.rules, continued=continued)
        messages = (*mended.messages, text_message("user", instruction))
        rest = {key: msgspec.Raw(providers.encode(value)) for key, value in _fields(request, endpoint, limit).items()}
        body = providers.render_request(msgspec.structs.replace(request, messages=messages, rest=rest))
        # The model stands in the address of some providers.
        named = {"model": endpoint.model or "unnamed", **json_value(body)}
        problems = target.validate(named)
    except UnusableError:
        raise
    except (WindowsillError, msgspec.DecodeError, RecursionError) as error:
        raise UnusableError("prefix", f"the request cannot be read: {type(error).__name__}") from None
    if problems:
        raise UnusableError("prefix", f"the request would break {problems[0].rule}")
    return body


def separate_request(brief: Brief, material: Material, *, endpoint: Endpoint, window: int) -> bytes:
    """Return a small request of its own: who the model is, and everything it needs to read, fitted to a window."""
    # With thoughts where they count, and never so large that nothing can be read.
    thoughts = min(THOUGHTS, window // 8) if endpoint.provider.counts_thoughts else 0
    limit = min(answer_limit(brief, material), window // 4) + thoughts
    format = endpoint.provider.name
    fields = {**endpoint.provider.limit_setting(limit, endpoint.limit_field), **endpoint.provider.no_store}
    request = Request(
        format=format,
        system=text_message("system", prompts.separate_role()),
        messages=(text_message("user", separate_prompt(brief, material, window=window, limit=limit)),),
        model=endpoint.model,
        rest={key: msgspec.Raw(providers.encode(value)) for key, value in fields.items()},
    )
    return providers.render_request(request)


def separate_prompt(brief: Brief, material: Material, *, window: int, limit: int) -> str:
    """Return the conversation and what to write of it, fitted to a window with `limit` tokens for the answer."""
    messages = without_open_calls(material.messages)
    mark = mark_for(messages)
    room = reading_room(brief, material, window=window, limit=limit)
    text = transcript(messages, mark=mark, room=room, count=material.count) if room > 0 else ""
    if not text:
        raise UnusableError("too-long", f"nothing fits a window of {window:,} tokens", remedy="use a larger model")
    head, wish = prompts.conversation_head(mark), _instruction(brief, material)
    return "\n\n".join((head, text, f"{mark} end of the conversation", wish))


def reading_room(brief: Brief, material: Material, *, window: int, limit: int) -> int:
    """Return the tokens of conversation that a request of its own can hold."""
    mark = mark_for(())
    head, wish = prompts.conversation_head(mark), _instruction(brief, material)
    around = material.count(f"{prompts.separate_role()}\n\n{head}\n\n{mark}\n\n{wish}")
    return int(window * (1 - MARGIN)) - limit - around


def split(material: Material, room: int) -> tuple[list[Material], int]:
    """Divide what is to be read into parts that fit `room` each; return them, and how many messages found no place.

    The first part and the last ones are read where there are too many.
    """
    parts: list[list[Message]] = [[]]
    sizes: list[int] = [0]
    messages = [piece for message in material.messages for piece in _pieces(message, material, room // LARGEST_SHARE)]
    for message in messages:
        size = min(material.count(message_text(message)) + MARK_TOKENS, room // LARGEST_SHARE)
        if parts[-1] and sizes[-1] + size > room:
            parts.append([])
            sizes.append(0)
        parts[-1].append(message)
        sizes[-1] += size
    kept = [0, *range(len(parts) - MOST_PARTS + 1, len(parts))] if len(parts) > MOST_PARTS else range(len(parts))
    left_out = len(messages) - sum(len(parts[place]) for place in kept)
    found = [
        msgspec.structs.replace(material, messages=tuple(parts[place]), tokens=max(SHORTEST, sizes[place]), shared=None)
        for place in kept
    ]
    return found, left_out


def _pieces(message: Message, material: Material, most: int) -> list[Message]:
    """Divide an earlier summary that is too long to be read at once: its middle counts too, unlike an output's."""
    size = material.count(message_text(message)) + MARK_TOKENS if message.origin else 0
    if size <= most:
        return [message]
    text = message_text(message)
    length = max(1, len(text) * (most - MARK_TOKENS) // size)
    pieces = [text[start : start + length] for start in range(0, len(text), length)]
    return [msgspec.structs.replace(message, blocks=(Text(text=piece),), raw=None) for piece in pieces]


def mark_for(messages: Sequence[Message]) -> str:
    """Return how a message begins: the same for the same messages. Who writes one of them cannot know it."""
    digest = hashlib.blake2b(digest_size=6)
    for message in messages:
        digest.update(message_text(message).encode("utf-8", "replace") + b"\0")
    return f"=== {digest.hexdigest()}"


def transcript(messages: Sequence[Message], *, mark: str, room: int, count: Callable[[str], int]) -> str:
    """Write messages as text of at most `room` tokens: the largest are cut in their middle; empty when none fit."""
    whole = [
        f"{mark} message {number}: {'earlier summary' if message.origin else message.role}\n{message_text(message)}"
        for number, message in enumerate(messages, 1)
    ]
    sizes = [count(text) for text in whole]
    most = room
    while count(text := "\n\n".join(whole)) > room:
        most //= LARGEST_SHARE
        if most < MARK_TOKENS:
            return ""
        whole = [_cut(text, size, most) for text, size in zip(whole, sizes, strict=True)]
        sizes = [count(text) for text in whole]
    return text


def _cut(text: str, size: int, most: int) -> str:
    if size <= most:
        return text
    first, _, rest = text.partition("\n")
    return f"{first}\n{cut_middle(rest, len(rest) * most // size)}"


def _instruction(brief: Brief, material: Material) -> str:
    known = material.digest.get("state")
    aim = int(answer_limit(brief, material) * AIM)
    return prompts.instruction(brief, aim=aim, state=known if isinstance(known, dict) else None)


def _fields(request: Request, endpoint: Endpoint, limit: int) -> Fields:
    """Return the other fields of the request, changed so that one whole text comes back."""
    given: Fields = {key: json_value(value) for key, value in request.rest.items()}
    if given.get("conversation") is not None:
        raise UnusableError("prefix", "the provider keeps this conversation and would add the question to it")
    format, tools = providers.get(request.format), bool(request.tools)
    return format.text_only(given, limit=limit, limit_field=endpoint.limit_field, tools=tools)
