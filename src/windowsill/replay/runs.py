"""Run recordings through one or several options, in this process or in several, and collect the reports."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from functools import partial
from typing import TypeAlias

import msgspec

from windowsill import providers
from windowsill.config.settings import DEFAULT_STRATEGY
from windowsill.errors import WindowsillError
from windowsill.replay.costs import ComparedCall, CostComparison, CostSimulation, RecordedCost, SessionCosts
from windowsill.replay.evidence import Evidence, Loss
from windowsill.replay.recordings import (
    BrokenLine,
    ForeignFile,
    Found,
    Recording,
    SkippedContent,
    no_recordings,
    read_recordings,
)
from windowsill.replay.report import ReplayReport, SessionReport, Tally, Totals
from windowsill.replay.walk import ModelCall, ReplayOptions, Walk
from windowsill.transcripts import Charge

AHEAD = 2
"""Sessions that are read for each process before the first of them is done: none waits, and few are in memory."""


class SessionRun(msgspec.Struct, kw_only=True):
    """The result of the replay of one recording: a plain value, which may come from another process."""

    model: str
    tally: Tally
    compared: Sequence[ComparedCall] = ()
    losses: Sequence[Loss] = ()
    failure: WindowsillError | None = None
    """The error that stopped it early."""
    dumped: Sequence[bytes] = ()
    """Its requests, as lines of a dump, where they are wanted."""


def run_session(
    recording: Recording, options: ReplayOptions, write: Callable[[bytes], object] | None = None
) -> SessionRun:
    """Replay one recording; `write` gets each request as a line of a dump."""
    calls = walk_session(recording, options)
    while True:
        try:
            call = next(calls)
        except StopIteration as end:
            run: SessionRun = end.value
            return run
        if write is not None:
            write(call.dump_line())


def _run_elsewhere(recording: Recording, options: ReplayOptions, *, dump: bool) -> SessionRun:
    """Replay one recording in a process that has no file to write to."""
    dumped: list[bytes] = []
    run = run_session(recording, options, dumped.append if dump else None)
    run.dumped = dumped
    return run


def walk_session(recording: Recording, options: ReplayOptions) -> Generator[ModelCall, None, SessionRun]:
    """Replay one recording call by call; what it came to is returned at the end."""
    request, tally = recording.request, Tally()
    run = SessionRun(model=request.model or "", tally=tally)
    # A prompt that was never sent names no model either, and is not a failure.
    answered = any(message.role == "assistant" for message in request.messages)
    if not (request.model or options.model or options.window or answered):
        return run
    costs = SessionCosts(recording.charges, options.model)
    evidence = Evidence(providers.get(request.format))
    if request.system is not None:
        evidence.show(request.system)
    try:
        walk = Walk(recording, options)
        run.model = walk.session.settings.model or run.model
        simulation = CostSimulation(walk.model)
        start = 0
        for call in walk.calls():
            for index in range(start, call.turn):
                evidence.show(request.messages[index], index)
            start = call.turn
            kept = evidence.measure(call.answer, call.body, call.turn, walk.reaches)
            tally.count(call, simulation.cost(call), kept)
            costs.replayed(call)
            yield call
        tally.lost = walk.lost()
    except WindowsillError as error:
        run.failure = error
    run.compared, run.losses = costs.compared, evidence.losses
    return run


class Replay:
    """One pass over recordings with one set of options: take the model calls as they come, then the report."""

    def __init__(
        self, found: Iterable[Found], options: ReplayOptions | None = None, *, limit: int | None = None
    ) -> None:
        self.options = options or ReplayOptions()
        self._sessions: list[SessionReport] = []
        self._broken: list[BrokenLine] = []
        self._foreign: list[ForeignFile] = []
        self._skipped: Counter[str] = Counter()
        self._failures: list[WindowsillError] = []
        self._total = Tally()
        self._keys: set[str] = set()
        self._recorded: list[Charge] = []
        self._compared: list[ComparedCall] = []
        self._calls = self._walk(first_sessions(found, limit))

    def calls(self) -> Iterator[ModelCall]:
        """Yield the model calls of all sessions, each when it has been made."""
        return self._calls

    def report(self) -> ReplayReport:
        """Replay what is left, and report on everything.

        `FormatError` if there was nothing to replay; the first error if no session could be replayed.
        """
        deque(self._calls, maxlen=0)
        if self._failures and len(self._failures) == len(self._sessions):
            raise self._failures[0]
        if not self._sessions:
            raise no_recordings([*self._broken, *self._foreign], "the input")
        total = Totals(
            **msgspec.structs.asdict(self._total.figures()),
            sessions=len(self._sessions),
            failed=len(self._failures),
            broken=len(self._broken),
            foreign=len(self._foreign),
            recorded=RecordedCost.of(self._recorded),
            compared=CostComparison.of(self._compared),
        )
        return ReplayReport(
            options=self.options,
            total=total,
            sessions=tuple(self._sessions),
            broken=tuple(self._broken),
            foreign=tuple(self._foreign),
            skipped=dict(sorted(self._skipped.items())),
        )

    def take(self, found: Found, run: SessionRun | None = None) -> None:
        """Add what was found in a file; a recording with the run it came to."""
        match found:
            case BrokenLine():
                self._broken.append(found)
            case ForeignFile():
                self._foreign.append(found)
            case SkippedContent():
                self._skipped.update(found.kinds)
            case Recording() if run is not None:
                self._add(found, run)

    def _walk(self, found: Iterable[Found]) -> Iterator[ModelCall]:
        for each in found:
            self.take(each, (yield from walk_session(each, self.options)) if isinstance(each, Recording) else None)

    def _add(self, recording: Recording, run: SessionRun) -> None:
        recorded: list[Charge] = []
        for charge in recording.charges:
            # A call that a branch, a fork or another file repeats was paid once.
            if charge.key is None or charge.key not in self._keys:
                recorded.append(charge)
                self._keys.update([charge.key] if charge.key is not None else [])
        new = {charge.message for charge in recorded}
        compared = [call for call in run.compared if call.charge.message in new]
        tally = run.tally
        self._total.add(tally)
        self._recorded += recorded
        self._compared += compared
        if run.failure is not None:
            self._failures.append(run.failure)
        self._sessions.append(
            SessionReport(
                session=recording.id,
                model=run.model,
                format=recording.request.format,
                messages=len(recording.request.messages),
                figures=tally.figures(),
                recorded=RecordedCost.of(recorded),
                compared=CostComparison.of(compared),
                defects=tuple(tally.defects),
                losses=tuple(run.losses),
                tokens=tuple(call.tokens for call in tally.calls),
                everything=tuple(call.everything for call in tally.calls),
                folded=tuple(index for index, call in enumerate(tally.calls) if call.folds),
                error=str(run.failure) if run.failure is not None else None,
            )
        )


def first_sessions(found: Iterable[Found], limit: int | None) -> Iterator[Found]:
    """Pass on what was found, up to so many recordings."""
    count = 0
    for each in found:
        yield each
        count += isinstance(each, Recording)
        if count == limit:
            return


def run_variants(
    found: Iterable[Found],
    variants: Mapping[str, ReplayOptions],
    *,
    limit: int | None = None,
    workers: int = 1,
    write: Callable[[bytes], object] | None = None,
) -> dict[str, ReplayReport]:
    """Replay each recording with the options of every variant; return a report for each, by its name.

    With several `workers` each session is replayed in another process; the reports are the same. `write` gets each
    request as a line of JSON.
    """
    replays = [Replay((), options) for options in variants.values()]
    with ExitStack() as stack:
        if workers > 1:
            # A new interpreter for each: a fork of a program with threads may hang.
            context = multiprocessing.get_context("spawn")
            # Ctrl-C is left to the process that waits for them.
            ignore_interrupts = (signal.signal, (signal.SIGINT, signal.SIG_IGN))
            pool = stack.enter_context(ProcessPoolExecutor(workers, context, *ignore_interrupts))

        def begin(recording: Recording, options: ReplayOptions) -> Callable[[], SessionRun]:
            if workers > 1:
                return pool.submit(_run_elsewhere, recording, options, dump=write is not None).result
            return partial(run_session, recording, options, write)

        waiting: deque[tuple[Found, list[Callable[[], SessionRun]]]] = deque()
        try:
            for each in first_sessions(found, limit):
                runs = [begin(each, of.options) for of in replays] if isinstance(each, Recording) else []
                waiting.append((each, runs))
                while len(waiting) > (workers * AHEAD if workers > 1 else 0):
                    _take(replays, *waiting.popleft(), write)
            for pair in waiting:
                _take(replays, *pair, write)
        except BrokenProcessPool:
            what = "a process that replays sessions ended before it was done, as when memory runs out"
            raise WindowsillError(what, remedy="use fewer workers; one worker needs the least memory") from None
    return {name: of.report() for name, of in zip(variants, replays, strict=True)}


def _take(
    replays: Sequence[Replay],
    found: Found,
    results: Sequence[Callable[[], SessionRun]],
    write: Callable[[bytes], object] | None,
) -> None:
    if not results:
        for of in replays:
            of.take(found)
    for of, result in zip(replays, results, strict=bool(results)):
        run = result()
        of.take(found, run)
        if write is not None:
            for line in run.dumped:
                write(line)


Source: TypeAlias = str | os.PathLike[str]


def replay(
    sources: Source | Iterable[Source],
    options: ReplayOptions | None = None,
    *,
    format: str | None = None,
    limit: int | None = None,
    workers: int = 1,
) -> ReplayReport:
    """Replay the recorded sessions of files and folders as an agent would have sent them, and report on it.

    `limit` is the most sessions to replay, `workers` the number of processes. For the requests themselves, take the
    `calls` of a `Replay`.
    """
    variants = {"": options or ReplayOptions()}
    return compare(sources, variants, format=format, limit=limit, workers=workers)[""]


def compare(
    sources: Source | Iterable[Source],
    variants: Mapping[str, ReplayOptions],
    *,
    format: str | None = None,
    limit: int | None = None,
    workers: int = 1,
) -> dict[str, ReplayReport]:
    """Replay the same recorded sessions once for each variant; return a report for each, by its name.

    The files are read once. Several `workers` are other processes: a script that asks for them keeps its own work
    below `if __name__ == "__main__":`.
    """
    items = [sources] if isinstance(sources, str | os.PathLike) else sources
    found = read_recordings([os.fspath(source) for source in items], format=format)
    return run_variants(found, variants, limit=limit, workers=workers)


def cross(
    strategies: Sequence[str | None], windows: Sequence[int | None], options: ReplayOptions | None = None
) -> dict[str, ReplayOptions]:
    """Return a variant for each strategy at each window, by a name for people; `None` leaves what `options` has."""
    found: dict[str, ReplayOptions] = {}
    for strategy, window in itertools.product(strategies, windows):
        base = options or ReplayOptions()
        changed = msgspec.structs.replace(base, strategy=strategy or base.strategy, window=window or base.window)
        at = f" at {changed.window:,}" if changed.window is not None else ""
        found[(changed.strategy or DEFAULT_STRATEGY) + at] = changed
    return found
