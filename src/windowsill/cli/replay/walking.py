"""Walks through one recording: before each assistant message, the request that a model would have been sent."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence

import msgspec

from windowsill import formats
from windowsill.budget import Size
from windowsill.cli.recordings import Recording
from windowsill.cli.room import room
from windowsill.compose.payload import Payload
from windowsill.formats import Problem
from windowsill.history.repair import Repair
from windowsill.messages import Message
from windowsill.models import Model
from windowsill.session import Session
from windowsill.store.memory import MemoryStore
from windowsill.tokens import Weight

NAMELESS = "unknown"
"""The model of a recording that names none: a body needs one to be valid."""


ITEMS = "responses"
"""The format that writes one answer as several messages."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay was asked to do."""

    model: str | None = None
    window: int | None = None
    overhead: int = 0
    strategy: str | None = None
    tokenizer: str | None = None
    high: Size | None = None
    low: Size | None = None
    writer: str | None = None
    recall: Size | None = None
    tools: bool = False
    """Whether the tools that read what was hidden are offered."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One model call of a recording."""

    turn: int
    """The index, in the recorded list, of the assistant message it produced."""
    answer: Message
    """That message,"""
    output: int
    """and its tokens."""
    body: bytes
    tokens: int
    limit: int
    stable: int
    """Tokens at its start that equal the request before."""
    everything: int
    """What the request would weigh with nothing reduced."""
    at: float | None
    """When it was sent, where that was recorded."""
    seconds: float
    """What it took us: adding what came since the last call, and composing."""
    folds: tuple[str, ...]
    repairs: tuple[Repair, ...]
    problems: tuple[Problem, ...]


class Walk:
    """One recording, and the session that is built from it."""

    def __init__(self, recording: Recording, options: Options) -> None:
        self.recording = recording
        request = recording.request
        place = room(model=options.model, named=request.model, window=options.window, budget=options.window)
        ticks = itertools.count(1)
        self.session = Session.open(
            recording.id[:500] or "recording",
            model=place.model or NAMELESS,
            window=place.window,
            budget=place.budget,
            strategy=options.strategy,
            high=options.high,
            low=options.low,
            writer=options.writer,
            recall=options.recall,
            store=MemoryStore(),
            clock=lambda: float(next(ticks)),
            tokenizer=options.tokenizer,
            overhead=options.overhead or None,
            format=request.format,
        )
        self._format = formats.get(request.format)
        self._weight = Weight()
        self._seconds = 0.0
        recorded = {tool.name for tool in request.tools}
        offered = self.session.tools.tools if options.tools else ()
        # Of an agent that had them they were recorded; a name that comes twice is refused.
        self._offered = tuple(tool for tool in offered if tool.name not in recorded)
        self._sent = 0

    @property
    def model(self) -> Model:
        """The model whose prices and cache are assumed."""
        return self.session.model

    def turns(self) -> Iterator[Turn]:
        """Each model call, in order."""
        messages = self.recording.request.messages
        index = 0
        while index < len(messages):
            if messages[index].role != "assistant" or not index:
                self._add(messages[index], index)
                index += 1
                continue
            composed, before = self._compose(), self._weight
            answer = self._answer(index)
            for place, message in enumerate(answer, index):
                self._add(message, place)
            yield self._turn(index, answer, *composed, before)
            index += len(answer)

    def _answer(self, index: int) -> Sequence[Message]:
        """What one call answered; in OpenAI's Responses that is several items."""
        messages = self.recording.request.messages
        end = index + 1
        while self._format.name == ITEMS and end < len(messages) and messages[end].role == "assistant":
            end += 1
        return messages[index:end]

    def lost(self) -> int:
        """How many of the messages that were added are no longer there, byte for byte."""
        added = self.recording.request.messages
        # What was brought back was not recorded.
        kept = [message for message in self.session.messages() if "windowsill" not in message.metadata]
        same = sum(1 for one, other in zip(added, kept, strict=False) if one.raw == other.raw)
        return max(len(added), len(kept)) - same

    def reaches(self, value: str) -> bool:
        """Whether one search of the history, as it was when the last request was sent, shows a value."""
        return any(value in found.text for found in self.session.archive.retrieve(value, within=[(1, self._sent)]))

    def _add(self, message: Message, index: int) -> None:
        times = self.recording.times
        start = time.perf_counter()
        self.session.add(message, at=times[index] if index < len(times) else None)
        self._seconds += time.perf_counter() - start
        self._weight = self._weight + self.session.view.items[-1].weight

    def _compose(self) -> tuple[Payload, bytes, float]:
        request = self.recording.request
        params: dict[str, object] = dict(request.rest)
        if self._format.spec.default_limit:
            params.setdefault(self._format.spec.limit_field(), self._format.spec.default_limit)
        start = time.perf_counter()
        payload = self.session.compose_sync(
            system=request.system,
            tools=(*request.tools, *self._offered),
            params=params,
            max_output=formats.answer_limit(request.rest),
        )
        self._sent = self.session.view.at
        body = payload.body()
        seconds = self._seconds + time.perf_counter() - start
        self._seconds = 0.0
        return payload, body, seconds

    def _turn(
        self, index: int, answer: Sequence[Message], payload: Payload, body: bytes, seconds: float, before: Weight
    ) -> Turn:
        report, view = payload.report, self.session.view
        times = self.recording.times
        fixed = report.tokens - report.parts["messages"] - report.parts["summaries"]
        return Turn(
            turn=index,
            answer=answer[0] if len(answer) == 1 else _joined(answer),
            output=sum(view.tokens(item) for item in view.items[-len(answer) :]),
            body=body,
            tokens=report.tokens,
            limit=report.limit,
            stable=report.stable,
            everything=fixed + view.tokens_of(before),
            at=times[index - 1] if index <= len(times) else None,
            seconds=seconds,
            folds=tuple(fold.id for fold in report.folds),
            repairs=report.repairs,
            problems=tuple(self._format.validate(msgspec.json.decode(body))),
        )


def _joined(answer: Sequence[Message]) -> Message:
    return Message(role="assistant", blocks=tuple(block for message in answer for block in message.blocks))
