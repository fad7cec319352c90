"""Sessions and entries by the ids that are typed: a unique beginning is enough, and the shell completes them."""

# ruff: noqa: PLC0415 - a session loads most of the library, which `windowsill sessions --help` does not need

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeVar

import click

from windowsill.errors import NotFoundError, StoreError, WindowsillError

if TYPE_CHECKING:
    from windowsill.history.entries import Kind
    from windowsill.session import Session
    from windowsill.store import SessionInfo, Store

MOST_NAMED = 5
"""Ids that an error names when several begin alike."""

MOST_COMPLETED = 200
"""Ids that the shell is given: more cannot be read."""

F = TypeVar("F", bound=Callable[..., Any])
Completion = Callable[[click.Context, click.Parameter, str], list[str]]


@contextmanager
def open_store_at(place: str | None, *, create: bool = False) -> Iterator[Store]:
    """Open the store at a place. Only a command that writes creates one: a mistyped place is an error."""
    from windowsill.store import database_file, open_server, open_store, server_address
    from windowsill.store.memory import MemoryStore

    store: Store
    if server := server_address(place, os.environ):
        store = open_server(server, create=create)
    else:
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
def open_session(place: str | None, id: str, *, files: str | None = None) -> Iterator[Session]:
    """Open a session that exists, by its id or a unique beginning."""
    from windowsill.session import Session

    with open_store_at(place) as store:
        name = find_session(store, id).id
        with Session.open(name, store=store, config=False, files=files) as session:
            yield session


def find_session(store: Store, typed: str) -> SessionInfo:
    """Return what the store knows of a session; raise `NotFoundError` if there is none, or several begin alike."""
    info = store.info(typed)
    if info is not None:
        return info
    found = {info.id: info for info in store.sessions() if info.id.startswith(typed)}
    if not found:
        remedy = "`windowsill sessions list` shows those there are"
        raise NotFoundError(f"there is no session {typed!r}", remedy=remedy, session=typed)
    return found[_only(found, f"sessions begin with {typed!r}")]


def find_entry(session: Session, typed: str, *kinds: Kind) -> str:
    """Return the id of an entry of these kinds (of any kind if none is named), by its id or a unique beginning.

    A call is found by its number too, counted from the first of all branches.
    """
    entry = session.journal.store.find(session.id, typed)
    if entry is not None and (not kinds or entry.kind in kinds):
        return typed
    known = entry_ids(session, kinds)
    if kinds == ("call",) and typed in map(str, range(1, len(known) + 1)):
        return known[int(typed) - 1]
    found = [id for id in known if id.startswith(typed)]
    what = kinds[0] if kinds else "entry"
    if not found:
        listed = f"`windowsill sessions log {quote(session.id)}{' --calls' if what == 'call' else ' --all'}` lists them"
        raise NotFoundError(f"session {session.id!r} has no {what} {typed!r}", remedy=listed, session=session.id)
    return _only(found, f"{f'{what}s' if kinds else 'entries'} begin with {typed!r}")


def entry_ids(session: Session, kinds: tuple[Kind, ...]) -> list[str]:
    """List the ids of the entries of these kinds, on every branch, oldest first."""
    journal = session.journal
    return [entry.id for entry in journal.walk([(1, journal.version)], kinds=kinds or None)]


def _only(ids: Iterable[str], what: str) -> str:
    first, *others = ids
    if not others:
        return first
    named = ", ".join([first, *others][:MOST_NAMED])
    more = f" and {len(others) + 1 - MOST_NAMED:,} more" if len(others) >= MOST_NAMED else ""
    raise NotFoundError(f"{len(others) + 1:,} {what}: {named}{more}", remedy="give more of the id")


# Completion by the shell


def _completion(ids: Callable[[click.Context], Iterable[str]]) -> Completion:
    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        try:
            return [id for id in ids(ctx) if id.startswith(incomplete)][-MOST_COMPLETED:]
        except (WindowsillError, OSError):
            return []  # The shell has no place for an error; the command itself reports it.

    return complete


def _session_ids(ctx: click.Context) -> list[str]:
    with open_store_at(ctx.params.get("place")) as store:
        return [info.id for info in store.sessions()]


def _entries(*kinds: Kind) -> Callable[[click.Context], list[str]]:
    def ids(ctx: click.Context) -> list[str]:
        with open_session(ctx.params.get("place"), ctx.params["id"]) as session:
            return entry_ids(session, kinds)

    return ids


complete_sessions = _completion(_session_ids)
complete_strategies = _completion(lambda _: import_module("windowsill.strategies.registry").names())
complete_models = _completion(lambda _: import_module("windowsill.models").names())

session_argument = click.argument("id", shell_complete=complete_sessions)
store_option = click.option(
    "--store", "place", metavar="PLACE", help="The folder, database file or postgresql:// address of the sessions."
)
TOKEN = "WINDOWSILL_TOKEN"  # noqa: S105 - the name of the variable, not a secret
host_option = click.option(
    "--host", default="127.0.0.1", show_default=True, help="The address to listen on; others need a token."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def store_and_json(function: F) -> F:
    """Give a command the options of where to read, and of printing JSON."""
    return store_option(json_option(function))


def session_command(function: Callable[..., Any]) -> click.Command:
    """Make a command about one session, whose id is its first argument."""
    return click.command()(session_argument(function))


def token_option(what: str) -> Callable[[F], F]:
    """Return the option of the secret that whoever asks must bring."""

    def read(_ctx: click.Context, _option: click.Parameter, given: str | None) -> str | None:
        # An empty variable is none for click, and whoever set it wanted a token.
        return os.environ.get(TOKEN) if given is None else given

    return click.option("--token", callback=read, help=f"{what} ({TOKEN}).")


def entry_argument(name: str, *kinds: Kind, **options: Any) -> Callable[[F], F]:
    """Return an argument that is the id of an entry of these kinds, completed by the shell."""
    return click.argument(name, shell_complete=_completion(_entries(*kinds)), **options)
