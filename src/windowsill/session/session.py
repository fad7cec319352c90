"""The session: the object a user holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
from anyio import to_thread

from windowsill import formats, strategies
from windowsill.budget import Size
from windowsill.compose.payload import Payload, Statistics
from windowsill.config import Settings, changed, read_settings, tuned
from windowsill.errors import InputError, NotFoundError
from windowsill.history.folds import FoldKind
from windowsill.history.history import call_meta
from windowsill.history.view import Item, Marking, View
from windowsill.messages import Cleared, Mark, Message, Request, Usage
from windowsill.models import Model
from windowsill.session import folding, provider, telling, undo
from windowsill.session.adding import again_after_conflicts, write
from windowsill.session.composing import Composer, Sent
from windowsill.session.desk import Desk, Source
from windowsill.session.ledger import Ledger
from windowsill.session.lens import Lens
from windowsill.session.records import Branch, CallRecord, Event, Explanation, FoldRecord
from windowsill.session.replaying import request_of
from windowsill.session.resuming import Resumed, Resumption, without_system
from windowsill.store import Store, open_store
from windowsill.strategies import Strategy

NAME_LIMIT = 500

TELLING = 20
"""How many items at the start are asked for the session's format."""


class Session:
    """A conversation that is kept whole, and what a model sees of it.

    Made with `Session.open`. Threads may share it; processes may open the same session at the same time.
    """

    def __init__(self, id: str, *, store: Store, settings: Settings, clock: Callable[[], float], owned: bool) -> None:
        self.id = id
        self.settings = settings
        self._store = store
        self._owned = owned
        self._clock = clock
        if settings.format is not None:
            formats.get(settings.format)
        fitted = tuned(settings)
        self._strategy = strategies.get(fitted.strategy)
        lens = Lens(fitted, store)
        self._ledger = Ledger(store, id, lens.scale, clock)
        desk = Desk(fitted.writer, load=self._ledger.journal.load_items, wait=fitted.wait)
        self._composer = Composer(self._ledger, lens, fitted, self._strategy, desk)
        self._resumption = Resumption(self._ledger, self._composer)

    @classmethod
    def open(
        cls,
        id: str,
        *,
        model: str | None = None,
        window: int | None = None,
        budget: Size | None = None,
        high: Size | None = None,
        low: Size | None = None,
        strategy: str | Strategy | None = None,
        writer: Source | None = None,
        store: Store | str | Path | None = None,
        clock: Callable[[], float] = time.time,
        **settings: Any,
    ) -> Session:
        """Open a session, or begin one. What is stated here is kept with it and need not be stated again.

        `store` is a folder, a database file, `":memory:"`, or a store; without it sessions are kept in `.windowsill/`
        of the current folder if there is one, else in the user's data folder.
        """
        if not id or len(id) > NAME_LIMIT:
            raise InputError(f"a session's name has {len(id)} characters", remedy=f"give 1 to {NAME_LIMIT}")
        plug_in = strategy if strategy is not None and not isinstance(strategy, str) else None
        stated = {
            "model": model,
            "window": window,
            "budget": budget,
            "high": high,
            "low": low,
            "strategy": strategy if isinstance(strategy, str) else None,
            "writer": writer if isinstance(writer, str) else None,
            **settings,
        }
        owned = not isinstance(store, Store)
        place = store if isinstance(store, Store) else open_store(store)
        try:
            return cls._opened(id, place, stated, (plug_in, writer), clock, owned=owned)
        except BaseException:
            if owned:
                place.close()
            raise

    @classmethod
    def _opened(
        cls,
        id: str,
        store: Store,
        stated: dict[str, Any],
        plug_ins: tuple[Strategy | None, Source | None],
        clock: Callable[[], float],
        *,
        owned: bool,
    ) -> Session:
        known = store.info(id)
        before = read_settings(known.settings, id) if known else Settings()
        after = changed(before, stated)
        # An unknown model, strategy or format is refused here, before anything is written.
        session = cls(id, store=store, settings=after, clock=clock, owned=owned)
        if known is None:
            store.create(id, at=clock(), settings=msgspec.json.encode(after))
        elif after != before:
            store.set_settings(id, msgspec.json.encode(after))
        strategy, writer = plug_ins
        if strategy is not None:
            session._strategy = session._composer.strategy = strategy
        if writer is not None and not isinstance(writer, str):
            session._composer.fitting.desk.use(writer)
        return session

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Write what is pending and release the store, if this session opened it."""
        with self._ledger.lock:
            self._composer.fitting.desk.close()
            self._ledger.flush()
            self._lens.save()
            if self._owned:
                self._store.close()

    # Adding

    def add(
        self,
        value: Any,
        *,
        id: str = "",
        at: float | None = None,
        marks: Iterable[Mark] = (),
        metadata: Mapping[str, Any] | None = None,
        format: str | None = None,
        after: str | None = None,
        sent: Sent | None = None,
    ) -> str:
        """Add a message, a provider's reply with its usage, an SDK object, or plain text from the user.

        The id of the message, of the last one where a reply is several; when it returns, it is on disk. `after` is the
        message it follows: the session goes there first when it has moved on. `sent` is the request it answers, where
        that is not the last one.
        """
        added = self._read(value, format)
        if not added.messages or (len(added.messages) > 1 and (id or isinstance(value, (list, tuple)))):
            raise InputError(f"this holds {len(added.messages)} messages", remedy="use `extend` for a list")
        # A reply may be several messages, where a provider gives reasoning, words and calls one by one.
        messages = [
            msgspec.structs.replace(
                message,
                id=id or message.id,
                at=at if at is not None else message.at,
                marks=message.marks | frozenset(marks),
                metadata={**message.metadata, **(metadata or {})},
            )
            for message in added.messages
        ]
        with self._ledger.lock:
            if after is None:
                return self._write(messages, added.usage, added.cleared, sent or self._composer.last)[-1]
            answered = sent or self._composer.sent_behind(after)
            return again_after_conflicts(lambda: self._add_behind(after, messages, added, answered))[-1]

    def _add_behind(
        self, after: str, messages: Sequence[Message], added: formats.Added, sent: Sent | None
    ) -> list[str]:
        undo.go_to(self._ledger, after, "an answer belongs here")
        return self._write(messages, added.usage, added.cleared, sent, steady=self._ledger.view.thread)

    def extend(self, values: Iterable[Any], *, format: str | None = None, at: Sequence[float | None] = ()) -> list[str]:
        """Add several messages as one: all of them or none. Their ids."""
        messages: list[Message] = []
        usage = None
        for index, value in enumerate(values):
            added = self._read(value, format)
            usage = added.usage or usage
            when = at[index] if index < len(at) else None
            messages += [
                msgspec.structs.replace(message, at=when) if when is not None else message for message in added.messages
            ]
        return self._write(messages, usage, sent=self._composer.last)

    def _read(self, value: Any, format: str | None) -> formats.Added:
        stated = format or self.settings.format
        return formats.read_added(value, format=stated, default=stated or self.format)

    def _write(
        self,
        messages: Sequence[Message],
        usage: Usage | None,
        cleared: Cleared | None = None,
        sent: Sent | None = None,
        *,
        steady: bytes | None = None,
    ) -> list[str]:
        with self._ledger.lock:
            ids = write(self._ledger, messages, usage, steady=steady)
            if not provider.record(self._ledger, messages, cleared, sent.fields if sent is not None else {}):
                # What the provider counted after it cut the request itself says nothing about what was sent.
                self._learn(usage, sent)
            return ids

    @property
    def _lens(self) -> Lens:
        return self._composer.lens

    def _learn(self, usage: Usage | None, sent: Sent | None) -> None:
        if usage is not None and sent is not None:
            sent.lens.observe(sent.weight, usage, sent.shape)

    def observe(self, usage: Usage | Mapping[str, Any]) -> None:
        """Learn from the usage a provider reported for the last composed request, where `add` did not see it."""
        seen = usage if isinstance(usage, Usage) else formats.read_usage(usage)
        with self._ledger.lock:
            self._ledger.commit(lambda draft: draft.record("usage", seen))
            self._learn(seen, self._composer.last)

    def overflowed(self, error: BaseException | str, *, sent: int | Sent | None = None) -> int | None:
        """Learn a lower window from a provider's overflow error; the window from now on, when the error says one.

        With `sent`, the refused request or the tokens it was counted as, the next one is smaller in any case.
        """
        if isinstance(sent, Sent):
            return sent.lens.overflowed(str(error), sent.tokens)
        return self._lens.overflowed(str(error), sent)

    # Composing

    async def compose(
        self,
        *,
        system: Any = None,
        tools: Sequence[Any] = (),
        dynamic: str | None = None,
        max_output: int | None = None,
        format: str | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> Payload:
        """The request to send now: valid for its provider and within the budget.

        `dynamic` is context for this step (a goal, retrieved knowledge). It is recorded at the end of the history,
        where it leaves the cached prefix whole. `params` are further fields of the request body.
        """
        compose = partial(
            self.compose_sync,
            system=system,
            tools=tools,
            dynamic=dynamic,
            max_output=max_output,
            format=format,
            params=params,
        )
        # Only a model may be waited for; without one a thread would cost more than it saves.
        return await to_thread.run_sync(compose) if self._composer.fitting.desk.asks else compose()

    def compose_sync(
        self,
        *,
        system: Any = None,
        tools: Sequence[Any] = (),
        dynamic: str | None = None,
        max_output: int | None = None,
        format: str | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> Payload:
        """`compose` for code without an event loop, or inside one."""
        with self._ledger.lock:
            self._ledger.refresh()
            if dynamic:
                self._add_dynamic(dynamic)
            name = formats.get(format or self.format).name
            fixed = self._composer.fix(system, tools, params or {}, name)
            return self._composer.compose(fixed, format=name, max_output=max_output, model_name=self.settings.model)

    def resume(self, request: Request, *, model: str | None = None, resends: bool | None = None) -> Resumed:
        """Take in the request of a client that keeps its own list, and compose the one to send in its place.

        The session goes to where the list continues it, on whatever branch that is, and adds what is new; an edited
        list becomes a branch. `resends` says whether the client sends its whole list each time or only what is new;
        without it that is told from the list. `model` is named where the request does not name it.
        """
        with self._ledger.lock:
            return self._resumption.resume(request, model=model, resends=resends)

    def reduce(self, *, system: Any = None, tools: Sequence[Any] = (), format: str | None = None) -> Statistics:
        """Reduce now what is too large for a request with these parts, and say what that did."""
        with self._ledger.lock:
            self._ledger.refresh()
            name = formats.get(format or self.format).name
            return self._composer.reduce(self._composer.fix(system, tools, {}, name), name)

    def follow(self, request: Request, *, resends: bool = True) -> None:
        """Take in what is new in a client's list, and let summaries that will soon be needed be written meanwhile."""
        with self._ledger.lock:
            system, messages = without_system(request)
            self._resumption.take(messages, resends=resends)
            if self._ledger.view.items:
                fixed = self._composer.fix(system, request.tools, request.rest, request.format)
                self._composer.prepare(fixed, request.format)

    def compose_once(
        self, *, system: Any, tools: Sequence[Any], params: Mapping[str, Any], max_output: int | None, model: str | None
    ) -> Payload:
        """Compose for a caller who keeps no session: what is hidden grows in steps counted from the start."""
        with self._ledger.lock:
            name = self.format
            fixed = self._composer.fix(system, tools, params, name)
            return self._composer.compose(fixed, format=name, max_output=max_output, model_name=model, anchored=True)

    def _add_dynamic(self, text: str) -> None:
        last = self._ledger.view.items[-1] if self._ledger.view.items else None
        shown = self._ledger.view.read(last) if last is not None else None
        if shown is None or shown.text != text or shown.metadata.get("windowsill") != "dynamic":
            self.add(text, metadata={"windowsill": "dynamic"})

    @property
    def format(self) -> str:
        """The wire format of this session: the stated one, that of its messages, or that of its model."""
        if self.settings.format:
            return self.settings.format
        chat = formats.dialect(self._lens.model)
        with self._ledger.lock:
            for item in self._ledger.view.items[:TELLING]:
                found = self._ledger.view.read(item).format
                if found in formats.names():
                    return chat if found in formats.DIALECTS else found
        return {"anthropic": "anthropic", "google": "gemini"}.get(self._lens.model.provider, chat)

    # Looking

    @property
    def model(self) -> Model:
        """The model, with its window as stated or learned."""
        return self._lens.model

    @property
    def view(self) -> View:
        """What the model sees now."""
        return self._ledger.view

    @property
    def tokens(self) -> int:
        """What the view weighs, without system prompt and tools."""
        return self._ledger.view.tokens()

    @property
    def counting(self) -> dict[str, Any]:
        """How tokens are counted and how far that has been off."""
        return self._lens.describe()

    def messages(self) -> Iterator[Message]:
        """Every message of the current branch exactly as it was added, hidden or not, oldest first."""
        journal = self._ledger.journal
        for entry in journal.walk(journal.path(self._ledger.history.version), kinds=("message",), bodies=True):
            yield journal.decode(entry)

    def message(self, id: str) -> Message:
        """One message as it was added, on whatever branch it is."""
        journal = self._ledger.journal
        return journal.message(journal.find(id, "message").seq)

    @property
    def folds(self) -> list[FoldRecord]:
        """Every fold of the current branch: what was hidden, why, what it saved, whether it still applies."""
        with self._ledger.lock:
            return telling.folds(self._ledger)

    @property
    def calls(self) -> list[CallRecord]:
        """Every request that was composed on the current branch and written down."""
        with self._ledger.lock:
            self._ledger.flush()
            return telling.calls(self._ledger)

    @property
    def audit(self) -> list[Event]:
        """Everything that changed what the model sees: what, when, by which strategy, why."""
        with self._ledger.lock:
            return telling.audit(self._ledger)

    @property
    def branches(self) -> list[Branch]:
        """Every end of the history: the current one, and those that were left."""
        with self._ledger.lock:
            return undo.branches(self._ledger)

    def request(self, call_id: str) -> bytes:
        """The exact body of a past request."""
        with self._ledger.lock:
            self._ledger.flush()
            entry = self._ledger.journal.find(call_id, "call")
            return request_of(self._ledger, call_meta(entry.meta))

    def explain(self, message_id: str, *, call: str | None = None) -> Explanation:
        """Why a message is, or is not, in the window now, or in that of a past call."""
        with self._ledger.lock:
            self._ledger.flush()
            return telling.explain(self._ledger, message_id, call)

    def verify(self) -> list[str]:
        """What is wrong with the stored history; an empty list when every entry is as it was written."""
        with self._ledger.lock:
            return [*self._store.check(self.id), *self._ledger.journal.problems(self._ledger.history.version)]

    # Changing what is seen

    def unfold(self, fold_id: str, *, span: int | None = None, fit: bool = False, reason: str = "") -> str:
        """Bring back what a fold hid: all of it, one `span` of it, or with `fit` as much as the budget allows."""
        with self._ledger.lock:
            self._ledger.refresh()
            if fit:
                budget = self._composer.budget(self._composer.fixed_tokens)
                return undo.unfold_what_fits(self._ledger, fold_id, budget, reason)
            return undo.unfold(self._ledger, fold_id, span, reason)

    def fold(
        self,
        first: str,
        last: str | None = None,
        *,
        text: str | None = None,
        kind: FoldKind = "condense",
        reason: str = "",
    ) -> str:
        """Hide messages by hand, from `first` to `last`; `text` stands in for them, or a marker of what was there."""
        with self._ledger.lock:
            self._ledger.refresh()
            return folding.fold_run(self._ledger, first, last or first, text, kind, reason)

    def mask(self, *message_ids: str, text: str | None = None, reason: str = "") -> str:
        """Hide the tool outputs of these messages by hand behind a placeholder."""
        with self._ledger.lock:
            self._ledger.refresh()
            return folding.mask_results(self._ledger, message_ids, text, reason)

    def rewind(
        self, message_id: str | None = None, *, at: float | None = None, before: bool = False, reason: str = ""
    ) -> str:
        """Go back to a message, which stays the last one (with `before` it goes too), or to a time.

        The branch that is left stays: `branches` lists it, `switch` returns to it.
        """
        if (message_id is None) == (at is None):
            raise InputError("rewind needs a message or a time", remedy="give one of them")
        with self._ledger.lock:
            self._ledger.refresh()
            if message_id is not None:
                place = undo.place_of_message(self._ledger, message_id, before=before)
            else:
                place = undo.place_of_time(self._ledger, at or 0.0)
            return undo.move(self._ledger, place, reason)

    def switch(self, id: str, *, reason: str = "") -> str:
        """Return to a branch that was left (see `branches`), or to any entry."""
        with self._ledger.lock:
            self._ledger.refresh()
            return undo.move(self._ledger, undo.place_of_entry(self._ledger, id), reason)

    def pin(self, message_id: str) -> None:
        """Never hide this message."""
        self.mark(message_id, add=("pinned",))

    def unpin(self, message_id: str) -> None:
        """Let this message be hidden again."""
        self.mark(message_id, remove=("pinned",))

    def mark(self, message_id: str, *, add: Sequence[Mark] = (), remove: Sequence[Mark] = ()) -> None:
        """Give a message marks, or take them away."""
        for mark in (*add, *remove):
            if mark not in ("important", "pinned"):
                raise NotFoundError(f"there is no mark {mark!r}", remedy="use important or pinned")
        with self._ledger.lock:
            self._ledger.refresh()
            entry = self._ledger.journal.find(message_id, "message")
            marking = Marking(entry.seq, message_id, tuple(add), tuple(remove))
            self._ledger.commit(lambda draft: draft.mark(marking))

    def items(self) -> list[Item]:
        """The items of the view, in order."""
        return list(self._ledger.view.items)
