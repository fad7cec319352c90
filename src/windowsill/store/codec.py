"""The bytes of messages as databases keep them: compressed where that is shorter, encrypted where there is a key.

A key is 32 random bytes in base64, taken from `WINDOWSILL_KEY`. A store that is made while there is one is encrypted
for good: a fact in it tells its key from others. What databases search by stays readable: names, ids, times, sizes,
hashes, and the search index.
"""

# ruff: noqa: PLC0415 - `cryptography` is an extra, and takes a moment to load

from __future__ import annotations

import base64
import binascii
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from windowsill.errors import DamagedError, InputError, StoreError, log
from windowsill.extras import extra
from windowsill.history.entries import Entry
from windowsill.store import SessionInfo

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

VARIABLE = "WINDOWSILL_KEY"
MARK, DELETED, CLOCK = "encryption", "deleted", "clock"
"""Facts about the store itself, which are never copied to another: its key, how many sessions it deleted, its clock."""

SETTINGS = "settings"
"""The place of a session's settings."""
BLOB = "blob "
"""Before the id of a blob: its place."""
FACTS, FILES = "\0facts", "\0files"
"""Stand for the session of what belongs to none: no session has such a name."""

SINCE_ENCRYPTED = (
    "the store was encrypted after this process had opened it, and takes nothing readable",
    f"set {VARIABLE} to its key and open it again; nothing was written",
)
"""The meaning of a refusal by the database, and the remedy."""

_VERSION = b"1"
"""Before the mark: keys are used in one way so far."""
_KEY_BYTES = 32
_NONCE_BYTES = 12
_SESSIONS = 256
"""Sessions whose keys are kept at hand."""

_FIRST = 0xC1
"""No JSON, no MessagePack and no UTF-8 begins with this byte: what begins with another is kept as it came."""
_PLAIN, _DEFLATED, _ENCRYPTED, _META = (bytes((_FIRST, form)) for form in range(4))

_TINY = 6
"""Bytes below which nothing is shorter packed."""

_LONG = 150
"""Bytes from which settings and facts are worth the time to pack them."""

_SHORT = 600
"""Bytes up to which a small window, which takes no time to make, holds a meta with its dictionary."""

_LARGE = 65_536
"""Bytes from which speed counts more than a few percent of room."""

_DICTIONARY = (
    b"\xa8messages\xa6tokens\xa6ledger\xa8requests\xa4text\xa2id\xa5files\xa8commands\xa6errors\xa8strategy\xa6reason"
    b"\x88\xa2at\x01\xa6format\xa9anthropic\xa6openai\xa5model\xa5blobs\x82\xa6system\xd9 \xa5tools\xd9 \xa6tokens\xcd"
    b"\xa6cached\xcd\xabbreakpoints\x86\xa7minimum\xcd\x04\x00\xa6system\x07\xa4head\x01\xabhead_blocks\x01\xa8previous\x00"
    b"\xa7passing\x00\xa7demands\x81\xacno_reasoning\xc3"
    b"the function of this and that with error: Traceback (most recent call last): File line import from return def "
    b'class self None True False https://www. .com/ .py .md .json","total","status":"success","message":"","date":"202'
    b'"parts":[{"text":""}],"role":"model","functionCall":{"name":"","args":{"functionResponse":{"name":"","response":{'
    b'"type":"function_call","call_id":"","type":"function_call_output","output":"","type":"message","output_text"'
    b'{"type":"thinking","thinking":"","signature":""},{"type":"image","source":{"type":"base64","media_type":"image/png"'
    b'"cache_control":{"type":"ephemeral"}},"stop_reason":"end_turn","usage":{"input_tokens":,"output_tokens":'
    b'{"role":"system","content":"You are {"role":"tool","tool_call_id":"call_","name":"","content":"{\\"id\\": \\"'
    b'{"role":"assistant","content":null,"tool_calls":[{"id":"call_","type":"function","function":{"name":"get_",'
    b'"arguments":"{\\"path\\": \\"query\\": \\"}"}}]}{"role":"user","content":"'
    b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01","content":"","is_error":false}]}'
    b'{"role":"assistant","content":[{"type":"text","text":""},{"type":"tool_use","id":"toolu_01","name":"Bash",'
    b'"input":{"command":"","description":"","file_path":"","old_string":"","new_string":"'
)
"""Words that messages are full of: a part of the stored format that never changes. A better list is another form."""

_META_DICTIONARY = (
    b"\xa8messages\xa6tokens\xa6ledger\xa8requests\xa4text\xa2id\xa5files\xa8commands\xa6errors\xa8strategy\xa6reason"
    b"\x88\xa2at\x0b\xa6format\xa6gemini\xa5model\xa6gpt-4o\xb1claude-sonnet-4-5\xa5blobs\x82\xa6system\xd9 \xa5tools"
    b"\xd9 \xa6tokens\xcd\xa6cached\xcd"
    b"\xabbreakpoints\x86\xa7minimum\xcd\x04\x00\xa6system\x07\xa4head\x01\xabhead_blocks"
    b"\x01\xa8previous\x00\xa7passing\x00\xa7demands\x81\xacno_reasoning\xc3"
    b"\xb6gemma3/gemini/gemini/2\xbco200k_base/openai/openai-5/2"
    b"\x92\xbetoolu_01\xbetoolu_01\x92\xa4Bash\xa4Read\x90\x90\xc2\xc2\x80\xc2\xc4\x10"
    b"\x00\x00\xd9 o200k_base/anthropic/anthropic/2\xa9anthropic\xc4\x10\x90\x90\x90\x90\xc2\xc3\x80\xc2\xc4\x10"
    b"\x91\xa2c0\x90\xc2\xc2\x80\xc2\xc4\x10\xdc\x00\x11\xa6system\x99\xdc\x00\x11\xa4user\x99\xdc\x00\x11\xa9assistant\x99"
    b"\x00\x00\x00\x00\x04\xcc\x00\x00\xbdo200k_base/openai/openai-4o/2\xa6openai\xc4\x10\x90\x90\x90\x90\xc2\xc2\x80\xc2\xc4\x10"
    b"\xc4\x00\x90\x90"
)
"""Bytes that the meta of entries is full of: they never change either."""


class _Facts(Protocol):
    """The part of a store that a key is chosen by."""

    def recall(self, key: str) -> bytes | None: ...

    def remember(self, key: str, value: bytes) -> None: ...

    def sessions(self) -> Sequence[object]: ...

    def exclusive(self, session: str) -> AbstractContextManager[object]: ...


def new_key() -> str:
    """Make a key."""
    return base64.urlsafe_b64encode(os.urandom(_KEY_BYTES)).decode()


class Key:
    """Encrypts with AES-256-GCM, each session under a key of its own that is derived from this one."""

    def __init__(self, text: str) -> None:
        try:
            secret = base64.b64decode(text.strip().translate(str.maketrans("-_", "+/")), validate=True)
        except (binascii.Error, ValueError):
            secret = b""
        if len(secret) != _KEY_BYTES:
            raise InputError(f"{VARIABLE} is not a key", remedy="`windowsill store key` makes one; keep it safe")
        with extra("encryption", f"a key in {VARIABLE}"):
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
            from cryptography.hazmat.primitives.hashes import SHA256
            from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
        self._invalid = InvalidTag

        def cipher(session: str) -> AESGCM:
            return AESGCM(HKDFExpand(SHA256(), _KEY_BYTES, b"windowsill/" + session.encode()).derive(secret))

        self._cipher = lru_cache(_SESSIONS)(cipher)

    def encrypt(self, data: bytes, session: str, place: str) -> bytes:
        """Encrypt data that can be read at this place of this session alone."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher(session).encrypt(nonce, data, place.encode())

    def decrypt(self, data: bytes, session: str, place: str) -> bytes | None:
        """Return what was encrypted for this place; `None` when it was changed, or by another key."""
        try:
            return self._cipher(session).decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], place.encode())
        except (self._invalid, ValueError):
            return None


class Packing:
    """Packs what a store is given to keep; without `compress` and a key it is kept as it comes.

    What cannot be unpacked is a `DamagedError`, except in entries and views, whose hashes tell.
    """

    def __init__(self, key: Key | None = None, *, compress: bool = True, metas: bool = True) -> None:
        self.key = key
        self._compress = compress
        self._metas = compress and metas

    def pack(self, data: bytes, session: str, place: str) -> bytes:
        """Return the bytes that stand for a body, blob or view in the database."""
        if not self._compress or not data:
            return data
        # Large blobs are the parts of outputs, which are searched whole: reading them is what counts.
        packed = _plain(data) if len(data) > _LARGE and place.startswith(BLOB) else _packed(data)
        return self._encrypted(packed, session, place)

    def _encrypted(self, packed: bytes, session: str, place: str) -> bytes:
        return packed if self.key is None or not packed else _ENCRYPTED + self.key.encrypt(packed, session, place)

    def unpack(self, stored: bytes, session: str, place: str) -> bytes:
        """Return the bytes that were packed."""
        # What is large is stored plainly as a rule, and is not copied.
        if self.key is not None and stored.startswith(_ENCRYPTED):
            stored = _found(self.key.decrypt(stored[2:], session, place), session, place)
        form = stored[:2]
        if form in (_DEFLATED, _META):
            dictionary = _DICTIONARY if form == _DEFLATED else _META_DICTIONARY
            return _found(_inflated(stored[2:], dictionary), session, place)
        if form == _ENCRYPTED:
            raise DamagedError(
                f"the {place} of session {session!r} is encrypted, and the store does not say with which key",
                remedy="put a backup of the store in its place",
            )
        return stored[2:] if form == _PLAIN else stored

    def hide(self, data: bytes, session: str, place: str) -> bytes:
        """Return what stands for something that is small as a rule: it is packed if it is long, or to be encrypted."""
        small = self.key is None and len(data) < _LONG and data[:1] != _PLAIN[:1]
        return data if small else self.pack(data, session, place)

    def pack_entries(self, session: str, entries: Sequence[Entry]) -> list[tuple[bytes, bytes]]:
        """Return what stands for the meta and the body of each entry."""
        return [
            (self._pack_meta(e.meta, session, f"meta {e.seq}"), self.pack(e.body or b"", session, f"body {e.seq}"))
            for e in entries
        ]

    def _pack_meta(self, meta: bytes, session: str, place: str) -> bytes:
        if not self._metas:
            return self.hide(meta, session, place)
        return self._encrypted(_packed(meta, meta=True), session, place)

    def pack_blobs(self, session: str, blobs: Iterable[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
        """Return what stands for blobs."""
        return [(id, self.pack(data, session, BLOB + id)) for id, data in blobs]

    def pack_views(self, session: str, views: Iterable[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        """Return what stands for views."""
        return [(seq, self.pack(data, session, f"view {seq}")) for seq, data in views]

    def to_entry(self, session: str, row: Sequence[Any]) -> Entry:
        """Return the entry of a row."""
        seq, parent, kind, id, at, meta, body, hash, body_hash = row
        if meta and meta[0] == _FIRST:
            meta = self._as_it_is(meta, session, f"meta {seq}")
        if body and body[0] == _FIRST:
            body = self._as_it_is(body, session, f"body {seq}")
        return Entry(seq, parent, kind, id, at, meta, body, hash, body_hash)

    def to_blob(self, session: str, id: str, stored: bytes) -> bytes:
        """Return a blob."""
        return self.unpack(stored, session, BLOB + id)

    def to_view(self, session: str, seq: int, stored: bytes) -> tuple[int, bytes]:
        """Return a view with the number of its entry."""
        return seq, self._as_it_is(stored, session, f"view {seq}")

    def to_info(self, row: Sequence[Any]) -> SessionInfo:
        """Return what a row tells of a session."""
        id, created, updated, version, settings = row
        return SessionInfo(id, created, updated, version, self._as_it_is(settings, id, SETTINGS))

    def _as_it_is(self, stored: bytes, session: str, place: str) -> bytes:
        """Unpack what a hash is known of; what cannot be unpacked stays as it is stored, as the hash tells."""
        try:
            return self.unpack(stored, session, place)
        except DamagedError as error:
            log.info("%s", error)
            return stored


def packing_of(store: _Facts, place: str, *, compress: bool = True, metas: bool = True) -> Packing:
    """Return the packing of a store that was just opened, with the key that it was made with, if with any."""
    stated = stated_keys(os.environ)
    mark = store.recall(MARK)
    if mark is None and stated:
        with store.exclusive(MARK):
            mark = store.recall(MARK)
            if mark is None and not store.sessions():
                _refuse_unpacked(place, compress=compress)
                mark = _VERSION + stated[0].encrypt(b"", FACTS, MARK)
                store.remember(MARK, mark)
        if mark is None:
            log.warning(
                "%s was made without a key and stays readable; `windowsill store copy` takes its sessions to a new, "
                "encrypted one",
                place,
            )
    return Packing(fitting_key(mark, stated, place), compress=compress, metas=metas)


def stated_keys(env: Mapping[str, str]) -> list[Key]:
    """Return the keys in the environment: the first is that of new stores, the others open older ones."""
    return [Key(text) for text in env.get(VARIABLE, "").split(",") if text.strip()]


def fitting_key(mark: bytes | None, stated: Sequence[Key], place: str) -> Key | None:
    """Return the key by which a store was marked; `None` for one that is not encrypted."""
    if mark is None:
        return None
    for key in stated:
        if key.decrypt(mark.removeprefix(_VERSION), FACTS, MARK) is not None:
            return key
    if stated:
        what, remedy = f"with another key than that in {VARIABLE}", "set it to the key of this store"
    else:
        what, remedy = "and there is no key", f"set {VARIABLE} to the key they were encrypted with"
    raise StoreError(f"the sessions at {place} are encrypted, {what}", remedy=remedy)


def seal_file(data: bytes) -> bytes:
    """Return the bytes of a file beside a store: encrypted, if there is a key."""
    stated = stated_keys(os.environ)
    return Packing(stated[0]).pack(data, FILES, "file") if stated else data


def open_file(stored: bytes) -> bytes:
    """Return the bytes that were sealed, with any of the keys that are stated."""
    if stored[:2] != _ENCRYPTED:
        return stored
    for key in stated_keys(os.environ):
        with suppress(DamagedError):
            return Packing(key).unpack(stored, FILES, "file")
    raise StoreError("the file is encrypted", remedy=f"set {VARIABLE} to the key it was encrypted with")


def _refuse_unpacked(place: str, *, compress: bool) -> None:
    if not compress:
        raise StoreError(f"the schema of {place} is too old to be encrypted", remedy="run `windowsill store migrate`")


def _found(data: bytes | None, session: str, place: str) -> bytes:
    if data is None:
        raise DamagedError(
            f"the {place} of session {session!r} is not what was written",
            remedy="run `windowsill sessions verify` to see what is left, or put a backup in its place",
        )
    return data


def _packed(data: bytes, *, meta: bool = False) -> bytes:
    """Return compressed data, if that is shorter."""
    size = len(data)
    if size < _TINY:
        return _plain(data)
    form, words = (_META, _META_DICTIONARY) if meta else (_DEFLATED, _DICTIONARY)
    # Made for each message, in memory that is cold after the disk was waited for: as little of it as holds the data.
    bits = min((size + len(words)).bit_length(), zlib.MAX_WBITS)
    memory = zlib.DEF_MEM_LEVEL - (bits < zlib.MAX_WBITS)
    if meta and size < _SHORT:
        bits, memory = 11, 3
    packer = zlib.compressobj(1 if size > _LARGE else 6, zlib.DEFLATED, -bits, memory, zlib.Z_DEFAULT_STRATEGY, words)
    packed = form + packer.compress(data) + packer.flush()
    return packed if len(packed) < size else _plain(data)


def _plain(data: bytes) -> bytes:
    """Return data as it came, marked if it begins as what is packed does."""
    return _PLAIN + data if data[:1] == _PLAIN[:1] else data


def _inflated(packed: bytes, words: bytes) -> bytes | None:
    unpacker = zlib.decompressobj(wbits=-zlib.MAX_WBITS, zdict=words)
    try:
        data = unpacker.decompress(packed)
    except zlib.error:
        return None
    return data if unpacker.eof and not unpacker.unused_data else None
