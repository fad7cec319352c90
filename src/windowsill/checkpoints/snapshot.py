"""A snapshot: what a model saw at one moment, with the state, in one JSON document that can be checked by itself.

The checksum is the last field. It is taken over the bytes before it, as they are: no change of a file goes unseen, and
no number in a message is spelled anew.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from windowsill.errors import DamagedError
from windowsill.messages import Mark

VERSION = "1.0"

NO_STATE = msgspec.Raw(b"null")
"""The state of a session that keeps none."""

_BEFORE = b',"checksum":"'
_AFTER = b'"}'
_HEX = 64


class About(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of one thing that the model saw, besides what it said."""

    count: int = 1
    """How many of `messages`, one after the other, it is in the wire format."""
    id: str = ""
    at: float = 0.0
    marks: tuple[Mark, ...] = ()
    metadata: dict[str, Any] = {}


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What a session is begun from when its database is lost."""

    version: str = VERSION
    timestamp: float
    """Seconds since the epoch, UTC."""
    token_count: int
    messages: tuple[msgspec.Raw, ...]
    """What the model saw, in `format`: it is as large as the window lets it be, whatever the history has."""
    summary: str | None = None
    """The newest summary among them, by itself."""
    session: str
    entry: str | None = None
    """The id of the last entry then."""
    format: str
    model: str | None = None
    phase: str = ""
    settings: msgspec.Raw = msgspec.Raw(b"{}")
    state: msgspec.Raw = NO_STATE
    about: tuple[About, ...] = ()


def pack(snapshot: Snapshot) -> bytes:
    """A snapshot as the bytes of a file."""
    body = msgspec.json.encode(snapshot)
    return b"".join((body[: -len(b"}")], _BEFORE, _sum(body), _AFTER))


def unpack(data: bytes) -> Snapshot:
    """The snapshot in the bytes of a file; `DamagedError` says what is wrong with them."""
    if not data:
        raise _damaged("it is empty")
    tail = len(_BEFORE) + _HEX + len(_AFTER)
    end = data[-tail:]
    if len(data) <= tail or not end.startswith(_BEFORE) or not end.endswith(_AFTER):
        raise _damaged("it does not end with a checksum")
    body = data[:-tail] + b"}"
    if end[len(_BEFORE) : -len(_AFTER)] != _sum(body):
        raise _damaged("it is not what was written")
    try:
        version = msgspec.json.decode(body, type=_Version).version
        if version == VERSION:
            return msgspec.json.decode(body, type=Snapshot)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _damaged(f"it is no snapshot ({error})") from None
    raise _damaged(f"it has version {version!r}, and this Windowsill reads {VERSION!r}")


class _Version(msgspec.Struct):
    version: str


def _sum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()


def _damaged(why: str) -> DamagedError:
    return DamagedError(why, remedy="use the snapshot before it")
