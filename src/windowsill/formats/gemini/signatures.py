"""Thought signatures: newer models demand back what they signed the calls of the current turn with.

A turn begins with words of the user; each model content in it that calls is a step, and its first call carries the
signature. Calls that another provider's model made have none: the API documents placeholders for them, which it takes
without looking. They are no help to older models, so they are not sent unless asked for: `Gemini(signature=...)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

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
