"""Sessions that are looked at: opened once, kept up to date, closed when nobody looks any more."""

from __future__ import annotations

import math
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from typing import Any, TypeVar

from windowsill.compose.composition import Composition, weigh_parts
from windowsill.errors import DamagedError, NotFoundError
from windowsill.history.entries import Entry, within
from windowsill.history.view import Item, sum_weights
from windowsill.inspector.ledger import Ledger
from windowsill.search.archive import setting_of
from windowsill.session import Session
from windowsill.session.audit import FixedParts, composition, fixed_parts
from windowsill.store import SessionInfo, Store
from windowsill.tokens import Weight

MOST_OPEN = 8
"""Sessions that are kept open; a view of 100,000 messages takes a hundred megabytes."""

MOST_LEDGERS = 256
"""Sessions of which the calls are kept at hand, for the list of sessions."""

MOST_KNOWN = 10_000
"""Titles and limits of sessions that are kept at hand."""

MOST_BODIES = 4
"""Rebuilt requests that are kept at hand for one session: a call, the one before, and their pages."""


K = TypeVar("K")
T = TypeVar("T")


class Sums:
    """The sums over the items of a view; one that only grew is added to."""

    def __init__(self) -> None:
        self.items = self.hidden = self.stand_ins = 0
        self.weights: dict[str, Weight] = {}
        self.folds: set[int] = set()
        self.tools: dict[str, str] = {}
        """The names of tools by the ids of their calls."""
        self.outputs: dict[str, Weight] = {}
        """The weight of the visible outputs of each tool."""
        self.results: Counter[str] = Counter()

    def add(self, items: Sequence[Item], task: int | None) -> None:
        """Add items that stand behind those that were added."""
        self.items += len(items)
        self.weights = weigh_parts(items, task, self.weights)
        outputs: dict[str, list[Weight]] = {}
        for item in items:
            if item.fold:
                self.stand_ins += 1
                self.hidden += item.hides
                self.folds.add(item.fold)
                continue
            if item.calls:
                self.tools.update(zip(item.calls, item.tools, strict=False))
            if item.results:
                # Parallel results share a message: it counts for the tool of the first.
                name = self.tools.get(item.results[0], "")
                outputs.setdefault(name, []).append(item.weight)
                self.results[name] += len(item.results)
        for name, weights in outputs.items():
            self.outputs[name] = sum_weights([self.outputs.get(name, Weight()), *weights])


class OpenSession:
    """One session that is looked at, and what is kept of it between two requests."""

    def __init__(self, session: Session, ledger: Ledger) -> None:
        self.session = session
        self.ledger = ledger
        self.sums = Sums()
        self.note = ""
        """The reason why the system prompt and the tools are not known."""
        self._summed: tuple[int, int, int | None] = (0, 0, None)
        """The version, edits and task of the view whose items were added up."""
        self._called: tuple[int, Entry | None] = (0, None)
        """The version up to which the last request was looked for, and that request."""
        self._composed: tuple[int, Composition, FixedParts] | None = None
        self._behind: tuple[int, list[float]] = (-1, [])
        self._bodies: OrderedDict[str, bytes] = OrderedDict()

    @property
    def version(self) -> int:
        """The number of entries that are known here."""
        return self.session.journal.version

    def refresh(self) -> None:
        """Take in what others have written and learned since."""
        before = self.version
        self.session.journal.refresh()
        if self.version != before:
            self.session.composer.context.refresh()

    def composition(self) -> tuple[Composition, FixedParts]:
        """Return what fills the window, computed once for each version."""
        journal, composer = self.session.journal, self.session.composer
        if self._composed is None or self._composed[0] != journal.version:
            self._add_up()
            try:
                fixed, self.note = fixed_parts(journal, composer, self._find_call()), ""
            except DamagedError as error:
                # The messages can be shown all the same.
                fixed, self.note = FixedParts(), str(error)
            made = composition(journal, composer, fixed=fixed, weights=self.sums.weights)
            self._composed = (journal.version, made, fixed)
        return self._composed[1], self._composed[2]

    def _find_call(self) -> Entry | None:
        """Return the last request of the branch; where the branch only grew, it is looked for in what is new."""
        journal = self.session.journal
        version, call = self._called
        path = journal.path(journal.version)
        moved = journal.store.read(journal.session, version + 1, journal.version, kinds=("rewind",), bodies=False)
        if moved or version > journal.version:
            version, call = 0, None
        call = journal.last(within(path, version + 1, journal.version), "call") or call
        self._called = (journal.version, call)
        return call

    def _add_up(self) -> None:
        """Add up the items; where the view only grew, add what is new."""
        journal, view = self.session.journal, self.session.view
        version, edits, task = self._summed
        now = view.task_seq()
        marked = journal.store.read(journal.session, version + 1, journal.version, kinds=("mark",), bodies=False)
        if version > journal.version or edits != view.edits or task != now or marked:
            self.sums = Sums()
        self.sums.add(view.items[self.sums.items :], now)
        self._summed = (journal.version, view.edits, now)

    def behind(self, index: int) -> int:
        """Return the tokens that stand behind an item of the view."""
        version, sums = self._behind
        if version != self.version:
            view = self.session.view
            sums = [0.0, *accumulate(view.estimates(item.weight for item in view.items))]
            self._behind = (self.version, sums)
        return math.ceil(sums[-1] - sums[index + 1])

    def body(self, id: str) -> bytes:
        """Return the exact body of a past request."""
        return _keep(self._bodies, id, lambda: self.session.request(id), MOST_BODIES)


class _Slot:
    """The place of one session that is looked at; it is opened by who looks first, while others go on."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.opened: OpenSession | None = None


class OpenSessions:
    """The sessions of a store that are looked at. Threads may share it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.Lock()
        # By name and time: one that was deleted and begun again is another one.
        self._open: OrderedDict[tuple[str, float], _Slot] = OrderedDict()
        self._ledgers: OrderedDict[tuple[str, float], Ledger] = OrderedDict()
        self._known: OrderedDict[object, Any] = OrderedDict()

    @contextmanager
    def use(self, id: str) -> Iterator[OpenSession]:
        """Hold a session that exists, with what others have written since."""
        info = self.store.info(id)
        if info is None:
            remedy = "`windowsill sessions list` shows those there are"
            raise NotFoundError(f"there is no session {id!r}", remedy=remedy, session=id)
        with self._lock:
            slot = _keep(self._open, (id, info.created), _Slot, MOST_OPEN)
        with slot.lock:
            if slot.opened is None:
                slot.opened = OpenSession(Session.open(id, store=self.store, config=False), self.ledger(info))
            with slot.opened.session.journal.lock:
                slot.opened.refresh()
                yield slot.opened

    def ledger(self, info: SessionInfo) -> Ledger:
        """Return the calls of a session, as far as they are known."""
        with self._lock:
            make = partial(Ledger, self.store, info.id, setting_of(info, "model"))
            return _keep(self._ledgers, (info.id, info.created), make, MOST_LEDGERS)

    def remember(self, key: object, make: Callable[[], T]) -> T:
        """Return what was made for a key, which stays the same."""
        found: T = _keep(self._known, key, make, MOST_KNOWN)
        return found

    def close(self) -> None:
        """Let go of every session; the store stays open."""
        with self._lock:
            slots, self._open = list(self._open.values()), OrderedDict()
        for slot in slots:
            if slot.opened is not None:
                slot.opened.session.close()


def _keep(kept: OrderedDict[K, T], key: K, make: Callable[[], T], most: int) -> T:
    """Return what is kept under a key, made if it is not; the one that was used longest ago goes when it is too much.

    It is not closed: whoever still uses it ends first, and the store is ours.
    """
    if key not in kept:
        kept[key] = make()
        while len(kept) > most:
            kept.popitem(last=False)
    kept.move_to_end(key)
    return kept[key]
