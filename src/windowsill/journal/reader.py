"""Read the entries of a session: heads, paths and messages, each only when it is needed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec

from windowsill import providers
from windowsill.errors import DamagedError, InputError, NotFoundError
from windowsill.history.entries import (
    COMMON,
    ROOT,
    ROOT_HASH,
    Entry,
    Kind,
    Range,
    Same,
    is_whole,
    path_to,
    reader,
    within,
)
from windowsill.history.folds import unpack_stand_ins
from windowsill.history.head import Draft, Head, call_meta
from windowsill.history.view import Item, View, build, message_meta
from windowsill.messages import NEUTRAL, Block, Message, OutputRef, Text, ToolResult, ToolUse
from windowsill.store import Store
from windowsill.tokens import Scale

NEARBY = 16
"""Entries between two wanted ones that are read too."""

SMALLEST = 1_024
"""Characters below which looking an output up costs more than it saves."""


def message_of(entry: Entry, store: Store, session: str) -> Message:
    """Decode the message of an entry that was read with its body; `DamagedError` when that is no message."""
    meta = message_meta(entry.meta)
    body = whole_body(entry.body or b"", meta.same, store, session) if meta.same else entry.body or b""
    try:
        if meta.format == NEUTRAL:
            message = msgspec.json.decode(body, type=Message)
        else:
            message = providers.get(meta.format).read_message(body, entry.id)
    except (InputError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedError(
            f"message {entry.id!r} of session {session!r} is damaged: {error}",
            remedy="`windowsill sessions verify` says what else is; restore a backup",
        ) from error
    blocks = message.blocks
    if meta.format in providers.LINKERS and (meta.calls or meta.results):
        blocks = _with_ids(blocks, meta.calls, meta.results)
    return msgspec.structs.replace(
        message,
        id=entry.id,
        at=entry.at,
        marks=frozenset(meta.marks),
        metadata=meta.metadata,
        blocks=with_refs(blocks, meta.refs) if meta.refs else blocks,
    )


def _with_ids(blocks: tuple[Block, ...], calls: Sequence[str], results: Sequence[str]) -> tuple[Block, ...]:
    """Give calls and results the ids they were recorded with: the bytes alone do not say which belong together."""
    call, result = iter(calls), iter(results)

    def given(block: Block) -> Block:
        if isinstance(block, ToolUse):
            return msgspec.structs.replace(block, id=next(call, block.id))
        if isinstance(block, ToolResult):
            return msgspec.structs.replace(block, tool_use_id=next(result, block.tool_use_id))
        return block

    return tuple(map(given, blocks))


def with_refs(blocks: tuple[Block, ...], refs: Sequence[OutputRef | None]) -> tuple[Block, ...]:
    """Give the results among blocks, one after the other, the refs under which the whole of each is kept."""
    left = iter(refs)
    return tuple(
        msgspec.structs.replace(block, ref=next(left, None)) if isinstance(block, ToolResult) else block
        for block in blocks
    )


def whole_body(stored: bytes, same: Sequence[Same], store: Store, session: str) -> bytes:
    """Put back into a body what it shares with earlier entries."""
    pieces: list[bytes] = []
    taken = written = 0
    for each in same:
        pieces.append(stored[taken : taken + each.at - written])
        taken += each.at - written
        found = store.read(session, each.seq, each.seq)
        shared = (found[0].body or b"")[each.offset : each.offset + each.length] if found else b""
        if len(shared) != each.length:
            raise DamagedError(
                f"entry {each.seq} of session {session!r} lacks bytes that a later one shares",
                remedy="`windowsill sessions verify` says what is left; restore a backup",
            )
        pieces.append(shared)
        written = each.at + each.length
    return b"".join((*pieces, stored[taken:]))


class Place(msgspec.Struct, frozen=True, array_like=True):
    """The place of an output's bytes in the journal."""

    seq: int
    offset: int
    length: int


_place = reader(Place)

SAME = "same/"
"""Blobs under this name note where the output with the hash behind it stands."""


def output_digest(output: bytes) -> str:
    """Return the hash by which the place of an output is noted."""
    return hashlib.blake2b(output, digest_size=16).hexdigest()


def _outputs(message: Message, body: bytes) -> Iterator[tuple[int, int]]:
    """Find where the texts of a message's outputs stand in its body, if they are spelled as JSON usually is."""
    start = 0
    for result in message.results:
        for block in result.content:
            if isinstance(block, Text) and len(block.text) >= SMALLEST:
                for spelled in _spellings(block.text):
                    where = body.find(spelled, start)
                    if where >= 0:
                        start = where + len(spelled)
                        yield where, start
                        break


def _spellings(text: str) -> Iterator[bytes]:
    with suppress(UnicodeEncodeError):
        # Half of a surrogate pair has no bytes of its own, only an escape.
        yield msgspec.json.encode(text)
    yield json.dumps(text).encode()


_LISTS: dict[Kind, str] = {"message": "session.messages()", "fold": "session.folds", "call": "session.calls"}
"""The lists that entries of a kind stand in, for errors."""

VIEW_KINDS: tuple[Kind, ...] = ("message", "fold", "unfold", "mark")
"""The entries that decide what is visible."""

FIRST_STEP, WIDER, LARGEST_STEP = 50, 4, 50_000
"""Entries looked through at first, from the end; by how much wider each further step is, and the widest while there is
nothing of what is looked for."""

CHUNK = 2_000
"""Entries read at a time where a whole history is walked, so that memory stays small."""


class JournalReader:
    """The entries of one session, read from a store."""

    def __init__(self, store: Store, session: str) -> None:
        self.store = store
        self.session = session
        self._cache: dict[int, Message] = {}
        self._shown: dict[tuple[object, ...], Message] = {}
        self._stand_ins: dict[int, tuple[Message | None, ...]] = {}
        self._loaded = (-1, 0)
        self.passed_over = False
        """A stored view was damaged: the next write stores another."""

    def head_at(self, seq: int, scale: Scale) -> Head:
        """Return the head as it was at any entry: the nearest snapshot on its path, and what came after."""
        if seq == ROOT:
            return Head(View(scale, self.show))
        path = self.path(seq)
        last = self.entry(seq)
        head, start = self._from_snapshot(path, seq, scale)
        if head is None:
            head = Head(build(self.walk(path, kinds=VIEW_KINDS), scale, self.show))
            final, call = self.last(path, "message", "call"), self.last(path, "call")
            head.sent = final is not None and final.kind == "call"
            head.prompt_hash = call_meta(call.meta).prompt_hash if call is not None else b""
        else:
            for entry in self.walk(within(path, start + 1, seq)):
                head.apply(entry)
        head.view.at = head.version = seq
        head.hash = last.hash
        return head

    def _from_snapshot(self, path: Sequence[Range], seq: int, scale: Scale) -> tuple[Head | None, int]:
        """Return the last snapshot on the path, unless what came after it can only be understood with the past."""
        for first, last in reversed(path):
            try:
                found = self.store.snapshot(self.session, min(last, seq))
            except DamagedError:
                self.passed_over = True
                break
            if found is None or found[0] < first:
                continue
            start, data = found
            # A snapshot is only a shortcut: the entries say the same, and are read where it is damaged.
            if any(self.walk(within(path, start + 1, seq), kinds=("unfold",))):
                break
            head = Head.from_snapshot(data, self.entry(start), scale, self.show)
            self.passed_over |= head is None
            return head, start
        return None, ROOT

    def path(self, seq: int) -> list[Range]:
        """Return the way from the root to an entry."""
        return path_to(seq, self.store.jumps(self.session))

    def walk(
        self, path: Sequence[Range], *, kinds: Sequence[Kind] | None = None, bodies: bool = False
    ) -> Iterator[Entry]:
        """Return the entries of a path in order."""
        for first, last in path:
            step = CHUNK if kinds is None or not COMMON.isdisjoint(kinds) else max(1, last + 1 - first)
            for start in range(first, last + 1, step):
                yield from self.store.read(self.session, start, min(last, start + step - 1), kinds=kinds, bodies=bodies)

    def walk_back(self, path: Sequence[Range], *kinds: Kind, bodies: bool = False) -> Iterator[Entry]:
        """Return the entries of a path from its end, read as they are asked for."""
        step = FIRST_STEP
        for first, last in reversed(path):
            stop = last
            while stop >= first:
                start = max(first, stop - step + 1)
                found = self.store.read(self.session, start, stop, kinds=kinds, bodies=bodies)
                yield from reversed(found)
                stop, step = start - 1, min(step * WIDER, CHUNK if found else LARGEST_STEP)

    def last(self, path: Sequence[Range], *kinds: Kind) -> Entry | None:
        """Return the last entry of these kinds on a path; `None` when it has none."""
        return next(self.walk_back(path, *kinds), None)

    def entry(self, seq: int, *, body: bool = False) -> Entry:
        """Return an entry by its number."""
        found = self.store.read(self.session, seq, seq, bodies=body)
        if not found:
            raise DamagedError(
                f"entry {seq} of session {self.session!r} is missing",
                remedy="run `windowsill sessions verify` to see what is left",
            )
        return found[0]

    def find(self, id: str, kind: Kind) -> Entry:
        """Return an entry by its id."""
        entry = self.store.find(self.session, id)
        if entry is None or entry.kind != kind:
            raise NotFoundError(
                f"session {self.session!r} has no {kind} {id!r}",
                remedy=f"`{_LISTS.get(kind, 'session.audit')}` lists what it has",
                session=self.session,
                id=id,
            )
        return entry

    def seq_of(self, id: str) -> int:
        """Return the number of any entry."""
        entry = self.store.find(self.session, id)
        if entry is None:
            raise NotFoundError(
                f"session {self.session!r} has no entry {id!r}", remedy="`session.branches` lists the ends"
            )
        return entry.seq

    # Messages

    def thin(self, message: Message, body: bytes, draft: Draft) -> tuple[bytes, tuple[Same, ...]]:
        """Leave outputs that are stored already out of a body; the draft makes new outputs known."""
        kept: list[bytes] = []
        same: list[Same] = []
        start = size = 0
        for first, last in _outputs(message, body):
            name = SAME + output_digest(body[first:last])
            place = self._place_of(name, body[first:last], draft)
            if place is None:
                draft.blobs[name] = msgspec.msgpack.encode(Place(draft.next, size + first - start, last - first))
                continue
            same.append(Same(first, place.length, place.seq, place.offset))
            kept.append(body[start:first])
            size += first - start
            start = last
        return b"".join((*kept, body[start:])) if same else body, tuple(same)

    def _place_of(self, name: str, output: bytes, draft: Draft) -> Place | None:
        """Return where these very bytes stand in the journal, if they do; a note that says otherwise is dropped.

        A note that was damaged must not be believed: what is left out of a body is gone.
        """
        if name in draft.blobs:
            return _place(draft.blobs[name])
        try:
            noted = self.noted_output(name)
        except DamagedError:
            noted = None
        if noted is not None and noted[1] == output:
            return noted[0]
        self.store.drop_blobs(self.session, [name])
        return None

    def noted_output(self, name: str) -> tuple[Place, bytes] | None:
        """Return where an output stands in the journal as it was noted, and the bytes there; `None` without a note."""
        found = self.store.blob(self.session, name)
        if found is None:
            return None
        place = _place(found)
        entries = self.store.read(self.session, place.seq, place.seq, kinds=("message",))
        return place, (entries[0].body or b"")[place.offset : place.offset + place.length] if entries else b""

    def keep_only(self, items: Sequence[Item]) -> None:
        """Forget the messages that are no longer visible."""
        visible = {item.seq for item in items}
        self._cache = {seq: message for seq, message in self._cache.items() if seq in visible}
        self._shown.clear()
        self._stand_ins.clear()

    def load(self, view: View) -> None:
        """Read the messages of a view at once, where they are not in memory yet."""
        known, self._loaded = self._loaded, (view.edits, len(view.items))
        start = known[1] if known[0] == view.edits else 0
        self.load_items(view.items[start:])

    def load_items(self, items: Sequence[Item]) -> None:
        """Read the messages of several items at once, where they are not in memory yet."""
        missing = [item.seq for item in items if not item.fold and item.seq not in self._cache]
        for first, last in _ranges(missing):
            for entry in self.store.read(self.session, first, last, kinds=("message",)):
                self._cache[entry.seq] = self.decode(entry)

    def message(self, seq: int) -> Message:
        """Return a message as it came."""
        found = self._cache.get(seq)
        if found is None:
            found = self._cache[seq] = self.decode(self.entry(seq, body=True))
        return found

    def show(self, item: Item) -> Message:
        """Return what an item shows: a message, with replaced blocks where it was cut, or a stand-in."""
        if not item.fold and not item.cuts:
            return self.message(item.seq)
        key = (item.seq, item.span, tuple((cut.block, cut.fold, cut.span) for cut in item.cuts))
        found = self._shown.get(key)
        if found is None:
            found = self._shown[key] = self._stand_in(item) if item.fold else self._cut(item)
        return found

    def _stand_in(self, item: Item) -> Message:
        message = self._holder(item.fold, item.span)
        return msgspec.structs.replace(message, id=item.id) if message else Message(role=item.role, id=item.id)

    def _cut(self, item: Item) -> Message:
        message = self.message(item.seq)
        blocks = list(message.blocks)
        for cut in item.cuts:
            holder = self._holder(cut.fold, cut.span)
            if holder is not None:
                blocks[cut.block] = holder.blocks[0]
        return msgspec.structs.replace(message, blocks=tuple(blocks), edited=True)

    def _holder(self, fold: int, span: int) -> Message | None:
        """Return what stands for a span; a fold is unpacked once for all its spans: there may be thousands."""
        found = self._stand_ins.get(fold)
        if found is None:
            found = self._stand_ins[fold] = unpack_stand_ins(self.entry(fold, body=True).body or b"")
        return found[span]

    def decode(self, entry: Entry) -> Message:
        """Decode the message of an entry that was read with its body."""
        return message_of(entry, self.store, self.session)

    def problems(self, version: int) -> list[str]:
        """List what is wrong with the stored entries; nothing when every one is as it was written."""
        found: list[str] = []
        parents = {parent for _, parent in self.store.jumps(self.session)}
        hashes = {ROOT: ROOT_HASH}
        before, expected = ROOT_HASH, ROOT + 1
        for entry in self.walk([(1, version)], bodies=True):
            if entry.seq != expected:
                found.append(f"entries {expected} to {entry.seq - 1} are missing")
            parent_hash = before if entry.parent == entry.seq - 1 else hashes.get(entry.parent)
            if parent_hash is None or not is_whole(entry, parent_hash):
                found.append(f"entry {entry.seq} ({entry.kind} {entry.id}) is not what was written")
            before, expected = entry.hash, entry.seq + 1
            if entry.seq in parents:
                hashes[entry.seq] = entry.hash
        if expected != version + 1:
            found.append(f"entries {expected} to {version} are missing")
        return found


def _ranges(numbers: Sequence[int]) -> Iterator[Range]:
    """Join numbers into ranges; small holes are read over, because one read is cheaper than many."""
    start = 0
    for place, number in enumerate(numbers):
        if place + 1 == len(numbers) or numbers[place + 1] - number > NEARBY:
            yield numbers[start], number
            start = place + 1
