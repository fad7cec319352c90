"""The head of a session: drafts the entries that change it, and applies entries that were written."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, TypeAlias

import msgspec

from windowsill.errors import InputError
from windowsill.history import entries
from windowsill.history.entries import ROOT_HASH, Entry, Kind, Same, own_words, reader, seal
from windowsill.history.folds import Fold, PastEdit, Proposal, Unfold, pack_stand_ins
from windowsill.history.view import Item, MessageMeta, View, fold_meta, item_of, marking_meta, message_meta
from windowsill.messages import NEUTRAL, ORIGIN, Message, Reasoning, Usage
from windowsill.models import Demands
from windowsill.tokens import Scale, Weight

_pack = msgspec.msgpack.Encoder().encode

LETTERS: dict[Kind, str] = {
    "message": "m",
    "fold": "f",
    "unfold": "u",
    "mark": "k",
    "call": "c",
    "usage": "t",
    "rewind": "r",
    "label": "l",
    "state": "s",
    "tools": "p",
}
"""Ids are a letter and the entry's number: short, unique in their session, the same for the same input."""


MANAGED = "messages"
"""The part of a request that holds its messages, where a context manager composed them; part of the stored format."""


class Call(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request that was composed: enough to build the same bytes again."""

    at: int
    """The head it was composed at."""
    format: str
    model: str | None = None
    blobs: dict[str, str] = {}
    """Blob ids of the system prompt, the tools, the dynamic context and the other fields."""
    tokens: int = 0
    unseen: int = 0
    """Tokens among them that only the provider saw, as far as was known."""
    cached: int = 0
    """Tokens at its start that equal the request before it."""
    folds: tuple[str, ...] = ()
    breakpoints: dict[str, int] = {}
    demands: Demands = Demands()
    """The demands of its model on the messages."""

    @property
    def prompt_hash(self) -> bytes:
        """The fingerprint of its system prompt and tools."""
        return prompt_hash(self.blobs)


def prompt_hash(blobs: Mapping[str, str]) -> bytes:
    """Fingerprint the system prompt and the tools among the parts of a request."""
    named = f"{blobs.get('system', '')}/{blobs.get('tools', '')}"
    return hashlib.blake2b(named.encode(), digest_size=8).digest()


class Rewind(msgspec.Struct, frozen=True):
    """The head was moved."""

    left: int
    to: int
    reason: str = ""


class Snapshot(msgspec.Struct, frozen=True, array_like=True):
    """A view as it is stored, so that a session opens without reading its past."""

    items: list[Item]
    conversation_hash: bytes
    sent: bool = False
    edits_of_past: tuple[PastEdit, ...] = ()
    prompt_hash: bytes = b""
    restored: tuple[tuple[int, int], ...] = ()


CHECKSUM = 16
"""Bytes before a stored view."""


def snapshot_checksum(data: bytes, entry_hash: bytes) -> bytes:
    """Return the checksum of a view that is stored with the entry of this hash."""
    return hashlib.blake2b(entry_hash + data, digest_size=CHECKSUM).digest()


def is_whole_snapshot(stored: bytes, entry: Entry) -> bool:
    """Tell whether a stored view is what was written at this entry; one of an earlier version has no checksum."""
    # Overwritten pages can give any type.
    return isinstance(stored, bytes) and stored[:CHECKSUM] == snapshot_checksum(stored[CHECKSUM:], entry.hash)


_snapshot = reader(Snapshot)
call_meta = reader(Call)
usage_meta = reader(Usage)
rewind_meta = reader(Rewind)


class Head:
    """The head of a session: how many entries it has, the hash of the last, and the view there."""

    def __init__(self, view: View, *, version: int = 0, hash: bytes = ROOT_HASH) -> None:
        self.view = view
        self.version = version
        self.hash = hash
        self.sent = False
        """A request was composed since the last message."""
        self.prompt_hash = b""
        """The prompt_hash of the last request."""

    def copy(self) -> Head:
        """Return a head that stands there too and can be moved by itself."""
        twin = copy(self)
        twin.view = self.view.copy()
        return twin

    def apply(self, entry: Entry, meta: MessageMeta | None = None) -> None:
        """Take in an entry that was written; not for `unfold` and `rewind`, which need entries from the past."""
        view = self.view
        if entry.kind == "message":
            meta = meta if meta is not None else message_meta(entry.meta)
            view.add(item_of(entry, meta))
            view.conversation_hash = meta.conversation_hash
            self.sent = False
        elif entry.kind == "call":
            self.sent = True
            self.prompt_hash = call_meta(entry.meta).prompt_hash
        elif entry.kind == "fold":
            view.fold(entry.seq, entry.id, fold_meta(entry.meta))
        elif entry.kind == "mark":
            view.mark(marking_meta(entry.meta))
        self.version = view.at = entry.seq
        self.hash = entry.hash

    def snapshot(self) -> bytes:
        """Encode the view, to be stored, behind a checksum that binds it to the entry it stands at."""
        view = self.view
        restored = tuple(sorted(view.restored))
        data = _pack(
            Snapshot(view.items, view.conversation_hash, self.sent, view.edits_of_past, self.prompt_hash, restored)
        )
        return snapshot_checksum(data, self.hash) + data

    @staticmethod
    def from_snapshot(stored: bytes, entry: Entry, scale: Scale, read: Callable[[Item], Message]) -> Head | None:
        """Return the head at `entry`, from what `snapshot` gave there; `None` when it is not what was written."""
        if not is_whole_snapshot(stored, entry):
            return None
        shot = _snapshot(stored[CHECKSUM:])
        view = View(scale, read, shot.items, at=entry.seq, conversation_hash=shot.conversation_hash)
        head = Head(view, version=entry.seq, hash=entry.hash)
        head.sent, head.prompt_hash = shot.sent, shot.prompt_hash
        head.view.edits_of_past, head.view.restored = shot.edits_of_past, frozenset(shot.restored)
        return head


Thin: TypeAlias = "Callable[[Message, bytes, Draft], tuple[bytes, tuple[Same, ...]]]"


class Draft:
    """Entries to be appended together, each bound to the one before."""

    def __init__(self, head: Head, at: float) -> None:
        self.entries: list[Entry] = []
        self.metas: dict[int, MessageMeta] = {}
        """The facts about the messages of this draft, by entry number, so that they need not be read again."""
        self.blobs: dict[str, bytes] = {}
        """Blobs that are stored together with the entries."""
        self.at = at
        self._seq = head.version
        self._parent = head.version
        self._hash = head.hash
        self._conversation_hash = head.view.conversation_hash
        self._sent = head.sent
        self._prompt_hash = head.prompt_hash

    def message(self, message: Message, weight: Weight, counter: str, thin: Thin | None = None) -> Entry:
        """Record a message that was added; `thin` takes out of its body what an earlier one holds already."""
        ours = ORIGIN in message.metadata
        pieces = entries.pieces(message)
        if not ours:
            # What Windowsill puts in is not in the list that a client sends again.
            self._conversation_hash = entries.extend(self._conversation_hash, message.role, pieces)
        calls = message.calls
        intact = message.raw is not None and not message.edited
        body = message.raw if message.raw is not None and intact else pack_message(message)
        results = message.results
        body, same = thin(message, body, self) if thin is not None and results else (body, ())
        refs = tuple([result.ref for result in results])
        reasons = len([block for block in message.blocks if isinstance(block, Reasoning)])
        meta = MessageMeta(
            role=message.role,
            weight=weight,
            counter=counter,
            format=message.format if intact else NEUTRAL,
            conversation_hash=self._conversation_hash,
            calls=tuple([call.id for call in calls]),
            tools=tuple([call.name for call in calls]),
            results=tuple([result.tool_use_id for result in results]),
            marks=tuple(sorted(message.marks)) if message.marks else (),
            sent=self._sent,
            own=not ours and bool(own_words(message)),
            metadata=message.metadata,
            leads=message.role == "assistant" and 0 < len(message.blocks) == reasons,
            fingerprint=entries.of_message(pieces),
            prompt_hash=self._prompt_hash if reasons else b"",
            same=same,
            refs=refs if any(refs) else (),
        )
        self._sent = False
        try:
            packed = _pack(meta)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            remedy = "pass text, numbers of 64 bits, lists and dictionaries; larger things as JSON text"
            raise InputError(f"metadata that cannot be stored: {why}", remedy=remedy) from None
        entry = self._seal("message", packed, body, id=message.id, at=message.at)
        self.metas[entry.seq] = meta
        return entry

    def begin_list(self, after: bytes) -> None:
        """Let the next message follow another conversation than the one here: that of a client's list."""
        self._conversation_hash = after

    @property
    def next(self) -> int:
        """The number that the next entry will have."""
        return self._seq + 1

    def fold(self, proposal: Proposal, before: int, after: int) -> Entry:
        """Record that messages, or parts of them, were hidden."""
        fold = Fold(
            kind=proposal.kind,
            strategy=proposal.strategy,
            reason=proposal.reason,
            spans=proposal.spans,
            before=before,
            after=after,
        )
        return self._seal("fold", _pack(fold), pack_stand_ins(proposal.stand_ins))

    def unfold(self, fold: int, fold_id: str, spans: Sequence[int], reason: str = "") -> Entry:
        """Record that spans of a fold were shown again."""
        return self._seal("unfold", _pack(Unfold(fold, fold_id, tuple(spans), reason)))

    def call(self, call: Call) -> Entry:
        """Record a composed request. The next message of this draft comes after it was sent."""
        self._sent = True
        self._prompt_hash = call.prompt_hash
        return self._seal("call", _pack(call))

    def record(self, kind: Kind, value: Any, body: bytes = b"") -> Entry:
        """Record something that hides and shows no message."""
        return self._seal(kind, _pack(value), body)

    def rewind(self, to: int, to_hash: bytes, left: int, reason: str = "") -> Entry:
        """Record that the head was moved: this entry's parent is where it went."""
        self._parent = to
        self._hash = to_hash
        return self._seal("rewind", _pack(Rewind(left, to, reason)))

    def _seal(self, kind: Kind, meta: bytes, body: bytes = b"", *, id: str = "", at: float = 0.0) -> Entry:
        seq = self._seq + 1
        entry = seal(
            seq=seq,
            parent=self._parent,
            parent_hash=self._hash,
            kind=kind,
            id=id or f"{LETTERS[kind]}{seq}",
            at=at or self.at,
            meta=meta,
            body=body,
        )
        self._seq = self._parent = seq
        self._hash = entry.hash
        self.entries.append(entry)
        return entry


def pack_message(message: Message) -> bytes:
    """Encode a message that has no bytes of its own."""
    return msgspec.json.encode(msgspec.structs.replace(message, id="", at=0.0, marks=frozenset(), metadata={}))
