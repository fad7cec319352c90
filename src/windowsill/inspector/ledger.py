"""The calls of a session over time: what each sent, what a cache served of it, what it cost.

Read from the newest to the oldest, as far as somebody asks: nothing that is shown first waits for the whole history.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

import msgspec

from windowsill.history.entries import Entry, Kind
from windowsill.history.head import Call, call_meta, usage_meta
from windowsill.history.view import fold_meta
from windowsill.messages import Usage
from windowsill.models import known_prices
from windowsill.session.audit import describe_entry
from windowsill.session.checkpoints import label_meta
from windowsill.store import Store

CHUNK = 2_000
"""Entries that are read at a time."""

KINDS: tuple[Kind, ...] = ("call", "usage", "fold", "unfold", "rewind", "label")

CLIENT = "client"
"""The name of who decides a fold with which an agent compacts its own list."""


class CallFigures(msgspec.Struct, kw_only=True):
    """One model call: the tokens of its request by what a cache did with them, and what it cost."""

    id: str | None
    """`None` for an answer whose request was not composed here."""
    seq: int
    at: float
    model: str | None
    tokens: int
    cached: int
    written: int
    new: int
    output: int | None = None
    expected: int = 0
    """Tokens at its start that equal the request before it."""
    cost: float | None = None
    reported: bool = False
    """The provider's own figures; else ours."""
    left: bool = False
    """It stands on a branch that was left."""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something between the calls: a fold, a client's own compaction, an unfold, a rewind, a checkpoint."""

    id: str
    seq: int
    at: float
    kind: str
    text: str
    saved: int = 0


class Totals(msgspec.Struct, kw_only=True):
    """The sums over all calls that were read."""

    calls: int = 0
    cost: float = 0.0
    known: bool = True
    """False when the price of a call is not known: then the cost is that of the others."""
    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    folds: int = 0
    compactions: int = 0

    @property
    def cache_share(self) -> float | None:
        """The share of all input tokens that a cache served."""
        return round(self.cached / self.input, 4) if self.input else None


class Ledger:
    """The calls of one session, and what happened between them, on every branch. Threads may share it."""

    def __init__(self, store: Store, session: str, model: str | None = None) -> None:
        self._store = store
        self._session = session
        self._model = model
        """The model of answers whose request says none."""
        self._lock = threading.RLock()
        self._clear()

    def _clear(self) -> None:
        self.calls: list[CallFigures] = []
        self.events: list[Event] = []
        self.totals = Totals()
        self.first = self.last = -1
        """The entries between which everything was read."""

    @property
    def complete(self) -> bool:
        """True when everything was read."""
        return self.first == 1 or self.last == 0

    def catch_up(self, version: int) -> None:
        """Read what was written since; for the first time, the end."""
        with self._lock:
            if version < self.last:
                self._clear()
            if self.last < 0:
                self.first, self.last = version + 1, version
                self._read_older()
            elif version > self.last:
                self._read_newer(version)

    def reach(self, *, calls: int = 0, before: int | None = None, seconds: float = 0.0) -> None:
        """Read older entries for so many seconds, and until so many calls (before an entry) are known."""
        with self._lock:
            until = time.monotonic() + seconds
            while not self.complete and (self._count(before) < calls or time.monotonic() < until):
                self._read_older()

    def _count(self, before: int | None) -> int:
        return len(self.calls) if before is None else bisect_left(self.calls, before, key=lambda each: each.seq)

    def page(self, before: int | None, most: int) -> tuple[list[CallFigures], list[Event], int | None]:
        """Return the last calls before an entry, what happened among them, and where older ones end."""
        with self._lock:
            stop = self._count(before)
            start = max(0, stop - most)
            calls = self.calls[start:stop]
            older = start > 0 or not self.complete
            # What happened before the oldest call that is listed belongs to it: a fold comes before its request.
            low = self.calls[start - 1].seq if start else (self.first if older else 0)
            high = before if before is not None else self.last + 1
            events = [each for each in self.events if low < each.seq < high]
            return calls, events, (calls[0].seq if calls else self.first) if older else None

    def _read_newer(self, version: int) -> None:
        entries = self._store.read(self._session, self.last + 1, version, kinds=KINDS, bodies=False)
        open_call = self.calls[-1] if self.calls and not self.calls[-1].reported else None
        calls, events = self._read(entries, open_call)
        self.calls.extend(calls)
        self.events.extend(events)
        self.last = version

    def _read_older(self) -> None:
        """Read one piece before the oldest; it begins with a call, as the usage behind belongs to it."""
        stop, step = self.first - 1, CHUNK
        if stop < 1:
            self.first = 1
            return
        while True:
            start = max(1, stop - step + 1)
            entries = self._store.read(self._session, start, stop, kinds=KINDS, bodies=False)
            first = next((entry.seq for entry in entries if entry.kind == "call"), None)
            if start == 1 or first is not None:
                break
            step *= 4
        begin = 1 if start == 1 else first or start
        calls, events = self._read(each for each in entries if each.seq >= begin)
        self.calls[:0] = calls
        self.events[:0] = events
        self.first = begin

    def _read(
        self, entries: Iterable[Entry], open_call: CallFigures | None = None
    ) -> tuple[list[CallFigures], list[Event]]:
        calls: list[CallFigures] = []
        events: list[Event] = []
        for entry in entries:
            if entry.kind == "call":
                open_call = self._from_call(entry, call_meta(entry.meta))
                calls.append(open_call)
                self._sum(open_call, 1)
            elif entry.kind == "usage":
                used = usage_meta(entry.meta)
                if open_call is None:
                    open_call = CallFigures(
                        id=None, seq=entry.seq, at=entry.at, model=None, tokens=0, cached=0, written=0, new=0
                    )
                    calls.append(open_call)
                else:
                    self._sum(open_call, -1)
                self._report(open_call, used)
                self._sum(open_call, 1)
                open_call = None
            elif (event := event_of(entry)) is not None:
                self.totals.folds += event.kind in ("fold", "compaction")
                self.totals.compactions += event.kind == "compaction"
                events.append(event)
        return calls, events

    def _from_call(self, entry: Entry, call: Call) -> CallFigures:
        price = known_prices(call.model or self._model)
        fresh = call.tokens - call.cached
        return CallFigures(
            id=entry.id,
            seq=entry.seq,
            at=entry.at,
            model=call.model,
            tokens=call.tokens,
            cached=call.cached,
            written=0,
            new=fresh,
            expected=call.cached,
            cost=None if price is None else call.cached * price.cache_read + fresh * price.cache_write,
        )

    def _report(self, call: CallFigures, used: Usage) -> None:
        """Put the figures of the provider in the place of ours."""
        price = known_prices(call.model or self._model)
        call.tokens, call.output, call.reported = used.prompt, used.output, True
        call.cached, call.written, call.new = used.cache_read, used.cache_write, used.input
        call.cost = None if price is None else price.cost(used)

    def _sum(self, call: CallFigures, sign: int) -> None:
        totals = self.totals
        totals.calls += sign
        totals.input += sign * call.tokens
        totals.cached += sign * call.cached
        totals.written += sign * call.written
        totals.output += sign * (call.output or 0)
        if call.cost is None:
            totals.known = False
        else:
            totals.cost += sign * call.cost


def event_of(entry: Entry) -> Event | None:
    """Describe what happened between two calls; `None` for what changes nothing that the model sees."""
    kind, saved = str(entry.kind), 0
    if entry.kind == "fold":
        fold = fold_meta(entry.meta)
        kind, saved = "compaction" if fold.strategy == CLIENT else "fold", fold.before - fold.after
    elif entry.kind == "label":
        if label_meta(entry.meta).reason is None:
            return None
        kind = "checkpoint"
    return Event(id=entry.id, seq=entry.seq, at=entry.at, kind=kind, text=describe_entry(entry) or "", saved=saved)


def figures(ledger: Ledger, limit: int | None) -> dict[str, Any] | None:
    """Return what a list of sessions shows of the calls of one; `None` while nothing was read."""
    if ledger.last < 0:
        return None
    totals = ledger.totals
    tokens = ledger.calls[-1].tokens if ledger.calls else 0
    return {
        "calls": totals.calls,
        "folds": totals.folds,
        "compactions": totals.compactions,
        "cost": round(totals.cost, 6),
        "known": totals.known,
        "cache_share": totals.cache_share,
        "tokens": tokens,
        "limit": limit,
        "fill": round(tokens / limit, 4) if limit else None,
        "complete": ledger.complete,
    }
