"""The seam between the loop and a model: the question, the answer, and the fault."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Literal, TypeAlias

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
    """The question to a model."""

    payload: Payload
    """The request, composed in the model's format."""
    max_output: int
    """The most tokens of the answer; 0 leaves it to the request and the provider."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a model."""

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


class Model(ABC):
    """A model that an engine asks."""

    name: str = ""
    """The model's name, for requests, prices and spans; empty if nobody knows it."""
    format: str = "openai"
    """The wire format of its requests and answers."""
    stream: bool = False
    """Whether its requests ask for a stream."""
    limit_field: str = ""
    """The name of the field that limits the answer; empty takes the one that the format and the model's name imply."""

    @abstractmethod
    async def ask(self, asked: Asked, listen: Callable[[Delta], None]) -> Answer:
        """Return the answer; raise `ModelError` when there is none. Leave nothing running when cancelled."""

    def opened(self) -> AbstractAsyncContextManager[None]:
        """Keep what the questions of one run share, such as a connection, until the run ends."""
        return nullcontext()


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
