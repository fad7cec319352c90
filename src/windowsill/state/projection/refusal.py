"""A call that is not run, and what the model is told instead."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

LONGEST_VALUE = 80
"""Characters of a value that a refusal quotes: the model wrote it and knows it."""

MOST_NAMED = 20
"""Names or values that a refusal lists."""


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why a call is not run: which rule, what it found, what to do."""

    tool: str
    rule: str
    why: str
    remedy: str
    parameter: str = ""
    """The argument it is about; empty when it is about the call as such."""

    def __str__(self) -> str:
        """One line for the model."""
        return " ".join(f"{shown(self.tool)} was refused ({self.rule}): {self.why}; {self.remedy}".split())


def shown(value: Any, most: int = LONGEST_VALUE) -> str:
    """A value as JSON on one line, shortened."""
    try:
        text = json.dumps(value, ensure_ascii=True, default=repr)
    except (ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= most else f"{text[: most - 3]}..."


def several(values: Iterable[Any]) -> str:
    """Values in a row, not too many."""
    return _row([shown(value) for value in values])


def named(names: Iterable[str], *, none: str = "nothing") -> str:
    """Names in a row, not too many."""
    return _row([name if name.isidentifier() else shown(name) for name in names]) or none


def _row(texts: list[str]) -> str:
    more = f" and {len(texts) - MOST_NAMED} more" if len(texts) > MOST_NAMED else ""
    return ", ".join(texts[:MOST_NAMED]) + more
