"""What a listener hears while an answer arrives. The answer itself is put together by the stream."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, TypeVar

import msgspec

from windowsill.errors import FormatError
from windowsill.messages import Reply, Usage
from windowsill.providers import sse
from windowsill.providers.wire import any_decoder


class TextDelta(msgspec.Struct, frozen=True, gc=False):
    """More words; `index` is the block they belong to, where the format counts blocks."""

    text: str
    index: int = 0


class ReasoningDelta(msgspec.Struct, frozen=True, gc=False):
    """More reasoning."""

    text: str
    index: int = 0


class CallStarted(msgspec.Struct, frozen=True, gc=False):
    """The model begins to call a tool; the arguments follow."""

    id: str
    name: str
    index: int = 0


class CallDelta(msgspec.Struct, frozen=True, gc=False):
    """More of a call's arguments: a piece of JSON text, cut anywhere."""

    arguments: str
    index: int = 0


class UsageSeen(msgspec.Struct, frozen=True, gc=False):
    """What the call used so far. It may come several times, also after `Finished`; the last one counts."""

    usage: Usage


class Finished(msgspec.Struct, frozen=True, gc=False):
    """The answer is whole."""

    stop_reason: str | None = None


class Failed(msgspec.Struct, frozen=True, gc=False):
    """The provider reported an error, or sent what cannot be read (`kind` is then `malformed`)."""

    what: str
    kind: str = ""
    data: bytes = b""


class Raw(msgspec.Struct, frozen=True, gc=False):
    """An event, or a part of one, that this version does not know, as it came."""

    event: str
    data: bytes


Event: TypeAlias = TextDelta | ReasoningDelta | CallStarted | CallDelta | UsageSeen | Finished | Failed | Raw

MALFORMED = "malformed"
"""The kind of a failure that is not the provider's word but ours."""


T = TypeVar("T")

REPLACED = frozenset({"type", "role", "id", "format"})
"""Fields that are whole each time they come; some servers repeat them in every event."""


class Pieces(list[str]):
    """Text that may still grow."""


def joined(pieces: list[str]) -> str:
    """The text of all pieces; a character torn into halves (two escapes in two events) is made whole."""
    text = "".join(pieces)
    try:
        text.encode()
    except UnicodeEncodeError:
        return _whole(text)
    return text


def settle(value: Any) -> Any:
    """The value as JSON has it."""
    if isinstance(value, Pieces):
        return joined(value)
    if isinstance(value, str):
        return joined([value])
    if isinstance(value, dict):
        return {joined([key]): settle(each) for key, each in value.items()}
    return [settle(each) for each in value] if isinstance(value, list) else value


def grow(into: dict[str, Any], fields: dict[str, Any]) -> None:
    """Put what arrived to what is there: text and lists get longer, objects are merged, anything else is replaced."""
    for key, value in fields.items():
        old = into.get(key)
        if isinstance(value, str) and key not in REPLACED:
            into[key] = _longer(old, value)
        elif isinstance(value, list):
            into[key] = items = _items(old)
            for each in value:
                _add(items, each)
        elif isinstance(value, dict):
            into[key] = inner = old if isinstance(old, dict) else {}
            grow(inner, value)
        elif value is not None or key not in into:
            into[key] = value


def _longer(old: Any, text: str) -> Any:
    if isinstance(old, dict) and not text:
        return old
    if isinstance(old, Pieces):
        old.append(text)
        return old
    if isinstance(old, list):
        _add(old, {"type": "text", "text": text})
        return old
    return Pieces([old, text] if isinstance(old, str) else [text])


def _items(old: Any) -> list[Any]:
    """A list that may follow text: what was said is then its first part."""
    if isinstance(old, Pieces):
        return [{"type": "text", "text": old}] if any(old) else []
    return old if isinstance(old, list) else []


def _add(items: list[Any], item: Any) -> None:
    """One more item, or more of the last one, which then has the same index and type."""
    last = items[-1] if items else None
    if isinstance(item, dict) and isinstance(last, dict) and _same(last, item):
        grow(last, item)
    elif isinstance(item, dict):
        items.append({})
        grow(items[-1], item)
    else:
        items.append(item)


def _same(last: dict[str, Any], item: dict[str, Any]) -> bool:
    continues = "index" in item or item.keys() == {"type", "text"}
    return continues and last.get("type") == item.get("type") and last.get("index") == item.get("index")


def lenient(decoder: msgspec.json.Decoder[T], data: bytes) -> T | None:
    """Decode what other readers of JSON take too (half a surrogate pair, broken UTF-8); `None` when nothing helps."""
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        text = json.dumps(json.loads(str(data, "utf-8", "replace")), ensure_ascii=False)
        return decoder.decode(_whole(text).encode())
    except (ValueError, msgspec.DecodeError, RecursionError):
        return None


def loose(data: bytes) -> dict[str, Any] | None:
    """The object in an event, halves of surrogate pairs kept for their other half; `None` when it is none."""
    value = loose_value(data)
    return value if isinstance(value, dict) else None


def loose_value(data: bytes) -> Any:
    """The same for any value; `None` when it cannot be read."""
    try:
        return any_decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return json.loads(str(data, "utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _whole(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


DONE = b"[DONE]"
"""What OpenAI, and who speaks like it, sends as the last event; it is no JSON."""

PARTIAL = "partial"
"""The key in the metadata of a message that did not arrive whole."""


class Assembly(Protocol):
    """Puts an answer of one format together out of its events. It never raises for what a server sends."""

    finished: bool
    failure: Failed | None

    def take(self, arrived: list[sse.Event]) -> list[Event]:
        """Take more events; what they mean to a listener."""

    def body(self) -> bytes:
        """The response as the call without streaming would have given it, as far as it arrived."""


class Parser(Protocol):
    """Takes the bytes apart. It gives each event once, when it is whole."""

    def feed(self, chunk: bytes) -> list[sse.Event]:
        """The events that end in this chunk."""

    def close(self) -> list[sse.Event]:
        """What is left when nothing more comes."""


class Stream:
    """One answer. Feed it what the provider sends; it does no input or output of its own."""

    def __init__(self, parser: Parser, assembly: Assembly, read_reply: Callable[[bytes], Reply]) -> None:
        self._parser = parser
        self._assembly = assembly
        self._read_reply = read_reply

    @property
    def partial(self) -> bool:
        """True as long as something is missing: the end has not come, or an event could not be read."""
        failure = self._assembly.failure
        return not self._assembly.finished or (failure is not None and failure.kind == MALFORMED)

    @property
    def failure(self) -> Failed | None:
        """The first error in the stream."""
        return self._assembly.failure

    def feed(self, chunk: bytes) -> list[Event]:
        """Take bytes as they came, torn anywhere; what is new in them."""
        return self._assembly.take(self._parser.feed(chunk))

    def close(self) -> list[Event]:
        """Say that nothing more comes. An event that only lacks its end is read; one torn in the middle is left out."""
        return self._assembly.take([event for event in self._parser.close() if _is_whole(event.data)])

    def body(self) -> bytes:
        """The response as JSON, as the call without streaming would have given it, as far as it arrived."""
        return self._assembly.body()

    def reply(self, *, partial_ok: bool = True) -> Reply:
        """The message as the call without streaming would have given it, with usage, model and stop reason.

        The messages of an answer that is not whole carry `PARTIAL` in their metadata.
        """
        if not self.partial:
            return self._read_reply(self.body())
        if not partial_ok:
            why = self.failure.what if self.failure is not None else "its last event did not come"
            raise FormatError(f"the answer is not whole: {why}", where="stream", remedy="send the request again")
        reply = self._read_reply(self.body())
        message, *more = [
            msgspec.structs.replace(each, metadata={PARTIAL: True}) for each in (reply.message, *reply.more)
        ]
        return msgspec.structs.replace(reply, message=message, more=tuple(more))


def _is_whole(data: bytes) -> bool:
    if data == DONE:
        return True
    try:
        any_decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
