"""One engine at a time for each session: a lock that is renewed while it runs and ends with its process."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio

from windowsill.errors import LockedError, StoreError, WindowsillError
from windowsill.logs import log
from windowsill.session.session import Session
from windowsill.store.lease import holder_name

LEASE = 60.0
"""Seconds after which the lock of a machine that is gone is free again; that of a dead process of ours is at once."""

_runs = itertools.count(1)


@asynccontextmanager
async def holding(session: Session, lost: Callable[[WindowsillError], None]) -> AsyncIterator[None]:
    """Hold a session's lock; `LockedError` when another holds it. `lost` is told when it is lost on the way."""
    # Two runs in one thread are two holders all the same.
    holder = f"{holder_name()}-{next(_runs)}"
    session.hold(holder, seconds=LEASE)
    raised: Exception | None = None
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_renew, session, holder, lost)
            try:
                yield
            except Exception as error:  # noqa: BLE001 - raised below: through the group it would be one of a group
                raised = error
            tasks.cancel_scope.cancel()
    finally:
        _release(session, holder)
    if raised is not None:
        raise raised


async def _renew(session: Session, holder: str, lost: Callable[[WindowsillError], None]) -> None:
    while True:
        await anyio.sleep(LEASE / 3)
        try:
            session.hold(holder, seconds=LEASE)
        except LockedError as error:
            lost(error)
            return
        except StoreError as error:
            log.warning("the lock of session %s was not renewed: %s", session.id, error)


def _release(session: Session, holder: str) -> None:
    try:
        session.release(holder)
    except StoreError as error:
        # It ends by itself; the result of the run is worth more.
        log.warning("the lock of session %s was not given back: %s", session.id, error)
