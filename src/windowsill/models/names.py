"""The many spellings of a model's name, down to the one the table uses.

Only what cannot name another model is taken away: where it is served, its date, `-latest`, `-preview` and the like. A
word nobody knows is never dropped, so `gpt-5-something` does not become `gpt-5`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

LONG_WINDOW = "[1m]"
"""The ending by which coding agents ask for a window of a million tokens."""

_REGION = re.compile(r"^(?:us|us-gov|eu|apac|jp|au|ca|global)\.(?=[a-z])")
_VENDOR = re.compile(r"^(?:amazon|anthropic|deepseek|meta|mistral|moonshot|moonshotai|openai|qwen|xai|zai)\.(?=[a-z])")
_SERVED_VERSION = re.compile(r"-v\d+(?::\d+)?$")
_SERVED_AS = re.compile(r":(?:batch|beta|exacto|floor|free|nitro|online)$")
_DATED = re.compile(
    r"-(?:\d{8}|\d{4}-\d{2}-\d{2}|\d{2}-\d{4}|\d{2}-\d{2}|\d{6}|\d{4}|00\d"
    r"|latest|preview|exp|experimental|instruct|chat-hf|hf|it|maas|fp8)$"
)


def key(name: str) -> str:
    """The form in which names are compared: small letters, dashes for dots."""
    return name.strip().lower().replace(".", "-")


def spellings(name: str) -> Iterator[str]:
    """Keys that `name` may stand under, the most literal first."""
    yield key(name)
    bare = _without_host(name.strip().lower().removesuffix(LONG_WINDOW))
    while True:
        yield key(bare)
        shorter = _DATED.sub("", bare)
        if shorter == bare:
            return
        bare = shorter


def _without_host(name: str) -> str:
    if name.startswith("ft:"):
        return name.split(":")[1]
    name = name.rpartition("/")[2]
    served = _VENDOR.sub("", _REGION.sub("", name))
    if served != name:
        return _SERVED_VERSION.sub("", served)
    return _SERVED_AS.sub("", name.partition("@")[0])
