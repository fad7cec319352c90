"""Checkpoints: names for moments of a session, and the rule that says when one is due.

A checkpoint is a label, an entry that names the head at that moment. It copies nothing: everything that was there
stands on the path to it. Where a folder of files belongs to the session, the label also names the record of its files.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import msgspec

from windowsill import telemetry
from windowsill.errors import InputError, NotFoundError, SettingError, StoreError, WindowsillError, log
from windowsill.files import FileDiff, Record, Shadow
from windowsill.files.restore import restore_files
from windowsill.files.shadow import LeftOut
from windowsill.history.entries import Entry, on_path, reader, within
from windowsill.history.head import Draft
from windowsill.history.view import fold_meta
from windowsill.session.branches import move
from windowsill.store.base import check_name
from windowsill.telemetry import names
from windowsill.text import count_of

if TYPE_CHECKING:
    from windowsill.session.session import Session


Reason: TypeAlias = Literal["manual", "phase", "time", "messages", "tokens", "forced", "before a restore"]
What: TypeAlias = Literal["both", "conversation", "files"]
"""The parts of a moment that a restore brings back."""

REASONS: tuple[Reason, ...] = get_args(Reason)

LISTED = 10
"""Checkpoints that are listed, and that an error names: enough to recognise the one that was meant."""

KEPT = 5
"""Checkpoints, and snapshot files, that stay when the older ones are cleaned up."""

_LIKE_AN_ID = re.compile(r"l\d+")

START = "initializing"
"""The phase in which every session begins."""


class Label(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """The content of a label entry. One without a reason is not a checkpoint: it says what is forgotten."""

    entry: int = 0
    """The number of the entry that it names: the head at that moment."""
    messages: int = 0
    tokens: int = 0
    phase: str = ""
    reason: Reason | None = None
    name: str = ""
    forgets: int = 0
    """Checkpoints whose labels stand before this entry number are forgotten."""
    files: str = ""
    """The record of the files at that moment."""
    notes: tuple[str, ...] = ()
    """The files that it left out, and why."""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A moment of a session to which `session.restore` goes back."""

    id: str
    """The id of its label."""
    name: str
    """The name it goes by; empty when it was given no name, or a later one has taken it over."""
    at: float
    entry: int
    """The number of the entry that was the last one then."""
    messages: int
    """Messages that had been added on that branch, hidden ones included."""
    tokens: int
    """Tokens of the view then."""
    phase: str
    reason: Reason
    files: str = ""
    """The record of the files at that moment; empty where none belong to the session, or they could not be recorded."""
    notes: tuple[str, ...] = ()
    """Files that were not recorded, or not restored, and why."""


label_meta = reader(Label)


def checkpoint_of(entry: Entry, *, name: str | None = None) -> Checkpoint | None:
    """Return the checkpoint that a label makes, if it makes one; `name` is what it goes by now."""
    label = label_meta(entry.meta)
    if label.reason is None:
        return None
    fields = {each: getattr(label, each) for each in Label.__struct_fields__ if each != "forgets"}
    return Checkpoint(**{**fields, "id": entry.id, "at": entry.at, "name": label.name if name is None else name})


def describe_label(entry: Entry) -> str:
    """Describe a label in one line for a person."""
    label = label_meta(entry.meta)
    if label.reason is None:
        forgot = f"forgot the checkpoints before entry {label.forgets}"
        return f"recorded the files ({label.files})" if label.files else forgot
    named = f" {label.name!r}" if label.name else ""
    return f"checkpoint{named} ({label.reason}): {label.messages:,} messages, {label.tokens:,} tokens, {label.phase}"


def check_label(name: str, reason: str) -> None:
    """Raise `InputError` for a name that a checkpoint cannot have, or an unknown reason."""
    if reason not in REASONS:
        raise InputError(f"{reason!r} is not a reason for a checkpoint", remedy=f"give one of {', '.join(REASONS)}")
    if not name:
        return
    check_name("checkpoint's name", name)
    if not name.strip():
        raise InputError("the checkpoint's name is blank", remedy="give a word, or nothing")
    if _LIKE_AN_ID.fullmatch(name):
        raise InputError(
            f"{name!r} reads like the id of a checkpoint", remedy="give a name that is not l and a number", name=name
        )


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a session that a rule looks at: now, or at the last checkpoint."""

    at: float
    messages: int = 0
    tokens: int = 0
    """Of the view. For the last checkpoint: the fewest since, for only what was below a line can cross it."""
    phase: str = START

    def lowered(self, tokens: int) -> Seen:
        """Return the same after the view was seen with so many tokens."""
        return self if tokens >= self.tokens else msgspec.structs.replace(self, tokens=tokens)


class Automatic(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rule for checkpoints that are made without being asked for. `None` switches a condition off."""

    seconds: float | None = 600
    """Since the last checkpoint."""
    messages: int | None = 50
    """Since the last checkpoint."""
    tokens: int | None = 100_000
    """Of the view: due when it has grown past this, and again only after it has been below."""
    on_phase: bool = True

    def __post_init__(self) -> None:
        if self.seconds is not None and not (self.seconds > 0 and math.isfinite(self.seconds)):
            raise SettingError("seconds", self.seconds, "seconds above 0, or None")
        for name, value in (("messages", self.messages), ("tokens", self.tokens)):
            if value is not None and value < 1:
                raise SettingError(name, value, f"{name}, 1 or more, or None")

    def due(self, seen: Seen, now: Seen) -> Reason | None:
        """Return why a checkpoint is due now, the most telling reason first; `None` when none is.

        `seen` is what was seen at the last checkpoint. It changes only with a checkpoint, or when the view shrinks:
        looking more often makes nothing due earlier, or later.
        """
        if self.on_phase and now.phase != seen.phase:
            return "phase"
        if self.messages is not None and now.messages - seen.messages >= self.messages:
            return "messages"
        if self.tokens is not None and seen.tokens < self.tokens <= now.tokens:
            return "tokens"
        if self.seconds is not None and now.at - seen.at >= self.seconds:
            return "time"
        return None


def _short(notes: list[str]) -> tuple[str, ...]:
    rest = len(notes) - LISTED
    return (*notes[:LISTED], *([f"and {rest:,} more"] if rest > 0 else ()))


class Checkpoints:
    """The checkpoints of one session: called, it lists them; `make_if_due` after every turn makes them by a rule.

    What the last one saw is kept up to date at a cost that does not grow with the history. All of it is read from the
    journal: a process that begins anew knows what the one before it knew.
    """

    def __init__(self, session: Session, shadow: Shadow | None = None) -> None:
        self._session = session
        self._journal = session.journal
        self._shadow = shadow
        self._at = 0
        self._last: Seen | None = None
        self._counted = (-1, 0, 0)

    def make(self, name: str = "", reason: Reason = "manual") -> Checkpoint:
        """Label the head, with a record of the files."""
        check_label(name, reason)
        return self._make(name, reason, self._shadow.record(self._journal.session) if self._shadow else None)

    def _make(self, name: str, reason: Reason, record: Record | None) -> Checkpoint:
        journal = self._journal
        with journal.lock, telemetry.span("checkpoint", session=journal.session, reason=reason):
            journal.refresh()
            made = journal.append(lambda draft: self._label(draft, name, reason, record))
        telemetry.count(names.CHECKPOINTS, reason=reason)
        return made

    def make_if_due(
        self, rule: Automatic | None = None, *, force: bool = False, snapshots: bool | Path | str = False
    ) -> Checkpoint | None:
        """Label the head when the rule says so, or by `force`; `None` when no checkpoint is due.

        With `snapshots` a snapshot file is written too, in the folder that is given or beside the database. One that
        cannot be written is logged: the checkpoint is in the journal, and no turn should fail for it.
        """
        folder = None if isinstance(snapshots, bool) else snapshots
        if snapshots:
            from windowsill.session.snapshots import snapshot_folder  # noqa: PLC0415 - few sessions write any

            # A session without a folder for them is refused before anything is written.
            snapshot_folder(self._journal.store, self._session.id, folder)
        with self._journal.lock:
            made = self._label_if_due(rule or Automatic(), force=force)
            if made is not None and snapshots:
                try:
                    self._session.write_snapshot(folder)
                except StoreError as error:
                    log.warning("session %s: %s", self._session.id, error)
            return made

    def _label_if_due(self, rule: Automatic, *, force: bool) -> Checkpoint | None:
        journal = self._journal

        def label_if_due(draft: Draft) -> Checkpoint | None:
            # Somebody else may make one first: then it is looked at again, and perhaps none is due any more.
            reason = self._due(rule, force=force)
            return None if reason is None else self._label(draft, "", reason, record)

        journal.refresh()
        is_due = self._due(rule, force=force) is not None
        record = self._try_to_record() if is_due or self._after_tools() else None
        if not is_due:
            if record is not None:
                self._note_files(record.tree)
            return None
        with telemetry.span("checkpoint", session=journal.session) as span:
            made = journal.append(label_if_due)
            if made is not None:
                span.set(reason=made.reason)
                telemetry.count(names.CHECKPOINTS, reason=made.reason)
        return made

    def __call__(self, limit: int | None = LISTED) -> list[Checkpoint]:
        """List the last checkpoints of every branch, the newest first; with `None` all of them."""
        if limit is not None and limit < 0:
            raise SettingError("limit", limit, "0 or more, or None")
        with self._journal.lock:
            self._journal.refresh()
            return [checkpoint for _, checkpoint in islice(self._known(), limit)]

    def restore(self, id_or_name: str, what: What | None = None, *, remove_new: bool = False) -> Checkpoint:
        """Go back to a checkpoint; the notes of what is returned name the files that were left alone."""
        journal = self._journal
        with journal.lock, telemetry.span("restore", session=journal.session):
            journal.refresh()
            seq, found = self._find(id_or_name)
            what = what or ("both" if found.files and self._shadow else "conversation")
            named = f" {found.name!r}" if found.name else ""
            # To the label and not to what it names: what comes next is counted from this checkpoint.
            reason = f"restored checkpoint{named} ({found.id})"
            if what == "conversation":
                move(journal, seq, reason)
                return msgspec.structs.replace(found, notes=())
            _, notes = self.bring_back(found.files, None if what == "files" else (seq, reason), remove_new=remove_new)
            return msgspec.structs.replace(found, notes=notes)

    def files_at(self, seq: int) -> str:
        """Return the last record of files at or before an entry of its branch; empty when there is none.

        The moment of a message lasts until the next one: what its tools wrote is recorded after it.
        """
        journal = self._journal
        path = journal.path(journal.version)
        path = path if on_path(path, seq) else journal.path(seq)
        last = seq
        if seq and journal.entry(seq).kind == "message":
            later = within(path, seq + 1, journal.version)
            following = next(iter(journal.walk(later, kinds=("message",))), None)
            last = following.seq - 1 if following is not None else journal.version
        labels = (label_meta(entry.meta) for entry in journal.walk_back(within(path, 1, last), "label"))
        return next((label.files for label in labels if label.files), "")

    def file_changes(self, since: str, until: str | None = None) -> FileDiff:
        """Compare the recorded files at two moments, ids of entries; without a second one, with the files as they are.

        At a moment without a record of its own the last one before it counts.
        """
        journal = self._journal
        with journal.lock:
            journal.refresh()
            old = self.files_at(journal.seq_of(since))
            if self._shadow is None or not old:
                raise self._no_files()
            new = self._shadow.record(None).tree if until is None else self.files_at(journal.seq_of(until))
            if not new:
                raise self._no_files()
            return self._shadow.compare(old, new)

    def _no_files(self) -> InputError:
        return InputError(
            f"session {self._journal.session!r} has no record of files for that moment",
            remedy="files are recorded from the first checkpoint on after the session is opened with `files`",
        )

    def bring_back(
        self, tree: str, to: tuple[int, str] | None, *, remove_new: bool = False
    ) -> tuple[str, tuple[str, ...]]:
        """Restore the files of a record, and move the head where `to` says so, both or neither.

        Return the id of the move, if there is one, and notes: the first says how to undo this, by the checkpoint
        that is made before anything changes, the others name files that were left alone.
        """
        if self._shadow is None or not tree:
            raise self._no_files()
        session = self._journal.session
        now = self._shadow.record(session)
        safety = self._make("", "before a restore", now)
        labels = [label_meta(each.meta) for each in self._journal.walk([(1, self._journal.version)], kinds=("label",))]
        # What only a restore recorded, so that it can be undone, nobody asked to have recorded.
        asked = {label.files for label in labels if label.reason != "before a restore"}
        restored = restore_files(
            self._shadow, session, tree, now, remove_new=remove_new, but={label.files for label in labels} - asked
        )
        try:
            moved = move(self._journal, *to) if to is not None else ""
            self._note_files(tree)
        except BaseException:
            restore_files(self._shadow, session, now.tree, self._shadow.record(session))
            raise
        written = count_of(len(restored.written), "file")
        undo = f"{written} written, {len(restored.removed):,} removed; to undo: restore {safety.id}"
        return moved, (undo, *_short([f"left alone: {each}" for each in restored.left_alone]))

    def clean_up(self, keep: int = KEPT) -> int:
        """Forget all checkpoints but the last ones; return how many. `switch` still knows their ids."""
        if keep < 0:
            raise SettingError("keep", keep, "0 or more")

        def forget(draft: Draft) -> int:
            seqs = [seq for seq, _ in self._known()][keep:]
            if seqs:
                draft.record("label", Label(forgets=seqs[0] + 1))
            return len(seqs)

        with self._journal.lock:
            self._journal.refresh()
            return self._journal.append(forget)

    def _after_tools(self) -> bool:
        """Tell whether files are recorded after each step, and one in which tools ran has just ended."""
        items = self._journal.view.items
        return self._shadow is not None and self._shadow.folder.each_step and bool(items) and bool(items[-1].results)

    def _try_to_record(self) -> Record | None:
        """Record the files; whatever fails is logged, and noted in the label: no turn is lost for it."""
        if self._shadow is None:
            return None
        try:
            return self._shadow.record(self._journal.session)
        except (WindowsillError, OSError) as error:
            log.warning("session %s: %s", self._journal.session, error)
            return Record("", (LeftOut("all files", str(error)),))

    def _note_files(self, tree: str) -> None:
        """Note the record of the files at the head, if it is not the one that is known there."""
        if tree and tree != self.files_at(self._journal.version):
            self._journal.append(lambda draft: draft.record("label", Label(entry=draft.next - 1, files=tree)))

    def _label(self, draft: Draft, name: str, reason: Reason, record: Record | None) -> Checkpoint:
        now = self._now()
        label = Label(
            entry=draft.next - 1,
            messages=now.messages,
            tokens=now.tokens,
            phase=now.phase,
            reason=reason,
            name=name,
            files=record.tree if record else "",
            notes=_short([f"left out: {each}" for each in record.left_out]) if record else (),
        )
        made = checkpoint_of(draft.record("label", label))
        assert made is not None
        return made

    def _known(self) -> Iterator[tuple[int, Checkpoint]]:
        """Return the checkpoints of every branch that are not forgotten, with their numbers, the newest first."""
        floor, taken = 0, set[str]()
        for entry in self._journal.walk_back([(1, self._journal.version)], "label"):
            if entry.seq < floor:
                return
            label = label_meta(entry.meta)
            floor = max(floor, label.forgets)
            found = checkpoint_of(entry, name="" if label.name in taken else label.name)
            if found is not None:
                taken.add(label.name)
                yield entry.seq, found

    def _find(self, id_or_name: str) -> tuple[int, Checkpoint]:
        there: list[str] = []
        for seq, found in self._known():
            if id_or_name and id_or_name in (found.id, found.name):
                return seq, found
            there.append(f"{found.name!r} ({found.id})" if found.name else found.id)
        listed = ", ".join(there[:LISTED]) + (f" and {len(there) - LISTED} more" if len(there) > LISTED else "")
        raise NotFoundError(
            f"session {self._journal.session!r} has no checkpoint {id_or_name!r}",
            remedy=f"give one of these: {listed}" if there else "it has none yet: `session.checkpoint()` makes one",
            session=self._journal.session,
            id=id_or_name,
        )

    # What the last checkpoint saw

    def _due(self, rule: Automatic, *, force: bool) -> Reason | None:
        now = self._now()
        found = rule.due(self._seen(now.tokens), now)
        return "forced" if force else found

    def _now(self) -> Seen:
        journal, view = self._journal, self._journal.view
        edits, length, count = self._counted
        if edits != view.edits or length > len(view.items):
            length = count = 0
        # Hidden messages count too; those counted before are not counted again.
        count += sum(item.hides if item.fold else 1 for item in view.items[length:])
        self._counted = (view.edits, len(view.items), count)
        phase = self._session.state.value.runtime.phase
        return Seen(at=journal.clock(), messages=count, tokens=view.tokens(), phase=phase)

    def _seen(self, tokens: int) -> Seen:
        """Return what the last checkpoint on the path saw; the view has so many tokens now."""
        seen = self._follow() or self._read()
        self._at, self._last = self._journal.version, seen.lowered(tokens)
        return self._last

    def _follow(self) -> Seen | None:
        """Take in what was written since the last look; `None` when the path is another one."""
        journal, seen = self._journal, self._last
        if seen is None or journal.version < self._at:
            return None
        for entry in journal.walk([(self._at + 1, journal.version)], kinds=("label", "fold", "rewind")):
            if entry.kind == "rewind":
                return None
            seen = _after(seen, entry)
        return seen

    def _read(self) -> Seen:
        journal = self._journal
        path = journal.path(journal.version)
        info = journal.store.info(journal.session)
        seen, start = Seen(at=info.created if info is not None else 0.0), 0
        for entry in journal.walk_back(path, "label"):
            if checkpoint_of(entry) is not None:
                seen, start = _after(seen, entry), entry.seq
                break
        for entry in journal.walk(within(path, start + 1, journal.version), kinds=("fold",)):
            seen = _after(seen, entry)
        return seen


def _after(seen: Seen, entry: Entry) -> Seen:
    """Return what holds after a label or a fold: a line above which the view was folded may be crossed again."""
    if entry.kind == "fold":
        return seen.lowered(fold_meta(entry.meta).after)
    found = checkpoint_of(entry)
    if found is None:
        return seen
    return Seen(at=found.at, messages=found.messages, tokens=found.tokens, phase=found.phase)
