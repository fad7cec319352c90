"""Where the sessions of a command are: opens the store and the session, and makes neither by mistake."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from windowsill.errors import NotFoundError, StoreError
from windowsill.session import Session
from windowsill.store import SessionInfo, Store, open_store
from windowsill.store.locate import database_file
from windowsill.store.memory import MemoryStore

store_option = click.option("--store", "place", metavar="PLACE", help="The folder or database file of the sessions.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")


@contextmanager
def opened(place: str | None, *, create: bool = False) -> Iterator[Store]:
    """The store at a place. Only a command that writes makes a new one: a mistyped place is told, not created."""
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
def opened_session(place: str | None, id: str) -> Iterator[tuple[Session, Store]]:
    """An existing session, and the store it is in."""
    with opened(place) as store:
        known(store, id)
        with Session.open(id, store=store) as session:
            yield session, store


def known(store: Store, id: str) -> SessionInfo:
    """What the store knows of a session; an error when there is none."""
    info = store.info(id)
    if info is None:
        raise NotFoundError(
            f"there is no session {id!r}", remedy="`windowsill sessions list` shows those there are", session=id
        )
    return info


def moment(at: float) -> str:
    """A time for people."""
    try:
        return dt.datetime.fromtimestamp(at, dt.UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return str(at)
