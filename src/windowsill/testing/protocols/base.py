"""The seam between the local server and a provider: what a dialect can do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from windowsill.errors import WindowsillError
from windowsill.messages import Block, Usage
from windowsill.providers import Problem
from windowsill.testing.provider_rules import Edit, Managed, Place, Verdict

PIECE = 12
"""Characters of a streamed piece: short enough that everything comes in several."""


def pieces(text: str) -> list[str]:
    """A text as it is streamed."""
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]


def event(name: str, value: dict[str, Any]) -> bytes:
    """An event with its name."""
    return b"event: " + name.encode() + b"\n" + data(value)


def data(value: dict[str, Any]) -> bytes:
    """An event without a name."""
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


def is_kind(raw: bytes | None, kind: str) -> bool:
    """Whether a block that came as these bytes is of this type."""
    if raw is None or kind.encode() not in raw:
        return False
    value = msgspec.json.decode(raw)
    return isinstance(value, dict) and value.get("type") == kind


class Call(msgspec.Struct, frozen=True):
    """A tool call the model makes; without an id the server gives one."""

    name: str
    input: dict[str, Any] = {}
    id: str = ""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of the model: words, calls, and reasoning where the protocol has a place for it."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    usage: bool = True
    """Whether the answer says what it used."""


def numbered(answer: Answer, number: int) -> Answer:
    """The answer with an id for every call: the same for the same conversation."""
    calls = tuple(
        call if call.id else msgspec.structs.replace(call, id=f"call_{number}_{place}")
        for place, call in enumerate(answer.calls)
    )
    return msgspec.structs.replace(answer, calls=calls)


BAD_REQUEST = 400

Task: TypeAlias = Literal["answer", "stream", "count", "compact"]
"""What a request asks for; `answer` streams where the body says so."""


class Route(msgspec.Struct, frozen=True):
    """What a path asks for, and of which model where the path says that."""

    task: Task
    model: str | None = None


class Proof(msgspec.Struct, frozen=True):
    """A signature in a request, and the words it should belong to; `None` where they may be left out."""

    signature: str
    text: str | None = None


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, with everything around it that a provider says."""

    answer: Answer
    usage: Usage
    model: str
    number: int
    body: dict[str, Any]
    managed: Managed
    signature: str = ""
    """Of the reasoning; empty when there is none."""
    reasoning_tokens: int = 0
    compaction: dict[str, Any] | None = None
    """The compaction that comes first, in the provider's own form."""
    compaction_usage: Usage = Usage()


class RefusedError(WindowsillError):
    """A request that the provider does not take; `code` is the word it has for the reason."""

    def __init__(
        self,
        message: str,
        *,
        status: int = BAD_REQUEST,
        code: str | None = None,
        param: str | None = None,
        problems: tuple[Problem, ...] = (),
    ) -> None:
        self.status = status
        self.code = code
        self.param = param
        self.problems = problems
        super().__init__(message)


class Dialect(Protocol):
    """One provider's way to be asked and to answer. Methods with a body say what most providers do."""

    name: str

    def route(self, path: str) -> Route | None:
        """What a path asks for; `None` when it is another provider's."""

    def format(self, model: str) -> str:
        """The format of requests to this model."""

    def whole(self, body: dict[str, Any]) -> dict[str, Any]:
        """The body with what the provider remembers put in front."""
        return body

    def demand(self, body: dict[str, Any], headers: Mapping[str, str]) -> None:
        """Refuse what breaks a rule that is not about the conversation alone."""
        del body, headers

    def edits(self, body: dict[str, Any]) -> tuple[Edit, ...]:
        """What the provider is to do to the conversation itself."""
        del body
        return ()

    def closes(self, block: Block) -> bool:
        """Whether the provider forgets what stands before this block."""
        del block
        return False

    def proof(self, block: Block, thoughts: str) -> Proof | None:
        """The signature a block carries; `thoughts` are the words of reasoning of its answer up to here."""
        del block, thoughts
        return None

    def unproven(self, place: Place, block: Block, verdict: Verdict) -> RefusedError:
        """What the provider says to reasoning that is not as it was."""
        del block, verdict
        return RefusedError(f"messages[{place[0]}]: reasoning that is not as it was")

    def compaction(self, summary: str, number: int) -> dict[str, Any]:
        """A compaction, as it is answered and sent back."""
        del number
        return {"type": "compaction", "content": summary}

    def compacted(self, told: Told) -> dict[str, Any]:
        """The body of the response to a request that asks for nothing but a compaction."""
        return self.reply(told)

    def reply(self, told: Told) -> dict[str, Any]:
        """The body of a response."""

    def stream(self, told: Told) -> Iterator[bytes]:
        """The events of a streamed response."""

    def counted(self, managed: Managed) -> dict[str, Any]:
        """The body of a response that only counts."""
        return {"input_tokens": managed.tokens}

    def error(self, refused: RefusedError) -> dict[str, Any]:
        """The body of an error."""

    def overflow(self, tokens: int, window: int) -> RefusedError:
        """What the provider says to a request that is too long."""
