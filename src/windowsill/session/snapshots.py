"""Takes a snapshot of a session, and fills a new session from one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from windowsill import formats
from windowsill.checkpoints.snapshot import NO_STATE, About, Snapshot
from windowsill.compose.rendering import without_refs
from windowsill.config import Settings
from windowsill.formats import Format
from windowsill.history.entries import Entry
from windowsill.history.history import Draft
from windowsill.history.view import Item, View
from windowsill.messages import Message, Origin, ToolResult
from windowsill.session.adding import write
from windowsill.session.ledger import Ledger
from windowsill.session.stating import StateMeta
from windowsill.state.state import State

REASON = "begun from a snapshot"

_GIVEN_HERE = re.compile(r"[a-z][0-9]+")
"""Ids that a journal gives by itself: in another journal the same number is another entry."""


def snapshot_of(ledger: Ledger, format: Format, settings: Settings, *, phase: str, state: msgspec.Raw) -> Snapshot:
    """What the model sees at the head, in a wire format, with all that is needed to go on from it."""
    view = ledger.view
    ledger.load(view)
    messages: list[msgspec.Raw] = []
    about: list[About] = []
    names: dict[str, str] = {}
    for item in view.items:
        message = view.read(item)
        names.update((call.id, call.name) for call in message.calls)
        chunks = format.render_message(_alone(message, names, format) if item.results else message)
        messages += map(msgspec.Raw, chunks)
        about.append(_about(item, message, len(chunks)))
    version = ledger.version
    return Snapshot(
        timestamp=ledger.clock(),
        token_count=view.tokens(),
        messages=tuple(messages),
        summary=_summary(view),
        session=ledger.session,
        entry=ledger.entry(version).id if version else None,
        format=format.name,
        model=settings.model,
        phase=phase,
        settings=msgspec.Raw(msgspec.json.encode(settings)),
        state=state,
        about=tuple(about),
    )


def _alone(message: Message, names: Mapping[str, str], format: Format) -> Message:
    """A message with results as it can stand by itself.

    Refs of outputs lead nowhere once the database is lost; and where a format names the tool beside each result, the
    name is that of the call.
    """
    message = without_refs(message)
    if not format.rules.named_results or all(result.name for result in message.results):
        return message
    blocks = tuple(
        msgspec.structs.replace(block, name=block.name or names.get(block.tool_use_id), raw=None)
        if isinstance(block, ToolResult)
        else block
        for block in message.blocks
    )
    return msgspec.structs.replace(message, blocks=blocks, edited=True)


def _about(item: Item, message: Message, count: int) -> About:
    own_id = "" if item.fold or _GIVEN_HERE.fullmatch(item.id) else item.id
    return About(count=count, id=own_id, at=message.at, marks=item.marks, metadata=message.metadata)


def _summary(view: View) -> str | None:
    """The text of the summary that was made last."""
    for item in sorted((item for item in view.items if item.fold), key=lambda item: item.fold, reverse=True):
        message = view.read(item)
        if message.origin == Origin.SUMMARY:
            return message.text
    return None


def fill(ledger: Ledger, snapshot: Snapshot) -> None:
    """Write what a snapshot holds to a session that holds nothing: all of it or nothing."""
    state = State.from_json(bytes(snapshot.state)) if snapshot.state != NO_STATE else None

    def note(draft: Draft, _: list[Entry]) -> None:
        if state is not None:
            draft.record("state", StateMeta("whole", REASON), msgspec.msgpack.encode(state))

    messages = list(_messages(snapshot))
    if messages:
        write(ledger, messages, None, steady=ledger.view.thread, also=note)
    elif state is not None:
        ledger.commit(lambda draft: note(draft, []))


def _messages(snapshot: Snapshot) -> Iterator[Message]:
    format = formats.get(snapshot.format)
    raws = iter(enumerate(snapshot.messages))
    for about in snapshot.about:
        id = about.id
        for _, (place, raw) in zip(range(about.count), raws, strict=False):
            message = format.read_message(bytes(raw), f"messages[{place}]")
            yield msgspec.structs.replace(
                message, id=id, at=about.at, marks=frozenset(about.marks), metadata=about.metadata
            )
            id = ""
    for place, raw in raws:
        # Written by another program, which knows nothing of what stands beside the messages.
        yield format.read_message(bytes(raw), f"messages[{place}]")
