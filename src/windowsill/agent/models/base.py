"""The seam between the loop and a model: the question, the answer, what all models need, and one behind a function."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from typing import Any, Literal, TypeAlias

import msgspec

from windowsill import providers, user_function
from windowsill.compose import Payload
from windowsill.errors import FormatError
from windowsill.messages import Message, Reasoning, Text, ToolUse, Usage, text_message
from windowsill.providers.faults import ModelError, from_exception, hide_keys, reported_error
from windowsill.providers.request_fields import complete_body, limit_field
from windowsill.providers.streams import CallDelta, CallStarted, Event, ReasoningDelta, TextDelta
from windowsill.providers.wire import any_decoder, decode, to_bytes

NO_NAME = "unknown"
"""The model of an answer where nobody says one: the providers' own clients want some name."""

DeltaKind: TypeAlias = Literal["text", "reasoning", "tool_call"]


class ModelRequest(msgspec.Struct):
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
    """True when the answer broke off, or ended without saying so: the body then holds what came."""


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
    """True when its requests ask for a stream."""
    limit_field: str = ""
    """The name of the field that limits the answer; empty takes the one that the format and the model's name imply."""

    @abstractmethod
    async def ask(self, request: ModelRequest, listen: Callable[[Delta], None]) -> Answer:
        """Return the answer; raise `ModelError` when there is none. Leave nothing running when cancelled."""

    def opened(self) -> AbstractAsyncContextManager[None]:
        """Keep what the questions of one run share, such as a connection, until the run ends."""
        return nullcontext()


def request_fields(model: Model, max_output: int) -> dict[str, Any]:
    """Return the fields of a body that limit the answer and ask for a stream."""
    named = model.limit_field or limit_field(model.format, model.name)
    body = complete_body(b"{}", model.format, model="", max_output=max_output, limit_field=named, stream=model.stream)
    fields: dict[str, Any] = decode(any_decoder, body)
    return fields


def decoded_request(request: ModelRequest, format: str, name: str) -> dict[str, Any]:
    """Return the decoded request, complete but for streaming, for models without an address."""
    known = name or (request.payload.model.name if request.payload.model is not None else "")
    body = complete_body(
        request.payload.body(format),
        format,
        model=name,
        max_output=request.max_output,
        limit_field=limit_field(format, known),
        stream=False,
    )
    decoded: dict[str, Any] = decode(any_decoder, body)
    return decoded


def read_answer(body: bytes, format: str, hide_keys: Callable[[str], str]) -> list[Message]:
    """Read the messages of a whole answer as a session will; raise `ModelError` when it is not one."""
    try:
        providers.get(format).read_reply(body)
        messages = providers.read_added(body, format=format).messages
    except FormatError as error:
        what = f"the answer is not in its format: {hide_keys(error.what)}"
        unread = ModelError("malformed", what, remedy="check the address and the format")
        raise reported_error(body, hide_keys) or unread from None
    if not messages or any(message.role != "assistant" for message in messages):
        what = "the answer holds no message of the assistant"
        raise ModelError("malformed", what, remedy="check the address and the format")
    return messages


def emit_answer(body: bytes, format: str, listen: Callable[[Delta], None], hide_keys: Callable[[str], str]) -> None:
    """Emit the deltas of an answer that came in one piece; raise `ModelError` when it is not an answer."""
    for message in read_answer(body, format, hide_keys):
        for block in message.blocks:
            match block:
                case Text(text=text) if text:
                    listen(Delta("text", text))
                case Reasoning(text=text) if text:
                    listen(Delta("reasoning", text))
                case ToolUse(name=name, arguments=arguments):
                    listen(Delta("tool_call", name))
                    listen(Delta("tool_call", arguments))


def delta_of(event: Event) -> Delta | None:
    """Return the delta of an event, if it has one."""
    match event:
        case TextDelta(text=text):
            return Delta("text", text)
        case ReasoningDelta(text=text):
            return Delta("reasoning", text)
        case CallStarted(name=name):
            return Delta("tool_call", name)
        case CallDelta(arguments=arguments):
            return Delta("tool_call", arguments)
    return None


def render_reply(
    message: Message, format: str, *, model: str = "", usage: Usage | None = None, whole: bool = True
) -> bytes:
    """Make an answer that holds this message; one that is not `whole` does not say that it ended."""
    return providers.get(format).render_reply(message, model=model or NO_NAME, usage=usage, whole=whole)


class FunctionModel(Model):
    """Asks `function(request)`, which may be async; one that is not is run in a thread.

    `request` is the decoded body in `format`, complete but for streaming. The function gives text, or a response in
    that format: a dictionary, an object of an SDK, or bytes. What it raises becomes a `ModelError`.
    """

    def __init__(self, function: Callable[[dict[str, Any]], Any], *, format: str = "openai", name: str = "") -> None:
        self.name = name
        self.format = providers.get(format).name
        self._function = function
        self._called = getattr(function, "__name__", type(function).__name__)

    def __repr__(self) -> str:
        return f"<model function:{self._called}>"

    async def ask(self, request: ModelRequest, listen: Callable[[Delta], None]) -> Answer:
        """Return the answer of the function."""
        decoded = decoded_request(request, self.format, self.name)
        try:
            result = await user_function.call(self._function, decoded)
        except Exception as error:  # noqa: BLE001 whatever a user's function raises, the loop hears of it by one name
            raise from_exception(error, self._called) from None
        body = self._body(result)
        emit_answer(body, self.format, listen, hide_keys)
        return Answer(body=body)

    def _body(self, given: Any) -> bytes:
        try:
            if isinstance(given, str):
                return render_reply(text_message("assistant", given), self.format, model=self.name)
            return self._whole_reply(to_bytes(given))
        except FormatError as error:
            remedy = "return text, or a response of the provider"
            raise ModelError("malformed", f"{self._called}: {error.what}", remedy=remedy) from None

    def _whole_reply(self, body: bytes) -> bytes:
        """Return an answer as it is, and a message that came alone in an answer around it."""
        with suppress(FormatError):
            providers.get(self.format).read_reply(body)
            return body
        with suppress(FormatError):
            messages = providers.read_added(body, format=self.format).messages
            if len(messages) == 1 and messages[0].role == "assistant" and body.lstrip()[:1] == b"{":
                return render_reply(messages[0], self.format, model=self.name)
        return body
