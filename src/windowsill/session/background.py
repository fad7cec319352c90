"""Summaries that a model writes while the agent goes on: prepared early, used when they still fit the history."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Event, RLock, Thread
from typing import NamedTuple

from windowsill import telemetry
from windowsill.errors import WindowsillError
from windowsill.history.folds import Proposal
from windowsill.logs import log
from windowsill.writers import Material, ModelWriter, Written


class Taken(NamedTuple):
    """What became of a proposal that was to be written."""

    proposal: Proposal
    texts: list[Written | None]
    fault: str = ""
    """Why there are no texts."""


class Job:
    """A proposal whose texts are being written, of messages that are what they are whatever is added meanwhile."""

    def __init__(self, proposal: Proposal, materials: Sequence[Material | None], writer: ModelWriter) -> None:
        self.proposal = proposal
        self.texts: Future[list[Written | None]] = Future()
        self._briefs = list(zip(proposal.briefs, materials, strict=True))
        self._writer = writer
        self.ended = Event()
        """Set when its thread is over; one that blocks goes on after it was told to stop."""
        self._lock = RLock()
        self._stopped = False
        self._stop: Callable[[], object] | None = None

    def start(self) -> None:
        """Write in a thread of its own."""
        try:
            Thread(target=telemetry.carried(self._run), name="windowsill-writer", daemon=True).start()
        except RuntimeError as error:
            # There are no threads left, or the program is ending: code writes, as for any other fault.
            self._settle(WindowsillError(f"it could not be begun: {error}"))
            self.ended.set()

    def cancel(self) -> None:
        """Stop writing, now or before it begins. Whoever waits for it waits no longer."""
        with self._lock:
            self._stopped = True
            if self._stop is not None:
                self._stop()
        self._settle(WindowsillError("it was stopped"))

    def _run(self) -> None:
        try:
            self._settle(asyncio.run(self._write()))
        except BaseException as error:  # noqa: BLE001 - whoever waits for it must hear of it, whatever it is
            known = isinstance(error, WindowsillError)
            self._settle(error if known else WindowsillError(f"{type(error).__name__}: {error}"))
        finally:
            self.ended.set()

    def _settle(self, outcome: list[Written | None] | BaseException) -> None:
        """What came of it, once: what is said later is heard by nobody."""
        with self._lock:
            if self.texts.done():
                return
            if isinstance(outcome, BaseException):
                self.texts.set_exception(outcome)
            else:
                self.texts.set_result(outcome)

    async def _write(self) -> list[Written | None]:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        with self._lock:
            if self._stopped or task is None:
                return []
            self._stop = lambda: loop.call_soon_threadsafe(task.cancel)
        try:
            with telemetry.span("write", writer=self._writer.name, strategy=self.proposal.strategy):
                return [
                    await self._writer.awrite(brief, material) if brief is not None and material is not None else None
                    for brief, material in self._briefs
                ]
        finally:
            with self._lock:
                self._stop = None


class Background:
    """Writes for one session, one proposal at a time."""

    def __init__(self, writer: ModelWriter) -> None:
        self.writer = writer
        self.job: Job | None = None
        self._given_up: Job | None = None

    @property
    def idle(self) -> bool:
        """Whether something can be begun: one that was told to stop and does not is not asked for more."""
        return self.job is None and (self._given_up is None or self._given_up.ended.is_set())

    def start(self, proposal: Proposal, materials: Sequence[Material | None]) -> None:
        """Begin to write; what was being written is given up."""
        self.cancel()
        self.job = Job(proposal, materials, self.writer)
        self.job.start()

    def take(self, wait: float = 0.0) -> Taken | None:
        """What was written, once; `None` while there is nothing. Waits for it if asked to, and then gives it up."""
        job = self.job
        if job is None or not (wait > 0 or job.texts.done()):
            return None
        try:
            texts, fault = job.texts.result(timeout=max(0.0, wait)), ""
        except TimeoutError:
            log.warning("a summary by %s was not ready in %.1f seconds", self.writer.name, wait)
            # Whoever waited goes on without it, and hides what it was about.
            self.cancel()
            return None
        except WindowsillError as error:
            log.warning("a summary by %s failed: %s", self.writer.name, error)
            texts, fault = [], str(error)
        self.job = None
        return Taken(job.proposal, texts, fault)

    def cancel(self) -> None:
        """Stop writing; nothing that was added is touched."""
        job, self.job = self.job, None
        if job is not None:
            job.cancel()
            self._given_up = job
