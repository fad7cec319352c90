"""The session: the object a user holds; and `fit`, its form in one call."""
# ruff: noqa: PLC0415 - what most sessions never use is loaded with its first use

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeAlias, TypeVar, Unpack

import msgspec
from anyio import get_cancelled_exc_class, to_thread

from windowsill import providers, strategies, telemetry
from windowsill.budget import Size
from windowsill.compose.composer import Composer, SentRequest
from windowsill.compose.model_context import ModelContext
from windowsill.compose.payload import Payload, Statistics
from windowsill.compose.reduce import compact, reduce
from windowsill.compose.summaries import Source
from windowsill.config import Loaded, Settings, StatedSettings, apply_profile, load, read_settings, with_changes
from windowsill.errors import InputError, NotFoundError, log
from windowsill.history.folds import FoldKind
from windowsill.history.head import call_meta
from windowsill.history.view import Marking, View
from windowsill.journal.writer import JournalWriter
from windowsill.messages import KEEP, ORIGIN, Mark, Message, Origin, OutputRef, Unknown
from windowsill.models import Model, record_usage
from windowsill.outputs.show import place_outputs, refer_to_outputs
from windowsill.session import audit, branches, edits
from windowsill.session.audit import CallRecord, Event, Explanation, FoldRecord
from windowsill.session.branches import Branch
from windowsill.session.checkpoints import KEPT, Checkpoint, Checkpoints, Reason, What
from windowsill.store import Store, open_store
from windowsill.store.base import check_name
from windowsill.store.memory import MemoryStore
from windowsill.strategies import Strategy
from windowsill.strategies.registry import ContextManager, check_found
from windowsill.telemetry import names
from windowsill.tokens import register

if TYPE_CHECKING:
    from windowsill.history.entries import Entry
    from windowsill.history.head import Draft
    from windowsill.outputs import Outputs
    from windowsill.search import Archive
    from windowsill.session.toolbox import Toolbox
    from windowsill.state.changes import Change
    from windowsill.state.session_state import SessionState


T = TypeVar("T")
P = ParamSpec("P")

Config: TypeAlias = Loaded | Path | str | bool


def in_thread(
    call: Callable[Concatenate[Session, P], T],
) -> Callable[Concatenate[Session, P], Coroutine[Any, Any, T]]:
    """Make the form of a method for code with an event loop: what may wait for a model waits in a thread of its own."""

    @wraps(call)
    async def run(session: Session, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if not session.composer.waits:
            # With nothing to wait for, a thread would cost more than it saves.
            return call(session, *args, **kwargs)
        try:
            return await to_thread.run_sync(partial(call, session, *args, **kwargs), abandon_on_cancel=True)
        except get_cancelled_exc_class():
            # Whoever gives up a turn does not wait for its summary; what is being composed ends in its thread.
            session.composer.summaries.close()
            raise

    run.__name__ = call.__name__.removesuffix("_sync")
    run.__qualname__ = f"Session.{run.__name__}"
    return run


class Session:
    """A conversation that is kept whole, and what a model sees of it.

    Made with `Session.open`. Threads may share it; processes may open the same session at the same time.

    - open and end: `open`, `close`, `delete`, `id`, `settings`, `model`
    - add and compose: `add`, `extend`, `compose`
    - reduce now: `compact`, `reduce`
    - the same for code without an event loop: `compose_sync`, `compact_sync`, `reduce_sync`
    - look: `view`, `messages`, `message`, `folds`, `calls`, `request`, `explain`, `audit`, `verify`
    - hide and show: `fold`, `mask`, `unfold`, `pin`, `mark`
    - go back: `rewind`, `branches`, `switch`, `checkpoint`, `checkpoints`, `restore`
    - take along: `write_snapshot`, `from_snapshot`
    - what belongs to it: `state`, `tools`, `outputs`, `archive`

    Code that extends Windowsill finds the entries in `journal` and what makes requests in `composer`.
    """

    def __init__(self, *_given: object, **_settings: object) -> None:
        raise InputError("a session is not made by its class", remedy="open it: Session.open(id, model=...)")

    @classmethod
    def open(
        cls,
        id: str,
        *,
        strategy: str | Strategy | ContextManager | None = None,
        writer: Source | None = None,
        store: Store | str | Path | None = None,
        clock: Callable[[], float] = time.time,
        config: Config | None = None,
        **settings: Unpack[StatedSettings],
    ) -> Session:
        """Open a session, or begin one. Settings that are stated are kept with it and need not be stated again.

        A new session takes what is not stated from the environment and the nearest settings file, as the command line
        does; `config=False` reads neither. A session that exists has its settings: `config=True`, a settings file, or
        what `config.load` returned replaces them. What is stated beside it wins.

        `strategy` is the name of one, one of your own, or a whole context manager (see `ContextManager`).

        `store` is a folder, a database file, `postgresql://...`, `":memory:"`, or a store; without it sessions are kept
        in `.windowsill/` of the current folder if there is one, else in the user's data folder.
        """
        check_name("session's name", id)
        owned = not isinstance(store, Store)
        place = store if isinstance(store, Store) else open_store(store)
        try:
            config = place.info(id) is None if config is None else config
            session = cls.__new__(cls)
            session._open(  # noqa: SLF001 - the class makes its own session
                id, place, clock, _stated(config, settings, strategy, writer), strategy, writer, owned=owned
            )
        except BaseException:
            if owned:
                place.close()
            raise
        return session

    def _open(
        self,
        id: str,
        store: Store,
        clock: Callable[[], float],
        stated: dict[str, Any],
        strategy: str | Strategy | ContextManager | None = None,
        writer: Source | None = None,
        *,
        owned: bool,
    ) -> None:
        """Hold a session of a store, which is made if it is not there; an `owned` store is closed with it."""
        known = store.info(id)
        before = read_settings(known.settings, id) if known else Settings()
        after = with_changes(before, stated)
        own = None if strategy is None or isinstance(strategy, str | list | tuple) else strategies.get(strategy)
        # An unknown model, strategy or format is refused here, before anything is written.
        context = ModelContext(apply_profile(after), store)
        self.id, self.settings, self._owned = id, after, owned
        self.journal = JournalWriter(store, id, context.scale, clock)
        self.composer = Composer(self.journal, context, after, strategy=own, writer=writer)
        if known is None:
            store.create(id, at=clock(), settings=msgspec.json.encode(after))
        elif after != before:
            store.set_settings(id, msgspec.json.encode(after))

    def __repr__(self) -> str:
        view, model = self.journal.view, self.composer.context.model
        hidden = sum(item.hides for item in view.items)
        return (
            f"<Session {self.id!r} for {model.name}: {len(view.items)} messages in view, {hidden} hidden, "
            f"{view.tokens():,} of {model.window:,} tokens>"
        )

    def _repr_html_(self) -> str:
        """Draw what fills the window, for a notebook."""
        with self.journal.lock:
            self.journal.flush()
            return audit.composition(self.journal, self.composer).to_html(repr(self)[1:-1])

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write what is pending and release the store, if this session opened it."""
        # Before the lock too: a request of another thread may hold it while it waits for a summary.
        self.composer.close()
        with self.journal.lock:
            self.composer.close()
            self.journal.flush()
            self.journal.save_view()
            self.composer.context.save()
            # The view and the journal hold each other: without this, messages stay until the next full collection.
            self.journal.keep_only(())
            if self._owned:
                self.journal.store.close()

    def delete(self) -> None:
        """Remove the session with everything that belongs to it, its snapshot files too, and close it.

        There is no way back. `windowsill sessions export ID --secrets` writes an exact backup.
        """
        from windowsill.session.snapshots import delete_session

        self.composer.summaries.close()
        with self.journal.lock:
            delete_session(self.journal.store, self.id)
            if self._owned:
                self.journal.store.close()

    @contextmanager
    def _current(self, span: str = "", **attributes: Any) -> Iterator[JournalWriter]:
        """Hold the journal, with what others have written since, and time the work under `span`."""
        with self.journal.lock, telemetry.span(span, session=self.id, **attributes) if span else nullcontext():
            self.journal.refresh()
            yield self.journal

    # Add and compose

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
        sent: SentRequest | None = None,
        outputs: Mapping[str, OutputRef] | None = None,
        state: Sequence[Change] | Callable[[int], Sequence[Change]] = (),
    ) -> str:
        """Add a message, a provider's reply with its usage, an SDK object, or plain text from the user; return its id.

        Where a reply is several messages, it is the id of the last one. When it returns, it is on disk. `after` is the
        message it follows: the session goes there first when it has moved on. `sent` is the request it answers, where
        that is not the last one. `outputs` are, by call id, the refs of outputs that `session.outputs` keeps whole.
        `state` are changes of the layered state that are written together with it, or a function that makes them from
        the number of its entry.
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
            for message in (refer_to_outputs(added.messages, outputs) if outputs else added.messages)
        ]
        added = msgspec.structs.replace(added, messages=messages)
        with self.journal.lock:
            if after is None:
                return self._write(added, sent or self.composer.last, state=state)[-1]
            answered = sent or self.composer.sent_behind(after)

            def add_behind() -> list[str]:
                branches.go_to(self.journal, after, "an answer belongs here")
                return self._write(added, answered, conversation=self.journal.view.conversation_hash, state=state)

            return self.journal.retry(add_behind)[-1]

    def extend(self, values: Iterable[Any], *, format: str | None = None, at: Sequence[float | None] = ()) -> list[str]:
        """Add several messages as one, all of them or none; return their ids."""
        if isinstance(values, str | bytes | Mapping):
            raise InputError("`extend` takes a list of messages", remedy="use `add` for one")
        messages: list[Message] = []
        usage = None
        for index, value in enumerate(values):
            added = self._read(value, format)
            usage = added.usage or usage
            when = at[index] if index < len(at) else None
            messages += [
                msgspec.structs.replace(message, at=when) if when is not None else message for message in added.messages
            ]
        with self.journal.lock:
            return self._write(providers.Added(messages, usage), self.composer.last)

    def _read(self, value: Any, format: str | None) -> providers.Added:
        stated = format or self.settings.format
        return providers.read_added(value, format=stated, default=stated or self.composer.format)

    def _write(
        self,
        added: providers.Added,
        sent: SentRequest | None,
        *,
        conversation: bytes | None = None,
        state: Sequence[Change] | Callable[[int], Sequence[Change]] = (),
    ) -> list[str]:
        def change_state(draft: Draft, entries: list[Entry]) -> None:
            self.state.draft(draft, state(entries[-1].seq) if callable(state) else state)

        also = change_state if state else None
        ids = self.journal.add(added.messages, added.usage, conversation=conversation, also=also)
        edited = False
        unknown = [block for each in added.messages for block in each.blocks if isinstance(block, Unknown)]
        if added.cleared or unknown:
            fields = sent.fields if sent is not None else {}
            edited = edits.record(self.journal, added.messages, added.cleared, fields)
        if added.usage is not None:
            record_usage(added.usage, (sent.context if sent is not None else self.composer.context).model)
            if sent is not None and not edited:
                # What the provider counted after it cut the request itself says nothing about what was sent.
                sent.observe(added.usage)
        if "assistant" in [message.role for message in added.messages]:
            self.composer.complete_turn()
        return ids

    def compose_sync(
        self,
        *,
        system: Any = None,
        tools: Sequence[Any] = (),
        dynamic: str | None = None,
        keep: Literal["turn", "history"] = "turn",
        max_output: int | None = None,
        format: str | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> Payload:
        """Compose the request to send now: valid for its provider and within the budget.

        `dynamic` is context for this step (a goal, retrieved knowledge). It is recorded at the end of the history,
        where it leaves the cached prefix whole, and outranks older messages. It is shown until the user speaks again or
        another context is given; then a fold without a stand-in hides it. With `keep="history"` it stays, like a
        message. `params` are further fields of the body; room is kept for the answer they allow, or for `max_output`.
        """
        with self._current():
            if dynamic:
                self._add_dynamic(dynamic, keep)
            name = providers.get(format or self.composer.format).name
            parts = self.composer.parts(system, tools, params or {}, name)
            return self.composer.compose(parts, format=name, max_output=max_output, model_name=self.settings.model)

    compose = in_thread(compose_sync)

    def compact_sync(
        self, wish: str = "", *, system: Any = None, tools: Sequence[Any] = (), format: str | None = None
    ) -> Statistics:
        """Put a summary in the place of all but the last turn now, however full the window is; return what that did.

        `wish` is for whoever writes it: `await session.compact("focus on the tests")`. A session with the strategy
        `compact` compacts with its settings. `system` and `tools` are those of the next request, if it has any.
        """
        return compact(self.composer, wish, format=format, system=system, tools=tools)

    compact = in_thread(compact_sync)

    def reduce_sync(
        self, *, to: Size | None = None, system: Any = None, tools: Sequence[Any] = (), format: str | None = None
    ) -> Statistics:
        """Reduce now, by the session's strategy, what is too large; return what that did.

        With `to`, tokens or a share of what a request may have, reduce to that, or as far as possible. It waits for a
        model that writes.
        """
        return reduce(self.composer, format=format, system=system, tools=tools, to=to)

    reduce = in_thread(reduce_sync)

    def _add_dynamic(self, text: str, keep: str) -> None:
        if keep not in ("turn", "history"):
            raise InputError(f"dynamic context is not kept for {keep!r}", remedy='give keep="turn" or keep="history"')
        view = self.journal.view
        if keep == "turn":
            # The same context is not given twice in a turn, however many steps it has.
            known = next((view.read(item) for item in reversed(view.items) if item.own or item.passing), None)
        else:
            # What was recalled for the step stands behind its context.
            shown = map(view.read, reversed(view.items))
            known = next((message for message in shown if message.origin != Origin.RECALLED), None)
        if known is None or known.text != text or known.origin != Origin.DYNAMIC:
            self.add(text, metadata={ORIGIN: Origin.DYNAMIC, KEEP: keep})

    # Look

    @property
    def model(self) -> Model:
        """The model, with its window as stated or learned."""
        return self.composer.context.model

    @property
    def view(self) -> View:
        """The items that the model sees now."""
        return self.journal.view

    def messages(self) -> Iterator[Message]:
        """Return every message of the current branch exactly as it was added, hidden or not, oldest first."""
        for entry in self.journal.branch("message", bodies=True):
            yield place_outputs(self.journal.decode(entry), entry.seq)

    def message(self, id: str) -> Message:
        """Return one message as it was added, on whatever branch it is."""
        seq = self.journal.find(id, "message").seq
        return place_outputs(self.journal.message(seq), seq)

    @property
    def folds(self) -> list[FoldRecord]:
        """Every fold of the current branch: what was hidden, why, what it saved, whether it still applies."""
        with self.journal.lock:
            return audit.folds(self.journal)

    @property
    def calls(self) -> list[CallRecord]:
        """Every request that was composed on the current branch and written down."""
        with self.journal.lock:
            self.journal.flush()
            return audit.calls(self.journal)

    def request(self, call_id: str) -> bytes:
        """Rebuild the exact body of a past request."""
        with self.journal.lock:
            self.journal.flush()
            return audit.rebuild_request(self.journal, call_meta(self.journal.find(call_id, "call").meta))

    def explain(self, message_id: str, *, call: str | None = None) -> Explanation:
        """Explain why a message is, or is not, in the window now, or in that of a past call."""
        with self.journal.lock:
            self.journal.flush()
            return audit.explain(self.journal, message_id, call, self.composer.explain)

    @property
    def audit(self) -> list[Event]:
        """Everything that changed what the model sees: what, when, by which strategy, why."""
        with self.journal.lock:
            return audit.audit(self.journal)

    def verify(self) -> list[str]:
        """List what is wrong with what is stored of it; nothing when everything is as it was written."""
        from windowsill.session.integrity import problems

        store = self.journal.store
        with self.journal.lock:
            info = store.info(self.id)
            return [*store.check(self.id), *(problems(store, info) if info is not None else ())]

    # Undo

    def fold(
        self,
        first: str,
        last: str | None = None,
        *,
        text: str | None = None,
        kind: FoldKind = "condense",
        reason: str = "",
    ) -> str:
        """Hide messages by hand, with `text` or a marker in their place; return the id of the fold."""
        with self._current() as journal:
            return edits.fold_run(journal, first, last or first, text, kind, reason)

    def mask(self, *message_ids: str, text: str | None = None, reason: str = "") -> str:
        """Hide the tool outputs of these messages by hand behind a placeholder; return the id of the fold."""
        with self._current() as journal:
            return edits.mask_results(journal, message_ids, text, reason)

    def unfold(self, fold_id: str, *, span: int | None = None, fit: bool = False, reason: str = "") -> str:
        """Bring back what a fold hid: all of it, one `span` of it, or with `fit` as much as the budget allows."""
        with self._current("unfold", fold=fold_id) as journal:
            if fit:
                budget = self.composer.budget(self.composer.fixed_tokens)
                undone = branches.unfold_what_fits(journal, fold_id, budget, reason)
            else:
                undone = branches.unfold(journal, fold_id, span, reason)
            telemetry.count(names.UNFOLDS)
            return undone

    def pin(self, message_id: str, *, off: bool = False) -> None:
        """Never hide this message from now on, or with `off` let it be hidden; `unfold` brings a hidden one back."""
        self.mark(message_id, add=() if off else ("pinned",), remove=("pinned",) if off else ())

    def mark(self, message_id: str, *, add: Sequence[Mark] = (), remove: Sequence[Mark] = ()) -> None:
        """Give a message marks (`important`, `pinned`), or take them away."""
        if isinstance(add, str) or isinstance(remove, str) or not (add or remove):
            raise InputError("mark needs a list of marks to add or to remove", remedy='such as add=["important"]')
        if wrong := [mark for mark in (*add, *remove) if mark not in ("important", "pinned")]:
            raise NotFoundError(f"there is no mark {wrong[0]!r}", remedy="use important or pinned")
        with self._current() as journal:
            marking = Marking(journal.find(message_id, "message").seq, message_id, tuple(add), tuple(remove))
            journal.append(lambda draft: draft.record("mark", marking))

    def rewind(
        self,
        message_id: str | None = None,
        *,
        at: float | None = None,
        before: bool = False,
        reason: str = "",
        files: bool = False,
    ) -> str:
        """Go back to a message, which stays the last one (with `before` it goes too), or to a time.

        The branch that is left stays: `branches` lists it, `switch` returns to it. With `files` the files of the
        session are brought back too, as the last record before that moment has them.
        """
        if (message_id is None) == (at is None):
            raise InputError("rewind needs a message or a time", remedy="give one of them")
        with self._current("rewind") as journal:
            if message_id is not None:
                place = branches.place_of_message(journal, message_id, before=before)
            else:
                place = branches.place_of_time(journal, at or 0.0)
            if not files:
                return branches.move(journal, place, reason)
            entry, (_, *left_alone) = self.checkpoints.bring_back(self.checkpoints.files_at(place), (place, reason))
            for note in left_alone:
                log.warning("session %s: %s", self.id, note)
            return entry

    # Branches

    @property
    def branches(self) -> list[Branch]:
        """Every end of the history: the current one, and those that were left."""
        with self.journal.lock:
            return branches.branches(self.journal)

    def switch(self, id: str, *, reason: str = "") -> str:
        """Return to a branch that was left (see `branches`), or to any entry."""
        with self._current("rewind") as journal:
            return branches.move(journal, journal.seq_of(id), reason)

    # Checkpoints

    @cached_property
    def checkpoints(self) -> Checkpoints:
        """The checkpoints: called, it lists them; it also makes them by a rule, forgets old ones and compares files."""
        shadow = None
        if self.settings.files is not None:
            from windowsill.session.snapshots import shadow_of

            shadow = shadow_of(self.journal.store, self.settings.files)
        return Checkpoints(self, shadow)

    def checkpoint(self, name: str = "", *, reason: Reason = "manual") -> Checkpoint:
        """Give this moment a name, so that `restore` can return to it; without one it goes by its id.

        A name that another checkpoint has is taken over: that one is then reached by its id.
        """
        return self.checkpoints.make(name, reason)

    def restore(self, id_or_name: str, what: What | None = None, *, remove_new: bool = False) -> Checkpoint:
        """Go back to a checkpoint: the model sees exactly what it saw then, and the state is what it was.

        What came after stays on its branch: `branches` lists it, `switch` returns to it. Where the checkpoint has files
        (see the setting `files`), they are brought back too, all or none; `what` may be `conversation` or `files`
        alone. A file that is new since then and that nothing recorded is left, unless `remove_new`. The notes of what
        is returned say what was done and how to undo it.
        """
        return self.checkpoints.restore(id_or_name, what, remove_new=remove_new)

    # Export

    def write_snapshot(self, folder: Path | str | None = None, *, keep: int = KEPT) -> Path:
        """Write what the model sees now, and the state, to a file of its own; return its path. The last `keep` stay.

        They stand in `snapshots/` beside the database, or in `folder`: a folder for each session, a number for each.
        """
        from windowsill.session.snapshots import save_snapshot, snapshot_folder, snapshot_of

        place = snapshot_folder(self.journal.store, self.id, folder)
        with self._current() as journal:
            snapshot = snapshot_of(journal, providers.get(self.composer.format), self.settings, self.state.value)
            return save_snapshot(place, snapshot, keep=keep)

    @classmethod
    def from_snapshot(
        cls,
        place: Path | str,
        *,
        store: Store | Path | str | None = None,
        id: str | None = None,
        strategy: str | Strategy | ContextManager | None = None,
        writer: Source | None = None,
        clock: Callable[[], float] = time.time,
        trusted: bool = False,
        **settings: Unpack[StatedSettings],
    ) -> Session:
        """Begin a session from a snapshot file, or the newest whole one of a folder: what was seen then, and the state.

        It has the name that it had, or `id`; a session that exists already is never touched. What is stated wins over
        the settings of the snapshot, of which writer, user, project, scope and strategies by path are taken only where
        it is `trusted`: the file may come from somebody else.
        """
        from windowsill.session.snapshots import begin_session, choose_snapshot, fill

        snapshot = choose_snapshot(place, trusted=trusted)
        name, owned = id or snapshot.session, not isinstance(store, Store)
        kept = store if isinstance(store, Store) else open_store(store)
        with begin_session(kept, name, clock(), bytes(snapshot.settings), owned=owned):
            stated = _stated(False, settings, strategy, writer)  # noqa: FBT003 - it says that no file is read
            session = cls.__new__(cls)
            session._open(name, kept, clock, stated, strategy, writer, owned=owned)  # noqa: SLF001 - as in `open`
            fill(session.journal, snapshot)
        return session

    # What belongs to it

    @property
    def state(self) -> SessionState:
        """The layered state of this session: goal, phase, memory, evidence, work. Changes are entries."""
        return self.composer.step.state

    @cached_property
    def tools(self) -> Toolbox:
        """Tools with which the model reads and searches what left its window."""
        from windowsill.session.toolbox import Toolbox

        return Toolbox(self)

    @cached_property
    def outputs(self) -> Outputs:
        """Every tool output of this session, whole: to read, to search, and to keep what arrives in pieces."""
        from windowsill.outputs import Outputs

        return Outputs(self.journal.store, self.id, clock=self.journal.clock)

    @property
    def archive(self) -> Archive:
        """Search over everything ever said in this session, and in those its `scope` includes."""
        return self.composer.step.archive


def _stated(
    config: Config, settings: StatedSettings, strategy: str | Strategy | ContextManager | None, writer: Source | None
) -> dict[str, Any]:
    """Return the settings that a configuration and the caller state."""
    stated: dict[str, Any] = {
        **settings,
        "strategy": strategy if isinstance(strategy, str | list | tuple) else None,
        "writer": writer if isinstance(writer, str) else None,
    }
    if callable(tokenizer := settings.get("tokenizer")):
        stated["tokenizer"] = register(tokenizer)
    if config is False:
        return stated
    loaded = config if isinstance(config, Loaded) else load(file=None if isinstance(config, bool) else config)
    for note in loaded.notes:
        log.warning("%s", note)
    check_found(loaded)
    return {**loaded.opening(), **{name: value for name, value in stated.items() if value is not None}}


FULL, STEP = 1.0, 0.75
"""A caller without a session sends the whole list each time. What is hidden grows in steps of a quarter of the budget,
counted from the start, so that the same cut, and with it the cached prefix, holds for many turns."""


def fit(
    messages: Any,
    *,
    system: Any = None,
    tools: Any = (),
    max_output: int | None = None,
    strategy: str | Strategy | None = None,
    writer: Source | None = None,
    **settings: Unpack[StatedSettings],
) -> Payload:
    """Make a message list or a whole request body fit: dicts, SDK objects, JSON text or bytes.

    What fits comes back unchanged. `payload.messages` is the list in the format it came in, `payload.to(...)` any
    other, `payload.report` what was done. State a `model`, a `budget` or a `window`. Settings are those of
    `Session.open`; a `writer` that asks a model is waited for, `wait` seconds at most.
    """
    request = providers.read_request(messages, format=settings.get("format"))
    model = settings.get("model") or request.model
    if model is None and settings.get("budget") is None and settings.get("window") is None:
        raise InputError("fit needs to know how much room there is", remedy="give model=, budget= or window=")
    settings["model"], settings["format"] = model, request.format
    if settings.get("high") is None:
        settings["high"] = FULL
        if settings.get("low") is None:
            settings["low"] = STEP
    ticks = itertools.count(1)
    with Session.open(
        "fit",
        strategy=strategy,
        writer=writer,
        store=MemoryStore(),
        config=False,
        clock=lambda: float(next(ticks)),
        **settings,
    ) as session:
        session.extend(request.messages)
        composer, format = session.composer, session.composer.format
        parts = composer.parts(
            system if system is not None else request.system, tuple(tools) or request.tools, request.rest, format
        )
        return composer.compose(parts, format=format, max_output=max_output, model_name=model, stateless=True)
