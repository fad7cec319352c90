"""The journal's entries: everything that ever happened to a session, in order, each bound to its parent by a hash.

Entries form a tree: `parent` is the entry this one builds on, which is the entry before it unless the session was
rewound. The head is always the last entry, so there is no pointer that could be lost.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from windowsill.errors import DamagedError
from windowsill.history.repair import numbered_name
from windowsill.messages import Block, Document, Image, Message, Reasoning, Text, ToolResult, ToolUse

Kind: TypeAlias = Literal["message", "fold", "unfold", "mark", "call", "usage", "rewind", "label", "state", "tools"]

COMMON: frozenset[Kind] = frozenset({"message", "call", "usage", "state"})
"""The kinds that every turn writes. Stores find the others without walking these."""

ROOT = 0
"""The sequence number that stands for 'before everything'."""

ROOT_HASH = b"\0" * 32


class Entry(msgspec.Struct, frozen=True):
    """One thing that happened.

    `meta` is small and always loaded; `body` is what may be large (a message as it came) and is `None` when it was left
    in the store.
    """

    seq: int
    parent: int
    kind: Kind
    id: str
    at: float
    meta: bytes
    body: bytes | None
    hash: bytes
    body_hash: bytes
    """The hash of `body`, so that the chain can be checked without reading every body."""


class Same(msgspec.Struct, frozen=True, array_like=True):
    """Bytes that an entry's body shares with an earlier one and does not hold a second time."""

    at: int
    """Their place, in bytes from the start of the whole body."""
    length: int
    seq: int
    """The entry whose stored body has them."""
    offset: int


T = TypeVar("T")


def reader(type: type[T]) -> Callable[[bytes], T]:
    """Return a decoder for what an entry says; it raises `DamagedError` when that is not what was written."""
    decode = msgspec.msgpack.Decoder(type).decode

    def read(data: bytes) -> T:
        try:
            return decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DamagedError(
                f"an entry of the journal is damaged: {error}",
                remedy="`windowsill sessions verify` says which; restore a backup",
            ) from None

    return read


def seal(
    *, seq: int, parent: int, parent_hash: bytes, kind: Kind, id: str, at: float, meta: bytes, body: bytes = b""
) -> Entry:
    """Make an entry that is bound to its parent."""
    body_hash = hashlib.sha256(body).digest()
    at = float(at)  # as stores give it back, since its spelling is hashed
    return Entry(
        seq=seq,
        parent=parent,
        kind=kind,
        id=id,
        at=at,
        meta=meta,
        body=body,
        hash=chain_hash(parent_hash, parent, kind, id, at, meta, body_hash),
        body_hash=body_hash,
    )


def reseal(entry: Entry, parent_hash: bytes, meta: bytes, body: bytes) -> Entry:
    """Make an entry in the place of another, which says this and is bound to its parent as that is now."""
    seq, parent, kind, id, at = entry.seq, entry.parent, entry.kind, entry.id, entry.at
    return seal(seq=seq, parent=parent, parent_hash=parent_hash, kind=kind, id=id, at=at, meta=meta, body=body)


def chain_hash(parent_hash: bytes, parent: int, kind: str, id: str, at: float, meta: bytes, body_hash: bytes) -> bytes:
    """Hash everything an entry says and everything before it."""
    # Lengths stand before each variable part, so that no two different entries feed the same bytes.
    head = f"{parent}:{kind}:{len(id)}:{id}:{at!r}:{len(meta)}:".encode()
    return hashlib.sha256(b"".join((parent_hash, head, meta, body_hash))).digest()


def is_whole(entry: Entry, parent_hash: bytes) -> bool:
    """Tell whether an entry still says what it said when it was sealed."""
    if entry.body is not None and hashlib.sha256(entry.body).digest() != entry.body_hash:
        return False
    return (
        chain_hash(parent_hash, entry.parent, entry.kind, entry.id, entry.at, entry.meta, entry.body_hash) == entry.hash
    )


Range: TypeAlias = tuple[int, int]


def path_to(head: int, jumps: Sequence[tuple[int, int]]) -> list[Range]:
    """Return the path to `head`, oldest first; `jumps` are the entries whose parent is not the one before.

    An entry that is said to follow itself or a later one is a `DamagedError`: its path would have no end.
    """
    starts = [seq for seq, _ in jumps]
    ranges: list[Range] = []
    while head != ROOT:
        index = bisect_right(starts, head) - 1
        first, before = jumps[index] if index >= 0 else (ROOT + 1, ROOT)
        if not ROOT <= before < first:
            raise DamagedError(
                f"an entry of the journal is damaged: {first} is said to follow {before}",
                remedy="`windowsill sessions verify` says more; restore a backup",
            )
        ranges.append((first, head))
        head = before
    return ranges[::-1]


def on_path(ranges: Sequence[Range], seq: int) -> bool:
    """Tell whether an entry lies on a path."""
    index = bisect_right(ranges, seq, key=lambda each: each[0]) - 1
    return index >= 0 and ranges[index][0] <= seq <= ranges[index][1]


def within(ranges: Sequence[Range], first: int, last: int) -> list[Range]:
    """Return the part of a path between two entries, both included."""
    cut = ((max(start, first), min(stop, last)) for start, stop in ranges)
    return [(start, stop) for start, stop in cut if start <= stop]


START = b""
"""The fingerprint before any message."""


def extend_exactly(before: bytes, message: Message) -> bytes:
    """Return the fingerprint of everything up to and including `message`, ids and reasoning included."""
    content = _pack([message.role, [_content(block) for block in message.blocks]])
    return hashlib.blake2b(before + content, digest_size=16).digest()


def extend(before: bytes, role: str, parts: Sequence[bytes]) -> bytes:
    """Return the fingerprint of a conversation, as its client may send it again, after a message of these parts.

    A client gives an answer back without its reasoning, with its words joined, or in more or fewer messages than it
    came in: that is the same conversation. A leading system prompt is not part of it: programs put the time of
    day there.
    """
    if role == "system" and before == START:
        return before
    for part in parts:
        before = hashlib.blake2b(before + part, digest_size=16).digest()
    return before


def of_message(parts: Sequence[bytes]) -> bytes:
    """Return the fingerprint of a message by itself from its pieces; empty when it has none."""
    return hashlib.blake2b(b"".join(parts), digest_size=16).digest() if parts else b""


def pieces(message: Message) -> tuple[bytes, ...]:
    """Return a fingerprint of each piece of a message: its words, then whatever else it holds."""
    words = "".join([block.text for block in message.blocks if isinstance(block, Text)]).strip()
    found: list[list[Any]] = [["text", words]] if words else []
    for block in message.blocks:
        if not isinstance(block, Text | Reasoning):
            content = _content(block)
            if isinstance(block, ToolUse | ToolResult):
                content[1] = _given(content[1])
            found.append(content)
    return tuple([hashlib.blake2b(_pack([message.role, each]), digest_size=16).digest() for each in found])


def _pack(value: Any) -> bytes:
    """Encode a value to be hashed; integers above 64 bits, for which MessagePack has no room, as JSON."""
    try:
        return msgspec.msgpack.encode(value)
    except OverflowError:
        return msgspec.json.encode(value)


def _given(id: str) -> str:
    """Return the id of a call, unless it was made up here for a call without one."""
    return "" if numbered_name(id) is not None else id


def _content(block: Block) -> list[Any]:
    match block:
        case Text():
            return ["text", block.text]
        case ToolUse():
            return ["call", block.id, block.name, _plain(block.arguments)]
        case ToolResult():
            return ["result", block.tool_use_id, block.is_error, [_content(inner) for inner in block.content]]
        case Reasoning():
            return ["reasoning", block.text, block.signature, block.data]
        case Image():
            return ["image", block.media_type, block.data, block.url]
        case Document():
            return ["document", block.media_type, block.data, block.url, block.text, block.title]
        case _:
            value = _plain((block.raw or b"").decode())
            if isinstance(value, dict):
                # An SDK gives back the fields that were absent as nulls.
                value = {key: each for key, each in value.items() if each is not None and key != "cache_control"}
            return ["unknown", block.type, value]


def _plain(text: str) -> Any:
    """Decode JSON text, keys in order, so that its spelling does not count."""
    try:
        return _ordered(msgspec.json.decode(text.encode()))
    except (msgspec.DecodeError, RecursionError):
        return text


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    return value


_INJECTED = re.compile(
    r"""\s*(?:
        <(?:system-reminder|command-name|command-message|command-args|local-command-\w+|environment_context
           |user-prompt-submit-hook|bash-\w+|task-notification|context|file|ide_\w+|tool_\w+|function_results)\b
        | \[Request\ interrupted\ by\ user
        | \[(?:Memory|Context)\ Summary\]
        | Caveat:\ The\ messages\ below
        | This\ session\ is\ being\ continued\ from\ a\ previous\ conversation
        | Your\ tool\ call\ was\ malformed
        | \[SYSTEM
    )""",
    re.VERBOSE | re.IGNORECASE,
)


def own_words(message: Message) -> str:
    """Return what the user typed in this message; empty when a program wrote all of it."""
    if message.role != "user" or message.results:
        return ""
    return "\n".join(block.text.strip() for block in message.blocks if isinstance(block, Text) and is_own(block.text))


def is_own(text: str) -> bool:
    """Tell whether a text under the user role reads like the user's own."""
    return bool(text.strip()) and _INJECTED.match(text) is None
