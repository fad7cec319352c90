"""Looks at an answer once before it is handed on: that it is one, what it says, and what a listener hears of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from windowsill import formats
from windowsill.engine.models.faults import failed
from windowsill.engine.models.seam import Delta, ModelError
from windowsill.errors import FormatError
from windowsill.formats.streaming import CallDelta, CallStarted, Event, ReasoningDelta, TextDelta
from windowsill.formats.streaming.pieces import loose
from windowsill.messages import Message, Reasoning, Text, ToolUse


def read(body: bytes, format: str, scrubbed: Callable[[str], str]) -> list[Message]:
    """The messages of a whole answer, as a session will read them; `ModelError` when it is none."""
    try:
        formats.get(format).read_reply(body)
        messages = formats.read_added(body, format=format).messages
    except FormatError as error:
        what = f"the answer is not in its format: {scrubbed(error.what)}"
        unread = ModelError("malformed", what, remedy="check the address and the format")
        raise reported(body, scrubbed) or unread from None
    if not messages or any(message.role != "assistant" for message in messages):
        what = "the answer holds no message of the assistant"
        raise ModelError("malformed", what, remedy="check the address and the format")
    return messages


def says_anything(messages: list[Message]) -> bool:
    """Whether an answer has words or a call; reasoning alone, without its end, is of no use to anybody."""
    return any(message.text.strip() or any(call.name for call in message.calls) for message in messages)


def deltas(messages: list[Message]) -> Iterator[Delta]:
    """What a listener hears of an answer that came in one piece."""
    for message in messages:
        for block in message.blocks:
            match block:
                case Text(text=text) if text:
                    yield Delta("text", text)
                case Reasoning(text=text) if text:
                    yield Delta("reasoning", text)
                case ToolUse(name=name, arguments=arguments):
                    yield Delta("tool_call", name)
                    yield Delta("tool_call", arguments)


def heard(event: Event) -> Delta | None:
    """What a listener hears of an event, if anything."""
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


def reported(data: bytes, scrubbed: Callable[[str], str]) -> ModelError | None:
    """The error that came in the place of an answer, or the reason why a question was blocked; `None` if it is none."""
    match loose(data):
        case {"promptFeedback": {"blockReason": str(reason)}}:
            what = f"the provider blocked the request ({scrubbed(reason)})"
            return ModelError("refused", what, remedy="ask something else, or another model")
        case {"error": {"message": str(what)} as told}:
            return failed(what, " ".join(str(told.get(each, "")) for each in ("type", "code", "status")), scrubbed)
        case {"error": str(what)}:
            return failed(what, "", scrubbed)
    return None
