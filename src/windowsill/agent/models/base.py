"""The seam between the loop and a model: the question, the answer, and the fault."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Literal, TypeAlias

import msgspec

from windowsill.compose import Payload

DeltaKind: TypeAlias = Literal["text", "reasoning", "tool_call"]


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
