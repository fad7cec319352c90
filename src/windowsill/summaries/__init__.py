"""Summaries: writers turn hidden messages into the text that stands in their place.

The offline writer uses code alone; model writers ask a model. What they give is a proposal: whoever folds accepts it
only if it says something and makes the view smaller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import msgspec

from windowsill.history.folds import Brief
from windowsill.messages import Message, Usage

__all__ = ["Material", "ModelWriter", "Shared", "Writer", "Written"]


class Shared(msgspec.Struct, frozen=True, kw_only=True):
    """The request that is about to be sent: a summary asked for at its end is paid for by the prompt cache."""

    format: str
    body: bytes


class Material(msgspec.Struct, frozen=True, kw_only=True):
    """The messages that a summary is written from, and what is known of them."""

    messages: tuple[Message, ...]
    """The messages to be hidden, oldest first; summaries that stand among them have an `origin`."""
    tokens: int
    """The tokens of the messages: the text must have fewer."""
    count: Callable[[str], int]
    """Counts the tokens of a text."""
    digest: dict[str, Any] = {}
    """The digests of the summaries among them (see `Written.digest`), merged."""
    shared: Shared | None = None


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """A text in the place of messages."""

    text: str
    digest: dict[str, Any] = {}
    """The facts that code collected from the hidden messages; the next summary is an update of them."""
    writer: str = "offline"
    notes: tuple[str, ...] = ()
    """Remarks on what did not go as planned."""
    usage: Usage | None = None
    """The cost, if a model wrote the text."""


@runtime_checkable
class Writer(Protocol):
    """Writes with code alone, at once."""

    name: str

    def write(self, brief: Brief, material: Material) -> Written:
        """Write the text; it never raises for what the messages hold."""


@runtime_checkable
class ModelWriter(Protocol):
    """Asks a model."""

    name: str

    async def awrite(self, brief: Brief, material: Material) -> Written:
        """Write the text; `WindowsillError` when the model gives none that can be used."""
