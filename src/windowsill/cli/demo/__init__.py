"""`windowsill demo`: a real session over the project's own files through a small window, live."""

# ruff: noqa: PLC0415 - what the command needs is imported when it runs: a list of commands must not wait for it

from __future__ import annotations

import itertools
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from windowsill.errors import InputError
from windowsill.store import Store, database_file

if TYPE_CHECKING:
    from windowsill.cli.demo.agent import Run
    from windowsill.cli.demo.picture import Result


MODEL = "claude-sonnet-5"
CALLS = 280
WINDOW = 8_000

SMALLEST_WINDOW = 4_000
"""The demo's system prompt, tools, task and one tool result take about half of this."""

MOST_CALLS = 10_000


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--calls", default=CALLS, show_default=True, type=click.IntRange(1, MOST_CALLS), help="Tool calls the agent makes."
)
@click.option(
    "--window",
    default=WINDOW,
    show_default=True,
    type=click.IntRange(SMALLEST_WINDOW, 1_000_000),
    help="The most tokens a request may have.",
)
@click.option("--store", metavar="PLACE", help="Where the session is kept; a folder of its own when left out.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON, without the picture.")
@click.pass_context
def demo(context: click.Context, *, calls: int, window: int, store: str | None, as_json: bool) -> None:
    """Watch an agent work through a small window and lose nothing.

    A scripted agent (no model, no network) reviews Windowsill's own source with real tools. The report compares what
    it sent with sending everything, and checks every message on disk. Exit code 1 when a check fails.
    """
    result = run_demo(calls=calls, window=window, store=store, picture=not as_json)
    context.exit(conclude(result, as_json=as_json))


def conclude(result: Result, *, as_json: bool) -> int:
    """Print the report; the exit code it means."""
    if as_json:
        from windowsill.cli.demo.picture import as_data
        from windowsill.cli.output import print_json

        print_json(as_data(result))
    else:
        from rich.console import Console

        from windowsill.cli.demo.picture import tell

        tell(result, Console(highlight=False))
    return 0 if result.ok else 1


def run_demo(*, calls: int, window: int, store: str | None, picture: bool) -> Result:
    """Run the agent, then close the session, open it again and check it."""
    import time
    from pathlib import Path

    import windowsill
    from windowsill.cli.demo.agent import Run, Workbench
    from windowsill.cli.demo.picture import Result, check

    started = time.monotonic()
    place = choose(store, Path.cwd())
    opened = windowsill.open_store(place)
    name = claim_name(opened, at=time.time())
    opened.close()
    with windowsill.Session.open(name, model=MODEL, budget=window, store=place) as session:
        run = Run(session, Workbench(Path(windowsill.__file__).parent), calls)
        _go(run, picture=picture)
    with windowsill.Session.open(name, store=place) as again:
        checks = check(run, again, window)
    return Result(run, checks, place, window, time.monotonic() - started)


def _go(run: Run, *, picture: bool) -> None:
    """Run with the picture on a terminal, and silently in a pipe."""
    from rich.console import Console

    from windowsill.cli.demo.picture import Picture
    from windowsill.cli.output import on_terminal

    console = Console(highlight=False)
    if picture and on_terminal() and not console.is_dumb_terminal:
        with Picture(console, run.calls) as live:
            run.go(live.show)
    else:
        run.go(lambda _: None)


NAME = "demo"


def choose(stated: str | None, cwd: Path) -> str:
    """The address of the store: the stated one, `.windowsill/` here if there is one, else a new folder that stays."""
    if stated is None:
        local = cwd / ".windowsill"
        return str(local) if local.is_dir() else tempfile.mkdtemp(prefix="windowsill-demo-")
    if database_file(stated, os.environ, cwd) is None:
        raise InputError(
            "the demo reads its session back from disk, and this store is in memory only",
            remedy="give --store a folder, or leave it out",
        )
    return stated


def claim_name(store: Store, *, at: float) -> str:
    """A name that no session has yet, taken in the same step: two demos at once never share one."""
    names = (NAME if number == 1 else f"{NAME}-{number}" for number in itertools.count(1))
    return next(name for name in names if store.create(name, at=at))
