"""`windowsill sessions`: list, show, unfold, rewind, checkpoints, state, verify. Export and import are a file apart."""

# ruff: noqa: PLC0415 - a session loads most of the library, which `windowsill sessions --help` does not need

from __future__ import annotations

import datetime as dt
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windowsill.cli.main import FAILED, LazyCommand, LazyGroup
from windowsill.cli.output import on_terminal, print_json, print_table
from windowsill.errors import NotFoundError, StoreError, WindowsillError
from windowsill.text import printable_line, shorten

if TYPE_CHECKING:
    from windowsill.messages import Message
    from windowsill.session import Session
    from windowsill.session.checkpoints import Checkpoint
    from windowsill.store import SessionInfo, Store


PREVIEW = 60
"""Characters of a message that a list shows."""

_HERE, _TRANSFER = "windowsill.cli.sessions", "windowsill.cli.sessions_transfer"

COMMANDS = {
    "list": LazyCommand(f"{_HERE}:list_sessions", "List the sessions, the last used first."),
    "show": LazyCommand(f"{_HERE}:show", "Show a session: size, folds, branches, messages."),
    "export": LazyCommand(f"{_TRANSFER}:export", "Print a session as lines of JSON, or its messages."),
    "import": LazyCommand(f"{_TRANSFER}:import_file", "Import an export, or recorded conversations."),
    "unfold": LazyCommand(f"{_HERE}:unfold", "Bring back what a fold hid."),
    "rewind": LazyCommand(f"{_HERE}:rewind", "Go back to a message or a time; the other branch stays."),
    "state": LazyCommand(f"{_HERE}:state", "Print the layered state, as it is or as it was."),
    "checkpoints": LazyCommand(f"{_HERE}:checkpoints", "List the checkpoints, the newest first."),
    "checkpoint": LazyCommand(f"{_HERE}:checkpoint", "Name this moment, to come back to it."),
    "restore": LazyCommand(f"{_HERE}:restore", "Go back to a checkpoint; the other branch stays."),
    "verify": LazyCommand(f"{_HERE}:verify", "Check that everything is as it was written."),
}

store_option = click.option("--store", "place", metavar="PLACE", help="The folder or database file of the sessions.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group(cls=LazyGroup, table=COMMANDS, invoke_without_command=True)
@click.pass_context
def sessions(ctx: click.Context) -> None:
    """List, show, move and undo stored sessions.

    They are kept where --store says, else under WINDOWSILL_HOME, else in .windowsill/ of the current folder if there is
    one, else in the user's data folder.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_sessions)


@contextmanager
def open_store_at(place: str | None, *, create: bool = False) -> Iterator[Store]:
    """Open the store at a place. Only a command that writes creates one: a mistyped place is an error."""
    from windowsill.store import database_file, open_store
    from windowsill.store.memory import MemoryStore

    path = database_file(place, os.environ, Path.cwd())
    if path is not None and not create and not path.exists():
        if place is not None:
            raise StoreError(f"there are no sessions at {place}", remedy="check --store", path=path)
        yield MemoryStore()
        return
    store = open_store(place)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def open_session(place: str | None, id: str) -> Iterator[Session]:
    """Open a session that exists."""
    from windowsill.session import Session

    with open_store_at(place) as store:
        require_session(store, id)
        with Session.open(id, store=store) as session:
            yield session


def require_session(store: Store, id: str) -> SessionInfo:
    """Return what the store knows of a session; raise `NotFoundError` if there is none."""
    info = store.info(id)
    if info is None:
        raise NotFoundError(
            f"there is no session {id!r}", remedy="`windowsill sessions list` shows those there are", session=id
        )
    return info


def _print(value: object, text: str, *, as_json: bool) -> None:
    if as_json:
        print_json(value)
    else:
        click.echo(text)


def _moment(at: float) -> str:
    try:
        return dt.datetime.fromtimestamp(at, dt.UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return str(at)


@click.command("list")
@store_option
@json_option
def list_sessions(place: str | None = None, *, as_json: bool = False) -> None:
    """List the sessions, the last used first."""
    with open_store_at(place) as store:
        found = [_listed(info) for info in store.sessions()]
    if as_json:
        print_json(found)
    elif found:
        print_table(
            [
                {
                    "session": each["id"],
                    "model": each["model"] or "-",
                    "entries": each["entries"],
                    "last used": _moment(each["updated"]),
                }
                for each in found
            ]
        )
    elif on_terminal():
        click.echo("no sessions yet")


def _listed(info: SessionInfo) -> dict[str, Any]:
    import msgspec

    try:
        settings = msgspec.json.decode(info.settings)
    except msgspec.DecodeError:
        settings = {}  # A damaged session is still listed: `verify` says what is wrong with it.
    return {
        "id": info.id,
        "model": settings.get("model") if isinstance(settings, dict) else None,
        "entries": info.version,
        "created": info.created,
        "updated": info.updated,
        "settings": settings,
    }


@click.command()
@click.argument("id")
@click.option("--messages", "with_messages", is_flag=True, help="List every message, visible or hidden.")
@store_option
@json_option
def show(id: str, place: str | None, *, with_messages: bool, as_json: bool) -> None:
    """Show a session: its size, what was folded and why, its branches."""
    import msgspec

    from windowsill.session import Session

    with open_store_at(place) as store:
        info = require_session(store, id)
        with Session.open(id, store=store) as session:
            summary = _summary(session, info)
            folds, branches = session.folds, session.branches
            states = _message_states(session, store, info) if with_messages else []
    if as_json:
        listed = {"messages_list": states} if with_messages else {}
        with_savings = [{**msgspec.to_builtins(fold), "saved": fold.saved} for fold in folds]
        print_json({**summary, "folds": with_savings, "branches": branches, **listed})
        return
    for key, value in summary.items():
        if not isinstance(value, dict):
            click.echo(f"{key}: {f'{value:,}' if isinstance(value, int) else value}")
    _print_section(
        [
            {
                "fold": fold.id,
                "kind": fold.kind,
                "messages": sum(span.messages for span in fold.spans),
                "saved": fold.saved,
                "applies": "yes" if fold.active else "no",
                "by": fold.strategy,
                "reason": fold.reason,
            }
            for fold in folds
        ]
    )
    if len(branches) > 1:
        _print_section(
            [
                {
                    "branch": each.id,
                    "messages": each.messages,
                    "last entry": _moment(each.at),
                    "": "current" if each.current else "",
                }
                for each in branches
            ]
        )
    _print_section(
        [
            {
                "message": each["id"],
                "role": each["role"],
                "tokens": each["tokens"],
                "state": f"{each['state']} by {each['fold']}" if each["fold"] else each["state"],
                "text": each["text"],
            }
            for each in states
        ]
    )


def _print_section(rows: Sequence[Mapping[str, object]]) -> None:
    if rows:
        click.echo()
        print_table(rows)


def _summary(session: Session, info: SessionInfo) -> dict[str, Any]:
    import msgspec

    items = session.items()
    hidden = sum(item.hides for item in items)
    return {
        "session": session.id,
        "model": session.settings.model,
        "window": session.model.window,
        "tokens": session.tokens,
        "messages": hidden + sum(1 for item in items if not item.fold),
        "hidden": hidden,
        "entries": info.version,
        "calls": len(session.calls),
        "created": _moment(info.created),
        "updated": _moment(info.updated),
        "settings": msgspec.to_builtins(session.settings),
        "counting": session.counting,
    }


def _message_states(session: Session, store: Store, info: SessionInfo) -> list[dict[str, Any]]:
    """Describe each message of the current branch: `visible`, `cut` (a part is replaced) or `hidden` by a fold."""
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
                "text": shorten(_text_of(message), PREVIEW),
            }
        )
    return states


def _text_of(message: Message) -> str:
    from windowsill.messages import Text

    if message.text.strip():
        return message.text
    calls = [f"{call.name}({call.arguments})" for call in message.calls]
    results = [block.text for result in message.results for block in result.content if isinstance(block, Text)]
    return " ".join(calls + results) or "(no text)"


@click.command()
@click.argument("id")
@click.argument("fold")
@click.option("--span", type=click.IntRange(min=0), metavar="N", help="Only this span of the fold, counted from 0.")
@click.option("--fit", is_flag=True, help="Only as much as the budget allows, the newest first.")
@store_option
@json_option
def unfold(id: str, fold: str, span: int | None, place: str | None, *, fit: bool, as_json: bool) -> None:
    """Bring back what FOLD of session ID hid."""
    if fit and span is not None:
        raise click.UsageError("--span and --fit exclude each other", click.get_current_context())
    with open_session(place, id) as session:
        before = session.tokens
        entry = session.unfold(fold, span=span, fit=fit, reason="on the command line")
        after = session.tokens
    value = {"session": id, "entry": entry, "fold": fold, "tokens_before": before, "tokens": after}
    _print(value, f"unfolded {fold}: {before:,} tokens became {after:,}", as_json=as_json)


@click.command()
@click.argument("id")
@click.argument("message", required=False)
@click.option("--before", is_flag=True, help="Leave MESSAGE out too.")
@click.option(
    "--at", "when", metavar="TIME", help="Go back to a time: ISO 8601 (UTC without a zone), or epoch seconds."
)
@store_option
@json_option
def rewind(id: str, message: str | None, when: str | None, place: str | None, *, before: bool, as_json: bool) -> None:
    """Go back to MESSAGE of session ID, which becomes the last one, or to a time. The branch that is left stays."""
    ctx = click.get_current_context()
    if (message is None) == (when is None):
        raise click.UsageError("give either MESSAGE or --at TIME", ctx)
    if before and message is None:
        raise click.UsageError("--before needs MESSAGE", ctx)
    with open_session(place, id) as session:
        left = next((branch.id for branch in session.branches if branch.current), None)
        entry = session.rewind(message, at=None if when is None else _time(when, ctx), before=before)
        messages = sum(1 for _ in session.messages())
    text = f"rewound {id} to {messages:,} messages; the branch that was left ends at {left}"
    _print({"session": id, "entry": entry, "messages": messages, "left": left}, text, as_json=as_json)


def _time(text: str, ctx: click.Context) -> float:
    from windowsill.transcripts.base import timestamp

    try:
        at: float | None = float(text)
    except ValueError:
        at = timestamp(text)
    if at is None or not math.isfinite(at):
        raise click.UsageError(f"{text!r} is not a time; give 2026-01-31T12:00:00Z or epoch seconds", ctx)
    return at


@click.command()
@click.argument("id")
@click.option("--at", metavar="ENTRY", help="The state at a message, a fold, a checkpoint or a change.")
@click.option("--changes", is_flag=True, help="Print every change instead, the oldest first.")
@store_option
@json_option
def state(id: str, at: str | None, place: str | None, *, changes: bool, as_json: bool) -> None:
    """Print the layered state of session ID as JSON: goal, phase, memory, evidence, work."""
    import msgspec

    if at is not None and changes:
        raise click.UsageError("--at and --changes exclude each other", click.get_current_context())
    with open_session(place, id) as session:
        if changes:
            events = session.state.history
            if as_json:
                print_json(events)
            for event in () if as_json else events:
                click.echo(f"{event.id}  {event}")
            return
        value = session.state.at(at) if at is not None else session.state.value
    encoded = value.to_json()
    click.echo(encoded if as_json else msgspec.json.format(encoded, indent=2))


@click.command()
@click.argument("id")
@click.option("--limit", type=click.IntRange(min=0), default=10, show_default=True, metavar="N", help="At most N.")
@store_option
@json_option
def checkpoints(id: str, limit: int, place: str | None, *, as_json: bool) -> None:
    """List the checkpoints of session ID on all branches, the newest first."""
    with open_session(place, id) as session:
        found = session.checkpoints(limit)
    if as_json:
        print_json(found)
    elif found:
        print_table(
            [
                {
                    "checkpoint": each.id,
                    "name": each.name or "-",
                    "messages": each.messages,
                    "tokens": each.tokens,
                    "phase": each.phase,
                    "reason": each.reason,
                    "made": _moment(each.at),
                }
                for each in found
            ]
        )
    elif on_terminal():
        click.echo("no checkpoints yet")


@click.command()
@click.argument("id")
@click.option("--name", default="", metavar="NAME", help="Its name; it always has an id too.")
@store_option
@json_option
def checkpoint(id: str, name: str, place: str | None, *, as_json: bool) -> None:
    """Name this moment of session ID, so that `restore` can return to it.

    If another checkpoint has this NAME already, that one is then reached by its id only.
    """
    with open_session(place, id) as session:
        new = session.checkpoint(name)
    text = f"checkpoint {_label(new)}: {new.messages:,} messages, {new.tokens:,} tokens"
    _print(new, text, as_json=as_json)


@click.command()
@click.argument("id")
@click.argument("checkpoint")
@store_option
@json_option
def restore(id: str, checkpoint: str, place: str | None, *, as_json: bool) -> None:
    """Go back to CHECKPOINT (an id or a name) of session ID. What came after stays on its branch."""
    with open_session(place, id) as session:
        left = next(branch.id for branch in session.branches if branch.current)
        found = session.restore(checkpoint)
        tokens = session.tokens
    text = f"restored {_label(found)}: {found.messages:,} messages; the branch that was left ends at {left}"
    _print({"session": id, "checkpoint": found, "tokens": tokens, "left": left}, text, as_json=as_json)


def _label(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.name} ({checkpoint.id})" if checkpoint.name else checkpoint.id


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID...]")
@store_option
@json_option
@click.pass_context
def verify(ctx: click.Context, ids: tuple[str, ...], place: str | None, *, as_json: bool) -> None:
    """Check that sessions, the named ones or all, are as they were written. The exit code is 1 if one is not."""
    with open_store_at(place) as store:
        chosen = [require_session(store, id) for id in ids] if ids else store.sessions()
        found = {info.id: _problems(store, info) for info in chosen}
        of_store = store.check() if chosen and not ids else []
    sound = not of_store and not any(found.values())
    if as_json:
        print_json({"sound": sound, "store": of_store, "sessions": found})
    else:
        lines = [f"store: {problem}" for problem in of_store]
        for id, problems in found.items():
            lines += [f"{id}: {problem}" for problem in problems] or [f"{id}: sound"]
        for line in lines:
            click.echo(printable_line(line))
    ctx.exit(0 if sound else FAILED)


def _problems(store: Store, info: SessionInfo) -> list[str]:
    """List everything wrong with a session, read entry by entry: one that can no longer be opened is checked too."""
    import msgspec

    from windowsill.config import Settings
    from windowsill.journal.reader import JournalReader

    problems: list[str] = []
    try:
        msgspec.json.decode(info.settings, type=Settings)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        problems.append(f"its settings cannot be read ({error})")
    try:
        problems += store.check(info.id)
        problems += JournalReader(store, info.id).problems(info.version)
    except WindowsillError as error:
        problems.append(str(error))
    return problems
