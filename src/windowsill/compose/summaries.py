"""Write the texts of folds: by code at once, or by a model in the background while the agent goes on.

A text is a proposal: it is used only if it says something and makes the view smaller.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Future
from threading import Event, RLock, Thread
from typing import Any, NamedTuple, TypeAlias

import msgspec

from windowsill import telemetry
from windowsill.budget import Budget
from windowsill.compose.payload import RequestSpec
from windowsill.errors import FoldError, WindowsillError, log
from windowsill.history.folds import MessageSpan, Proposal, Span, StandIn
from windowsill.history.proposals import Facts, check_plan, describe, frame, hide
from windowsill.history.view import Item, View
from windowsill.messages import ORIGIN, Message, Origin, Text, text_message
from windowsill.strategies.base import MARKED
from windowsill.summaries import Material, ModelWriter, Shared, Writer, Written
from windowsill.summaries.digest import DIGEST, Digest

# ruff: noqa: PLC0415 - the writers and their word lists are loaded when something is to be written

OFFLINE = "offline"

RECORD_SHARE = 4
"""One part in so many of the limit may be record, even above the low mark, while as much is free below the high one."""

BYTES_PER_TOKEN = 8
"""Of a text, cautiously: half of the bytes that are left is as much as a stand-in shall take."""

LEAST_SAVED = 4
"""One part in so many of what is newly hidden is saved at least: for less a fold would not be worth its price."""

DETAILS_SHARE = 20
"""One part in so many of the limit may be files, commands and names where a marker would stand."""

ROUNDS_WITHOUT_PROGRESS = 2
"""Times in a row that a prepared text may be useless: after that code writes the next one, and no model is paid."""

_BARE = (Origin.MARKER, Origin.NOTICE)

Source: TypeAlias = str | Writer | ModelWriter | Callable[[str], Awaitable[str]]
"""The source of summaries: a writer, or the name of one, or a function that answers a prompt."""


class Drafted(msgspec.Struct, frozen=True):
    """A proposal with its texts."""

    proposal: Proposal
    notes: tuple[str, ...] = ()
    whole: bool = True
    """Every text was written; where one was not, a marker stands in its place."""


class Finished(NamedTuple):
    """The outcome of a job."""

    proposal: Proposal
    texts: list[Written | None]
    fault: str = ""
    """The reason why there are no texts."""


class SummaryJob:
    """The texts of one proposal, written by a model in a thread of their own.

    Its messages do not change, whatever is added to the session meanwhile.
    """

    def __init__(self, proposal: Proposal, materials: Sequence[Material | None], writer: ModelWriter) -> None:
        self.proposal = proposal
        self.texts: Future[list[Written | None]] = Future()
        self.ended = Event()
        """Set when the thread is over: a writer that blocks goes on after it was cancelled."""
        self._materials = materials
        self._writer = writer
        self._lock = RLock()
        self._stop: Callable[[], object] | None = None

    def start(self) -> None:
        """Begin to write. Whoever may cancel it has to know it before: the writer can be waited for at once."""
        try:
            Thread(target=telemetry.under_current_span(self._run), name="windowsill-writer", daemon=True).start()
        except RuntimeError as error:
            # There are no threads left, or the program is ending: code writes, as after any other fault.
            self._settle(WindowsillError(f"it could not be begun: {error}"))
            self.ended.set()

    def cancel(self) -> None:
        """Stop writing, now or before it begins; whoever waits for the texts is released."""
        with self._lock:
            self._settle(WindowsillError("it was stopped"))
            if self._stop is not None:
                self._stop()

    def _run(self) -> None:
        try:
            self._settle(asyncio.run(self._write()))
        except BaseException as error:  # noqa: BLE001 - whoever waits for it must hear of it, whatever it is
            known = isinstance(error, WindowsillError)
            self._settle(error if known else WindowsillError(f"{type(error).__name__}: {error}"))
        finally:
            self.ended.set()

    def _settle(self, outcome: list[Written | None] | BaseException) -> None:
        """Set the outcome, unless there is one already."""
        with self._lock:
            if self.texts.done():
                return
            if isinstance(outcome, BaseException):
                self.texts.set_exception(outcome)
            else:
                self.texts.set_result(outcome)

    async def _write(self) -> list[Written | None]:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        with self._lock:
            if self.texts.done():
                return []
            self._stop = lambda: loop.call_soon_threadsafe(task.cancel)
        try:
            with telemetry.span("write", writer=self._writer.name, strategy=self.proposal.strategy):
                return [
                    await self._writer.awrite(brief, material) if brief is not None and material is not None else None
                    for brief, material in zip(self.proposal.briefs, self._materials, strict=True)
                ]
        finally:
            with self._lock:
                self._stop = None


class SummaryQueue:
    """Fills the proposals of one session with text; a model works on one proposal at a time."""

    def __init__(self, writer: Source, *, wait: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.source = writer
        self.writer: ModelWriter | None = None
        """The model that writes; without one, code does."""
        self.job: SummaryJob | None = None
        """The job that the model is writing."""
        self._given_up: SummaryJob | None = None
        self.notes: list[str] = []
        """Faults that are in the notes of no text."""
        self.seconds = 0.0
        """The seconds that the last text took."""
        self._wait = self._left_to_wait = wait
        self._waiting_for: RequestSpec | None = None
        self._clock = clock
        self._useless = 0
        self._own: Writer | None = None
        if isinstance(writer, Writer) and not isinstance(writer, ModelWriter):
            self._own = writer
        elif writer != OFFLINE:
            from windowsill.summaries.model_writer import Chain
            from windowsill.summaries.model_writer import writer as made

            model = writer if isinstance(writer, ModelWriter) else made(writer)
            self.writer = Chain(model, self._offline)

    @property
    def _offline(self) -> Writer:
        if self._own is None:
            from windowsill.summaries.offline import Offline

            self._own = Offline()
        return self._own

    @property
    def prepares(self) -> bool:
        """True when a text may be asked for early: a model writes, is free, and was of use so far."""
        stuck = self._given_up is not None and not self._given_up.ended.is_set()
        return self.writer is not None and self.job is None and not stuck and self._useless < ROUNDS_WITHOUT_PROGRESS

    def write(self, view: View, proposal: Proposal, spec: RequestSpec, *, urgent: bool) -> Drafted | None:
        """Return the proposal with its texts; `None` while they are being written and the request can go without."""
        proposal = give_room(view, proposal, spec.budget)
        if not any(brief is not None for brief in proposal.briefs):
            return Drafted(proposal)
        if self.writer is None or not any(brief is not None and brief.needed for brief in proposal.briefs):
            return self._write_by_code(view, proposal)
        if not urgent and self._useless < ROUNDS_WITHOUT_PROGRESS:
            self.prepare(view, proposal, spec)
            return None
        finished = self._wait_for(view, proposal, spec)
        if finished is not None and finished.texts and _is_visible(view, finished.proposal):
            # What was begun earlier hides less than is wanted now; the rest is planned for after it.
            self._useless = 0 if _has_words(finished) else self._useless + 1
            return self._with_notes(fill(view, finished.proposal, finished.texts))
        if finished is not None and finished.fault:
            why = f"{self.writer.name} failed: {finished.fault}"
        elif self._useless >= ROUNDS_WITHOUT_PROGRESS:
            why = f"{self.writer.name} gave nothing of use {self._useless} times"
        else:
            why = f"{self.writer.name} was not ready"
        self._useless = 0
        self.notes.append(f"{why}; written by code")
        return self._with_notes(self._write_by_code(view, proposal))

    def _wait_for(self, view: View, proposal: Proposal, spec: RequestSpec) -> Finished | None:
        """Wait for the job within what is left of this request's time, which all its proposals share."""
        if spec is not self._waiting_for:
            self._waiting_for, self._left_to_wait = spec, self._wait
        if self._left_to_wait > 0:
            self.prepare(view, proposal, spec)
        began = self._clock()
        finished = self.take(self._left_to_wait)
        self._left_to_wait -= self._clock() - began
        return finished

    def prepare(self, view: View, proposal: Proposal, spec: RequestSpec) -> None:
        """Have the texts of a proposal written in the background, unless the model is busy."""
        if self.writer is None or not self.prepares or not any(brief is not None for brief in proposal.briefs):
            return
        try:
            sound = give_room(view, check_plan(view, proposal), spec.budget)
        except FoldError as error:
            # It is only wanted early: when it is needed, whoever folds it says so, and knows what to do instead.
            self.notes.append(f"nothing was prepared for {proposal.strategy!r}: {error}")
            self._useless += 1
            return
        self.job = job = SummaryJob(sound, _materials(view, sound, spec.shared(view)), self.writer)
        began = self._clock()
        job.texts.add_done_callback(lambda _: self._note_time(self._clock() - began))
        job.start()

    def _note_time(self, seconds: float) -> None:
        self.seconds = seconds

    def take(self, wait: float = 0.0) -> Finished | None:
        """Return the outcome of the job, once; `None` while there is none. A job that was waited for in vain ends."""
        job = self.job
        if job is None or self.writer is None or not (wait > 0 or job.texts.done()):
            return None
        try:
            texts, fault = job.texts.result(timeout=max(0.0, wait)), ""
        except TimeoutError:
            log.warning("a summary by %s was not ready in %.1f seconds", self.writer.name, wait)
            # Whoever waited goes on without it, and hides what it was about.
            self.close()
            return None
        except WindowsillError as error:
            log.warning("a summary by %s failed: %s", self.writer.name, error)
            texts, fault = [], str(error)
        self.job = None
        return Finished(job.proposal, texts, fault)

    def take_prepared(self, view: View) -> Drafted | None:
        """Return what was prepared, if it still fits the history."""
        finished = self.take()
        if finished is None:
            return None
        if not finished.texts:
            self._useless += 1
            self.notes.append(f"what was prepared failed: {finished.fault or 'nothing was written'}")
            return None
        if not _is_visible(view, finished.proposal):
            # What it was to replace is folded otherwise by now, or on a branch that was left.
            return None
        drafted = fill(view, finished.proposal, finished.texts)
        if not drafted.whole:
            # A marker alone would hide words that have room.
            self._useless += 1
            self.notes += drafted.notes
            return None
        self._useless = 0 if _has_words(finished) else self._useless + 1
        return self._with_notes(drafted)

    def take_notes(self) -> list[str]:
        """Return the notes, once."""
        notes, self.notes = list(dict.fromkeys(self.notes)), []
        return notes

    def _with_notes(self, drafted: Drafted) -> Drafted:
        return msgspec.structs.replace(drafted, notes=(*self.take_notes(), *drafted.notes))

    def close(self) -> None:
        """Stop the job; a request that waits for it goes on without."""
        job, self.job = self.job, None
        if job is not None:
            job.cancel()
            self._given_up = job

    def _write_by_code(self, view: View, proposal: Proposal) -> Drafted:
        from windowsill.summaries.offline import write_by_code

        with telemetry.span("write", writer=self._offline.name, strategy=proposal.strategy):
            texts: list[Written | None] = [
                None
                if brief is None or material is None or brief.beside
                else write_by_code(self._offline, brief, material)
                for brief, material in zip(proposal.briefs, _materials(view, proposal), strict=True)
            ]
            return fill(view, proposal, texts)


def give_room(view: View, proposal: Proposal, budget: Budget) -> Proposal:
    """Let the text for the largest span take what is free below the low mark for the record of all of them."""
    asked = [place for place, brief in enumerate(proposal.briefs) if brief is not None and not brief.beside]
    if not asked:
        return proposal
    place = _largest(view, proposal, asked)
    briefs = [brief and msgspec.structs.replace(brief, record=0) for brief in proposal.briefs]
    rooms = [brief.room for brief in briefs if brief is not None]
    if (brief := briefs[place]) is not None and brief.room:
        record = max(0, _room(view, proposal, budget) - sum(rooms))
        briefs[place] = msgspec.structs.replace(brief, record=record)
    return msgspec.structs.replace(proposal, briefs=tuple(briefs))


def _hidden(view: View, span: Span) -> list[Item]:
    """Return the items that a span hides; none for a part of a message."""
    return view.items[view.slice_of(span.first, span.last)] if isinstance(span, MessageSpan) else []


def _largest(view: View, proposal: Proposal, places: Iterable[int]) -> int:
    """Return which of these spans hides most: what stands there tells the record of all.

    Told for each span apart, the rules between two messages that stay would have no room, and much go to frames.
    """
    return max(places, key=lambda place: (view.tokens(*_hidden(view, proposal.spans[place])), -place))


def _room(view: View, proposal: Proposal, budget: Budget | None) -> int:
    """Return the tokens that may stand in the place of all spans."""
    hidden = [item for span in proposal.spans for item in _hidden(view, span)]
    size, new = sum(view.each(hidden)), sum(view.each([item for item in hidden if not item.fold]))
    if budget is None:
        wanted = size - new + new // RECORD_SHARE
    elif budget.step:
        # Whoever sends the whole list again has to get the same text, whatever was said since.
        wanted = (budget.limit - budget.high) // 2
    else:
        rest = budget.fixed + view.tokens() - size
        # What earlier texts took is theirs still: where little is folded at a time, each would have to forget else.
        # Half of what is free stays so in any case: with less, the next turns would have to fold again.
        wanted = max(budget.limit // RECORD_SHARE, size - new + new // 2)
        wanted = max(budget.low - rest, min(wanted, (budget.high - rest) // 2), 0)
    if budget is not None and budget.room_bytes is not None:
        left = view.weight.bytes - sum(item.weight.bytes for item in hidden)
        wanted = min(wanted, max(0, budget.room_bytes - left) // BYTES_PER_TOKEN)
    return min(wanted, size - max(1, new // LEAST_SAVED))


def _untold(view: View, proposal: Proposal) -> Digest:
    from windowsill.summaries.collect import collect_untold

    hidden = {item.first for span in proposal.spans for item in _hidden(view, span)}
    return collect_untold(view, [item for item in view.items if item.first not in hidden])


def write_records(view: View, proposal: Proposal, budget: Budget | None = None, *, texts: bool = True) -> Proposal:
    """Put the record of what is hidden where a marker or a notice would stand, and keep it with every fold.

    So no strategy, fallback or plug-in loses what the user bound, asked for, decided or marked. Without a budget, as
    for a fold by hand, a text has a share of what it hides. Without `texts` the stand-ins stay as they are.
    """
    runs = {place: span for place, span in enumerate(proposal.spans) if isinstance(span, MessageSpan)}
    if not runs:
        return proposal
    from windowsill.summaries.collect import collect_hidden
    from windowsill.summaries.digest import dump, load, merge, only_record, without_told

    for place, span in runs.items():
        if DIGEST not in span.facts:
            runs[place] = _with_digest(span, dump(collect_hidden(view, _hidden(view, span))))
    shown = {place: stand for place in runs if isinstance(stand := proposal.stand_ins[place], Message)}
    bare = [place for place, stand in shown.items() if texts and _is_bare(stand)]
    if bare:
        place = _largest(view, proposal, bare)
        digest = _untold(view, proposal)
        for one, span in runs.items():
            own = load(span.facts[DIGEST])
            digest = merge(digest, own if one in bare else only_record(own))
        digest = without_told(digest, "\n".join(stand.text for one, stand in shown.items() if one not in bare))
        others = sum(view.tokens_of(span.weight) for one, span in runs.items() if one != place)
        room = max(_room(view, proposal, budget) - others, view.tokens_of(runs[place].weight))
        details = (budget.limit if budget else room) // DETAILS_SHARE if shown[place].origin != Origin.NOTICE else 0
        told = _with_digest(runs[place], dump(digest))
        runs[place], shown[place] = _recorded(view, told, shown[place], digest, room, details)
    return msgspec.structs.replace(
        proposal,
        spans=tuple(runs.get(place, span) for place, span in enumerate(proposal.spans)),
        stand_ins=tuple(shown.get(place, stand) for place, stand in enumerate(proposal.stand_ins)),
    )


def _is_bare(stand_in: Message) -> bool:
    """Tell whether a stand-in says that messages were there and not what they said."""
    return stand_in.origin in _BARE or bool(stand_in.metadata.get(MARKED))


def _with_digest(span: MessageSpan, digest: dict[str, Any]) -> MessageSpan:
    return msgspec.structs.replace(span, facts={**span.facts, DIGEST: digest})


def _recorded(
    view: View, span: MessageSpan, stand_in: Message, digest: Digest, room: int, details: int
) -> tuple[MessageSpan, Message]:
    """Return the span with a record as a text of at most `room` tokens; as it was where there is none to tell."""
    from windowsill.summaries.offline import lay_out

    facts = msgspec.convert(span.facts, Facts)
    lead = describe(facts)
    earlier = stand_in.blocks[:-1] if stand_in.metadata.get(MARKED) else ()

    def framed(text: str) -> Message:
        return msgspec.structs.replace(stand_in, blocks=(*earlier, Text(text=frame(f"{lead}\n\n{text}"))))

    left = room - view.tokens_of(view.weigh(framed("")))
    text = lay_out("summary", digest, left, view.scale.count, details=details) if left > 0 else ""
    if not text:
        return span, stand_in
    told = hide(view, _hidden(view, span), facts, framed(text))
    return msgspec.structs.replace(told, facts=span.facts), framed(text)


def _materials(view: View, proposal: Proposal, shared: Shared | None = None) -> list[Material | None]:
    """Collect for each span what its text is written from; `None` where nothing is to be written."""
    from windowsill.summaries.collect import collect_hidden, readable, stored_digests
    from windowsill.summaries.digest import dump, merge_stored, only_record

    asked = [
        place
        for place, (span, brief) in enumerate(zip(proposal.spans, proposal.briefs, strict=True))
        if brief is not None and isinstance(span, MessageSpan)
    ]
    carrier = _largest(view, proposal, asked) if asked else -1
    found: list[Material | None] = [None] * len(proposal.spans)
    for place in asked:
        items = _hidden(view, proposal.spans[place])
        digests = stored_digests(items)
        if place == carrier:
            others = [
                only_record(collect_hidden(view, _hidden(view, span)))
                for one, span in enumerate(proposal.spans)
                if one != carrier and isinstance(span, MessageSpan)
            ]
            digests = [*map(dump, (_untold(view, proposal), *others)), *digests]
        found[place] = Material(
            messages=tuple(readable(view, item) for item in items),
            tokens=view.tokens(*items),
            count=view.scale.count,
            digest=merge_stored(digests),
            shared=shared,
        )
    return found


def _has_words(finished: Finished) -> bool:
    return any(written is not None and written.text.strip() for written in finished.texts)


def fill(view: View, proposal: Proposal, texts: Sequence[Written | None]) -> Drafted:
    """Put texts into a proposal where they are good; elsewhere its own stand-ins stay."""
    spans = list(proposal.spans)
    stand_ins: list[StandIn] = list(proposal.stand_ins)
    notes: list[str] = []
    whole = True
    for place, (span, written) in enumerate(zip(proposal.spans, texts, strict=True)):
        if written is None or not isinstance(span, MessageSpan):
            continue
        notes += [f"{proposal.strategy}: {note}" for note in (*written.notes, *_cost(written))]
        metadata = {ORIGIN: Origin.SUMMARY, "writer": written.writer}
        stand_in = text_message("user", frame(written.text, source=written.writer), metadata=metadata)
        own, brief = proposal.stand_ins[place], proposal.briefs[place] if proposal.briefs else None
        if isinstance(own, Message) and brief is not None and brief.beside:
            stand_in = msgspec.structs.replace(stand_in, blocks=(*stand_in.blocks, own.blocks[-1]))
            run = hide(view, _hidden(view, span), Facts(messages=span.hides), stand_in)
            if written.text.strip() and view.tokens_of(run.saves) > 0:
                spans[place], stand_ins[place] = msgspec.structs.replace(run, facts=span.facts), stand_in
            continue
        facts = msgspec.convert(span.facts, Facts) if span.facts else Facts(messages=span.hides)
        run = hide(view, view.items[view.slice_of(span.first, span.last)], facts, stand_in)
        good = bool(written.text.strip()) and view.tokens_of(run.saves) > 0
        whole = whole and good
        shown = run if good else span
        # The facts are kept even where a marker stands: the next summary is written from them.
        digest: dict[str, Any] = {DIGEST: written.digest} if written.digest else {}
        spans[place] = msgspec.structs.replace(shown, facts={**shown.facts, **digest})
        if not written.text.strip():
            notes.append(f"{proposal.strategy}: {written.writer} wrote nothing; a marker stands there")
        elif not good:
            notes.append(f"{proposal.strategy}: what {written.writer} wrote is no shorter than what it replaces")
        else:
            stand_ins[place] = stand_in
    replaced = msgspec.structs.replace(proposal, spans=tuple(spans), stand_ins=tuple(stand_ins), briefs=())
    return Drafted(replaced, tuple(notes), whole)


def _cost(written: Written) -> tuple[str, ...]:
    """Say what a model was paid for, whether its text was of use or not."""
    if written.usage is None:
        return ()
    cached = f", {written.usage.cache_read:,} of them from its cache" if written.usage.cache_read else ""
    return (f"the model read {written.usage.prompt:,} tokens{cached}, and wrote {written.usage.output:,}",)


def _is_visible(view: View, proposal: Proposal) -> bool:
    """Tell whether the view still shows exactly the messages that a proposal was to hide."""
    try:
        return all(
            span.hides
            == sum(item.hides if item.fold else 1 for item in view.items[view.slice_of(span.first, span.last)])
            for span in proposal.spans
            if isinstance(span, MessageSpan)
        )
    except FoldError:
        return False
