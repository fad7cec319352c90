"""`windowsill sessions show`."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from windowsill.cli.output import Column, print_json, print_table
from windowsill.cli.sessions.place import json_option, known, moment, opened_session, store_option
from windowsill.history.view import message_meta
from windowsill.messages import Message, Text
from windowsill.session import Session
from windowsill.session.records import FoldRecord
from windowsill.store import Store
from windowsill.text import shorten

PREVIEW = 60
"""Characters of a message that a list shows."""


class MessageState(msgspec.Struct, frozen=True):
    """A message of the current branch, and whether the model sees it."""

    id: str
    role: str
    at: float
    tokens: int
    state: str
    """`visible`, `cut` (a part of it is replaced) or `hidden`."""
    fold: str | None
    """The fold that hides it."""
    text: str


@click.command()
@click.argument("id")
@click.option("--messages", "with_messages", is_flag=True, help="List every message, visible or hidden.")
@store_option
@json_option
def show(id: str, place: str | None, *, with_messages: bool, as_json: bool) -> None:
    """Show a session: its size, what was folded and why, its branches."""
    with opened_session(place, id) as (session, store):
        told = _summary(session, store)
        folds = session.folds
        states = _states(session, store) if with_messages else []
        branches = session.branches
    if as_json:
        print_json(
            {
                **told,
                "folds": [_with_savings(fold) for fold in folds],
                "branches": branches,
                **({"messages_list": states} if with_messages else {}),
            }
        )
        return
    for key, value in told.items():
        if not isinstance(value, dict):
            click.echo(f"{key}: {f'{value:,}' if isinstance(value, int) else value}")
    if folds:
        click.echo()
        _print_folds(folds)
    if len(branches) > 1:
        click.echo()
        columns = [Column("branch"), Column("messages", right=True), Column("last entry"), Column("")]
        rows = [
            (each.id, f"{each.messages:,}", moment(each.at), "current" if each.current else "") for each in branches
        ]
        print_table(columns, rows)
    if states:
        click.echo()
        _print_states(states)


def _summary(session: Session, store: Store) -> dict[str, Any]:
    info = known(store, session.id)
    items = session.items()
    hidden = sum(item.hides for item in items)
    visible = sum(1 for item in items if not item.fold)
    return {
        "session": session.id,
        "model": session.settings.model,
        "window": session.model.window,
        "tokens": session.tokens,
        "messages": visible + hidden,
        "hidden": hidden,
        "entries": info.version,
        "calls": len(session.calls),
        "created": moment(info.created),
        "updated": moment(info.updated),
        "settings": msgspec.to_builtins(session.settings),
        "counting": session.counting,
    }


def _with_savings(fold: FoldRecord) -> dict[str, Any]:
    return {**msgspec.to_builtins(fold), "saved": fold.saved}


def _print_folds(folds: list[FoldRecord]) -> None:
    columns = [
        Column("fold"),
        Column("kind"),
        Column("messages", right=True),
        Column("saved", right=True),
        Column("applies"),
        Column("by"),
        Column("reason"),
    ]
    rows = [
        (
            fold.id,
            fold.kind,
            f"{sum(span.messages for span in fold.spans):,}",
            f"{fold.saved:,}",
            "yes" if fold.active else "no",
            fold.strategy,
            fold.reason,
        )
        for fold in folds
    ]
    print_table(columns, rows)


def _states(session: Session, store: Store) -> list[MessageState]:
    version = known(store, session.id).version
    entries = {entry.id: entry for entry in store.read(session.id, 1, version, kinds=("message",), bodies=False)}
    states = []
    for message in session.messages():
        entry = entries[message.id]
        cover = session.view.cover(entry.seq)
        fold = cover.id.partition(":")[0] if cover is not None and cover.fold else None
        state = "hidden" if fold else "cut" if cover is not None and cover.cuts else "visible"
        tokens = session.view.tokens_of(message_meta(entry.meta).weight)
        preview = shorten(_words(message), PREVIEW)
        states.append(MessageState(message.id, message.role, message.at, tokens, state, fold, preview))
    return states


def _words(message: Message) -> str:
    if message.text.strip():
        return message.text
    calls = [f"{call.name}({call.arguments})" for call in message.calls]
    results = [block.text for result in message.results for block in result.content if isinstance(block, Text)]
    return " ".join(calls + results) or "(no text)"


def _print_states(states: list[MessageState]) -> None:
    columns = [Column("message"), Column("role"), Column("tokens", right=True), Column("state"), Column("text")]
    rows = [
        (each.id, each.role, f"{each.tokens:,}", f"{each.state} by {each.fold}" if each.fold else each.state, each.text)
        for each in states
    ]
    print_table(columns, rows)
