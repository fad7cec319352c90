"""`windowsill store`: the place where sessions are kept, as a whole."""

# ruff: noqa: PLC0415 - stores load their databases, which `windowsill store --help` does not need

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from windowsill.cli.main import FAILED, LazyCommand, LazyGroup
from windowsill.cli.output import print_bytes, print_json, print_line, print_result
from windowsill.cli.session_ids import complete_sessions, find_session, open_store_at, store_and_json, store_option
from windowsill.errors import InputError, StoreError

if TYPE_CHECKING:
    from windowsill.store import Store

_HERE = "windowsill.cli.store"

COMMANDS = {
    "info": LazyCommand(f"{_HERE}:info", "Show what kind of store it is, where, and how much it holds."),
    "check": LazyCommand(f"{_HERE}:check", "Check the store itself: its file or database, and its indexes."),
    "migrate": LazyCommand(f"{_HERE}:migrate", "Bring a store to the schema of this version."),
    "copy": LazyCommand(f"{_HERE}:copy", "Copy or move whole sessions to another store."),
    "vacuum": LazyCommand(f"{_HERE}:vacuum", "Give the room of deleted sessions back, with every byte of them."),
    "key": LazyCommand(f"{_HERE}:key", "Make a key with which new stores are encrypted."),
    "repair": LazyCommand(f"{_HERE}:repair", "Save what is left of a damaged database file."),
}


@click.group(cls=LazyGroup, table=COMMANDS, invoke_without_command=True)
@click.pass_context
def store(ctx: click.Context) -> None:
    """Look after the place where sessions are kept: a folder, a database file, or a PostgreSQL database.

    It is named as for `windowsill sessions`: by --store, else by WINDOWSILL_HOME.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(info)


@click.command()
@store_and_json
def info(place: str | None = None, *, as_json: bool = False) -> None:
    """Show what kind of store it is, where, and how much it holds."""
    from windowsill.store import database_file

    with open_store_at(place) as store:
        about = msgspec.to_builtins(store.about())
        listed = store.sessions()
    if about["kind"] == "memory":
        where = database_file(place, os.environ, Path.cwd())
        raise StoreError(f"there is no store yet at {where}", remedy="the first session makes it")
    about |= {"sessions": len(listed), "entries": sum(each.version for each in listed)}
    if as_json:
        print_json(about)
        return
    for key, value in about.items():
        shown = ("no", "yes")[value] if isinstance(value, bool) else f"{value:,}" if isinstance(value, int) else value
        print_line(f"{key}: {shown}")
    if about["encrypted"]:
        print_line("readable without the key: names, times, sizes, hashes, and what was indexed for search")
    if about["deleted"]:
        print_line("deleted sessions are in the server's files until `windowsill store vacuum`")


@click.command()
@store_and_json
@click.pass_context
def check(ctx: click.Context, place: str | None, *, as_json: bool) -> None:
    """Check the store itself: its file or database, its indexes, lost ends, edited settings.

    The exit code is 1 if something is wrong. `windowsill sessions verify` also reads every message.
    """
    with open_store_at(place) as store:
        found = store.check()
    print_result({"sound": not found, "problems": found}, "\n".join(found or ["sound"]), as_json=as_json)
    ctx.exit(FAILED if found else 0)


@click.command()
@click.option("--sql", is_flag=True, help="Print the statements for an administrator instead of running them.")
@store_option
def migrate(place: str | None, *, sql: bool) -> None:
    """Bring a store to the schema of this version.

    Files are brought there whenever they are opened, and so are databases of PostgreSQL as far as older workers can go
    on beside it. What those would not survive is applied by this command alone: run it when all workers are of this
    version.
    """
    from windowsill.store import server_address

    server = server_address(place, os.environ)
    if server is None:
        if sql:
            raise InputError("only PostgreSQL has statements to print", remedy="leave out --sql")
        with open_store_at(place, create=True) as store:
            print_line(f"schema {store.about().schema}: nothing is missing")
        return
    from windowsill.store import open_server
    from windowsill.store.postgres.schema import pending_sql

    if sql:
        print_bytes((pending_sql(server) or "-- nothing is missing").encode())
        return
    database = open_server(server)
    try:
        steps = [step.name for step in database.migrate()]
        print_line(f"applied: {', '.join(steps)}" if steps else f"schema {database.about().schema}: nothing is missing")
    finally:
        database.close()


@click.command()
@click.argument("target")
@click.argument("ids", nargs=-1, metavar="[ID...]", shell_complete=complete_sessions)
@click.option("--move", is_flag=True, help="Delete each session here once it was copied and checked there.")
@store_option
def copy(target: str, ids: tuple[str, ...], place: str | None, *, move: bool) -> None:
    """Copy sessions, the named ones or all, byte for byte to the store TARGET: a folder, a file, postgresql://...

    With all sessions go the windows that were learned. A copy that was cut off goes on where it stopped; a session of
    the same id that says something else is never overwritten.
    """
    from windowsill.session.copies import copy_facts, copy_session

    with open_store_at(place) as source:
        # Before the target is made: nothing is left behind by a name that was mistyped.
        chosen = [find_session(source, id) for id in ids] if ids else source.sessions()
        if not chosen:
            print_line("there are no sessions to copy")
        with open_store_at(target, create=True) as goal:
            if source.about().place == goal.about().place:
                raise InputError("both are the same store", remedy="give another TARGET")
            for each in chosen:
                count = copy_session(source, goal, each.id)
                if move:
                    _delete_moved(source, goal, each.id)
                print_line(f"{'moved' if move else 'copied'} {each.id}: {count:,} new entries")
            if not ids:
                copy_facts(source, goal)


def _delete_moved(source: Store, goal: Store, id: str) -> None:
    """Delete a session that was copied, if the copy is whole and nothing was added to it meanwhile."""
    from windowsill.session.integrity import problems
    from windowsill.session.snapshots import delete_session

    before, after = source.info(id), goal.info(id)
    wrong = problems(goal, after) if after else ["it is gone"]
    if wrong:
        raise StoreError(f"the copy of {id!r} is not whole ({wrong[0]})", remedy="the session was left where it is")
    if before is None or after is None or before.version != after.version:
        raise StoreError(f"session {id!r} has gone on meanwhile", remedy="run the command again")
    delete_session(source, id)


@click.command()
@store_option
def vacuum(place: str | None) -> None:
    """Write the database anew, without the room and the bytes of sessions that were deleted.

    Others wait until it is done. A server keeps what was deleted in its files until then, and longer in its write-ahead
    log, its replicas and its backups; in a SQLite file it is overwritten at once, and only its room is still taken.
    """
    with open_store_at(place) as store:
        before = store.about().bytes
        store.vacuum()
        print_line(f"{before:,} bytes before, {store.about().bytes:,} now")


@click.command()
def key() -> None:
    """Make a key with which new stores are encrypted, and print it.

    Keep it where it is not lost, and set WINDOWSILL_KEY to it. Without it nobody reads the sessions again.
    """
    from windowsill.store.codec import new_key

    print_line(new_key())


@click.command()
@click.argument("target")
@store_and_json
@click.pass_context
def repair(ctx: click.Context, target: str, place: str | None, *, as_json: bool) -> None:
    """Save what can be read of a damaged database file to the new store TARGET, and list what is missing.

    The damaged file is not changed. In the place of a lost entry stands an empty one. The exit code is 1 if something
    is missing.
    """
    from windowsill.session.copies import salvage_session
    from windowsill.store import database_file, server_address
    from windowsill.store.sqlite.salvage import read_remains

    path = None if server_address(place, os.environ) else database_file(place, os.environ, Path.cwd())
    if path is None or not path.exists():
        raise InputError("there is no database file", remedy="name it with --store; a server is restored by its backup")
    with open_store_at(target, create=True) as goal:
        if goal.sessions():
            raise InputError("TARGET has sessions already", remedy="give a new folder or file")
        found = {left.id: salvage_session(left, goal) for left in read_remains(path)}
    lines = []
    for id, missing in found.items():
        lines.append(f"{id}: {'whole' if not missing else f'{len(missing):,} missing or damaged'}")
        lines += [f"  {each}" for each in missing]
    print_result(found, "\n".join(lines or ["no session can be found in it"]), as_json=as_json)
    ctx.exit(FAILED if any(found.values()) else 0)
