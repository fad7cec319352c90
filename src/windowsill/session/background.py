"""Summaries that a model writes while the agent goes on: prepared early, used when they still fit the history."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Lock, Thread

from windowsill.errors import WindowsillError
from windowsill.history.folds import Proposal
from windowsill.logs import log
from windowsill.writers import Material, ModelWriter, Written


class Job:
    """A proposal whose texts are being written, of messages that are what they are whatever is added meanwhile."""

    def __init__(self, proposal: Proposal, materials: Sequence[Material | None], writer: ModelWriter) -> None:
        self.proposal = proposal
        self.texts: Future[list[Written | None]] = Future()
        self._briefs = list(zip(proposal.briefs, materials, strict=True))
        self._writer = writer
        self._lock = Lock()
        self._stopped = False
        self._stop: Callable[[], object] | None = None

    def start(self) -> None:
        """Write in a thread of its own."""
        Thread(target=self._run, name="windowsill-writer", daemon=True).start()

    def cancel(self) -> None:
        """Stop writing, now or before it begins."""
        with self._lock:
            self._stopped = True
            if self._stop is not None:
                self._stop()

    def _run(self) -> None:
        try:
            texts = asyncio.run(self._write())
        except BaseException as error:  # noqa: BLE001 - whoever waits for it must hear of it, whatever it is
            known = isinstance(error, WindowsillError)
            self.texts.set_exception(error if known else WindowsillError(f"{type(error).__name__}: {error}"))
        else:
            self.texts.set_result(texts)

    async def _write(self) -> list[Written | None]:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        with self._lock:
            if self._stopped or task is None:
                return []
            self._stop = lambda: loop.call_soon_threadsafe(task.cancel)
        try:
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

    def start(self, proposal: Proposal, materials: Sequence[Material | None]) -> None:
        """Begin to write; what was being written is given up."""
        self.cancel()
        self.job = Job(proposal, materials, self.writer)
        self.job.start()

    def take(self, wait: float = 0.0) -> tuple[Proposal, list[Written | None]] | None:
        """What was written, once; `None` while there is nothing, or when it failed. Waits for it if asked to."""
        job = self.job
        if job is None or not (wait or job.texts.done()):
            return None
        try:
            texts = job.texts.result(timeout=wait or None)
        except TimeoutError:
            log.warning("a summary by %s was not ready in %.1f seconds", self.writer.name, wait)
            return None
        except WindowsillError as error:
            log.warning("a summary by %s failed: %s", self.writer.name, error)
            texts = []
        self.job = None
        return (job.proposal, texts) if texts else None

    def cancel(self) -> None:
        """Stop writing; nothing that was added is touched."""
        job, self.job = self.job, None
        if job is not None:
            job.cancel()
