"""`windowsill worker`: do the runs that `windowsill agent --queue` hands over."""

# ruff: noqa: PLC0415 - help does not need an engine

from __future__ import annotations

import logging
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import click

from windowsill.cli.agent import Assignment, Lines, Screen, open_engine
from windowsill.cli.session_ids import store_option
from windowsill.errors import InputError, log
from windowsill.extras import extra

if TYPE_CHECKING:
    from windowsill.agent import Engine, Result
    from windowsill.agent.workers import MakeEngine, Order, Workers


@click.command()
@click.option("--concurrency", default=1, show_default=True, type=click.IntRange(min=1), help="Runs at a time.")
@click.option("--engine", "maker", metavar="MODULE:NAME", help="Your function that makes the engine of a run.")
@click.option("--drain", is_flag=True, help="End when no run is left.")
@store_option
def worker(concurrency: int, maker: str | None, place: str | None, *, drain: bool) -> None:
    """Do runs of agents that wait in a PostgreSQL database, on any machine.

    The run of a worker that died is taken up by another where it stopped. Ctrl-C or SIGTERM ends this one: runs that do
    not end within seconds are given back.

    Whoever may write to the database lets this machine run what tools can do.
    """
    import anyio

    make = _engine if maker is None else _find(maker)
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.WARNING)
    log.setLevel(logging.INFO)

    async def go() -> None:
        async with _workers(place, make) as workers:
            click.echo(f"windowsill: waiting for runs at {workers.store.address}; Ctrl-C ends this worker", err=True)
            await workers.work(concurrency=concurrency, wait=not drain)

    anyio.run(go)


async def hand_over(asked: Assignment, shown: Lines | Screen, *, detach: bool) -> Result | None:
    """Hand a run to the workers, show what it does, and return how it ended; `None` if nobody is to watch."""
    from windowsill.session import Session

    async with _workers(asked.place) as workers:
        run = await workers.add(asked.id, asked.task, criteria=asked.criteria, settings=asked.settings)
        if detach:
            click.echo(f"{run.job}")
            return None
        click.echo(f"windowsill: run {run.job} waits for a worker; Ctrl-C ends watching, not the run", err=True)
        async for event in workers.events(run):
            shown.show(event)
        result = await workers.result(run)
        if workers.store.info(asked.id) is not None:
            with Session.open(asked.id, store=workers.store) as session:
                shown.end(session, result)
        return result


def _workers(place: str | None, make: MakeEngine | None = None) -> Workers:
    from windowsill.store import server_address

    with extra("workers", "a queue of runs"):
        from windowsill.agent.workers import Workers
    return Workers(server_address(place, os.environ) or str(place or "."), engine=make)


@asynccontextmanager
async def _engine(order: Order) -> AsyncIterator[Engine]:
    """Make the engine of a run that `windowsill agent --queue` handed over; nobody is there to be asked."""
    approve = partial(_agree, order.settings["yes"])
    async with open_engine(order.session, order.store, order.settings, order.listen, approve) as engine:
        yield engine


def _agree(yes: bool, _: object) -> bool:  # noqa: FBT001 - bound once, above
    return yes


def _find(name: str) -> MakeEngine:
    from importlib import import_module

    module, _, function = name.partition(":")
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 - as `python -m` does
    try:
        found: MakeEngine = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(
            f"--engine {name}: {error}", remedy="give MODULE:NAME of a function that can be imported"
        ) from error
    return found
