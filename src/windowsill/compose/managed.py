"""Call a context manager that a program brought: in an event loop of its own, and without trust in its answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from copy import copy
from inspect import isawaitable
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

import msgspec

from windowsill import providers
from windowsill.compose.payload import FitResult, Payload, RequestParts, RequestSpec
from windowsill.errors import InputError, StoreError, log
from windowsill.history.view import View
from windowsill.journal.writer import JournalWriter
from windowsill.messages import Message, Origin
from windowsill.store.memory import MemoryStore
from windowsill.strategies.registry import Managed
from windowsill.strategies.sliding_window import SlidingWindow

if TYPE_CHECKING:
    from windowsill.compose.composer import Composer


class ManagerCalls:
    """The calls of one context manager. All run in one loop, so that it may keep connections."""

    def __init__(self, managed: Managed, *, wait: float) -> None:
        self.name = managed.name
        self.notes: list[str] = []
        """Faults of work after a turn, for the next report."""
        self._manager = managed.manager
        self._wait = wait
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = Lock()

    def compose(self, system: str | None, history: list[Any], tools: list[Any], rag_context: str | None) -> Any:
        """Return what the manager composes; raise what it raises, and `TimeoutError` when it takes too long."""
        future = self._start(self._manager.compose_payload, system, history, tools, rag_context)
        try:
            return future.result(timeout=self._wait)
        finally:
            future.cancel()

    def complete(self, history: list[Any]) -> None:
        """Let the manager do its work after a turn, in the background; a fault is noted."""
        self._start(self._manager.on_turn_complete, history).add_done_callback(self._note)

    def close(self) -> None:
        """End the loop; what is still under way is given up."""
        with self._lock:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._loop = None

    def take_notes(self) -> list[str]:
        """Return the notes, once."""
        notes, self.notes = self.notes, []
        return notes

    def _start(self, call: Callable[..., Any], *arguments: Any) -> Future[Any]:
        async def run() -> Any:
            try:
                found = call(*arguments)
                return await found if isawaitable(found) else found
            except (SystemExit, KeyboardInterrupt) as error:
                # It would end the loop, and with it every later call.
                raise InputError("it tried to end the program") from error

        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                Thread(target=_run, args=(self._loop,), name="windowsill-manager", daemon=True).start()
            return asyncio.run_coroutine_threadsafe(run(), self._loop)

    def _note(self, done: Future[Any]) -> None:
        if not done.cancelled() and (error := done.exception()) is not None:
            self.notes.append(self.fault(error, "failed after a turn"))

    def fault(self, error: BaseException, what: str = "failed") -> str:
        """Log a fault of the manager; return the sentence for the report."""
        sentence = f"context manager {self.name!r} {what} with {type(error).__name__}: {error}"
        log.warning("%s", sentence)
        return sentence


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
    finally:
        loop.close()


def fit_managed(composer: Composer, spec: RequestSpec, calls: ManagerCalls) -> tuple[FitResult, View] | None:
    """Let the context manager compose, and make that valid and fit; `None`, and a note, when it fails.

    It is fitted apart from the session, whose view stays whole: what a manager leaves out is no fold.
    """
    native = providers.get(spec.format, spec.demands)
    history, rag_context = history_of(composer.messages(), native)
    tools = [msgspec.json.decode(native.render_tool(tool)) for tool in spec.parts.tools]
    system = spec.parts.system.text if spec.parts.system is not None else None
    try:
        messages = read_composed(calls.compose(system, history, tools, rag_context), native, spec.parts)
        inner = _apart(composer, messages)
        result = inner.fit(inner.spec(spec.parts, spec.format, spec.max_output, stateless=True))
    except StoreError:
        raise
    except Exception as error:  # noqa: BLE001 - a program's own manager may raise anything, and must not cost the turn
        composer.summaries.notes.append(f"{calls.fault(error)}; {SlidingWindow.name} takes over")
        return None
    result.note(*calls.take_notes())
    if result.folds:
        result.note(f"what context manager {calls.name!r} composed did not fit, and was reduced")
        result.folds = []
    return result, inner.journal.view


def _apart(composer: Composer, messages: Sequence[Message]) -> Composer:
    """Make a composer of a list that is not the session's history."""
    store, context, journal = MemoryStore(), copy(composer.context), composer.journal
    context.settings = msgspec.structs.replace(
        composer.settings, strategy=SlidingWindow.name, writer="offline", high=1.0, low=0.75, outputs=False
    )
    store.create(journal.session, at=0.0, settings=b"{}")
    inner = JournalWriter(store, journal.session, context.scale, journal.clock)
    inner.add([msgspec.structs.replace(message, id="") for message in messages])
    return type(composer)(inner, context, context.settings)


def history_of(messages: Sequence[Message], native: providers.Format) -> tuple[list[Any], str | None]:
    """Return a conversation as a manager takes it: native messages, and the context that stands for the next step."""
    said = [message for message in messages if message.origin != Origin.DYNAMIC]
    dynamic = next((message.text for message in reversed(messages[-2:]) if message.origin == Origin.DYNAMIC), None)
    return [msgspec.json.decode(chunk) for message in said for chunk in native.render_message(message)], dynamic


def read_composed(given: Any, native: providers.Format, parts: RequestParts) -> list[Message]:
    """Return the messages that a manager composed; the system prompt and the tools are always those of the request."""
    body = given.to(native.name, cache=False) if isinstance(given, Payload) else given
    if isinstance(body, Mapping):
        body = body.get(native.spec.messages_field, body.get("messages"))
    if not isinstance(body, Sequence) or isinstance(body, str | bytes):
        raise InputError(f"it composed a {type(given).__name__}", remedy="return a list of messages, or a request body")
    messages = list(providers.read_added(list(body), default=native.name).messages) if body else []
    words = parts.system.text.strip() if parts.system is not None else None
    while messages and messages[0].role == "system" and messages[0].text.strip() == words:
        del messages[0]
    if all(message.role == "system" for message in messages):
        raise InputError("it composed no message", remedy="return at least the last one of the history")
    return messages
