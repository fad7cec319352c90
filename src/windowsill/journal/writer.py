"""Write the entries of a session: draft them on its head, append them, and draft again when somebody was faster."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import RLock
from typing import TypeVar

import msgspec

from windowsill import providers, telemetry
from windowsill.errors import ConflictError, InputError, LockedError, StoreError, log
from windowsill.history.entries import ROOT, Entry, Kind
from windowsill.history.folds import Proposal, count_touched
from windowsill.history.head import Call, Draft, Head, call_meta
from windowsill.history.view import Item, View
from windowsill.journal.reader import JournalReader
from windowsill.messages import Message, Usage
from windowsill.store import Lock, Store
from windowsill.telemetry import names
from windowsill.tokens import Scale

T = TypeVar("T")

PATIENCE = 5.0
"""Seconds for which somebody who waits for a session keeps a place in the line without asking again."""

POLL = 0.2
"""The longest pause before a session that another holds is asked for again."""

RESHAPES = frozenset({"fold", "unfold", "rewind"})
"""Entries after which the view is not just longer: a snapshot is stored with them."""

SAVED_AFTER = 2_000
"""Entries after which a view is stored when the session is closed: fewer are read in no time."""


class JournalWriter(JournalReader):
    """The entries of one session, read and written: the only way a session is changed."""

    def __init__(self, store: Store, session: str, scale: Scale, clock: Callable[[], float]) -> None:
        super().__init__(store, session)
        self.clock = clock
        self.lock = RLock()
        self.head = self.head_at(ROOT, scale)
        self._calls: list[Call] = []
        self._blobs: dict[str, bytes] = {}
        self._stored: set[str] = set()
        self._linkers: list[providers.Linker] = []
        self._unsaved = 0
        """Entries written here since a view was stored."""
        self._linked_up_to: tuple[int, int] | None = None
        """The edits and the length of the view that the linkers have seen."""
        self._reload()

    @property
    def view(self) -> View:
        """The items that the model sees now."""
        return self.head.view

    @property
    def scale(self) -> Scale:
        """The counter of the tokens of messages."""
        return self.head.view.scale

    @property
    def version(self) -> int:
        """The number of entries, which is that of the last one."""
        return self.head.version

    def branch(self, *kinds: Kind, bodies: bool = False) -> Iterator[Entry]:
        """Return the entries of these kinds on the current branch, in order."""
        return self.walk(self.path(self.version), kinds=kinds, bodies=bodies)

    def at(self, seq: int) -> Head:
        """Return the head as it was at any entry."""
        return self.head_at(seq, self.scale)

    def seen_at(self, id: str) -> View:
        """Return what the model saw at any entry; a call saw what was there before it."""
        entry = self.entry(self.seq_of(id))
        return self.at(call_meta(entry.meta).at if entry.kind == "call" else entry.seq).view

    def refresh(self) -> None:
        """Take in what others have written since."""
        with self.lock:
            found = self.store.info(self.session)
            if found is None or found.version == self.version:
                return
            later = self.store.read(self.session, self.version + 1, found.version, bodies=False)
            if not later or any(entry.kind in RESHAPES or entry.parent != entry.seq - 1 for entry in later):
                self._reload()
                return
            for entry in later:
                self.head.apply(entry)
            self._recount(self.view.items[-len(later) :])

    def hold(self, holder: str, *, seconds: float, wait: float = 0.0) -> Lock:
        """Keep other holders out, or go on doing so; `LockedError` while another holds the session.

        It is an agreement among those who ask for it, as engines do: nobody else is kept from writing. The lock ends
        after so many seconds, and with the process that `store.lock.holder_name` names. Those who `wait` get it in the
        order in which they came; one that died or gave up is passed over after `PATIENCE` seconds at the latest.
        """
        end = time.monotonic() + wait
        while True:
            left = end - time.monotonic()
            try:
                return self.store.lock(self.session, holder, seconds=seconds, patience=PATIENCE if left > 0 else 0.0)
            except LockedError:
                if left <= 0:
                    raise
            time.sleep(min(left, random.uniform(0.5, 1) * POLL))  # noqa: S311 - nothing secret

    def queue_call(self, call: Call, blobs: dict[str, bytes]) -> None:
        """Record a composed request with what is appended next: no turn waits for a commit of its own."""
        if call not in self._calls:
            self._calls.append(call)
        self._blobs.update({id: data for id, data in blobs.items() if id not in self._stored})
        # From here on a late result is late, whether or not the record of the call is on disk yet.
        self.head.sent = True

    def flush(self) -> None:
        """Write the requests that are still queued."""
        if self._calls:
            self.append(lambda _: None)

    def save_view(self) -> None:
        """Store the view, if opening the session would read as many entries one by one as the view has items."""
        if self._unsaved >= max(SAVED_AFTER, len(self.view.items) // 2):
            try:
                self.store.append(self.session, self.version, [], snapshots=[(self.version, self.head.snapshot())])
            except StoreError as error:
                # It is only a shortcut: the entries say the same.
                log.info("the view of session %s was not stored: %s", self.session, error)
            self._unsaved = 0

    def append(
        self,
        make: Callable[[Draft], T],
        *,
        reshape: Callable[[list[Entry]], Head] | None = None,
        conversation: bytes | None = None,
    ) -> T:
        """Append what `make` drafts. When somebody else wrote first, read that and draft again.

        With `conversation`, its fingerprint, only as long as that is still this one: else it is a `ConflictError`.
        """
        version = self.version

        def attempt() -> T:
            if conversation is not None and self.view.conversation_hash != conversation:
                raise ConflictError(self.session, version, self.version)
            draft = Draft(self.head, self.clock())
            for call in self._calls:
                draft.call(call)
            result = make(draft)
            self._write(draft, reshape)
            return result

        result = self.retry(attempt)
        self._stored.update(self._blobs)
        self._calls, self._blobs = [], {}
        return result

    def retry(self, act: Callable[[], T]) -> T:
        """Act; when somebody else wrote first, read that and act once more, while everybody else has to wait."""
        try:
            return act()
        except ConflictError:
            pass
        try:
            with self.store.exclusive(self.session):
                self.refresh()
                return act()
        except BaseException:
            # What was written is undone, and was shown already.
            self._reload()
            raise

    def add(
        self,
        messages: Sequence[Message],
        usage: Usage | None = None,
        *,
        conversation: bytes | None = None,
        also: Callable[[Draft, list[Entry]], object] | None = None,
        after: bytes | None = None,
    ) -> list[str]:
        """Append messages, weighed once, and the usage of the last request, all of it or nothing; return their ids.

        `also` adds to the same commit what belongs to these messages. `conversation` is that of `append`. `after` is
        the one before them in a client's list, where that is not the one at the head.
        """
        if not messages:
            return []
        self._refuse_known_ids(messages)
        view = self.view
        count, scale = len(view.items), view.scale
        messages = self._link(messages)
        weights = [scale.weigh(message) for message in messages]

        def make(draft: Draft) -> list[Entry]:
            if after is not None:
                draft.begin_list(after)
            written = [
                draft.message(message, weight, scale.name, self.thin)
                for message, weight in zip(messages, weights, strict=True)
            ]
            if usage is not None:
                draft.record("usage", usage)
            if also is not None:
                also(draft, written)
            return written

        entries = self.append(make, conversation=conversation)
        for entry, message in zip(entries, messages, strict=True):
            self._cache[entry.seq] = msgspec.structs.replace(message, id=entry.id, at=entry.at)
        if len(view.items) == count + len(messages):
            self._linked_up_to = (view.edits, len(view.items))
        return [entry.id for entry in entries]

    def _refuse_known_ids(self, messages: Sequence[Message]) -> None:
        stated = [message.id for message in messages if message.id]
        for place, id in enumerate(stated):
            if id in stated[:place] or self.store.find(self.session, id) is not None:
                raise InputError(
                    f"session {self.session!r} has a message {id!r} already", remedy="give another id, or none"
                )

    def _link(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Put results that lack an id under those of their calls; what was linked before is not gone through again."""
        if not self._linkers and providers.LINKERS.keys().isdisjoint([message.format for message in messages]):
            return messages
        items = self.view.items
        if self._linked_up_to != (self.view.edits, len(items)):
            self._linkers = [linker() for linker in providers.LINKERS.values()]
            start = len(items)
            while start and not (start < len(items) and items[start].role == "assistant" != items[start - 1].role):
                start -= 1
            for item in items[start:]:
                for linker in self._linkers:
                    linker.link(self.view.read(item))
        # The linkers have seen these messages from here on, whether or not they can be written.
        self._linked_up_to = None
        for linker in self._linkers:
            messages = [linker.link(message) for message in messages]
        return messages

    def fold(self, proposal: Proposal) -> Entry:
        """Write a fold that was checked, and apply it."""
        view = self.view
        before, after = view.tokens(), view.tokens_of(view.after(proposal.spans))
        kind, strategy = proposal.kind, proposal.strategy
        with telemetry.span("fold", session=self.session, kind=kind, strategy=strategy) as span:
            entry = self.append(lambda draft: draft.fold(proposal, before, after))
            if span.live:
                span.set(
                    fold=entry.id, messages=count_touched(proposal.spans), tokens_before=before, tokens_after=after
                )
        telemetry.count(names.FOLDS, kind=kind, strategy=strategy)
        telemetry.record(names.FOLD_TOKENS_SAVED, before - after, kind=kind, strategy=strategy)
        return entry

    def _write(self, draft: Draft, reshape: Callable[[list[Entry]], Head] | None) -> None:
        version, entries, blobs = self.version, draft.entries, [*draft.blobs.items(), *self._blobs.items()]
        places = [(key, seq) for seq, meta in draft.metas.items() for key in meta.places]
        if not self.passed_over and RESHAPES.isdisjoint([entry.kind for entry in entries]):
            self.store.append(self.session, version, entries, blobs=blobs, places=places)
            self._unsaved += len(entries)
            for entry in entries:
                self.head.apply(entry, draft.metas.get(entry.seq))
            return
        if reshape is not None:
            after = reshape(entries)
        else:
            after = self.head.copy()
            for entry in entries:
                after.apply(entry)
        snapshots = [(entries[-1].seq, after.snapshot())] if entries else []
        self.store.append(self.session, version, entries, snapshots=snapshots, blobs=blobs, places=places)
        self.passed_over, self._unsaved = False, 0
        self._adopt(after)

    def weigh_with(self, scale: Scale) -> None:
        """Weigh everything visible with another scale from now on."""
        self.load(self.view)
        self.view.weigh_with(scale)

    def _adopt(self, head: Head) -> None:
        view = self.view
        view.become(head.view)
        head.view = view
        self.head = head
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
