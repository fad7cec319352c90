"""Signs reasoning as providers do, so that a changed word or a changed past is found out."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Literal, TypeAlias

import msgspec

from windowsill.history.chain import START, chain
from windowsill.messages import Block, Message, Reasoning, Request, Role

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
        """The signature of reasoning that was written after `past`."""
        signed = self._digest(provider, text.encode()) + self._digest(provider, past if self.binds else START)
        return base64.b64encode(signed + self._digest(provider, signed)).decode()

    def check(self, provider: str, signature: str, text: str | None, past: bytes) -> Verdict:
        """Whether a signature is ours and belongs to the text, where that came with it, and to the past."""
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
        """Text that only the provider is meant to read."""
        return base64.b64encode(self._digest(provider, text.encode()) + text.encode()).decode()

    def wrapped(self, provider: str, content: str) -> bool:
        """Whether this came out of `wrap`."""
        found = _decoded(content)
        return hmac.compare_digest(found[:SIZE], self._digest(provider, found[SIZE:]))

    def _digest(self, provider: str, content: bytes) -> bytes:
        whole = provider.encode() + b"\0" + content
        return hmac.new(self._key, whole, hashlib.sha256).digest()[:SIZE]


def _decoded(text: str) -> bytes:
    """The bytes behind either spelling of base64: some clients send the other one back."""
    try:
        return base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        return b""


def instructions(request: Request) -> bytes:
    """What stands before the conversation: the system prompt and the tools."""
    systems = [request.system] if request.system is not None else []
    systems += [message for message in request.messages if message.role == "system"]
    digest = START
    for system in systems:
        digest = chain(digest, system)
    tools = b"".join(tool.raw or msgspec.json.encode(tool) for tool in request.tools)
    return hashlib.blake2b(digest + tools, digest_size=SIZE).digest()


class Past:
    """Follows a conversation block by block, and knows what stood before each answer in it.

    Reasoning is no part of it: whoever leaves some out has not changed what was said.
    """

    def __init__(self, start: bytes = START) -> None:
        self.before = start
        """What stood before the answer that the last block belongs to."""
        self.thoughts = ""
        """The reasoning of that answer so far."""
        self._role = ""
        self._digest = start

    @property
    def coming(self) -> bytes:
        """What stands before an answer that is given now."""
        return self.before if self._role == "assistant" else self._digest

    def take(self, role: Role, block: Block) -> None:
        """One more block."""
        if role == "system":
            return
        if role == "assistant" and self._role != "assistant":
            self.before, self.thoughts = self._digest, ""
        self._role = role
        if isinstance(block, Reasoning):
            self.thoughts += block.text
        else:
            self._digest = chain(self._digest, Message(role=role, blocks=(block,)))
