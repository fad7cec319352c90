"""Checkpoints and snapshots of a session: names for its moments, and files for when its database is lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from windowsill import formats, telemetry
from windowsill.checkpoints.automatic import Automatic, Seen
from windowsill.checkpoints.labels import Checkpoint, Label, Reason, check_label, checkpoint_of, find, known
from windowsill.checkpoints.watching import Watching
from windowsill.errors import InputError, SettingError, StoreError
from windowsill.history.history import Draft
from windowsill.logs import log
from windowsill.session import undo
from windowsill.session.looking import Looking
from windowsill.session.porting import taken
from windowsill.store import Store, open_store
from windowsill.telemetry import names

if TYPE_CHECKING:
    from windowsill.checkpoints.snapshot import Snapshot
    from windowsill.session.session import Session

# ruff: noqa: PLC0415 - a session that writes no snapshot loads nothing for it

LISTED = 10
KEPT = 5

SNAPSHOTS = "snapshots"
"""The folder beside the database that holds a folder of snapshot files for each session."""


class Checkpointing(Looking):
    """The part of a session that names moments and returns to them."""

    @cached_property
    def _watching(self) -> Watching:
        return Watching(self._store, self.id)

    def checkpoint(self, name: str = "", *, reason: Reason = "manual") -> Checkpoint:
        """Give this moment a name, so that `restore` can return to it; without one it goes by its id.

        A name that another checkpoint has is taken over: that one is then reached by its id.
        """
        check_label(name, reason)
        with self._ledger.lock, telemetry.span("checkpoint", session=self.id, reason=reason):
            self._ledger.refresh()
            made = self._ledger.commit(lambda draft: self._label(draft, name, reason))
            telemetry.count(names.CHECKPOINTS, reason=reason)
            return made

    def checkpoints(self, limit: int | None = LISTED) -> list[Checkpoint]:
        """The last checkpoints of every branch, the newest first; with `None` all of them."""
        if limit is not None and limit < 0:
            raise SettingError("limit", limit, "0 or more, or None")
        with self._ledger.lock:
            self._ledger.refresh()
            found = known(self._store, self.id, self._ledger.history.version)
            return [checkpoint for _, checkpoint in islice(found, limit)]

    def restore(self, id_or_name: str) -> Checkpoint:
        """Go back to a checkpoint: the model sees exactly what it saw then, and the state is what it was.

        What came after stays on its branch: `branches` lists it, `switch` returns to it.
        """
        with self._ledger.lock, telemetry.span("restore", session=self.id):
            self._ledger.refresh()
            seq, found = find(self._store, self.id, self._ledger.history.version, id_or_name)
            named = f" {found.name!r}" if found.name else ""
            # To the label and not to what it names: what comes next is counted from this checkpoint.
            undo.move(self._ledger, seq, f"restored checkpoint{named} ({found.id})")
            return found

    def clean_up_checkpoints(self, keep: int = KEPT) -> int:
        """Forget all checkpoints but the last ones; how many. Nothing else goes: `switch` still knows their ids."""
        if keep < 0:
            raise SettingError("keep", keep, "0 or more")
        with self._ledger.lock:
            self._ledger.refresh()
            return self._ledger.commit(lambda draft: self._forget(draft, keep))

    def checkpoint_if_due(
        self, rule: Automatic | None = None, *, force: bool = False, snapshots: bool | Path | str = False
    ) -> Checkpoint | None:
        """Make a checkpoint when the rule says so, or by `force`; `None` when none is due. Made for every turn.

        With `snapshots` a snapshot file is written too, in the folder that is given or beside the database. One that
        cannot be written is logged: the checkpoint is in the journal, and no turn should fail for it.
        """
        rule = rule if rule is not None else Automatic()
        folder = self.snapshot_folder(None if snapshots is True else snapshots) if snapshots else None
        with self._ledger.lock:
            self._ledger.refresh()
            if self._due(rule, force=force) is None:
                return None
            with telemetry.span("checkpoint", session=self.id) as span:
                # Somebody else may make one first: then it is looked at again, and perhaps none is due any more.
                made = self._ledger.commit(lambda draft: self._label_if_due(draft, rule, force=force))
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
        from windowsill.checkpoints.files import save_snapshot

        place = self.snapshot_folder(folder)
        with self._ledger.lock:
            self._ledger.refresh()
            return save_snapshot(place, self._snapshot(), keep=keep)

    @classmethod
    def from_snapshot(
        cls,
        place: Path | str,
        *,
        store: Store | Path | str | None = None,
        id: str | None = None,
        clock: Callable[[], float] = time.time,
        **settings: Any,
    ) -> Session:
        """Begin a session from a snapshot file, or the newest whole one of a folder: what was seen then, and the state.

        It has the name that it had, or `id`; a session that exists already is never touched. What is stated wins over
        the settings of the snapshot.
        """
        from windowsill.checkpoints.files import load_snapshot
        from windowsill.session.snapshots import fill

        loaded = load_snapshot(place)
        for each in loaded.damaged:
            log.warning("snapshot %s is damaged: %s", each.path, each.why)
        snapshot = loaded.snapshot
        name = id or snapshot.session
        owned = not isinstance(store, Store)
        kept = store if isinstance(store, Store) else open_store(store)
        with _begun(kept, name, clock(), bytes(snapshot.settings), owned=owned):
            session = cast("type[Session]", cls).open(name, store=kept, clock=clock, **settings)
            session._owned = owned  # noqa: SLF001 - a session of this very class, which `open` cannot tell
            fill(session._ledger, snapshot)  # noqa: SLF001 - as above
        return session

    def _label(self, draft: Draft, name: str, reason: Reason) -> Checkpoint:
        view = self._ledger.view
        label = Label(
            entry=draft.next - 1,
            messages=self._watching.messages(view),
            tokens=view.tokens(),
            phase=_phase(self),
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
        view, version = self._ledger.view, self._ledger.history.version
        tokens = view.tokens()
        now = Seen(at=self._ledger.clock(), messages=self._watching.messages(view), tokens=tokens, phase=_phase(self))
        found = rule.due(self._watching.seen(version, tokens), now)
        return "forced" if force else found

    def _forget(self, draft: Draft, keep: int) -> int:
        seqs = [seq for seq, _ in known(self._store, self.id, self._ledger.history.version)][keep:]
        if seqs:
            draft.record("label", Label(forgets=seqs[0] + 1))
        return len(seqs)

    def snapshot_folder(self, folder: Path | str | None = None) -> Path:
        """Where snapshot files of this session are written: beside its database, or in a folder that is given."""
        from windowsill.checkpoints.names import folder_name

        if not folder:
            database = getattr(self._store, "path", None)
            if not isinstance(database, Path):
                raise InputError(f"session {self.id!r} is kept in no folder", remedy="give the folder for snapshots")
            folder = database.parent / SNAPSHOTS
        return Path(folder) / folder_name(self.id)

    def _snapshot(self) -> Snapshot:
        from windowsill.checkpoints.snapshot import NO_STATE
        from windowsill.session.snapshots import snapshot_of

        session = _whole(self)
        state = session.state.value
        # A state that says nothing but the defaults is none.
        told = msgspec.Raw(state.to_json()) if state != type(state)() else NO_STATE
        return snapshot_of(
            self._ledger, formats.get(session.format), self.settings, phase=state.runtime.phase, state=told
        )

    def _write_or_log(self, folder: Path) -> None:
        from windowsill.checkpoints.files import save_snapshot

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


def _phase(session: Checkpointing) -> str:
    return _whole(session).state.value.runtime.phase


def _whole(session: Checkpointing) -> Session:
    """The session that this is a part of: it alone has a state and a format."""
    return cast("Session", session)
