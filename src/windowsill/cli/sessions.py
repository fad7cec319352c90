"""`windowsill sessions`: the table of its commands; list, show, delete and verify. The others are files apart."""

# ruff: noqa: PLC0415 - a session loads most of the library, which `windowsill sessions --help` does not need

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windowsill.cli.main import FAILED, LazyCommand, LazyGroup
from windowsill.cli.output import (
    moment,
    on_terminal,
    print_bar,
    print_json,
    print_line,
    print_list,
    print_result,
    print_rows,
)
from windowsill.cli.session_ids import (
    complete_sessions,
    find_session,
    open_store_at,
    session_command,
    store_and_json,
    store_option,
)
from windowsill.text import printable_line

if TYPE_CHECKING:
    from windowsill.compose.composition import Composition
    from windowsill.session import Session
    from windowsill.session.audit import FoldRecord
    from windowsill.store import SessionInfo, Store

DAY = 86_400.0

_HERE = "windowsill.cli.sessions"
_HISTORY, _TRANSFER = f"{_HERE}_history", f"{_HERE}_transfer"

COMMANDS = {
    "list": LazyCommand(f"{_HERE}:list_sessions", "List the sessions, the last used first."),
    "show": LazyCommand(f"{_HERE}:show", "Show a session: size, budget, folds, branches, messages."),
    "log": LazyCommand(f"{_HISTORY}:log", "Show what happened, the newest first."),
    "diff": LazyCommand(f"{_HISTORY}:diff", "Compare what the model saw at two moments."),
    "search": LazyCommand(f"{_HISTORY}:search", "Search everything that was ever said."),
    "explain": LazyCommand(f"{_HISTORY}:explain", "Explain why a message is in the window, or is not."),
    "request": LazyCommand(f"{_HISTORY}:request", "Print the exact body of a past request."),
    "unfold": LazyCommand(f"{_HISTORY}:unfold", "Bring back what a fold hid."),
    "pin": LazyCommand(f"{_HISTORY}:pin", "Never hide a message."),
    "rewind": LazyCommand(f"{_HISTORY}:rewind", "Go back to a message or a time; the other branch stays."),
    "branches": LazyCommand(f"{_HISTORY}:branches", "List the branches."),
    "switch": LazyCommand(f"{_HISTORY}:switch", "Return to a branch that was left."),
    "checkpoints": LazyCommand(f"{_HISTORY}:checkpoints", "List the checkpoints, the newest first."),
    "checkpoint": LazyCommand(f"{_HISTORY}:checkpoint", "Name this moment, to come back to it."),
    "restore": LazyCommand(f"{_HISTORY}:restore", "Go back to a checkpoint; the other branch stays."),
    "state": LazyCommand(f"{_HISTORY}:state", "Print the layered state, as it is or as it was."),
    "export": LazyCommand(f"{_TRANSFER}:export", "Print a session as lines of JSON, or its messages."),
    "import": LazyCommand(f"{_TRANSFER}:import_file", "Import an export, or recorded conversations."),
    "verify": LazyCommand(f"{_HERE}:verify", "Check that everything is as it was written."),
    "delete": LazyCommand(f"{_HERE}:delete", "Delete sessions for good."),
}


@click.group(cls=LazyGroup, table=COMMANDS, invoke_without_command=True)
@click.pass_context
def sessions(ctx: click.Context) -> None:
    """List, show, move and undo stored sessions.

    Ids of sessions, messages, calls and folds may be shortened to a unique beginning.

    They are kept where --store says, else under WINDOWSILL_HOME, else in .windowsill/ of the current folder if there is
    one, else in the user's data folder.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_sessions)


@click.command("list")
@store_and_json
def list_sessions(place: str | None = None, *, as_json: bool = False) -> None:
    """List the sessions, the last used first."""
    with open_store_at(place) as store:
        found = [_listed(store, info) for info in store.sessions()]
    print_list(
        found,
        [
            {
                "session": each["id"],
                "model": each["model"] or "-",
                "entries": each["entries"],
                "last used": moment(each["updated"]),
                "begins with": each["task"],
            }
            for each in found
        ],
        empty=f"no sessions yet in {_folder(place)}",
        as_json=as_json,
    )


def _folder(place: str | None) -> object:
    from windowsill.store import database_file, server_address

    if server_address(place, os.environ):
        return "the database"
    path = database_file(place, os.environ, Path.cwd())
    return "memory" if path is None else path.parent


def _listed(store: Store, info: SessionInfo) -> dict[str, Any]:
    import msgspec

    from windowsill.session.audit import readable_task

    try:
        settings = msgspec.json.decode(info.settings)
    except msgspec.DecodeError:
        settings = {}  # A damaged session is still listed: `verify` says what is wrong with it.
    return {
        "id": info.id,
        "model": settings.get("model") if isinstance(settings, dict) else None,
        "entries": info.version,
        "task": readable_task(store, info.id),
        "created": info.created,
        "updated": info.updated,
        "settings": settings,
    }


@session_command
@click.option("--messages", "with_messages", is_flag=True, help="List every message, visible or hidden.")
@store_and_json
def show(id: str, place: str | None, *, with_messages: bool, as_json: bool) -> None:
    """Show a session: its size and budget, what was folded and why, its branches."""
    import msgspec

    from windowsill.cli.sessions_history import branch_rows
    from windowsill.session import Session
    from windowsill.session.audit import composition

    with open_store_at(place) as store:
        info = find_session(store, id)
        with Session.open(info.id, store=store, config=False) as session:
            made = composition(session.journal, session.composer)
            summary = _summary(session, info, made)
            folds, branches = session.folds, session.branches
            states = _message_states(session, store, info) if with_messages else []
    if as_json:
        listed = {"messages_list": states} if with_messages else {}
        with_savings = [{**msgspec.to_builtins(fold), "saved": fold.saved} for fold in folds]
        print_json({**summary, "folds": with_savings, "branches": branches, **listed})
        return
    for key, value in summary.items():
        if not isinstance(value, dict):
            print_line(f"{key}: {f'{value:,}' if isinstance(value, int) else value}")
    print_bar(made)
    print_rows(
        [
            {
                "fold": fold.id,
                "kind": fold.kind,
                "messages": sum(span.messages for span in fold.spans),
                "saved": fold.saved,
                "now": _fold_state(fold),
                "by": fold.strategy,
                "reason": fold.reason,
            }
            for fold in folds
        ],
        apart=True,
    )
    print_rows(branch_rows(branches) if len(branches) > 1 else [], apart=True)
    print_rows(
        [
            {
                "message": each["id"],
                "role": each["role"],
                "tokens": each["tokens"],
                "state": f"{each['state']} by {each['fold']}" if each["fold"] else each["state"],
                "text": each["text"],
            }
            for each in states
        ],
        apart=True,
    )


def _fold_state(fold: FoldRecord) -> str:
    """Say whether a fold shapes the view now, is hidden by a later one, or was undone."""
    if not fold.active:
        return "undone"
    return f"inside {fold.inside}" if fold.inside else "applies"


def _summary(session: Session, info: SessionInfo, made: Composition) -> dict[str, Any]:
    import msgspec

    items = session.view.items
    hidden = sum(item.hides for item in items)
    return {
        "session": session.id,
        "model": session.settings.model,
        "window": session.model.window,
        "budget": made.limit,
        "reduced above": made.high,
        "tokens": session.view.tokens(),
        "messages": hidden + sum(1 for item in items if not item.fold),
        "hidden": hidden,
        "entries": info.version,
        "calls": len(session.calls),
        "strategy": session.settings.strategy,
        "created": moment(info.created),
        "updated": moment(info.updated),
        "parts": made.parts,
        "settings": msgspec.to_builtins(session.settings),
        "counting": session.composer.context.describe(),
    }


def _message_states(session: Session, store: Store, info: SessionInfo) -> list[dict[str, Any]]:
    """Describe each message of the current branch: `visible`, `cut` (a part is replaced) or `hidden` by a fold."""
    from windowsill.cli.sessions_history import preview
    from windowsill.history.view import message_meta

    entries = {entry.id: entry for entry in store.read(session.id, 1, info.version, kinds=("message",), bodies=False)}
    states = []
    for message in session.messages():
        entry = entries[message.id]
        cover = session.view.cover(entry.seq)
        fold = cover.id.partition(":")[0] if cover is not None and cover.fold else None
        states.append(
            {
                "id": message.id,
                "role": message.role,
                "at": message.at,
                "tokens": session.view.tokens_of(message_meta(entry.meta).weight),
                "state": "hidden" if fold else "cut" if cover is not None and cover.cuts else "visible",
                "fold": fold,
                "text": preview(message),
            }
        )
    return states


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID...]", shell_complete=complete_sessions)
@click.option(
    "--unused",
    type=click.FloatRange(min=0),
    metavar="DAYS",
    help="Delete those, of all or of the named ones, that nobody used for so many days.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@store_option
@click.pass_context
def delete(ctx: click.Context, ids: tuple[str, ...], unused: float | None, place: str | None, *, yes: bool) -> None:
    """Delete sessions with everything that belongs to them: messages, outputs, checkpoints, snapshot files.

    This cannot be undone. `windowsill sessions export ID --secrets` writes a backup. A session that somebody works
    on is not unused.
    """
    from windowsill.session.snapshots import delete_session

    if not ids and unused is None:
        raise click.UsageError("give the ids of sessions, or --unused DAYS", ctx)
    with open_store_at(place) as store:
        chosen = [find_session(store, id) for id in ids] if ids else store.sessions()
        if unused is not None:
            before = time.time() - unused * DAY
            chosen = [info for info in chosen if info.updated < before and store.locked(info.id) is None]
        if not yes and not on_terminal(sys.stdin):
            raise click.UsageError("nobody can be asked here; give --yes to delete without asking", ctx)
        for info in chosen:
            if not yes:
                shown = printable_line(f"{info.id} ({info.version:,} entries, last used {moment(info.updated)})")
                click.confirm(f"Delete {shown} for good?", abort=True, err=True)
            if unused is not None and store.info(info.id) != info:
                continue  # Somebody used it meanwhile.
            delete_session(store, info.id)
            print_line(f"deleted {info.id}")
        if not chosen:
            print_line("no session is unused for so long")


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID...]", shell_complete=complete_sessions)
@store_and_json
@click.pass_context
def verify(ctx: click.Context, ids: tuple[str, ...], place: str | None, *, as_json: bool) -> None:
    """Check that sessions, the named ones or all, are as they were written. The exit code is 1 if one is not."""
    from windowsill.session.integrity import problems

    with open_store_at(place) as store:
        chosen = [find_session(store, id) for id in ids] if ids else store.sessions()
        found = {info.id: problems(store, info) for info in chosen}
        places = [info.id for info in chosen] if ids else [None] if chosen else []
        of_store = [problem for each in places for problem in store.check(each)]
    sound = not of_store and not any(found.values())
    lines = [f"store: {problem}" for problem in of_store]
    for id, listed in found.items():
        lines += [f"{id}: {problem}" for problem in listed] or [f"{id}: sound"]
    value = {"sound": sound, "store": of_store, "sessions": found}
    print_result(value, "\n".join(lines or ["there are no sessions to check"]), as_json=as_json)
    ctx.exit(0 if sound else FAILED)
