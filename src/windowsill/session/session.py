"""The session: the object a user holds."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import msgspec
from anyio import get_cancelled_exc_class, to_thread

from windowsill import providers, telemetry
from windowsill.budget import Size
from windowsill.compose.composer import Composer, Sent
from windowsill.compose.model_context import ModelContext
from windowsill.compose.payload import Payload, Statistics
from windowsill.compose.summaries import Source
from windowsill.config import Loaded, Settings, StatedSettings, apply_profile, load, read_settings, with_changes
from windowsill.errors import InputError, NotFoundError, SettingError, StoreError, log
from windowsill.history.entries import Entry
from windowsill.history.folds import FoldKind
from windowsill.history.head import Draft, call_meta
from windowsill.history.view import Item, Marking, View, message_meta
from windowsill.journal.messages import again_after_conflicts, write
from windowsill.journal.writer import JournalWriter
from windowsill.messages import ORIGIN, Cleared, Mark, Message, Origin, OutputRef, ToolUse, Unknown, Usage
from windowsill.models import Model, record_usage
from windowsill.session import audit as telling
from windowsill.session import branches as undo
from windowsill.session import folds as folding
from windowsill.session import provider_edits
from windowsill.session.audit import request_of
from windowsill.session.branches import Branch, CallRecord, Event, Explanation, FoldRecord
from windowsill.session.checkpoints import (
    Automatic,
    Checkpoint,
    Label,
    Reason,
    Seen,
    Watching,
    check_label,
    checkpoint_of,
    find,
    known,
)
from windowsill.session.export import taken
from windowsill.session.output_refs import referring, with_places
from windowsill.store import Lock, Store, open_store
from windowsill.strategies import Strategy
from windowsill.telemetry import names

if TYPE_CHECKING:
    from windowsill.outputs import Collected, Outputs
    from windowsill.search import Archive
    from windowsill.session.client_history import ClientHistory
    from windowsill.session.snapshots import Snapshot
    from windowsill.session.state import SessionState
    from windowsill.session.toolbox import Toolbox
    from windowsill.state.changes import Change
    from windowsill.state.tools import ToolDecision


# ruff: noqa: PLC0415 - what most sessions never use is loaded with its first use

LISTED = 10
KEPT = 5
SNAPSHOTS = "snapshots"
"""The folder beside the database that holds a folder of snapshot files for each session."""
TELLING = 20
"""How many items at the start are asked for the session's format."""
Config: TypeAlias = Loaded | Path | str | bool
NAME_LIMIT = 500


class Session:
    """A conversation that is kept whole, and what a model sees of it.

    Made with `Session.open`. Threads may share it; processes may open the same session at the same time.
    """

    def __init__(
        self,
        id: str,
        *,
        store: Store,
        settings: Settings,
        clock: Callable[[], float],
        owned: bool,
        strategy: Strategy | None = None,
        writer: Source | None = None,
    ) -> None:
        """Hold what `open` found; `owned` says that the store is closed with the session."""
        self.id = id
        self.settings = settings
        self._store = store
        self._owned = owned
        self._format: tuple[object, str] | None = None
        if settings.format is not None:
            providers.get(settings.format)
        context = ModelContext(apply_profile(settings), store)
        self.journal = JournalWriter(store, id, context.scale, clock)
        """The entries of this session, read and written; for code that extends Windowsill."""
        self.composer = Composer(self.journal, context, settings, strategy=strategy, writer=writer)
        """What composes the requests; for code that extends Windowsill."""

    @classmethod
    def open(
        cls,
        id: str,
        *,
        strategy: str | Strategy | None = None,
        writer: Source | None = None,
        store: Store | str | Path | None = None,
        clock: Callable[[], float] = time.time,
        config: Config | None = None,
        **settings: Unpack[StatedSettings],
    ) -> Session:
        """Open a session, or begin one. Settings that are stated are kept with it and need not be stated again.

        `config` is a settings file, `True` for the nearest one and the environment, or what `config.load` returned;
        what is stated beside it wins. Without it no file is read.

        `store` is a folder, a database file, `":memory:"`, or a store; without it sessions are kept in `.windowsill/`
        of the current folder if there is one, else in the user's data folder.
        """
        if not id or len(id) > NAME_LIMIT:
            raise InputError(f"a session's name has {len(id)} characters", remedy=f"give 1 to {NAME_LIMIT}")
        owned = not isinstance(store, Store)
        place = store if isinstance(store, Store) else open_store(store)
        try:
            known = place.info(id)
            before = read_settings(known.settings, id) if known else Settings()
            after = with_changes(before, _stated(config, settings, strategy, writer))
            # An unknown model, strategy or format is refused here, before anything is written.
            session = cls(
                id,
                store=place,
                settings=after,
                clock=clock,
                owned=owned,
                strategy=strategy if isinstance(strategy, Strategy) else None,
                writer=writer,
            )
            if known is None:
                place.create(id, at=clock(), settings=msgspec.json.encode(after))
            elif after != before:
                place.set_settings(id, msgspec.json.encode(after))
        except BaseException:
            if owned:
                place.close()
            raise
        return session

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Write what is pending and release the store, if this session opened it."""
        # Before the lock too: a request of another thread may hold it while it waits for a summary.
        self.composer.summaries.close()
        with self.journal.lock:
            self.composer.summaries.close()
            self.journal.flush()
            self.composer.context.save()
            if self._owned:
                self._store.close()

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
        if self.composer.summaries.writer is None:
            # Only a model may be waited for; without one a thread would cost more than it saves.
            return compose()
        try:
            return await to_thread.run_sync(compose, abandon_on_cancel=True)
        except get_cancelled_exc_class():
            # Whoever gives up a turn does not wait for its summary; what is being composed ends in its thread.
            self.composer.summaries.close()
            raise

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
        with self.journal.lock:
            self.journal.refresh()
            if dynamic:
                self._add_dynamic(dynamic)
            name = providers.get(format or self.format).name
            parts = self.composer.parts(system, tools, params or {}, name)
            return self.composer.compose(parts, format=name, max_output=max_output, model_name=self.settings.model)

    @cached_property
    def client_history(self) -> ClientHistory:
        """Takes in the requests of a client that keeps its own list of messages."""
        from windowsill.session.client_history import ClientHistory

        return ClientHistory(self.journal, self.composer)

    def reduce(
        self, *, system: Any = None, tools: Sequence[Any] = (), format: str | None = None, to: Size | None = None
    ) -> Statistics:
        """Reduce now what is too large for a request with these parts, and say what that did.

        With `to`, tokens or a share of what a request may have, reduce to that, or as far as possible.
        """
        with self.journal.lock:
            self.journal.refresh()
            name = providers.get(format or self.format).name
            return self.composer.reduce(self.composer.parts(system, tools, {}, name), name, to)

    def _add_dynamic(self, text: str) -> None:
        view = self.journal.view
        for item in reversed(view.items):
            shown = view.read(item)
            # What was recalled for the step stands behind its context.
            if shown.origin != Origin.RECALLED:
                if shown.text == text and shown.origin == Origin.DYNAMIC:
                    return
                break
        self.add(text, metadata={ORIGIN: Origin.DYNAMIC})

    @cached_property
    def tools(self) -> Toolbox:
        """Tools with which the model reads and searches what left its window."""
        from windowsill.session.toolbox import Toolbox

        return Toolbox(self)

    # Taking
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
        outputs: Mapping[str, OutputRef] | None = None,
        state: Sequence[Change] = (),
    ) -> str:
        """Add a message, a provider's reply with its usage, an SDK object, or plain text from the user.

        The id of the message, of the last one where a reply is several; when it returns, it is on disk. `after` is the
        message it follows: the session goes there first when it has moved on. `sent` is the request it answers, where
        that is not the last one. `outputs` are, by call id, the refs of outputs that `session.outputs` keeps whole.
        `state` are changes of the layered state that are written together with it.
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
            for message in (referring(added.messages, outputs) if outputs else added.messages)
        ]
        with self.journal.lock:
            if after is None:
                sent = sent or self.composer.last
                return self._write(messages, added.usage, added.cleared, sent, state=state)[-1]
            answered = sent or self.composer.sent_behind(after)
            return again_after_conflicts(lambda: self._add_behind(after, messages, added, answered, state))[-1]

    def _add_behind(
        self,
        after: str,
        messages: Sequence[Message],
        added: providers.Added,
        sent: Sent | None,
        state: Sequence[Change],
    ) -> list[str]:
        undo.go_to(self.journal, after, "an answer belongs here")
        thread = self.journal.view.conversation_hash
        return self._write(messages, added.usage, added.cleared, sent, steady=thread, state=state)

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
        return self._write(messages, usage, sent=self.composer.last)

    def _read(self, value: Any, format: str | None) -> providers.Added:
        stated = format or self.settings.format
        return providers.read_added(value, format=stated, default=stated or self.format)

    def _write(
        self,
        messages: Sequence[Message],
        usage: Usage | None,
        cleared: Cleared | None = None,
        sent: Sent | None = None,
        *,
        steady: bytes | None = None,
        state: Sequence[Change] = (),
    ) -> list[str]:
        with self.journal.lock:
            also = partial(self._draft_state, state) if state else None
            ids = write(self.journal, messages, usage, steady=steady, also=also)
            edited = (
                cleared is not None or any(isinstance(block, Unknown) for each in messages for block in each.blocks)
            ) and provider_edits.record(self.journal, messages, cleared, sent.fields if sent is not None else {})
            if usage is not None:
                record_usage(usage, (sent.lens if sent is not None else self.composer.context).model)
                if sent is not None and not edited:
                    # What the provider counted after it cut the request itself says nothing about what was sent.
                    sent.lens.observe(sent.weight, usage, sent.shape)
            return ids

    def _draft_state(self, changes: Sequence[Change], draft: Draft, entries: Sequence[Entry]) -> None:
        del entries
        self.state.draft(draft, changes)

    def observe(self, usage: Usage | Mapping[str, Any]) -> None:
        """Learn from the usage a provider reported for the last composed request, where `add` did not see it."""
        seen = usage if isinstance(usage, Usage) else providers.read_usage(usage)
        with self.journal.lock:
            self.journal.commit(lambda draft: draft.record("usage", seen))
            record_usage(seen, self.composer.context.model)
            if (sent := self.composer.last) is not None:
                sent.lens.observe(sent.weight, seen, sent.shape)

    def overflowed(self, error: BaseException | str, *, sent: int | Sent | None = None) -> int | None:
        """Learn a lower window from a provider's overflow error; the window from now on, when the error says one.

        With `sent`, the refused request or the tokens it was counted as, the next one is smaller in any case.
        """
        if isinstance(sent, Sent):
            return sent.lens.overflowed(str(error), sent.tokens)
        return self.composer.context.overflowed(str(error), sent)

    @property
    def format(self) -> str:
        """The wire format of this session: the stated one, that of its messages, or that of its model."""
        if self.settings.format:
            return self.settings.format
        view, model = self.journal.view, self.composer.context.model
        key = (view.edits, model.name)
        if self._format is not None and self._format[0] == key:
            return self._format[1]
        with self.journal.lock:
            for item in view.items[:TELLING]:
                found = view.read(item).format
                if found in providers.names():
                    chosen = providers.dialect(model) if found in providers.DIALECTS else found
                    self._format = (key, chosen)
                    return chosen
        return providers.for_model(model)

    # Looking

    @property
    def model(self) -> Model:
        """The model, with its window as stated or learned."""
        return self.composer.context.model

    @property
    def view(self) -> View:
        """What the model sees now."""
        return self.journal.view

    @property
    def tokens(self) -> int:
        """What the view weighs, without system prompt and tools."""
        return self.journal.view.tokens()

    @property
    def counting(self) -> dict[str, Any]:
        """How tokens are counted and how far that has been off."""
        return self.composer.context.describe()

    @property
    def fill(self) -> tuple[int, int]:
        """The tokens that a request has now, with the system prompt and tools of the last one, and may have."""
        fixed = self.composer.fixed_tokens
        return fixed + self.tokens, self.composer.budget(fixed).limit

    def refresh(self) -> None:
        """Take in what other processes have written to this session."""
        with self.journal.lock:
            self.journal.refresh()

    @cached_property
    def outputs(self) -> Outputs:
        """Every tool output of this session, whole: to read, to search, and to keep what arrives in pieces."""
        from windowsill.outputs import Outputs

        return Outputs(self._store, self.id, clock=self.journal.clock)

    @property
    def archive(self) -> Archive:
        """Search over everything ever said in this session, and in those its `scope` includes."""
        return self.composer.archive

    def count(self, text: str) -> int:
        """Count the tokens of a text, as a message of its own."""
        return self.composer.count(text)

    def messages(self) -> Iterator[Message]:
        """Every message of the current branch exactly as it was added, hidden or not, oldest first."""
        journal = self.journal
        for entry in journal.walk(journal.path(self.journal.version), kinds=("message",), bodies=True):
            yield with_places(journal.decode(entry), entry.seq)

    def message(self, id: str) -> Message:
        """One message as it was added, on whatever branch it is."""
        journal = self.journal
        seq = journal.find(id, "message").seq
        return with_places(journal.message(seq), seq)

    @property
    def folds(self) -> list[FoldRecord]:
        """Every fold of the current branch: what was hidden, why, what it saved, whether it still applies."""
        with self.journal.lock:
            return telling.folds(self.journal)

    @property
    def calls(self) -> list[CallRecord]:
        """Every request that was composed on the current branch and written down."""
        with self.journal.lock:
            self.journal.flush()
            return telling.calls(self.journal)

    @property
    def tool_decisions(self) -> list[ToolDecision]:
        """Which tools the model got on this branch, each time that changed, and which were hidden by which rule."""
        from windowsill.session.audit import decisions

        with self.journal.lock:
            return decisions(self.journal)

    @property
    def audit(self) -> list[Event]:
        """Everything that changed what the model sees: what, when, by which strategy, why."""
        with self.journal.lock:
            return telling.audit(self.journal)

    @property
    def branches(self) -> list[Branch]:
        """Every end of the history: the current one, and those that were left."""
        with self.journal.lock:
            return undo.branches(self.journal)

    def request(self, call_id: str) -> bytes:
        """The exact body of a past request."""
        with self.journal.lock:
            self.journal.flush()
            entry = self.journal.find(call_id, "call")
            return request_of(self.journal, call_meta(entry.meta))

    def explain(self, message_id: str, *, call: str | None = None) -> Explanation:
        """Why a message is, or is not, in the window now, or in that of a past call."""
        with self.journal.lock:
            self.journal.flush()
            return telling.explain(self.journal, message_id, call)

    def verify(self) -> list[str]:
        """What is wrong with the stored history; an empty list when every entry is as it was written."""
        with self.journal.lock:
            return [*self._store.check(self.id), *self.journal.problems(self.journal.version)]

    def open_calls(self) -> list[tuple[str, ToolUse]]:
        """The calls of the last reply that have no result yet, each with the id of its message."""
        items = self.items()
        stop = len(items)
        while stop and items[stop - 1].role != "assistant":
            stop -= 1
        start = stop
        while start and items[start - 1].role == "assistant":
            start -= 1
        # Some models give two calls of one answer the same id: then the first result is the first call's.
        answered = Counter(id for item in items[stop:] for id in item.results)
        calls = [(item.id, call) for item in items[start:stop] if item.calls for call in self.message(item.id).calls]
        open_ones = []
        for id, call in calls:
            if answered[call.id] > 0:
                answered[call.id] -= 1
            else:
                open_ones.append((id, call))
        return open_ones

    def begun_calls(self, message_id: str) -> frozenset[str]:
        """The calls of a message, by id, that were begun or answered, on whatever branch: also after going back."""
        from windowsill.session.audit import begun

        with self.journal.lock:
            return begun(self.journal, message_id)

    def items(self) -> list[Item]:
        """The items of the view, in order."""
        return list(self.journal.view.items)

    # Changing
    def unfold(self, fold_id: str, *, span: int | None = None, fit: bool = False, reason: str = "") -> str:
        """Bring back what a fold hid: all of it, one `span` of it, or with `fit` as much as the budget allows."""
        with self.journal.lock, telemetry.span("unfold", session=self.id, fold=fold_id):
            self.journal.refresh()
            if fit:
                budget = self.composer.budget(self.composer.fixed_tokens)
                undone = undo.unfold_what_fits(self.journal, fold_id, budget, reason)
            else:
                undone = undo.unfold(self.journal, fold_id, span, reason)
            telemetry.count(names.UNFOLDS)
            return undone

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
        with self.journal.lock:
            self.journal.refresh()
            return folding.fold_run(self.journal, first, last or first, text, kind, reason)

    def mask(self, *message_ids: str, text: str | None = None, reason: str = "") -> str:
        """Hide the tool outputs of these messages by hand behind a placeholder."""
        with self.journal.lock:
            self.journal.refresh()
            return folding.mask_results(self.journal, message_ids, text, reason)

    def collect_outputs(self) -> Collected:
        """Remove kept outputs that no message refers to, on whatever branch, and what broken writings left behind.

        Nothing of the last hour goes: its message may be on its way.
        """
        with self.journal.lock:
            self.journal.refresh()
            entries = self.journal.walk([(1, self.journal.version)], kinds=("message",))
            refs = {ref.id for entry in entries for ref in message_meta(entry.meta).refs if ref is not None}
            return self.outputs.collect(refs)

    def rewind(
        self, message_id: str | None = None, *, at: float | None = None, before: bool = False, reason: str = ""
    ) -> str:
        """Go back to a message, which stays the last one (with `before` it goes too), or to a time.

        The branch that is left stays: `branches` lists it, `switch` returns to it.
        """
        if (message_id is None) == (at is None):
            raise InputError("rewind needs a message or a time", remedy="give one of them")
        with self.journal.lock, telemetry.span("rewind", session=self.id):
            self.journal.refresh()
            if message_id is not None:
                place = undo.place_of_message(self.journal, message_id, before=before)
            else:
                place = undo.place_of_time(self.journal, at or 0.0)
            return undo.move(self.journal, place, reason)

    def switch(self, id: str, *, reason: str = "") -> str:
        """Return to a branch that was left (see `branches`), or to any entry."""
        with self.journal.lock, telemetry.span("rewind", session=self.id):
            self.journal.refresh()
            return undo.move(self.journal, undo.place_of_entry(self.journal, id), reason)

    @property
    def state(self) -> SessionState:
        """The layered state of this session: goal, phase, memory, evidence, work. Changes are entries."""
        return self.composer.state

    def record_tools(self, decided: ToolDecision) -> str:
        """Write down which tools the model gets from now on, and which were hidden by which rule."""
        with self.journal.lock:
            self.journal.refresh()
            return self.journal.commit(lambda draft: draft.record("tools", decided)).id

    def hold(self, holder: str, *, seconds: float) -> Lock:
        """Keep other holders out, or go on doing so; `LockedError` while another holds the session.

        It is an agreement among those who ask for it, as engines do: nobody else is kept from writing. The lock ends
        after so many seconds, and with the process that `store.lease.holder_name` names.
        """
        return self._store.lock(self.id, holder, seconds=seconds, now=self.journal.clock())

    def release(self, holder: str | None = None) -> bool:
        """Give the lock back; without a holder, release it by force. False when there was nothing to release."""
        return self._store.unlock(self.id, holder)

    @property
    def lock(self) -> Lock | None:
        """Who holds this session, and until when."""
        return self._store.locked(self.id, now=self.journal.clock())

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
        with self.journal.lock:
            self.journal.refresh()
            entry = self.journal.find(message_id, "message")
            marking = Marking(entry.seq, message_id, tuple(add), tuple(remove))
            self.journal.commit(lambda draft: draft.mark(marking))

    # Checkpointing
    @cached_property
    def _watching(self) -> Watching:
        return Watching(self._store, self.id)

    def checkpoint(self, name: str = "", *, reason: Reason = "manual") -> Checkpoint:
        """Give this moment a name, so that `restore` can return to it; without one it goes by its id.

        A name that another checkpoint has is taken over: that one is then reached by its id.
        """
        check_label(name, reason)
        with self.journal.lock, telemetry.span("checkpoint", session=self.id, reason=reason):
            self.journal.refresh()
            made = self.journal.commit(lambda draft: self._label(draft, name, reason))
            telemetry.count(names.CHECKPOINTS, reason=reason)
            return made

    def checkpoints(self, limit: int | None = LISTED) -> list[Checkpoint]:
        """The last checkpoints of every branch, the newest first; with `None` all of them."""
        if limit is not None and limit < 0:
            raise SettingError("limit", limit, "0 or more, or None")
        with self.journal.lock:
            self.journal.refresh()
            found = known(self._store, self.id, self.journal.version)
            return [checkpoint for _, checkpoint in islice(found, limit)]

    def restore(self, id_or_name: str) -> Checkpoint:
        """Go back to a checkpoint: the model sees exactly what it saw then, and the state is what it was.

        What came after stays on its branch: `branches` lists it, `switch` returns to it.
        """
        with self.journal.lock, telemetry.span("restore", session=self.id):
            self.journal.refresh()
            seq, found = find(self._store, self.id, self.journal.version, id_or_name)
            named = f" {found.name!r}" if found.name else ""
            # To the label and not to what it names: what comes next is counted from this checkpoint.
            undo.move(self.journal, seq, f"restored checkpoint{named} ({found.id})")
            return found

    def clean_up_checkpoints(self, keep: int = KEPT) -> int:
        """Forget all checkpoints but the last ones; how many. Nothing else goes: `switch` still knows their ids."""
        if keep < 0:
            raise SettingError("keep", keep, "0 or more")
        with self.journal.lock:
            self.journal.refresh()
            return self.journal.commit(lambda draft: self._forget(draft, keep))

    def checkpoint_if_due(
        self, rule: Automatic | None = None, *, force: bool = False, snapshots: bool | Path | str = False
    ) -> Checkpoint | None:
        """Make a checkpoint when the rule says so, or by `force`; `None` when none is due. Made for every turn.

        With `snapshots` a snapshot file is written too, in the folder that is given or beside the database. One that
        cannot be written is logged: the checkpoint is in the journal, and no turn should fail for it.
        """
        rule = rule if rule is not None else Automatic()
        folder = self.snapshot_folder(None if snapshots is True else snapshots) if snapshots else None
        with self.journal.lock:
            self.journal.refresh()
            if self._due(rule, force=force) is None:
                return None
            with telemetry.span("checkpoint", session=self.id) as span:
                # Somebody else may make one first: then it is looked at again, and perhaps none is due any more.
                made = self.journal.commit(lambda draft: self._label_if_due(draft, rule, force=force))
                if made is not None:
                    span.set(reason=made.reason)
                    telemetry.count(names.CHECKPOINTS, reason=made.reason)
                    if folder is not None:
                        self._write_or_log(folder)
            return made

    def write_snapshot(self, folder: Path | str | None = None, *, keep: int = KEPT) -> Path:
        """Write what the model sees now, and the state, to a file of its own; where it is. The last `keep` stay.

        They stand in `snapshots/` beside the database, or in `folder`: a folder for each session, a number for each.
        """
        from windowsill.session.snapshots import save_snapshot

        place = self.snapshot_folder(folder)
        with self.journal.lock:
            self.journal.refresh()
            return save_snapshot(place, self._snapshot(), keep=keep)

    @classmethod
    def from_snapshot(
        cls,
        place: Path | str,
        *,
        store: Store | Path | str | None = None,
        id: str | None = None,
        clock: Callable[[], float] = time.time,
        **settings: Unpack[StatedSettings],
    ) -> Session:
        """Begin a session from a snapshot file, or the newest whole one of a folder: what was seen then, and the state.

        It has the name that it had, or `id`; a session that exists already is never touched. What is stated wins over
        the settings of the snapshot.
        """
        from windowsill.session.snapshots import fill, load_snapshot

        loaded = load_snapshot(place)
        for each in loaded.damaged:
            log.warning("snapshot %s is damaged: %s", each.path, each.why)
        snapshot = loaded.snapshot
        name = id or snapshot.session
        owned = not isinstance(store, Store)
        kept = store if isinstance(store, Store) else open_store(store)
        with _begun(kept, name, clock(), bytes(snapshot.settings), owned=owned):
            session = cls.open(name, store=kept, clock=clock, **settings)
            session._owned = owned  # noqa: SLF001 - a session of this very class, which `open` cannot tell
            fill(session.journal, snapshot)
        return session

    def _label(self, draft: Draft, name: str, reason: Reason) -> Checkpoint:
        view = self.journal.view
        label = Label(
            entry=draft.next - 1,
            messages=self._watching.messages(view),
            tokens=view.tokens(),
            phase=self.state.value.runtime.phase,
            reason=reason,
            name=name,
        )
        made = checkpoint_of(draft.record("label", label))
        assert made is not None
        return made

    def _label_if_due(self, draft: Draft, rule: Automatic, *, force: bool) -> Checkpoint | None:
        reason = self._due(rule, force=force)
        return self._label(draft, "", reason) if reason is not None else None

    def _due(self, rule: Automatic, *, force: bool) -> Reason | None:
        view, version = self.journal.view, self.journal.version
        tokens = view.tokens()
        now = Seen(
            at=self.journal.clock(),
            messages=self._watching.messages(view),
            tokens=tokens,
            phase=self.state.value.runtime.phase,
        )
        found = rule.due(self._watching.seen(version, tokens), now)
        return "forced" if force else found

    def _forget(self, draft: Draft, keep: int) -> int:
        seqs = [seq for seq, _ in known(self._store, self.id, self.journal.version)][keep:]
        if seqs:
            draft.record("label", Label(forgets=seqs[0] + 1))
        return len(seqs)

    def snapshot_folder(self, folder: Path | str | None = None) -> Path:
        """Where snapshot files of this session are written: beside its database, or in a folder that is given."""
        from windowsill.session.snapshots import folder_name

        if not folder:
            database = getattr(self._store, "path", None)
            if not isinstance(database, Path):
                raise InputError(f"session {self.id!r} is kept in no folder", remedy="give the folder for snapshots")
            folder = database.parent / SNAPSHOTS
        return Path(folder) / folder_name(self.id)

    def _snapshot(self) -> Snapshot:
        from windowsill.session.snapshots import NO_STATE, snapshot_of

        session = self
        state = session.state.value
        # A state that says nothing but the defaults is none.
        told = msgspec.Raw(state.to_json()) if state != type(state)() else NO_STATE
        return snapshot_of(
            self.journal, providers.get(session.format), self.settings, phase=state.runtime.phase, state=told
        )

    def _write_or_log(self, folder: Path) -> None:
        from windowsill.session.snapshots import save_snapshot

        try:
            save_snapshot(folder, self._snapshot())
        except StoreError as error:
            log.warning("session %s: %s", self.id, error)


@contextmanager
def _begun(store: Store, id: str, at: float, settings: bytes, *, owned: bool) -> Iterator[None]:
    """A new session, or an empty one, to be filled; when that fails, the store is left as it was."""
    made = False
    try:
        made = _made(store, id, at, settings)
        yield
    except BaseException:
        if made:
            store.delete(id)
        if owned:
            store.close()
        raise


def _made(store: Store, id: str, at: float, settings: bytes) -> bool:
    """Whether the session is new; `InputError` when there is one that holds something."""
    if store.create(id, at=at, settings=settings):
        return True
    info = store.info(id)
    if info is not None and info.version:
        raise taken(id)
    return False


def _stated(
    config: Config | None, settings: StatedSettings, strategy: str | Strategy | None, writer: Source | None
) -> dict[str, Any]:
    """Return the settings that a configuration and the caller state."""
    stated: dict[str, Any] = {
        **settings,
        "strategy": None if isinstance(strategy, Strategy) else strategy,
        "writer": writer if isinstance(writer, str) else None,
    }
    if not config:
        return stated
    loaded = config if isinstance(config, Loaded) else load(file=None if isinstance(config, bool) else config)
    return {**loaded.opening(), **{name: value for name, value in stated.items() if value is not None}}
