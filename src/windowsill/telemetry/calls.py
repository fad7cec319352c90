"""Spans of model calls, tool runs and searches, with everything the GenAI conventions say of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from windowsill.messages import Message, Usage
from windowsill.telemetry import names
from windowsill.telemetry.content import as_json, emit, on_events, on_spans, told_messages, told_parts, told_value
from windowsill.telemetry.faults import harmless
from windowsill.telemetry.listening import listeners, nobody
from windowsill.telemetry.spans import NOTHING, Live, Span


class ModelCall(Span):
    """A model call that nobody hears of."""

    __slots__ = ()

    @property
    def wants_content(self) -> bool:
        """Whether what was said is to be told: ask before putting it together."""
        return False

    def asked(self, messages: Sequence[Message], system: Message | None = None) -> None:
        """Tell what is sent, where content is wanted."""

    def heard(self) -> None:
        """Tell that the first piece of a streamed answer has come; later calls say nothing."""

    def answered(
        self,
        usage: Usage | None = None,
        *,
        model: str | None = None,
        id: str | None = None,
        finish: str | None = None,
        messages: Sequence[Message] = (),
    ) -> None:
        """Tell what came of it."""

    def keep(self) -> None:
        """Let it go on after its `with` block: a stream is read later, and whoever reads it calls `end`."""

    def end(self, error: BaseException | None = None) -> None:
        """It is over. Ending twice is fine."""


NO_CALL = ModelCall()


class LiveCall(Live, ModelCall):
    """A model call that is heard of."""

    __slots__ = ("_ended", "_events", "_first", "_kept", "_said", "_spans")

    def __init__(self, tracer: Any, operation: str, model: str | None, attributes: dict[str, Any]) -> None:
        told = {"operation": operation, "model": model, **attributes}
        super().__init__(tracer, f"{operation} {model or ''}".strip(), "CLIENT", names.OPERATION_DURATION, told)
        self._spans, self._events = tracer is not None and on_spans(), on_events()
        self._said: dict[str, Any] = {}
        self._kept = self._ended = self._first = False

    @property
    def wants_content(self) -> bool:
        """Whether what was said is to be told."""
        return self._spans or self._events

    def asked(self, messages: Sequence[Message], system: Message | None = None) -> None:
        """Tell what is sent, where content is wanted."""
        if self.wants_content:
            with harmless:
                self._tell(names.INPUT_MESSAGES, told_messages(messages))
                if system is not None:
                    self._tell(names.SYSTEM_INSTRUCTIONS, told_parts(system.blocks))

    def heard(self) -> None:
        """Tell that the first piece of a streamed answer has come."""
        if not self._first:
            self._first = True
            self.set(**{names.RESPONSE_TIME_TO_FIRST_CHUNK: time.perf_counter() - self._began})

    def answered(
        self,
        usage: Usage | None = None,
        *,
        model: str | None = None,
        id: str | None = None,
        finish: str | None = None,
        messages: Sequence[Message] = (),
    ) -> None:
        """Tell what came of it."""
        used = _used(usage) if usage is not None else {}
        reasons = [finish] if finish is not None else None
        about = {names.RESPONSE_MODEL: model, names.RESPONSE_ID: id, names.RESPONSE_FINISH_REASONS: reasons}
        self.set(**used, **about)
        if messages and self.wants_content:
            with harmless:
                self._tell(names.OUTPUT_MESSAGES, told_messages(messages, finish=finish or "stop"))

    def _tell(self, name: str, value: Any) -> None:
        if self._events:
            self._said[name] = value
        if self._spans:
            self.set(**{name: as_json(value)})

    def keep(self) -> None:
        """Let it go on after its `with` block."""
        self._kept = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None or not self._kept:
            self.end(error)
        self._leave()

    def end(self, error: BaseException | None = None) -> None:
        """It is over."""
        if self._ended:
            return
        self._ended = True
        if self._events and self._said:
            emit({**self._attributes, **self._said})
        super().end(error)


class ToolRun(Span):
    """A tool run that nobody hears of."""

    __slots__ = ()

    def answered(self, result: Any = None, *, is_error: bool = False) -> None:
        """Tell what came of it: the result only where content is wanted."""


NO_RUN = ToolRun()


class LiveRun(Live, ToolRun):
    """A tool run that is heard of."""

    __slots__ = ()

    def answered(self, result: Any = None, *, is_error: bool = False) -> None:
        """Tell what came of it."""
        if is_error:
            self.fail("tool_error")
        if result is not None and on_spans():
            with harmless:
                self.set(**{names.TOOL_CALL_RESULT: as_json(told_value(result))})


def model_call(
    model: str | None,
    *,
    provider: str,
    session: str | None = None,
    operation: str = names.CHAT,
    compacted: bool = False,
    stream: bool = False,
    server: str | None = None,
    port: int | None = None,
    **attributes: Any,
) -> ModelCall:
    """A span around a model call, from sending the request to the end of the answer, retries included.

    `provider` is our name for it, or the format it speaks. `compacted` says that something of the conversation is
    folded (`payload.compacted`). The tokens are counted where `session.add` takes the reply in, not here.
    """
    if nobody() or not listeners.hears(names.OPERATION_DURATION):
        return NO_CALL
    told = {
        "session": session,
        "provider": names.provider_name(provider, server or ""),
        "compacted": compacted or None,
        names.REQUEST_STREAM: stream or None,
        "server": server,
        "port": port if server else None,
    }
    return LiveCall(listeners.tracer(), operation, model, {**told, **attributes})


def tool_run(
    tool: str,
    *,
    call_id: str | None = None,
    type: str = "function",
    session: str | None = None,
    description: str | None = None,
    arguments: Any = None,
) -> ToolRun:
    """A span around a tool run; its arguments are told only where content is wanted."""
    if nobody() or not listeners.hears(names.OPERATION_DURATION):
        return NO_RUN
    told: dict[str, Any] = {
        "operation": names.EXECUTE_TOOL,
        "tool": tool,
        "session": session,
        names.TOOL_CALL_ID: call_id,
        names.TOOL_TYPE: type,
        names.TOOL_DESCRIPTION: description,
    }
    if arguments is not None and on_spans():
        with harmless:
            told[names.TOOL_CALL_ARGUMENTS] = as_json(told_value(arguments))
    return LiveRun(listeners.tracer(), f"{names.EXECUTE_TOOL} {tool}", "INTERNAL", names.OPERATION_DURATION, told)


def retrieval(source: str, query: str, *, session: str | None = None, **attributes: Any) -> Span:
    """A span around a search; the question is told only where content is wanted."""
    if nobody() or not listeners.hears(names.OPERATION_DURATION):
        return NOTHING
    told = {"operation": names.RETRIEVAL, "source": source, "session": session, **attributes}
    if on_spans():
        with harmless:
            told[names.RETRIEVAL_QUERY] = told_value(query)
    return Live(listeners.tracer(), f"{names.RETRIEVAL} {source}", "INTERNAL", names.OPERATION_DURATION, told)


def _used(usage: Usage) -> dict[str, int]:
    """What a call used; the whole prompt is the input, cached or not."""
    used = {names.USAGE_INPUT: usage.prompt, names.USAGE_OUTPUT: usage.output}
    if usage.cache_read:
        used[names.USAGE_CACHE_READ] = usage.cache_read
    if usage.cache_write:
        used[names.USAGE_CACHE_CREATION] = used[names.USAGE_CACHE_WRITE] = usage.cache_write
    return used
