"""Logs of requests to OpenAI or Anthropic, one on each line: bodies, or bodies with the response and a time.

A request that continues one before it is the same conversation: an agent sends everything again with each call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from windowsill.errors import FormatError
from windowsill.formats.transcripts.charges import Charge, charge
from windowsill.formats.transcripts.exchanges import Exchange, exchange, is_body, wraps_request
from windowsill.formats.transcripts.lines import decoded
from windowsill.formats.transcripts.transcript import Line, Notes, Reader, Recorded
from windowsill.formats.wire import any_decoder, decode, encode, fields_decoder

AGENT = "requests"

RECORDED = frozenset({"id", "format", "times", "usage"})
"""Fields of recorded sessions: a body with one of these is a session as it stands."""

OF_ANSWERS = frozenset({"id", "status", "type"})
"""What an answer has, and a request sends back or leaves out."""

TEXTS = frozenset({"text", "input_text", "output_text"})


def _knows(line: Mapping[str, object]) -> bool:
    if is_body(line):
        return "model" in line and RECORDED.isdisjoint(line)
    return wraps_request(line)


def entries(document: Any) -> list[bytes] | None:
    """The entries of a HAR document, each as a line; `None` when it is none, or nobody talks to a model in it."""
    log = document.get("log") if isinstance(document, dict) else None
    found = log.get("entries") if isinstance(log, dict) else None
    if not isinstance(found, list):
        return None
    told = [encode(each) for each in found if isinstance(each, dict) and wraps_request(each)]
    return told or None


class _Talk:
    """A conversation: its last request so far, and what is known of each message."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.last: Exchange | None = None
        self.times: dict[int, float | None] = {}
        self.usage: dict[int, bytes] = {}
        self.charges: list[Charge] = []

    def go_on(self, call: Exchange) -> None:
        """One more request."""
        count = len(call.messages)
        for index in range(count):
            self.times.setdefault(index, call.at)
        for index in range(count, count + len(call.answer)):
            # The log has one time for both: the answer is not known to be later than the request.
            self.times[index] = call.at
        paid = charge(call.usage, model=call.model, message=count, key=call.id)
        if paid is not None:
            self.usage[count] = encode(call.usage)
            self.charges.append(paid)
        self.last = call

    def everything(self) -> list[bytes]:
        """What was said so far, the last answer included."""
        return [] if self.last is None else [*self.last.messages, *self.last.answer]

    def likeness(self, call: Exchange) -> tuple[bool, bool]:
        """How surely a request that begins like the last one continues it: by the answer, then by the model."""
        last = self.last
        if last is None:
            return False, False
        following = call.messages[len(last.messages) : len(last.messages) + len(last.answer)]
        answered = bool(last.answer) and [*map(_essence, following)] == [*map(_essence, last.answer)]
        return answered, last.model == call.model

    def recorded(self, name: str) -> Recorded | None:
        """The last request with its answer."""
        if self.last is None:
            return None
        messages = self.everything()
        return Recorded(
            id=f"{name}:{self.line}",
            format="responses" if self.last.under == "input" else None,
            messages=tuple(messages),
            times=tuple(self.times.get(index) for index in range(len(messages))),
            usage=tuple(self.usage.get(index) for index in range(len(messages))),
            charges=tuple(self.charges),
            fields=self.last.fields,
            under=self.last.under,
        )


class _Log:
    """All conversations of a log."""

    def __init__(self) -> None:
        self.talks: list[_Talk] = []
        self._ends: dict[bytes, list[_Talk]] = {}
        self._answers: dict[str, _Talk] = {}

    def take(self, call: Exchange, line: int) -> None:
        """One more request: it goes on with a conversation, or begins one."""
        kept = self._answers.get(call.follows or "")
        if kept is not None:
            # The provider kept what was said before: the request has only what is new.
            call.messages[:0] = kept.everything()
        prefixes = list(_prefixes(call.messages))
        talk = self._continued(call, prefixes)
        if talk is None:
            talk = _Talk(line)
            self.talks.append(talk)
        talk.go_on(call)
        self._ends.setdefault(prefixes[-1], []).append(talk)
        if call.id is not None:
            self._answers[call.id] = talk

    def _continued(self, call: Exchange, prefixes: Sequence[bytes]) -> _Talk | None:
        """The conversation with the longest request that this one continues; the same request again is another."""
        for end in reversed(prefixes[:-1]):
            waiting = self._ends.get(end)
            if waiting:
                best = max(range(len(waiting)), key=lambda index: (*waiting[index].likeness(call), index))
                return waiting.pop(best)
        return None


def _read(lines: Iterable[Line], name: str, notes: Notes) -> Sequence[Recorded]:
    log = _Log()
    for line in lines:
        try:
            call = _call(line, notes)
            if call is not None:
                log.take(call, line.number)
        except FormatError as error:
            notes.trouble(line.number, error.what)
        except RecursionError:
            notes.trouble(line.number, "nested too deeply")
    return [found for talk in log.talks if (found := talk.recorded(name)) is not None]


def _call(line: Line, notes: Notes) -> Exchange | None:
    fields = decoded(line, fields_decoder, notes)
    if fields is None:
        return None
    call = exchange(fields)
    if call is None:
        notes.trouble(line.number, "no request with messages")
    return call


def _prefixes(messages: Iterable[bytes]) -> Iterator[bytes]:
    """For each message a digest of everything up to it."""
    digest = hashlib.blake2b(digest_size=16)
    for message in messages:
        digest.update(_essence(message) + b"\n")
        yield digest.digest()


def _essence(message: bytes) -> bytes:
    """What a message says: without cache marks, which move, and with plain text as the block it is short for."""
    value = _unmarked(decode(any_decoder, message))
    if isinstance(value, dict):
        value = {key: each for key, each in value.items() if each is not None and key not in OF_ANSWERS}
        content = value.get("content")
        blocks = [{"text": content, "type": "text"}] if isinstance(content, str) else content
        value["content"] = [_plain(block) for block in blocks] if isinstance(blocks, list) else blocks
    return encode(value)


def _plain(block: Any) -> Any:
    """A block of text as all formats have it."""
    text = isinstance(block, dict) and block.get("type") in TEXTS
    return {"text": block.get("text"), "type": "text"} if text else block


def _unmarked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unmarked(each) for each in value]
    if isinstance(value, dict):
        return {key: _unmarked(value[key]) for key in sorted(value) if key != "cache_control"}
    return value


READER = Reader(agent=AGENT, knows=_knows, read=_read)
