"""The work of providers on a conversation: forget, clear and compact it, sign reasoning, count and cache."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Literal, TypeAlias

import msgspec

from windowsill import tokens
from windowsill.history.entries import START, extend_exactly
from windowsill.messages import Block, Message, Reasoning, Request, Role, Text, ToolResult, ToolUse, Usage
from windowsill.tokens import Scale

CLEARED = "(cleared)"
"""Stands for a result that was cleared."""

Place: TypeAlias = tuple[int, int]
"""A message of a request and a block in it."""


class Clearing(msgspec.Struct, frozen=True, kw_only=True):
    """The wish to clear old tool results once a request is above `tokens`, or has more than `uses` calls."""

    tokens: int | None = None
    uses: int | None = None
    keep: int = 3
    at_least: int = 0
    exclude: frozenset[str] = frozenset()
    inputs: bool | frozenset[str] = False
    """The arguments to clear too: all, or those of these tools."""


class Compacting(msgspec.Struct, frozen=True, kw_only=True):
    """The wish to compact a request above `tokens`; `pause` to hear of it before the model answers."""

    tokens: int
    pause: bool = False


Edit: TypeAlias = Clearing | Compacting


class Managed(msgspec.Struct, frozen=True, kw_only=True):
    """A request as the model reads it, and what was done to make it so."""

    request: Request
    tokens: int
    original: int
    """Its tokens before anything was done."""
    cleared: tuple[tuple[int, int], ...] = ()
    """For each clearing that took place the calls and the tokens it cleared."""
    compacting: Compacting | None = None
    """The wish that a compaction follows, when one is due."""


def blocks(request: Request, start: Place = (0, 0)) -> Iterator[tuple[Place, Role, Block]]:
    """Yield the blocks of a request's messages, from a place on."""
    for index, message in enumerate(request.messages):
        for number, block in enumerate(message.blocks):
            if (index, number) >= start:
                yield (index, number), message.role, block


def opening(request: Request, closes: Callable[[Block], bool]) -> Place:
    """Find where the part begins that still counts: at the last block that closes what stands before it."""
    return max((place for place, _, block in blocks(request) if closes(block)), default=(0, 0))


def since(request: Request, start: Place) -> Request:
    """Return the request without what stands before a place."""
    index, number = start
    messages = request.messages[index:]
    if messages and number:
        messages = (msgspec.structs.replace(messages[0], blocks=messages[0].blocks[number:]), *messages[1:])
    return msgspec.structs.replace(request, messages=messages)


def manage(request: Request, edits: tuple[Edit, ...], count: Callable[[Request], int]) -> Managed:
    """Do what the request asks for, in order; a compaction ends it, as nothing is left to clear then."""
    original = tokens = count(request)
    cleared: list[tuple[int, int]] = []
    compacting: Compacting | None = None
    for edit in edits:
        if isinstance(edit, Compacting):
            if tokens > edit.tokens:
                compacting = edit
                break
            continue
        ids = _clearable(request, edit, tokens)
        smaller = _without(request, ids, edit)
        left = count(smaller)
        if ids and tokens - left >= edit.at_least:
            cleared.append((len(ids), max(tokens - left, 0)))
            request, tokens = smaller, left
    return Managed(request=request, tokens=tokens, original=original, cleared=tuple(cleared), compacting=compacting)


def _clearable(request: Request, edit: Clearing, tokens: int) -> frozenset[str]:
    """Return the ids of the calls whose results go."""
    calls = [call for message in request.messages for call in message.calls]
    above = (edit.tokens is not None and tokens > edit.tokens) or (edit.uses is not None and len(calls) > edit.uses)
    if not above:
        return frozenset()
    answered = {result.tool_use_id for message in request.messages for result in message.results}
    old = calls[: max(len(calls) - edit.keep, 0)]
    return frozenset(call.id for call in old if call.id in answered and call.name not in edit.exclude)


def _without(request: Request, ids: frozenset[str], edit: Clearing) -> Request:
    def emptied(block: Block) -> Block:
        if isinstance(block, ToolResult) and block.tool_use_id in ids:
            return msgspec.structs.replace(block, content=(Text(text=CLEARED),), raw=None)
        if isinstance(block, ToolUse) and block.id in ids:
            goes = edit.inputs if isinstance(edit.inputs, bool) else block.name in edit.inputs
            return msgspec.structs.replace(block, arguments="{}", raw=None) if goes else block
        return block

    messages = tuple(
        msgspec.structs.replace(message, blocks=tuple(map(emptied, message.blocks))) for message in request.messages
    )
    return msgspec.structs.replace(request, messages=messages)


SIZE = 16
"""Bytes of each of the three digests of a signature: of the words, of the past, and of both."""

Verdict: TypeAlias = Literal["good", "forged", "moved"]
"""`forged` is not what was signed; `moved` is, but stands behind another past."""


class Signer:
    """Makes signatures that can be checked without remembering them; `binds` them to the conversation before."""

    def __init__(self, key: bytes, *, binds: bool = False) -> None:
        self.binds = binds
        self._key = key

    def sign(self, provider: str, text: str, past: bytes) -> str:
        """Sign reasoning that was written after `past`."""
        signed = self._digest(provider, text.encode()) + self._digest(provider, past if self.binds else START)
        return base64.b64encode(signed + self._digest(provider, signed)).decode()

    def check(self, provider: str, signature: str, text: str | None, past: bytes) -> Verdict:
        """Check that a signature is ours and belongs to the text, where that came with it, and to the past."""
        found = _decoded(signature)
        signed, proof = found[: 2 * SIZE], found[2 * SIZE :]
        if not hmac.compare_digest(proof, self._digest(provider, signed)):
            return "forged"
        if text is not None and signed[:SIZE] != self._digest(provider, text.encode()):
            return "forged"
        if self.binds and signed[SIZE:] != self._digest(provider, past):
            return "moved"
        return "good"

    def wrap(self, provider: str, text: str) -> str:
        """Encode text that only the provider is meant to read."""
        return base64.b64encode(self._digest(provider, text.encode()) + text.encode()).decode()

    def wrapped(self, provider: str, content: str) -> bool:
        """Tell whether this came out of `wrap`."""
        found = _decoded(content)
        return hmac.compare_digest(found[:SIZE], self._digest(provider, found[SIZE:]))

    def _digest(self, provider: str, content: bytes) -> bytes:
        whole = provider.encode() + b"\0" + content
        return hmac.new(self._key, whole, hashlib.sha256).digest()[:SIZE]


def _decoded(text: str) -> bytes:
    """Decode either spelling of base64: some clients send the other one back."""
    try:
        return base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        return b""


def instructions(request: Request) -> bytes:
    """Digest what stands before the conversation: the system prompt and the tools."""
    systems = [request.system] if request.system is not None else []
    systems += [message for message in request.messages if message.role == "system"]
    digest = START
    for system in systems:
        digest = extend_exactly(digest, system)
    tools = b"".join(tool.raw or msgspec.json.encode(tool) for tool in request.tools)
    return hashlib.blake2b(digest + tools, digest_size=SIZE).digest()


class Past:
    """Follows a conversation block by block, and knows what stood before each answer in it.

    Reasoning is no part of it: whoever leaves some out has not changed what was said.
    """

    def __init__(self, start: bytes = START) -> None:
        self.before = start
        """The digest of what stood before the answer that the last block belongs to."""
        self.thoughts = ""
        """The reasoning of that answer so far."""
        self._role = ""
        self._digest = start

    @property
    def coming(self) -> bytes:
        """The digest of what stands before an answer that is given now."""
        return self.before if self._role == "assistant" else self._digest

    def take(self, role: Role, block: Block) -> None:
        """Follow one more block."""
        if role == "system":
            return
        if role == "assistant" and self._role != "assistant":
            self.before, self.thoughts = self._digest, ""
        self._role = role
        if isinstance(block, Reasoning):
            self.thoughts += block.text
        else:
            self._digest = extend_exactly(self._digest, Message(role=role, blocks=(block,)))


VOCABULARY = "o200k_base"


class Accounting:
    """Counts the tokens of requests, and remembers which prefixes of them were sent before."""

    def __init__(self, minimum: int) -> None:
        self.minimum = minimum
        self._scale = Scale(
            tokens.counter(VOCABULARY), framing=tokens.framing("generic"), images=tokens.image_rule("generic")
        )
        self._known: dict[bytes, int] = {}
        self._lock = Lock()

    def count(self, request: Request) -> int:
        """Count the tokens of a request."""
        return sum(weight for weight, _ in self._steps(request))

    def bill(self, request: Request, output: int) -> Usage:
        """Return the usage of a request; its prefixes are in the cache from now on."""
        total, cached, digest = 0, 0, START
        with self._lock:
            for weight, content in self._steps(request):
                total += weight
                digest = extend_exactly(digest, content)
                if digest in self._known:
                    cached = total
                self._known[digest] = total
        cached = cached if cached >= self.minimum else 0
        return Usage(input=0, cache_write=total - cached, cache_read=cached, output=output)

    def words(self, text: str) -> int:
        """Count the tokens of a text."""
        return self._scale.tokens(self._scale.weigh_text(text))

    def _steps(self, request: Request) -> list[tuple[int, Message]]:
        """Return the request block by block, as caches see it: what each weighs, and what it says."""
        scale = self._scale
        definitions = b"\n".join(tool.raw or msgspec.json.encode(tool) for tool in request.tools).decode()
        tools = Message(role="system", blocks=(Text(text=definitions),))
        steps = [(scale.tokens(scale.weigh_tools(request.tools) + scale.frame), tools)]
        systems = [request.system] if request.system is not None else []
        for message in (*systems, *request.messages):
            framing = scale.tokens(scale.weigh(Message(role=message.role)))
            for place, block in enumerate(message.blocks):
                alone = Message(role=message.role, blocks=(block,))
                steps.append((scale.tokens(scale.weigh(alone)) - (framing if place else 0), alone))
        return steps
