"""Take secrets out of what is exported: entries, parts of requests and kept outputs, with hashes that hold again.

Whatever depends on the words that changed is made anew: the hash chain, fingerprints (which would let somebody try out
what a short secret was), the names of parts and outputs, and the weight of a message, which is counted when the session
is opened. Where nothing is found everything stays as it is, byte for byte.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from windowsill import providers
from windowsill.history.entries import ROOT, ROOT_HASH, START, Entry, extend, is_whole, of_message, pieces, reseal
from windowsill.history.folds import MessageSpan, pack_stand_ins, unpack_stand_ins
from windowsill.history.head import call_meta
from windowsill.history.view import fold_meta, message_meta
from windowsill.journal.reader import whole_body
from windowsill.messages import NEUTRAL, ORIGIN, Message, Tool
from windowsill.secrets import default_redactor
from windowsill.secrets.documents import redact_for_export, redact_json, redact_value
from windowsill.store import Store

UNCOUNTED = ""
"""The counter of a message whose weight is not known: it is weighed when the session is opened."""

HELD_BACK = 32_768
"""Bytes at the end of a piece that wait for the next one: a private key can begin in one and end in the other."""

_pack = msgspec.msgpack.Encoder().encode


class Redaction:
    """One export without secrets: give it everything in the order it is written."""

    def __init__(self, store: Store, session: str) -> None:
        self.changed = 0
        """From how many entries, parts and outputs something was taken out."""
        self._store = store
        self._session = session
        self._refs: dict[bytes, bytes] = {}
        self._blobs: dict[str, str] = {}
        self._prompts: dict[bytes, bytes] = {}
        self._hashes = {ROOT: (ROOT_HASH, ROOT_HASH)}
        self._conversations = {ROOT: (START, START)}
        """The fingerprint of the conversation at each entry, before and after secrets were taken out."""
        self._rewritten: set[int] = set()

    def settings(self, settings: bytes) -> bytes:
        """Take secrets out of the settings of the session."""
        return self._counted(settings, redact_json(settings, default_redactor().known))

    def output(self, ref: str, pieces: Iterable[bytes]) -> str:
        """Return the ref that a kept output has without secrets; it is read through once for that."""
        before, after = hashlib.sha256(), hashlib.sha256()

        def read() -> Iterator[bytes]:
            for piece in pieces:
                before.update(piece)
                yield piece

        for piece in redact_pieces(read()):
            after.update(piece)
        if before.digest() == after.digest():
            return ref
        self.changed += 1
        new = "b" + after.hexdigest()[: len(ref) - 1]
        self._refs[ref.encode()] = new.encode()
        return new

    def blob(self, id: str, data: bytes, name: str) -> tuple[str, bytes]:
        """Take secrets out of a part of requests; return its new id too."""
        clean = self._counted(data, _part(data, name))
        if clean != data:
            self._blobs[id] = hashlib.sha256(clean).hexdigest()[: len(id)]
        return self._blobs.get(id, id), clean

    def entry(self, entry: Entry) -> Entry:
        """Take secrets out of an entry, and bind it to the one before it as that is now."""
        body = entry.body or b""
        self._conversations[entry.seq] = self._conversations[entry.parent]
        match entry.kind:
            case "message":
                meta, body = self._message(entry)
            case "fold":
                meta, body = self._fold(entry.meta, body)
            case "call":
                meta = self._call(entry.meta)
            case _:
                meta, body = (self._counted(each, _packed(self._renamed(each))) for each in (entry.meta, body))
        was, now = self._hashes[entry.parent]
        made = reseal(entry, now, meta, body)
        if not is_whole(entry, was):
            # What was damaged before must not look sound afterwards.
            made = msgspec.structs.replace(made, hash=entry.hash)
        self._hashes[entry.seq] = (entry.hash, made.hash)
        if made.body_hash != entry.body_hash:
            self._rewritten.add(entry.seq)
        return made

    def _message(self, entry: Entry) -> tuple[bytes, bytes]:
        meta, kept = message_meta(entry.meta), entry.body or b""
        body = whole_body(kept, meta.same, self._store, self._session) if meta.same else kept
        clean = self._counted(body, self._renamed(_message_body(body, meta.format)))
        known: dict[str, Any] = {
            "metadata": redact_value(meta.metadata),
            "prompt_hash": self._prompts.get(meta.prompt_hash, meta.prompt_hash),
            "refs": tuple(
                ref and msgspec.structs.replace(ref, id=self._renamed(ref.id.encode()).decode()) for ref in meta.refs
            ),
        }
        if clean != body or any(each.seq in self._rewritten for each in meta.same):
            # What it shares with an earlier message may be gone there, or stand elsewhere.
            kept, known["same"] = clean, ()
        was, now = self._conversations[entry.parent]
        if clean != body or now != was:
            neutral = meta.format == NEUTRAL
            found = pieces(
                msgspec.json.decode(clean, type=Message)
                if neutral
                else providers.get(meta.format).read_message(clean, entry.id)
            )
            known["conversation_hash"] = now if ORIGIN in meta.metadata else extend(now, meta.role, found)
            known["fingerprint"] = of_message(found)
        if clean != body:
            known["counter"] = UNCOUNTED
        new = msgspec.structs.replace(meta, **known)
        self._conversations[entry.seq] = (meta.conversation_hash, new.conversation_hash)
        return (_pack(new) if new != meta else entry.meta), kept

    def _fold(self, meta: bytes, body: bytes) -> tuple[bytes, bytes]:
        fold = fold_meta(meta)
        spans = tuple(
            msgspec.structs.replace(span, facts=redact_value(span.facts)) if isinstance(span, MessageSpan) else span
            for span in fold.spans
        )
        new = msgspec.structs.replace(fold, spans=spans, reason=default_redactor().redact(fold.reason))
        held = unpack_stand_ins(body)
        clean = tuple(stand and redact_for_export(stand) for stand in held)
        return (
            self._counted(meta, self._renamed(_pack(new) if new != fold else meta)),
            self._counted(body, self._renamed(pack_stand_ins(clean) if clean != held else body)),
        )

    def _call(self, meta: bytes) -> bytes:
        call = call_meta(meta)
        blobs = {name: self._blobs.get(id, id) for name, id in call.blobs.items()}
        if blobs == call.blobs:
            return meta
        new = msgspec.structs.replace(call, blobs=blobs)
        self._prompts[call.prompt_hash] = new.prompt_hash
        return _pack(new)

    def _counted(self, old: bytes, new: bytes) -> bytes:
        self.changed += new != old
        return new

    def _renamed(self, data: bytes) -> bytes:
        """Put in the new names of outputs, which are as long as the old ones."""
        for old, new in self._refs.items():
            data = data.replace(old, new)
        return data


def redact_pieces(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Take secrets out of an output, piece by piece; one that stands in two pieces is found too."""
    held = b""
    for piece in pieces:
        data = held + piece
        end = _end(data)
        held = data[end:]
        if end:
            yield default_redactor().redact_bytes(data[:end])
    if held:
        yield default_redactor().redact_bytes(held)


def _end(data: bytes) -> int:
    """Find where a piece can be cut so that no secret is: after a line or a word, and before a key without an end."""
    least = max(0, len(data) - HELD_BACK)
    end = data.rfind(b"\n", least) + 1 or data.rfind(b" ", least) + 1 or least
    begin = data.rfind(b"-----BEGIN ", max(0, end - HELD_BACK), end)
    return begin if begin >= 0 and data.find(b"-----END ", begin, end) < 0 else end


def _message_body(body: bytes, format: str) -> bytes:
    if format != NEUTRAL:
        return redact_json(body)
    # Inside it are the bytes that blocks came as, spelled as base64.
    message = msgspec.json.decode(body, type=Message)
    clean = redact_for_export(message)
    return body if clean is message else msgspec.json.encode(clean)


def _part(data: bytes, name: str) -> bytes:
    """Take secrets out of a part of a request: a message, tools with the bytes they came as, or JSON."""
    if name == "system":
        return _message_body(data, NEUTRAL)
    if name != "tools":
        return redact_json(data)
    tools = msgspec.json.decode(data, type=tuple[Tool, ...])
    clean = tuple(
        msgspec.structs.replace(
            tool,
            description=default_redactor().redact(tool.description),
            schema=redact_value(tool.schema),
            raw=tool.raw and redact_json(tool.raw),
        )
        for tool in tools
    )
    return data if clean == tools else msgspec.json.encode(clean)


def _packed(data: bytes) -> bytes:
    """Take secrets out of data that was packed with a type that is not known here."""
    try:
        value = msgspec.msgpack.decode(data) if data else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return default_redactor().redact_bytes(data)
    clean = redact_value(value)
    return data if clean == value else _pack(clean)
