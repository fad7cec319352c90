"""`windowsill agent`: run an agent, show what it does, ask before it changes what cannot be brought back.

`windowsill worker` does the runs that `windowsill agent --queue` hands over.
"""

# ruff: noqa: PLC0415 - help does not need an engine

from __future__ import annotations

import logging
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec

from windowsill.cli.output import print_warning
from windowsill.cli.session_ids import complete_sessions, find_session, open_store_at, store_option
from windowsill.errors import InputError, log
from windowsill.extras import extra
from windowsill.text import count_of, printable_line, shorten

if TYPE_CHECKING:
    from windowsill.agent import Engine, Event, Result
    from windowsill.agent.workers import MakeEngine, Order, Workers
    from windowsill.session import Session
    from windowsill.state.policies import Approval, Approve
    from windowsill.store import Store

FOLDER = "Work here; with --queue, a folder of the worker's machine."
SYSTEM = """You work on the files of one folder. Read before you change anything, change as little as the task needs, \
check what you did by running it where that is possible, and say briefly what you did."""

LONGEST = 100
"""Characters of one line of progress."""

LIMIT = re.compile(r"\bmax_\w+(?==)")
"""An argument of the engine that is an option here."""

EXIT_CODES = {"completed": 0, "cancelled": 130}
"""By the status of a run; 1 for every other."""

MODEL = "agent model of "
"""Before the name of a session: the model it was last run with, so that the name alone resumes it."""

ABOVE_0 = click.FloatRange(min=0, min_open=True)

ASKED = ("delete", "execute", "deploy")
"""Categories that are asked about, besides tools that state none."""


@click.command()
@click.argument("task", required=False)
@click.option(
    "--model",
    "spec",
    metavar="P:M",
    help="The model, such as anthropic:claude-sonnet-5, openai:gpt-5 or openai:NAME@URL.",
)
@click.option("--tools", "kits", default="files,shell", show_default=True, help="Any of files, shell, fetch.")
@click.option("--mcp", "servers", metavar="S", multiple=True, help="An MCP server: its command or its address.")
@click.option("--folder", default=".", type=click.Path(file_okay=False, path_type=Path), help=FOLDER)
@click.option(
    "--session", "name", metavar="NAME", shell_complete=complete_sessions, help="Begin or resume this session."
)
@click.option("--criterion", "criteria", metavar="C", multiple=True, help="What has to hold at the end; repeatable.")
@click.option("--window", type=int, metavar="N", help="The window of a model that is not known.")
@click.option("--max-turns", type=click.IntRange(min=1), metavar="N", help="Pause after so many model calls.")
@click.option("--max-tool-calls", type=click.IntRange(min=1), metavar="N", help="Pause after so many tool calls.")
@click.option("--max-seconds", type=ABOVE_0, metavar="S", help="Pause after so many seconds.")
@click.option("--max-cost", type=ABOVE_0, metavar="USD", help="Pause after so many dollars.")
@click.option("--yes", is_flag=True, help="Ask nothing: every call that policies allow is run.")
@click.option("--queue", is_flag=True, help="Let a `windowsill worker` do it, and watch; the store is PostgreSQL.")
@click.option("--detach", is_flag=True, help="With --queue: print the number of the run, and do not watch.")
@click.option("--json", "as_json", is_flag=True, help="Print each event and the result as a line of JSON.")
@store_option
def agent(  # noqa: PLR0913 - the options of the command
    task: str | None,
    spec: str | None,
    kits: str,
    servers: tuple[str, ...],
    folder: Path,
    name: str | None,
    criteria: tuple[str, ...],
    window: int | None,
    place: str | None,
    *,
    yes: bool,
    queue: bool,
    detach: bool,
    as_json: bool,
    **limits: Any,
) -> None:
    """Let a model work on TASK with tools, and show what it does.

    Commands, deletions and tools that do not say what they do are asked about first. After Ctrl-C or a crash the same
    command, or `windowsill agent --session NAME`, goes on where it was: nothing is run twice.
    """
    import anyio

    if detach and not queue:
        raise click.UsageError("--detach needs --queue: nothing else goes on without this command.")
    root = folder.resolve()
    if not queue and not root.is_dir():
        raise click.BadParameter(f"Directory '{folder}' does not exist.", param_hint="'--folder'")
    id = name or f"agent {root}"
    if name is not None and task is None and not queue:
        # Opening it would make it, and leave an empty session under a mistyped name.
        with open_store_at(place) as store:
            id = find_session(store, id).id
    settings = {
        "model": spec or _known_model(place, id),
        "window": window,
        "tools": kits,
        "mcp": list(servers),
        "folder": str(root),
        "yes": yes,
        "limits": {key: value for key, value in limits.items() if value is not None},
    }
    asked = Assignment(place, id, task, criteria, settings)
    shown = Lines() if as_json else Screen()
    if queue:
        result = anyio.run(partial(hand_over, asked, shown, detach=detach))
    else:
        approve = (lambda _: True) if yes else partial(_ask, err=as_json)
        result = anyio.run(_run, asked, shown, approve)
    code = EXIT_CODES.get(result.status, 1) if result is not None else 0
    if code:
        assert result is not None
        as_options = LIMIT.sub(lambda name: f"--{name[0].replace('_', '-')}", result.error)
        print_warning(f"windowsill: {result.status}: {as_options}")
        if not result.ok and result.status != "failed":
            click.echo(f"windowsill: `windowsill agent --session {quote(id)}` goes on where this was", err=True)
        click.get_current_context().exit(code)


class Assignment(NamedTuple):
    """The work that an agent is given: its store, its session, its task, and how its engine is made."""

    place: str | None
    id: str
    task: str | None
    criteria: tuple[str, ...]
    settings: dict[str, Any]


async def _run(asked: Assignment, shown: Lines | Screen, approve: Approve) -> Result:
    async with open_engine(asked.id, asked.place, asked.settings, shown.show, approve) as engine:
        with _interrupts(engine.cancel):
            result = await engine.run(asked.task, criteria=asked.criteria)
        shown.end(engine.session, result)
        return result


@asynccontextmanager
async def open_engine(
    id: str, store: Store | str | None, settings: dict[str, Any], listen: Callable[[Event], object], approve: Approve
) -> AsyncIterator[Engine]:
    """Open a session and the engine of `windowsill agent` on it, here or in a worker."""
    from windowsill.agent import Engine
    from windowsill.agent import model as model_of
    from windowsill.agent.toolkits import toolkit
    from windowsill.mcp.client import mcp_tools
    from windowsill.session import Session

    spec, base = settings["model"], Path(settings["folder"])
    if not base.is_dir():  # noqa: ASYNC240 - one look, before anything else goes on
        raise InputError(f"there is no folder {base}", remedy="name one that is there where the agent works")
    own = toolkit([kit.strip() for kit in settings["tools"].split(",") if kit.strip()], base)
    names = [each.name for each in own]
    with Session.open(id, model=model_of(spec).name, window=settings["window"], store=store) as session:
        _prepare(session, spec)
        async with mcp_tools(settings["mcp"], taken=names) as others:
            # The same definitions in every phase keep the provider's cache warm, and all of them are needed.
            yield Engine(
                session,
                model=spec,
                tools=[*own, *others],
                tool_mode="mask",
                tool_budget=None,
                listen=listen,
                approve=approve,
                base=base,
                system=SYSTEM,
                **settings["limits"],
            )


@contextmanager
def _interrupts(cancel: Callable[[], object]) -> Iterator[None]:
    """Let Ctrl-C end the run in order: what is at work is stopped, and told to the model when it goes on."""
    import asyncio

    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError):  # where there are no signals, the interrupt is raised as ever
        loop.add_signal_handler(signal.SIGINT, cancel)
    try:
        yield
    finally:
        with suppress(NotImplementedError):
            loop.remove_signal_handler(signal.SIGINT)


def _known_model(place: str | None, id: str) -> str:
    """Return the model that a session was last run with; raise where there is none."""
    with open_store_at(place) as store:
        known = store.recall(MODEL + id) if store.info(id) is not None else None
    if known is not None:
        return known.decode()
    raise InputError("nobody says which model is to work", remedy="give --model, such as anthropic:claude-sonnet-5")


def _prepare(session: Session, spec: str) -> None:
    """Let the agent delete and run commands, each after somebody agreed."""
    state = session.state.value
    if state.system.audit.require_approval != ASKED:
        session.state.set("system.audit.require_approval", ASKED)
    if not {"delete", "execute"} <= set(state.runtime.permissions):
        session.state.grant("delete", "execute")
    session.journal.store.remember(MODEL + session.id, spec.encode())


async def _ask(wanted: Approval, *, err: bool) -> bool:
    """Ask on the terminal. No thread waits for the answer, so that Ctrl-C ends this like everything else."""
    import anyio

    # Whole, however long: nobody agrees to what is not shown.
    lines = f"  {wanted.tool} {_line_of(wanted.arguments)}\n  may it? ({wanted.why}) [y/N] "
    click.secho(lines, fg="yellow", nl=False, err=err)
    if sys.stdin is None or sys.stdin.closed:
        click.echo("(nobody can answer)", err=err)
        return False
    with suppress(PermissionError):  # from a file, which need not be waited for
        await anyio.wait_readable(sys.stdin)
    answer = sys.stdin.readline().strip().lower()
    if not sys.stdin.isatty():
        click.echo(answer or "(no answer)", err=err)
    return answer in ("y", "yes")


class Lines:
    """Prints events as lines of JSON."""

    def show(self, event: Event) -> None:
        """Print one event."""
        self._print(event)

    def end(self, session: Session, result: Result) -> None:
        """Print the result."""
        self._print({"kind": "result", "session": session.id, **msgspec.to_builtins(result)})

    def _print(self, value: Any) -> None:
        click.echo(msgspec.json.encode(value, enc_hook=str).decode())


class Screen:
    """Shows what happens while it happens."""

    def __init__(self) -> None:
        self._said = ""

    def show(self, event: Event) -> None:
        """Show one event."""
        match event.kind:
            case "text":
                click.echo(_printable(event.text), nl=False)
            case "answer" if event.text:
                click.echo()
                self._said = event.text
            case "ended" if event.data["status"] == "completed" and event.text != self._said:
                click.echo(_printable(event.text))
            case "phase":
                click.secho(f"== {event.text}", bold=True)
            case "folded":
                saved = event.data["before"] - event.data["after"]
                click.secho(f"* folded {saved:,} tokens away: {event.text}", fg="magenta")
            case "tool_started":
                click.secho(f"> {event.text} {shorten(_line_of(event.data['arguments']), LONGEST)}", fg="cyan")
            case "tool_finished":
                line = f"  {event.data['tool']}: {shorten(event.text, LONGEST)} ({event.data['seconds']:.1f} s)"
                click.secho(line, fg="red" if event.data["is_error"] else "green")
            case "tool_refused" | "retry" | "reduced" | "restored" | "warning":
                when = f" in {event.data['pause']:.1f} s" if "pause" in event.data else ""
                click.secho(f"! {event.kind}{when}: {shorten(event.text, LONGEST)}", fg="yellow")
            case "checkpoint":
                click.secho(f"* checkpoint {event.text} ({event.data['reason']})", dim=True)

    def end(self, session: Session, result: Result) -> None:
        """Report the criteria, and what the task has used since it began, interruptions included."""
        if result.status == "cancelled":
            click.echo()  # behind the signs of Ctrl-C
        for each in result.criteria:
            proof = f" ({each.checked_by}: {shorten(each.evidence, LONGEST)})" if each.checked_by else ""
            click.echo(f"-- {each.status}: {printable_line(each.description)}{proof}")
        used = result.used
        read = used.input + used.cached
        share = used.cached / read if read else 0.0
        cost = f"${used.cost:.4f}" if used.cost or not used.model_calls else "cost unknown"
        click.echo(
            f"-- {count_of(used.model_calls, 'turn')}, {count_of(used.tool_calls, 'tool call')}, {used.seconds:.0f} s; "
            f"{read:,} tokens read ({share:.0%} cached), {used.output:,} written, {cost}; "
            f"{count_of(len(session.folds), 'fold')} in session {session.id!r}"
        )


def _line_of(arguments: dict[str, Any]) -> str:
    """Show the arguments of a call in one line."""
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())


def _printable(text: str) -> str:
    """Return a text without the characters that steer a terminal."""
    return "".join([each if each.isprintable() or each in "\n\t" else " " for each in text])


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


def _engine(order: Order) -> AbstractAsyncContextManager[Engine]:
    """Make the engine of a run that `windowsill agent --queue` handed over; nobody is there to be asked."""
    yes = bool(order.settings["yes"])
    return open_engine(order.session, order.store, order.settings, order.listen, lambda _: yes)


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
