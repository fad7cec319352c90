"""Accept what came from elsewhere: entries are read in every way in which they will be used, before they are taken.

Whoever can write a file can hash it: a chain that holds says that entries are whole, not that they make sense.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import msgspec

from windowsill import providers
from windowsill.compose.model_context import ModelContext
from windowsill.compose.render import Breakpoints
from windowsill.config import apply_profile, read_settings
from windowsill.config.settings import DEFAULT_STRATEGY
from windowsill.errors import BudgetError, DamagedError, WindowsillError
from windowsill.history.entries import ROOT, ROOT_HASH, Entry, is_whole, on_path, within
from windowsill.history.folds import BlockSpan, Fold, MessageSpan, unpack_stand_ins
from windowsill.history.head import call_meta, rewind_meta, usage_meta
from windowsill.history.proposals import Facts, pair_of
from windowsill.history.view import View, fold_meta, marking_meta, message_meta, unfold_meta
from windowsill.journal.reader import JournalReader
from windowsill.messages import Message
from windowsill.session import Session
from windowsill.session.audit import read_part, tool_decisions
from windowsill.session.checkpoints import label_meta
from windowsill.session.export import REMEDY
from windowsill.state.session_state import StateAt
from windowsill.store.memory import MemoryStore
from windowsill.summaries.digest import DIGEST, Digest
from windowsill.tokens import Weight

LATEST = 253_402_300_799
"""The last second that a calendar has."""

HEAVIEST = 2**40
"""Far above the tokens, and the bytes, of anything that was ever said."""

SOME_WINDOW = 200_000
"""Assumed to open a session whose model is not known here."""


class Acceptance:
    """Entries from elsewhere, read one by one into memory; `DamagedError` names the line of the first that is wrong."""

    def __init__(self, id: str, at: float, settings: bytes) -> None:
        self._id = id
        self._store = MemoryStore()
        with refuse("line 1: the head"):
            _ensure(0 <= at <= LATEST, "its time is none that a calendar has")
            self._store.create(id, at=at, settings=settings)
            stated = read_settings(settings, id)
            if not stated.window and not stated.is_model_known:
                stated = msgspec.structs.replace(stated, window=SOME_WINDOW)
            scale = ModelContext(apply_profile(stated), self._store).scale
        self._window = stated.window
        self._scale = scale
        self._reader = JournalReader(self._store, id)
        self._head = self._reader.head_at(ROOT, scale)
        self._state = StateAt()
        self._hashes = {ROOT: ROOT_HASH}

    def take(self, entry: Entry, blobs: Mapping[str, bytes], line: int) -> None:
        """Take the next entry, with the blobs that came before it."""
        expected = self._head.version + 1
        if entry.seq != expected:
            raise DamagedError(f"line {line}: entry {entry.seq} where {expected} should stand", remedy=REMEDY)
        parent = self._hashes.get(entry.parent)
        if parent is None or entry.body is None or not is_whole(entry, parent):
            what = f"line {line}: entry {entry.seq} ({entry.kind} {entry.id}) is not what was written"
            raise DamagedError(what, remedy=REMEDY)
        with refuse(f"line {line}: entry {entry.seq} ({entry.kind} {entry.id})"):
            _ensure(0 <= entry.at <= LATEST, "its time is none that a calendar has")
            self._store.put_blobs(self._id, blobs.items())
            self._store.append(self._id, entry.seq - 1, [entry])
            self._check(entry)
            self._move(entry)
        self._hashes[entry.seq] = entry.hash

    def finish(self) -> list[Entry]:
        """Open the session, list what it has and compose a request, as its first user will; return its entries."""
        entries = self._store.read(self._id, 1, self._head.version)
        with refuse("its history"):
            self._open()
        return entries

    def _open(self) -> None:
        # Neither a module nor a model that the file names is used for it.
        with Session.open(
            self._id, store=self._store, config=False, strategy=DEFAULT_STRATEGY, writer="offline", window=self._window
        ) as session:
            for _ in (session.folds, session.branches, session.audit, session.calls, tool_decisions(session.journal)):
                pass
            session.checkpoints(None)
            for item in session.view.items:
                session.view.read(item)
            if len(session.view) == session.view.leading():
                # Nothing was said yet, so there is nothing to send.
                return
            try:
                session.compose_sync().body()
            except BudgetError:
                # A small window is no damage.
                return

    def _move(self, entry: Entry) -> None:
        """Go to an entry that was checked, and build the view and the state there."""
        if entry.kind in ("unfold", "rewind") or entry.parent != entry.seq - 1:
            path = self._reader.path(entry.seq)
            self._head = self._reader.head_at(entry.seq, self._scale)
            self._state = StateAt()
            for each in self._reader.walk(path, kinds=("state",), bodies=True):
                self._state.take(each)
            return
        self._head.apply(entry)
        if entry.kind == "state":
            self._state.take(entry)
            _ = self._state.document.state

    def _check(self, entry: Entry) -> None:
        match entry.kind:
            case "message":
                self._check_message(entry)
            case "fold":
                self._check_fold(entry, fold_meta(entry.meta))
            case "unfold":
                self._check_unfold(entry)
            case "mark":
                target = self._earlier(entry, marking_meta(entry.meta).message)
                _ensure(target.kind == "message", "it marks what is no message")
            case "call":
                self._check_call(entry)
            case "usage":
                _ensure(min(msgspec.structs.astuple(usage_meta(entry.meta))) >= 0, "it used fewer than no tokens")
            case "rewind":
                rewind = rewind_meta(entry.meta)
                _ensure(rewind.to == entry.parent and 0 <= rewind.left < entry.seq, "it leads to another entry")
            case "label":
                label = label_meta(entry.meta)
                _ensure(0 <= label.entry < entry.seq and label.forgets <= entry.seq, "it names an entry to come")
            case _:
                pass

    def _check_message(self, entry: Entry) -> None:
        meta = message_meta(entry.meta)
        end = 0
        for each in meta.same:
            self._earlier(entry, each.seq)
            _ensure(each.at >= end and each.offset >= 0 <= each.length, "it shares bytes that overlap")
            end = each.at + each.length
        message = self._reader.decode(entry)
        _check_weight(meta.weight)
        _ensure(message.role == meta.role, "it is filed under another role")
        _ensure(meta.calls == _ids(message)[0] and len(meta.tools) == len(meta.calls), "it is filed with other calls")
        _ensure(meta.results == _ids(message)[1], "it is filed with other results")
        _ensure(len(meta.refs) in (0, len(meta.results)), "it refers to outputs of other results")

    def _check_fold(self, entry: Entry, fold: Fold) -> None:
        stand_ins = unpack_stand_ins(entry.body or b"")
        _ensure(0 < len(fold.spans) == len(stand_ins), "it hides and shows different numbers of runs")
        view = self._head.view
        for span, stand_in in zip(fold.spans, stand_ins, strict=True):
            if isinstance(span, MessageSpan):
                _check_run(span, stand_in)
            else:
                _check_block(view, span, stand_in)
        # Applied to a copy first: a fold that fits nothing is refused here.
        view.copy().fold(entry.seq, entry.id, fold)

    def _check_unfold(self, entry: Entry) -> None:
        undone = unfold_meta(entry.meta)
        target = self._earlier(entry, undone.fold)
        path = self._reader.path(entry.parent)
        _ensure(target.kind == "fold" and target.id == undone.fold_id, "it removes what is no fold")
        _ensure(on_path(path, target.seq), "it removes a fold of another branch")
        spans = fold_meta(target.meta).spans
        gone = {
            number
            for each in self._reader.walk(within(path, target.seq, entry.parent), kinds=("unfold",))
            if unfold_meta(each.meta).fold == target.seq
            for number in unfold_meta(each.meta).spans
        }
        new = set(undone.spans)
        _ensure(bool(new) and new <= set(range(len(spans))) - gone, "it removes what does not apply")
        _ensure(len(new) == len(undone.spans), "it removes the same twice")

    def _check_call(self, entry: Entry) -> None:
        call = call_meta(entry.meta)
        _ensure(0 <= call.at < entry.seq, "it was composed later")
        providers.get(call.format, call.demands)
        Breakpoints(**call.breakpoints)
        _ensure(min((call.tokens, call.unseen, call.cached)) >= 0, "it had fewer than no tokens")
        for name in call.blobs:
            read_part(self._store, self._id, call, name)

    def _earlier(self, entry: Entry, seq: int) -> Entry:
        _ensure(0 < seq < entry.seq, f"it refers to entry {seq}")
        return self._reader.entry(seq)


@contextmanager
def refuse(what: str) -> Iterator[None]:
    """Turn whatever goes wrong while something from elsewhere is read into one refusal."""
    try:
        yield
    except DamagedError as error:
        raise DamagedError(f"{what} makes no sense: {error.what}", remedy=REMEDY) from None
    except WindowsillError as error:
        raise DamagedError(f"{what} cannot be used: {error.what}", remedy=REMEDY) from error
    except Exception as error:  # anything may be in such a file, and so anything may be raised
        raise DamagedError(f"{what} cannot be read ({type(error).__name__}: {error})", remedy=REMEDY) from error


def _ensure(sound: bool, why: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not sound:
        raise DamagedError(why)


def _ids(message: Message) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(call.id for call in message.calls), tuple(result.tool_use_id for result in message.results)


def _check_weight(weight: Weight) -> None:
    values = msgspec.structs.astuple(weight)
    _ensure(min(values) >= 0 and max(values) <= HEAVIEST, "it weighs what nothing weighs")


def _check_run(span: MessageSpan, stand_in: Message | None) -> None:
    _ensure(0 < span.first <= span.last, "it hides a run that ends before it begins")
    _ensure(0 < span.hides <= span.last - span.first + 1, "it hides another number of messages")
    _check_weight(span.weight)
    facts = msgspec.convert(span.facts, Facts)
    _ensure(min((facts.messages, facts.tokens, *facts.calls.values())) >= 0, "it counts fewer than no messages")
    msgspec.convert(span.facts.get(DIGEST, {}), Digest)
    shown = ((), ()) if stand_in is None else _ids(stand_in)
    _ensure((span.calls, span.results) == shown, "what stands in its place has other calls")
    _ensure(stand_in is None or stand_in.role == span.role, "what stands in its place is filed under another role")


def _check_block(view: View, span: BlockSpan, stand_in: Message | None) -> None:
    place = view.position(span.message)
    _ensure(place is not None and span.block >= 0, "it cuts a message that is not visible")
    item = view.items[place or 0]
    block = view.whole(item).blocks[span.block]
    _check_weight(item.weight)
    if stand_in is None:
        return
    (new,) = stand_in.blocks
    _ensure(pair_of(new) == pair_of(block), "it puts another call or result in its place")
