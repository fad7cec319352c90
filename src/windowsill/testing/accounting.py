"""Counts requests as a provider would: tokens, and how many of them its prompt cache had seen before."""

from __future__ import annotations

from threading import Lock

import msgspec

from windowsill import tokens
from windowsill.history.chain import START, chain
from windowsill.messages import Message, Request, Text, Usage
from windowsill.tokens import Scale

VOCABULARY = "o200k_base"


class Accounting:
    """What requests weigh, and which prefixes of them were sent before."""

    def __init__(self, minimum: int) -> None:
        self.minimum = minimum
        self._scale = Scale(
            tokens.counter(VOCABULARY), framing=tokens.framing("generic"), images=tokens.image_rule("generic")
        )
        self._known: dict[bytes, int] = {}
        self._lock = Lock()

    def count(self, request: Request) -> int:
        """The tokens of a request."""
        return sum(weight for weight, _ in self._steps(request))

    def bill(self, request: Request, output: int) -> Usage:
        """The usage of a request; its prefixes are in the cache from now on."""
        total, cached, digest = 0, 0, START
        with self._lock:
            for weight, content in self._steps(request):
                total += weight
                digest = chain(digest, content)
                if digest in self._known:
                    cached = total
                self._known[digest] = total
        cached = cached if cached >= self.minimum else 0
        fresh = total - cached
        return Usage(input=0, cache_write=fresh, cache_read=cached, output=output)

    def words(self, text: str) -> int:
        """The tokens of a text."""
        return self._scale.tokens(self._scale.weigh_text(text))

    def _steps(self, request: Request) -> list[tuple[int, Message]]:
        """The request block by block, as caches see it: what each weighs, and what it says."""
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
