"""Walk through one recording: before each assistant message, compose the request that a model would have been sent."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from windowsill import providers
from windowsill.budget import Size
from windowsill.compose.payload import Report
from windowsill.errors import InputError
from windowsill.messages import Message, json_value
from windowsill.models import Model
from windowsill.providers import Problem
from windowsill.replay.recordings import Recording
from windowsill.session import Session
from windowsill.store import Store
from windowsill.store.memory import MemoryStore
from windowsill.tokens import Weight

NAMELESS = "unknown"
"""The model of a recording that names none: a body needs one to be valid."""

LONGEST_ID = 500
"""Characters of a recording's id that its session takes over."""

SPLIT_ANSWERS = "responses"
"""The format that writes one answer as several messages."""


class ReplayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a replay."""

    model: str | None = None
    """The model to assume; the one each recording names if left out."""
    window: int | None = None
    """The most input tokens a request may have; the model's own window if left out."""
    overhead: int = 0
    """Tokens to count for a system prompt and tools that were not recorded."""
    strategy: str | None = None
    tokenizer: str | None = None
    high: Size | None = None
    low: Size | None = None
    writer: str | None = None
    recall: Size | None = None
    tools: bool = False
    """True to offer the tools that read hidden messages."""

    def opening(self) -> dict[str, Any]:
        """Return the arguments of `Session.open` for these options, without the model."""
        names = ("window", "strategy", "tokenizer", "high", "low", "writer", "recall")
        stated = {name: getattr(self, name) for name in names}
        return {**stated, "budget": self.window, "overhead": self.overhead or None}


class ModelCall(msgspec.Struct, frozen=True, kw_only=True):
    """One model call of a recording."""

    session: str
    turn: int
    """The index, in the recorded list, of the assistant message it produced."""
    answer: Message
    """That message,"""
    output: int
    """and its tokens."""
    body: bytes
    report: Report
    everything: int
    """Tokens the request would have with nothing reduced."""
    at: float | None
    """The time of the answer, where that was recorded."""
    seconds: float
    """Time spent on adding what came since the last call, and on composing."""
    problems: tuple[Problem, ...]

    def dump_line(self) -> bytes:
        """Return the call as one line of JSON, with the request exactly as it would be sent."""
        line = {
            "session": self.session,
            "turn": self.turn,
            # A line break in JSON can only stand between values, where a space means the same.
            "request": msgspec.Raw(self.body.replace(b"\n", b" ").replace(b"\r", b" ")),
            "tokens": self.report.tokens,
            "folds": [fold.id for fold in self.report.folds],
        }
        return msgspec.json.encode(line) + b"\n"


class Walk:
    """One recording, and the session that is built from it: in memory, unless a store is given."""

    def __init__(
        self,
        recording: Recording,
        options: ReplayOptions,
        *,
        store: Store | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.recording = recording
        request = recording.request
        model = options.model or request.model
        if model is None and options.window is None:
            raise InputError("the size of the window is not known", remedy="give --model M or --window N")
        ticks = itertools.count(1)
        self.session = Session.open(
            recording.id[:LONGEST_ID] or "recording",
            model=model or NAMELESS,
            **options.opening(),
            store=store or MemoryStore(),
            config=False,
            clock=clock or (lambda: float(next(ticks))),
            format=request.format,
        )
        self._format = providers.get(request.format)
        self._weight = Weight()
        self._seconds = 0.0
        self._sent = 0
        # An agent that had our tools recorded them, and providers refuse a name that comes twice.
        recorded = {tool.name for tool in request.tools}
        offered = self.session.tools.tools if options.tools else ()
        self._tools = (*request.tools, *(tool for tool in offered if tool.name not in recorded))

    @property
    def model(self) -> Model:
        """The model whose prices and cache are assumed."""
        return self.session.model

    def calls(self) -> Iterator[ModelCall]:
        """Make each model call, in order."""
        messages = self.recording.request.messages
        index = 0
        while index < len(messages):
            end = index + 1
            if messages[index].role != "assistant" or not index:
                self._add(index)
            else:
                while self._format.name == SPLIT_ANSWERS and end < len(messages) and messages[end].role == "assistant":
                    end += 1
                yield self._call(index, end)
            index = end

    def lost(self) -> int:
        """Count the added messages that can no longer be read byte for byte."""
        added = self.recording.request.messages
        # Recalled text and other additions were not recorded.
        kept = [message for message in self.session.messages() if "windowsill" not in message.metadata]
        same = sum(1 for one, other in zip(added, kept, strict=False) if one.raw == other.raw)
        return max(len(added), len(kept)) - same

    def reaches(self, value: str) -> bool:
        """Tell whether one search of the history, as it was when the last request was sent, finds a value."""
        return any(value in found.text for found in self.session.archive.retrieve(value, within=[(1, self._sent)]))

    def _add(self, index: int) -> None:
        times = self.recording.times
        start = time.perf_counter()
        self.session.add(self.recording.request.messages[index], at=times[index] if index < len(times) else None)
        self._seconds += time.perf_counter() - start
        self._weight = self._weight + self.session.view.items[-1].weight

    def _call(self, index: int, end: int) -> ModelCall:
        """Compose the request, then add the answer that was recorded for it."""
        request, times, spec = self.recording.request, self.recording.times, self._format.spec
        params: dict[str, object] = dict(request.rest)
        if spec.default_limit:
            params.setdefault(spec.limit_field(), spec.default_limit)
        start = time.perf_counter()
        # What was not recorded is left to the model, whatever its body has to say instead.
        most = providers.answer_limit(request.rest) or 0
        payload = self.session.compose_sync(system=request.system, tools=self._tools, params=params, max_output=most)
        body, report = payload.body(), payload.report
        seconds, self._seconds = self._seconds + time.perf_counter() - start, 0.0
        self._sent = self.session.view.at
        before = self._weight
        for place in range(index, end):
            self._add(place)
        view, answer = self.session.view, request.messages[index:end]
        blocks = tuple(block for message in answer for block in message.blocks)
        fixed = report.tokens - report.parts["messages"] - report.parts["summaries"]
        return ModelCall(
            session=self.recording.id,
            turn=index,
            answer=answer[0] if len(answer) == 1 else Message(role="assistant", blocks=blocks),
            output=sum(view.tokens(item) for item in view.items[index - end :]),
            body=body,
            report=report,
            everything=fixed + view.tokens_of(before),
            at=times[index] if index < len(times) else None,
            seconds=seconds,
            problems=tuple(self._format.validate(json_value(body))),
        )
