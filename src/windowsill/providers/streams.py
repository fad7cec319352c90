"""Streaming, without input or output: feed bytes, get events, and in the end the message.

stream = streams.stream("anthropic")
for chunk in response.iter_bytes():
    for event in stream.feed(chunk):
        ...
reply = stream.reply()
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import msgspec

from windowsill.errors import FormatError
from windowsill.messages import Reply, Usage
from windowsill.providers import sse
from windowsill.providers.sse import MAX_EVENT_BYTES
from windowsill.providers.wire import UNREADABLE, Fields, any_decoder, encode, fields_decoder

if TYPE_CHECKING:
    from windowsill.providers.base import Format

T = TypeVar("T")

DONE = b"[DONE]"
"""The last event of OpenAI, and of who speaks like it; it is not JSON."""

PARTIAL = "partial"
"""The key in the metadata of a message that did not arrive whole."""

MALFORMED = "malformed"
"""The kind of a failure that is not the provider's word but ours."""

REPLACED = frozenset({"type", "role", "id", "format"})
"""Fields that are whole each time they come; some servers repeat them in every event."""


# Events


class TextDelta(msgspec.Struct, frozen=True, gc=False):
    """More text; `index` is the block it belongs to, where the format counts blocks."""

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
    """The usage of the call so far. It may come several times, also after `Finished`; the last one counts."""

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


# The stream


class Parser(Protocol):
    """Takes the bytes apart. It gives each event once, when it is whole."""

    def feed(self, chunk: bytes) -> list[sse.Event]:
        """Return the events that end in this chunk."""

    def close(self) -> list[sse.Event]:
        """Return what is left when nothing more comes."""


class Stream(ABC):
    """One answer, put together out of its events. Feed it what the provider sends; it does no input or output.

    It never raises for what a server sends, unless an event is too large.
    """

    def __init__(self, format: Format, *, limit: int = MAX_EVENT_BYTES) -> None:
        self.finished = False
        self.failure: Failed | None = None
        """The first error in the stream."""
        self._format = format
        self._parser = self._new_parser(limit)
        self._out: list[Event] = []
        self._growing: tuple[Any, Pieces, Callable[[str, int], Event], int] | None = None
        """The last event without its text, the pieces that its text went to, and the event of more of it."""
        self._last = b""
        """The last event that was taken for its text alone."""

    @staticmethod
    def _new_parser(limit: int) -> Parser:
        return sse.Parser(limit=limit)

    @property
    def partial(self) -> bool:
        """True as long as something is missing: the end has not come, or an event could not be read."""
        return not self.finished or (self.failure is not None and self.failure.kind == MALFORMED)

    def feed(self, chunk: bytes) -> list[Event]:
        """Take bytes as they came, torn anywhere; return what is new in them."""
        return self._take_all(self._parser.feed(chunk))

    def close(self) -> list[Event]:
        """End the stream. An event that only lacks its end is read; one torn in the middle is left out."""
        return self._take_all([event for event in self._parser.close() if _is_whole(event.data)])

    @abstractmethod
    def body(self) -> bytes:
        """Return the response as the call without streaming would have given it, as far as it arrived."""

    def reply(self) -> Reply:
        """Return the message as the call without streaming would have given it, with usage, model and stop reason.

        The messages of an answer that is not whole carry `PARTIAL` in their metadata.
        """
        reply = self._read_reply(self.body())
        if not self.partial:
            return reply
        message, *more = [
            msgspec.structs.replace(each, metadata={PARTIAL: True}) for each in (reply.message, *reply.more)
        ]
        return msgspec.structs.replace(reply, message=message, more=tuple(more))

    def _read_reply(self, body: bytes) -> Reply:
        return self._format.read_reply(body)

    def _take_all(self, arrived: list[sse.Event]) -> list[Event]:
        self._out = out = []
        for event in arrived:
            data = event.data
            if self._growing is not None:
                like, pieces, heard, place = self._growing
                try:
                    rest, text = self._cut(data)
                except UNREADABLE:
                    text = ""
                if text and rest == like:
                    pieces.append(text)
                    out.append(heard(text, place))
                    self._last = data
                    continue
                self._growing = None
            if data == DONE:
                self._take_done()
            elif data and not self._take(loose(data), event):
                self._fail(Failed("an event that cannot be read", MALFORMED, data))
        return out

    @staticmethod
    @abstractmethod
    def _cut(data: bytes) -> tuple[Any, str]:
        """Read an event that brings more of one text: return what it is beside it, and the text; raise for others.

        Nearly every event is like the one before but for its text. What is returned first must hold all that `_take`
        would keep of the event.
        """

    def _expect(self, event: sse.Event, pieces: Any, heard: Callable[[str, int], Event], place: int = 0) -> None:
        """Let the events that are like this one but for their text add it to these pieces, with no further look."""
        if isinstance(pieces, Pieces) and not self.finished:
            try:
                like, text = self._cut(event.data)
            except UNREADABLE:
                return
            self._growing = (like, pieces, heard, place) if text else None

    def _take_done(self) -> None:
        """Take the last event of a chat, which gateways send after the streams of other formats too."""
        return  # it says nothing that those have not said

    @abstractmethod
    def _take(self, value: Any, event: sse.Event) -> bool:
        """Take the value of one event, `None` where it is not JSON; return false when it cannot be read."""

    def _emit(self, event: Event) -> None:
        self._out.append(event)

    def _pass_on(self, event: sse.Event) -> bool:
        """Emit an event as it came."""
        self._emit(Raw(event.event, event.data))
        return True

    def _finish(self, stop_reason: str | None) -> None:
        self.finished = True
        self._emit(Finished(stop_reason))

    def _fail(self, failure: Failed) -> None:
        self.failure = self.failure or failure
        self._emit(failure)

    def _fail_by(self, error: Any, event: sse.Event, *kinds: str) -> None:
        """Report an error of the provider; `kinds` are the fields that may name its kind."""
        fields = settle(error) if isinstance(error, dict) else {"message": error}
        kind = next((fields[each] for each in kinds if fields.get(each)), "error")
        self._fail(Failed(str(fields.get("message") or "an error"), str(kind), event.data))

    def _usage_of(self, usage: Any) -> Usage | None:
        """Read a usage; `None` where it cannot be read."""
        try:
            return self._format.read_usage(encode(usage))
        except FormatError:
            return None


def _is_whole(data: bytes) -> bool:
    try:
        any_decoder.decode(data)
    except UNREADABLE:
        return data == DONE
    return True


def stream(format: str, *, limit: int = MAX_EVENT_BYTES) -> Stream:
    """Return a new stream of this format; `limit` is the size in bytes that one event may have."""
    from windowsill.providers.lookup import get  # noqa: PLC0415  the formats are made of what stands here

    found = get(format)
    return found.stream(found, limit=limit)


# Values that arrive in pieces: kept apart while they come, joined once


class Pieces(list[str]):
    """Text that may still grow."""


CUT = "..."
"""Stands where the text of an event was: what else could stand there is empty."""


def joined(pieces: list[str]) -> str:
    """Return the text of all pieces; a character torn into halves (two escapes in two events) is made whole."""
    text = "".join(pieces)
    try:
        text.encode()
    except UnicodeEncodeError:
        return _with_whole_characters(text)
    return text


def settle(value: Any) -> Any:
    """Return a value with its pieces joined, as JSON has it."""
    if isinstance(value, Pieces):
        return joined(value)
    if isinstance(value, str):
        return joined([value])
    if isinstance(value, dict):
        return {joined([key]): settle(each) for key, each in value.items()}
    return [settle(each) for each in value] if isinstance(value, list) else value


def grow(into: dict[str, Any], fields: dict[str, Any]) -> None:
    """Add what arrived to what is there: text and lists get longer, objects are merged, anything else is replaced."""
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


class Growing:
    """An object as it began, each value as its bytes, and what was added to it since."""

    def __init__(self, fields: Fields) -> None:
        self.fields: dict[str, Any] = fields
        self._more: dict[str, Any] = {}

    def first(self, field: str) -> str:
        """Return the text this field began with."""
        return text_of(self._value(field))

    def grow(self, fields: dict[str, Any]) -> None:
        """Add what arrived to what is there."""
        for key in fields:
            if key not in self._more and key in self.fields:
                self._more[key] = self._value(key)
        grow(self._more, fields)

    def lengthen(self, field: str, text: str) -> Any:
        """Add more text to a field, and return what has become of it."""
        self.grow({field: text})
        return self._more[field]

    def settled(self) -> dict[str, Any]:
        """Return the fields in the order they began in."""
        return {**self.fields, **settle(self._more)}

    def _value(self, field: str) -> Any:
        value = self.fields.get(field)
        return any_decoder.decode(value) if isinstance(value, msgspec.Raw) else value


def _longer(old: Any, text: str) -> Any:
    if isinstance(old, Pieces):
        old.append(text)
        return old
    if isinstance(old, dict) and not text:
        return old
    if isinstance(old, list):
        _add(old, {"type": "text", "text": text})
        return old
    return Pieces([old, text] if isinstance(old, str) else [text])


def _items(old: Any) -> list[Any]:
    """Return the list that grows; text that was there before becomes its first part."""
    if isinstance(old, Pieces):
        return [{"type": "text", "text": old}] if any(old) else []
    return old if isinstance(old, list) else []


def _add(items: list[Any], item: Any) -> None:
    """Add one more item, or more of the last one, which then has the same index and type."""
    last = items[-1] if items else None
    if isinstance(item, dict) and isinstance(last, dict) and _continues(last, item):
        grow(last, item)
    elif isinstance(item, dict):
        items.append({})
        grow(items[-1], item)
    else:
        items.append(item)


def _continues(last: dict[str, Any], item: dict[str, Any]) -> bool:
    may = "index" in item or item.keys() == {"type", "text"}
    return may and last.get("type") == item.get("type") and last.get("index") == item.get("index")


# Lenient JSON


def lenient(decoder: msgspec.json.Decoder[T], data: bytes | msgspec.Raw) -> T | None:
    """Decode what other readers of JSON take too (half a surrogate pair, broken UTF-8); `None` when nothing helps."""
    try:
        return decoder.decode(data)
    except UNREADABLE:
        pass
    try:
        text = json.dumps(json.loads(str(bytes(data), "utf-8", "replace")), ensure_ascii=False)
        return decoder.decode(_with_whole_characters(text).encode())
    except (ValueError, msgspec.DecodeError, RecursionError):
        return None


def raw_fields(data: bytes | msgspec.Raw, *path: str) -> Fields | None:
    """Decode the object at this path, its values as bytes; `None` where there is none."""
    fields = lenient(fields_decoder, data)
    for key in path:
        fields = None if fields is None or key not in fields else lenient(fields_decoder, fields[key])
    return fields


def loose(data: bytes) -> Any:
    """Decode a value, halves of surrogate pairs kept for their other half; `None` when it cannot be read."""
    try:
        return any_decoder.decode(data)
    except UNREADABLE:
        pass
    try:
        return json.loads(str(data, "utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def text_of(value: Any) -> str:
    """Return a text as it is; anything else as no text."""
    return value if isinstance(value, str) else ""


def _with_whole_characters(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
