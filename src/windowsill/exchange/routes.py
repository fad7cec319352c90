"""Which calls of a provider's API are model calls, told from their address."""

from __future__ import annotations

import re

import msgspec


class Route(msgspec.Struct, frozen=True):
    """A model call: the format of its body, and what the address says about it."""

    format: str
    model: str | None = None
    streamed: bool = False
    """Whether the address alone says that the answer is streamed."""


_GEMINI = re.compile(r"/(?:models|tunedModels|endpoints)/([^/:]+):(generateContent|streamGenerateContent)$")
_VERTEX_CLAUDE = re.compile(r"/publishers/anthropic/models/([^/:]+):(rawPredict|streamRawPredict)$")

_ENDINGS = {"/messages": "anthropic", "/chat/completions": "openai", "/responses": "responses"}


def route(path: str) -> Route | None:
    """The model call at this path, or `None` when it is something else (counting, files, batches ...)."""
    path = path.partition("?")[0].rstrip("/")
    if "/threads/" in path:
        # What another API of OpenAI's calls messages is no call of a model.
        return None
    for ending, format in _ENDINGS.items():
        if path.endswith(ending):
            return Route(format)
    for pattern, format in ((_GEMINI, "gemini"), (_VERTEX_CLAUDE, "anthropic")):
        found = pattern.search(path)
        if found is not None:
            return Route(format, found[1].partition("@")[0], found[2].startswith("stream"))
    return None
