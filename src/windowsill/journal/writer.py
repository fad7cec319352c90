"""The writing side of one session: drafts entries on the head, appends them, and retries when somebody was faster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from threading import RLock
from typing import TypeVar

from windowsill import telemetry
from windowsill.errors import ConflictError
from windowsill.history.entries import ROOT, Entry, Kind
from windowsill.history.folds import Proposal, touched
from windowsill.history.head import Call, Draft, Head
from windowsill.history.view import Item, View
from windowsill.journal.reader import JournalReader
from windowsill.store import Store
from windowsill.telemetry import names
from windowsill.tokens import Scale

T = TypeVar("T")

RETRIES = 3
FIRST_PAUSE = 0.005
"""Seconds before the first retry; each further one waits twice as long."""

RESHAPES = frozenset({"fold", "unfold", "rewind"})
"""Entries after which the view is not just longer: a snapshot is stored with them."""


class JournalWriter(JournalReader):
    """The entries of one session, read and written: the only way a session is changed."""

    def __init__(self, store: Store, session: str, scale: Scale, clock: Callable[[], float]) -> None:
        super().__init__(store, session)
        self.clock = clock
        self.lock = RLock()
        self.history = self.history_at(ROOT, scale)
        self._pending: list[Call] = []
        self._blobs: dict[str, bytes] = {}
        self._stored: set[str] = set()
        self._reload()

    @property
    def view(self) -> View:
        """What the model sees now."""
        return self.history.view

    @property
    def scale(self) -> Scale:
        """What counts the tokens of messages."""
        return self.view.scale

    @property
    def version(self) -> int:
        """The number of entries, which is that of the last one."""
        return self.history.version

    def branch(self, *kinds: Kind, bodies: bool = False) -> Iterator[Entry]:
        """Return the entries of these kinds on the current branch, in order."""
        return self.walk(self.path(self.version), kinds=kinds, bodies=bodies)

    def pend(self, call: Call, blobs: dict[str, bytes]) -> None:
        """Record a composed request with the next commit: it needs no commit of its own, and no turn waits for one."""
        if call not in self._pending:
            self._pending.append(call)
        self._blobs.update({id: data for id, data in blobs.items() if id not in self._stored})
        # From here on a late result is late, whether or not the record of the call is on disk yet.
        self.history.sent = True

    def flush(self) -> None:
        """Write what is still pending."""
        if self._pending:
            self.commit(lambda _: None)

    def refresh(self) -> None:
        """Take in what others have written since."""
        found = self.store.info(self.session)
        if found is None or found.version == self.history.version:
            return
        later = self.store.read(self.session, self.history.version + 1, found.version, bodies=False)
        if any(entry.kind in RESHAPES or entry.parent != entry.seq - 1 for entry in later):
            self._reload()
            return
        for entry in later:
            self.history.apply(entry)
        self._recount(self.view.items[-len(later) :])

    def commit(
        self,
        make: Callable[[Draft], T],
        *,
        reshape: Callable[[list[Entry]], Head] | None = None,
        blobs: Iterable[tuple[str, bytes]] = (),
        steady: bytes | None = None,
    ) -> T:
        """Append what `make` drafts. When somebody else wrote first, read that and draft again, up to three times.

        With `steady` only as long as the conversation is still this one: else it is a `ConflictError`.
        """
        blobs = list(blobs)
        for attempt in range(RETRIES + 1):
            draft = self.history.draft(self.clock())
            for call in self._pending:
                draft.call(call)
            result = make(draft)
            try:
                self._append(draft, reshape, [*blobs, *draft.blobs.items(), *self._blobs.items()])
            except ConflictError:
                if attempt == RETRIES:
                    raise
                time.sleep(FIRST_PAUSE * 2**attempt)
                self.refresh()
                if steady is not None and self.view.conversation_hash != steady:
                    raise
                continue
            self._stored.update(self._blobs)
            self._pending, self._blobs = [], {}
            return result
        raise AssertionError  # pragma: no cover - the loop returns or raises

    def _append(
        self, draft: Draft, reshape: Callable[[list[Entry]], Head] | None, blobs: list[tuple[str, bytes]]
    ) -> None:
        version, entries = self.history.version, draft.entries
        if not any(entry.kind in RESHAPES for entry in entries):
            self.store.append(self.session, version, entries, blobs=blobs)
            for entry in entries:
                self.history.apply(entry, draft.metas.get(entry.seq))
            return
        after = reshape(entries) if reshape is not None else self._after(entries)
        self.store.append(self.session, version, entries, snapshots=[(entries[-1].seq, after.snapshot())], blobs=blobs)
        self._adopt(after)

    def _after(self, entries: list[Entry]) -> Head:
        """The history with these entries applied, leaving this one alone until they are written."""
        after = self.copy()
        for entry in entries:
            after.apply(entry)
        return after

    def copy(self) -> Head:
        """A history to try things on."""
        copy = Head(self.view.copy(), version=self.history.version, hash=self.history.hash)
        copy.sent, copy.prompt_hash = self.history.sent, self.history.prompt_hash
        return copy

    def at(self, seq: int) -> Head:
        """Return the session as it was at any entry."""
        return self.history_at(seq, self.scale)

    def weigh_with(self, scale: Scale) -> None:
        """Weigh everything visible with another scale from now on."""
        self.load(self.view)
        self.view.weigh_with(scale)

    def _adopt(self, history: Head) -> None:
        view = self.view
        view.become(history.view)
        history.view = view
        self.history = history
        self.keep_only(view.items)
        self._recount(view.items)

    def _reload(self) -> None:
        found = self.store.info(self.session)
        self._adopt(self.at(found.version if found else ROOT))

    def _recount(self, items: Iterable[Item]) -> None:
        """Weigh again what was counted with another vocabulary; in memory only, the journal stays as it is."""
        stale = [item for item in items if item.counter != self.scale.name]
        if stale:
            self.load_items(stale)
            self.view.weigh_with(self.scale)


def commit_fold(ledger: JournalWriter, proposal: Proposal, before: int, after: int) -> Entry:
    """Write a fold that was checked; `before` and `after` are the tokens of the view."""
    with telemetry.span("fold", session=ledger.session, kind=proposal.kind, strategy=proposal.strategy) as span:
        entry = ledger.commit(lambda draft: draft.fold(proposal, before, after))
        if span.live:
            span.set(fold=entry.id, messages=touched(proposal.spans), tokens_before=before, tokens_after=after)
    telemetry.count(names.FOLDS, kind=proposal.kind, strategy=proposal.strategy)
    telemetry.record(names.FOLD_TOKENS_SAVED, before - after, kind=proposal.kind, strategy=proposal.strategy)
    return entry
