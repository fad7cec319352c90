"""Sessions with tool outputs, for the tests of the outputs room."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from itertools import count

import msgspec

from windowsill.history.entries import ROOT_HASH, seal
from windowsill.history.view import MessageMeta
from windowsill.messages import NEUTRAL, Block, Message, OutputRef, ToolResult
from windowsill.outputs import Limits, Outputs
from windowsill.store import Store
from windowsill.tokens.scale import Weight

NOW = 1_000_000.0


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


def outputs(
    store: Store, session: str = "s", *, clock: Callable[[], float] | None = None, limits: Limits | None = None
):
    """The outputs of a session, made if there is none, with tokens that come in order."""
    store.create(session, at=1.0)
    numbers = count(1)
    prefix = hashlib.sha256(session.encode()).hexdigest()[:4]
    return Outputs(store, session, clock=clock or Clock(), limits=limits, new_token=lambda: f"{prefix}{next(numbers)}")


def say(store: Store, *results: tuple[Block, ...], session: str = "s", refs: tuple[OutputRef | None, ...] = ()) -> int:
    """Append a message with tool results; its number in the journal."""
    message = Message(
        role="user",
        blocks=tuple(ToolResult(tool_use_id=f"c{number}", content=content) for number, content in enumerate(results)),
    )
    info = store.info(session)
    last = store.read(session, info.version, info.version)
    meta = MessageMeta(
        role="user",
        weight=Weight(),
        counter="",
        format=NEUTRAL,
        conversation_hash=b"",
        **({"refs": refs} if refs else {}),
    )
    entry = seal(
        seq=info.version + 1,
        parent=info.version,
        parent_hash=last[0].hash if last else ROOT_HASH,
        kind="message",
        id=f"m{info.version + 1}",
        at=1.0,
        meta=msgspec.msgpack.encode(meta),
        body=msgspec.json.encode(message),
    )
    store.append(session, info.version, [entry])
    return entry.seq
