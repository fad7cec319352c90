"""The seam between the local server and a provider: a protocol, and the values it is given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec

from windowsill import providers
from windowsill.errors import WindowsillError
from windowsill.messages import Block, Usage
from windowsill.providers import Problem, ProviderSpec
from windowsill.testing.provider_rules import Edit, Managed, Place, Verdict

BAD_REQUEST = 400

PIECE = 12
"""Characters of a streamed piece: short enough that everything comes in several."""

Task: TypeAlias = Literal["answer", "stream", "count", "compact"]
"""The task of a request; `answer` streams where the body says so."""


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
    """The answer says what it used."""

    def with_ids(self, number: int) -> Answer:
        """Return the answer with an id for every call: the same for the same conversation."""
        calls = tuple(
            call if call.id else msgspec.structs.replace(call, id=f"call_{number}_{place}")
            for place, call in enumerate(self.calls)
        )
        return msgspec.structs.replace(self, calls=calls)


class Route(msgspec.Struct, frozen=True):
    """The task that a path stands for, and the model where the path names it."""

    task: Task
    model: str | None = None


class Proof(msgspec.Struct, frozen=True):
    """A signature in a request, and the words it should belong to; `None` where they may be left out."""

    signature: str
    text: str | None = None


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
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


class Protocol:
    """One provider's way to be asked and to answer: a base with what most providers do."""

    name: ClassVar[str]
    """The name of its format."""
    paths: ClassVar[Mapping[str, Task]] = {}
    error_types: ClassVar[Mapping[int, str]] = {
        400: "invalid_request_error",
        404: "not_found_error",
        429: "rate_limit_error",
    }
    """Status -> the provider's word for the error."""

    @property
    def spec(self) -> ProviderSpec:
        """The facts about the provider."""
        return providers.get(self.name).spec

    def route(self, path: str) -> Route | None:
        """Return what a path asks for; `None` when it is another provider's."""
        task = self.paths.get(path)
        return None if task is None else Route(task)

    def format(self, model: str) -> str:
        """Return the format of requests to this model."""
        return self.name

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the body with what the provider remembers put in front."""
        return body

    def check(self, body: dict[str, Any], headers: Mapping[str, str]) -> None:
        """Refuse what breaks a rule that is not about the conversation alone."""

    def edits(self, body: dict[str, Any]) -> tuple[Edit, ...]:
        """Return what the provider is to do to the conversation itself."""
        return ()

    def closes(self, block: Block) -> bool:
        """Tell whether the provider forgets what stands before this block."""
        return False

    def proof(self, block: Block, thoughts: str) -> Proof | None:
        """Return the signature a block carries; `thoughts` is the reasoning of its answer up to here."""
        return None

    def bad_proof(self, place: Place, block: Block, verdict: Verdict) -> RefusedError:
        """Return what the provider says to reasoning that is not as it was."""
        return RefusedError(f"messages[{place[0]}]: reasoning that is not as it was")

    def compaction(self, summary: str, number: int) -> dict[str, Any]:
        """Return a compaction, as it is answered and sent back."""
        return {"type": "compaction", "content": summary}

    def compact_reply(self, outcome: Outcome) -> dict[str, Any]:
        """Return the response to a request that asks for nothing but a compaction."""
        return self.reply(outcome)

    def reply(self, outcome: Outcome) -> dict[str, Any]:
        """Return the body of a response."""
        raise NotImplementedError

    def stream(self, outcome: Outcome) -> Iterator[bytes]:
        """Return the events of a streamed response."""
        raise NotImplementedError

    def count_reply(self, managed: Managed) -> dict[str, Any]:
        """Return the body of a response that only counts."""
        return {"input_tokens": managed.tokens}

    def usage(self, usage: Usage, reasoning: int = 0) -> dict[str, Any]:
        """Return a usage in the words of the provider."""
        return providers.get(self.name).render_usage(usage, reasoning)

    def error(self, refused: RefusedError) -> dict[str, Any]:
        """Return the body of an error, as OpenAI's interfaces word it."""
        kind = self.error_types.get(refused.status, "server_error")
        return {"error": {"message": refused.what, "type": kind, "param": refused.param, "code": refused.code}}

    def overflow(self, tokens: int, window: int) -> RefusedError:
        """Return what the provider says to a request that is too long."""
        raise NotImplementedError


def pieces(text: str) -> list[str]:
    """Cut a text as it is streamed."""
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]


def event(name: str, value: dict[str, Any]) -> bytes:
    """Return an event with its name."""
    return b"event: " + name.encode() + b"\n" + data(value)


def data(value: dict[str, Any]) -> bytes:
    """Return an event without a name."""
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


def is_kind(raw: bytes | None, kind: str) -> bool:
    """Tell whether a block that came as these bytes is of this type."""
    if raw is None or kind.encode() not in raw:
        return False
    value = msgspec.json.decode(raw)
    return isinstance(value, dict) and value.get("type") == kind
