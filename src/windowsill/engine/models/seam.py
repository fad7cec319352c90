"""The seam between the loop and a model: what is asked, what is answered, and what goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from windowsill.compose import Payload
from windowsill.errors import WindowsillError

DeltaKind: TypeAlias = Literal["text", "reasoning", "tool_call"]

FaultKind: TypeAlias = Literal[
    "overflow",  # the request does not fit the model's window
    "rate-limited",
    "server",  # the provider is broken or busy
    "timeout",
    "unreachable",
    "no-key",  # there is none, or it is not accepted
    "refused",  # the provider does not take the request
    "malformed",  # what came is no answer
]

PASSING: frozenset[FaultKind] = frozenset({"rate-limited", "server", "timeout", "unreachable"})
"""Faults that may be gone the next time, unless whoever raises one knows better."""


class Asked(msgspec.Struct):
    """What a model is asked."""

    payload: Payload
    """The request, composed in the model's format."""
    max_output: int
    """The most tokens of the answer; 0 leaves it to the request and the provider."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a model answered."""

    body: bytes
    """The whole answer in the model's wire format, for `session.add(body, format=model.format)`."""
    partial: bool = False
    """Whether the answer broke off, or ended without saying so: the body then holds what came."""
    seconds: float = 0.0
    """From asking to the last byte, retries and their pauses included."""


class Delta(msgspec.Struct, frozen=True):
    """A piece of an answer while it arrives. For a call: its name when it begins, then pieces of its arguments."""

    kind: DeltaKind
    text: str


@runtime_checkable
class Model(Protocol):
    """Whoever answers."""

    name: str
    """The model's name, for requests, prices and spans; empty if nobody knows it."""
    format: str
    """The wire format of its requests and answers."""

    async def ask(self, asked: Asked, listen: Callable[[Delta], None]) -> Answer:
        """The answer; `ModelError` when there is none. Whoever cancels it leaves nothing running."""


class ModelError(WindowsillError):
    """A model gave no answer. `kind` says why, `passing` whether it may go better the next time."""

    def __init__(
        self,
        kind: FaultKind,
        what: str,
        *,
        remedy: str = "",
        said: str = "",
        retry_after: float | None = None,
        passing: bool | None = None,
        **about: Any,
    ) -> None:
        self.kind = kind
        self.said = said
        """The provider's own words without keys, for `session.overflowed`."""
        self.retry_after = retry_after
        """The seconds the provider asks to be left alone."""
        self.passing = kind in PASSING if passing is None else passing
        super().__init__(what, remedy=remedy, **about)
