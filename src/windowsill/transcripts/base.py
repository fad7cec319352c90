"""Shared by the readers of transcripts: lines, recorded sessions, charges, conversations in chat form."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from windowsill import providers
from windowsill.errors import FormatError
from windowsill.messages import Block, Image, Message, Role, Usage
from windowsill.providers.convert import is_web, read_image
from windowsill.providers.openai_chat import NAME as CHAT
from windowsill.providers.openai_chat.messages import render_chat
from windowsill.providers.wire import BOM, SURROGATES, Decoder, any_decoder, decode, encode, join_body

T = TypeVar("T")


class Charge(msgspec.Struct, frozen=True, kw_only=True):
    """One call that was paid for."""

    usage: Usage
    long_cache_write: int = 0
    """Of the tokens written to the cache, those that were to stay for an hour: they cost more."""
    model: str | None = None
    message: int | None = None
    """The index of its answer among the messages of the session, where it has one."""
    key: str | None = None
    """The same key is the same call, whatever session or file contains it; `None` is a call of its own."""


def charge(
    usage: Any, *, model: str | None = None, message: int | None = None, key: str | None = None
) -> Charge | None:
    """Read a call from the usage object of its provider; `None` if that says nothing."""
    if not isinstance(usage, dict):
        return None
    try:
        read = providers.read_usage(usage)
    except FormatError:
        return None
    if not read.total:
        return None
    written = usage.get("cache_creation")
    long = written.get("ephemeral_1h_input_tokens") if isinstance(written, dict) else None
    long = min(long, read.cache_write) if isinstance(long, int) and long > 0 else 0
    return Charge(usage=read, long_cache_write=long, model=model, message=message, key=key)


class RecordedSession(msgspec.Struct, frozen=True, kw_only=True):
    """One session of a transcript, its messages in a provider's own form."""

    id: str
    format: str | None
    """`None` if it has to be detected."""
    messages: tuple[bytes, ...]
    model: str | None = None
    times: tuple[float | None, ...] = ()
    """Seconds since the epoch for each message."""
    charges: tuple[Charge, ...] = ()
    """Every call that was paid for, also those whose answer is no message."""
    fields: Mapping[str, msgspec.Raw] = {}
    """The other fields of a request body."""
    under: str = "messages"
    """The field of a request body that holds the messages."""
    named: bool = True
    """True when the transcript itself states the id."""

    def document(self) -> bytes:
        """Return the session as one JSON object: what a line of a recordings file holds."""
        own: dict[str, bytes | msgspec.Raw] = {"id": encode(self.id)}
        if self.format is not None:
            own["format"] = encode(self.format)
        if self.model is not None:
            own["model"] = encode(self.model)
        own |= {key: value for key, value in self.fields.items() if key not in {"id", "format", self.under}}
        if any(each is not None for each in self.times):
            own["times"] = encode(self.times)
        return join_body(own, self.messages, under=self.under.encode())


class Trouble(msgspec.Struct, frozen=True):
    """A line that could not be read, and why."""

    line: int
    """Counted from 1; 0 for the whole file."""
    why: str


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a known agent."""

    agent: str
    sessions: tuple[RecordedSession, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    skipped: dict[str, int] = {}
    """Content that is not part of a conversation, or has no place in the form it is converted to: kind and count."""


class Line(NamedTuple):
    """A line of a transcript that is not empty."""

    number: int
    raw: bytes


class Notes:
    """The troubles of a reader, and the content it left out."""

    def __init__(self) -> None:
        self.troubles: list[Trouble] = []
        self.skipped: Counter[str] = Counter()

    def trouble(self, line: int, why: str) -> None:
        """Note a line that could not be read."""
        self.troubles.append(Trouble(line, why))

    def skip(self, kind: str, count: int = 1) -> None:
        """Note something that is not part of a conversation."""
        self.skipped[kind] += count


class Reader(NamedTuple):
    """The functions that recognise and read the lines of one agent."""

    agent: str
    knows: Callable[[Mapping[str, object]], bool]
    """Tell whether an object can only be a line of this agent."""
    read: Callable[[Iterable[Line], str, Notes], Sequence[RecordedSession]]
    """Read the sessions in the lines; the text is a name for what states none."""


def without_half_characters(raw: bytes) -> bytes:
    """Put U+FFFD in place of each half of a surrogate pair: agents cut outputs in the middle of a character."""
    if b"\\ud" not in raw and b"\\uD" not in raw:
        return raw
    return SURROGATES.sub(lambda found: rb"\ufffd" if found.group(1) else found.group(0), raw)


def number_lines(lines: Iterable[bytes]) -> Iterator[Line]:
    """Yield the lines that are not empty with their numbers."""
    for number, line in enumerate(lines, 1):
        raw = line.removeprefix(BOM).strip() if number == 1 else line.strip()
        if raw:
            yield Line(number, without_half_characters(raw))


def decode_objects(lines: Iterable[Line], notes: Notes) -> Iterator[tuple[Line, dict[str, Any]]]:
    """Decode each line that is a JSON object; the others are noted as trouble."""
    for line in lines:
        value = decode_line(line, any_decoder, notes)
        if isinstance(value, dict):
            yield line, value
        elif value is not None:
            notes.trouble(line.number, "not a JSON object")


def decode_line(line: Line, decoder: Decoder[T], notes: Notes) -> T | None:
    """Decode a line; if it cannot be read, note that and return `None`."""
    try:
        return decode(decoder, line.raw)
    except FormatError as error:
        notes.trouble(line.number, error.what)
        return None


def timestamp(value: Any) -> float | None:
    """Read seconds since the epoch from a number or ISO 8601 (UTC if it names no zone); `None` from anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    try:
        moment = dt.datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp()


def text_or_none(value: Any) -> str | None:
    """Return a string; `None` for anything else."""
    return value if isinstance(value, str) else None


class Turn(msgspec.Struct, kw_only=True):
    """One message of a conversation; blocks are added to it as they come. Without any it is a call and no message."""

    role: Role
    blocks: list[Block]
    at: float | None = None
    usage: Usage | None = None
    key: str | None = None
    """The key of the call within its family; see `Charge.key`."""
    model: str | None = None
    prompt: bool = False
    """True when a person wrote it."""


class Conversation:
    """A conversation of an agent with a form of its own, converted to OpenAI's chat form.

    It may be cut back, and it may begin again with a summary: each stretch is a session of its own.
    """

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self._parts: list[Sequence[Turn]] = []
        self._branches: list[Sequence[Turn]] = []

    def rewind(self, length: int) -> None:
        """Go back to the first so many turns; answers that are left behind become a session of their own."""
        if any(turn.role == "assistant" and turn.blocks for turn in self.turns[length:]):
            self._branches.append(self.turns)
        self.turns = self.turns[:length]

    def begin_again(self, turns: Iterable[Turn]) -> None:
        """Go on with other turns in place of those before: the agent compacted."""
        if self.turns:
            self._parts.append(self.turns)
        self.turns = list(turns)

    def sessions(self, id: str, family: str | None = None) -> list[RecordedSession]:
        """Return every stretch as a session; the first part has the plain id.

        `family` is what forks of one conversation have in common: the calls they share are the same calls.
        """
        suffixes = ["", *(f"-part-{number}" for number in range(2, len(self._parts) + 2))]
        suffixes += [f"-branch-{number}" for number in range(1, len(self._branches) + 1)]
        stretches = [*self._parts, self.turns, *self._branches]
        return [_recorded(id + suffix, turns, family or id) for suffix, turns in zip(suffixes, stretches, strict=True)]


def _recorded(id: str, turns: Sequence[Turn], family: str) -> RecordedSession:
    messages: list[bytes] = []
    times: list[float | None] = []
    charges: list[Charge] = []
    for turn in turns:
        if turn.usage is not None and turn.usage.total:
            key = None if turn.key is None else f"{family}/{turn.key}"
            place = len(messages) if turn.blocks else None
            charges.append(Charge(usage=turn.usage, model=turn.model, message=place, key=key))
        if turn.blocks:
            rendered = render_chat(Message(role=turn.role, blocks=tuple(turn.blocks)))
            messages += rendered
            times += [turn.at] * len(rendered)
    models = Counter(turn.model for turn in turns if turn.model)
    return RecordedSession(
        id=id,
        format=CHAT,
        model=max(models, key=models.__getitem__, default=None),
        messages=tuple(messages),
        times=tuple(times),
        charges=tuple(charges),
    )


def usage_of(counts: Mapping[str, Any], *, prompt: Sequence[str], answer: Sequence[str], cached: str) -> Usage:
    """Add up the fields of an agent's own token counts; its prompt tokens include the cached ones."""
    known = {key: value for key, value in counts.items() if isinstance(value, int)}
    read = known.get(cached, 0)
    sent = sum(known.get(field, 0) for field in prompt)
    return Usage(input=max(0, sent - read), cache_read=read, output=sum(known.get(field, 0) for field in answer))


def picture(url: str) -> Image | None:
    """Make an image of an address that everybody can find, or that holds the image; `None` for another."""
    found = read_image(url)
    return found if found.data is not None or is_web(url) else None
