"""An agent for the files of one folder: `python agent.py FOLDER "task"`."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import anyio
import click
from tools import Folder

import windowsill
from windowsill.agent import Event, model
from windowsill.state.policies import Approval

SYSTEM = """You work on the files of one folder. Read before you change anything, change as little as the task needs, \
check what you did by running it where that is possible, and say briefly what you did."""

LONGEST = 100
"""Characters of one line of progress."""


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("task")
@click.option("--model", "spec", default="anthropic:claude-sonnet-5", show_default=True, help="Or openai:NAME@URL.")
@click.option("--window", type=int, help="The model's window in tokens, for one that Windowsill does not know.")
@click.option("--session", "name", help="What the session is called; without it, as the folder.")
@click.option("--store", type=click.Path(path_type=Path), help="Where sessions are kept; without it, the user's data.")
@click.option("--yes", is_flag=True, help="Ask nothing before deleting or running commands.")
def main(
    folder: Path, task: str, *, spec: str, window: int | None, name: str | None, store: Path | None, yes: bool
) -> None:
    """Let a model do TASK in FOLDER. After Ctrl-C or a crash the same command goes on where it was."""
    files = Folder(folder)
    asked = model(spec)
    with windowsill.Session.open(
        name or f"folder-agent {files.root}", model=asked.name, window=window, strategy="outputs+condense", store=store
    ) as session:
        allow(session)
        screen = Screen()
        engine = windowsill.Engine(
            session,
            model=asked,
            tools=files.tools(),
            system=SYSTEM,
            base=files.root,
            tool_mode="mask",  # the same definitions in every phase: the provider's cache stays warm
            tool_budget=None,  # all of ours are needed
            approve=(lambda _: True) if yes else ask,
            listen=screen.show,
            snapshots=True,
        )
        try:
            result = engine.run_sync(task)
        except KeyboardInterrupt:
            click.secho("\ninterrupted; the same command goes on where this was", fg="yellow")
            sys.exit(130)
        finally:
            click.echo(report(session))
    if not result.ok:
        click.secho(f"{result.status}: {result.error}", fg="red", err=True)
        sys.exit(1)


def allow(session: windowsill.Session) -> None:
    """Let the agent delete and run commands, each after somebody agreed."""
    session.state.set("system.audit.require_approval", ("delete", "execute"))
    session.state.grant("delete", "execute")


async def ask(wanted: Approval) -> bool:
    """Ask on the terminal. No thread waits for the answer, so that Ctrl-C ends this like everything else."""
    click.secho(f"  {wanted.tool} {described(wanted.arguments)}\n  may it? [y/N] ", fg="yellow", nl=False)
    with suppress(PermissionError):  # from a file, which need not be waited for
        await anyio.wait_readable(sys.stdin)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


class Screen:
    """Shows what happens while it happens."""

    def __init__(self) -> None:
        self._said = ""

    def show(self, event: Event) -> None:
        """Show one event."""
        match event.kind:
            case "text":
                click.echo(event.text, nl=False)
            case "answer" if event.text:
                click.echo()
                self._said = event.text
            case "ended" if event.data["status"] == "completed" and event.text != self._said:
                click.echo(event.text)
            case "phase":
                click.secho(f"== {event.text}", bold=True)
            case "folded":
                saved = event.data["before"] - event.data["after"]
                click.secho(f"* folded {saved:,} tokens away: {event.text}", fg="magenta")
            case "tool_started":
                click.secho(f"> {event.text} {described(event.data['arguments'])}", fg="cyan")
            case "tool_finished":
                said = f"  {event.data['tool']}: {short(event.text)} ({event.data['seconds']:.1f} s)"
                click.secho(said, fg="red" if event.data["is_error"] else "green")
            case "tool_refused" | "retry" | "reduced" | "restored" | "warning":
                click.secho(f"! {event.kind}: {short(event.text)}", fg="yellow")
            case "checkpoint":
                click.secho(f"* checkpoint {event.text} ({event.data['reason']})", dim=True)


def report(session: windowsill.Session) -> str:
    """Report what the task has used since it began, interruptions included."""
    used = session.state.value.runtime.resources
    read = used.input + used.cached
    share = used.cached / read if read else 0.0
    cost = f"${used.cost:.4f}" if used.cost else "cost unknown"
    return (
        f"-- {used.model_calls} turns, {used.tool_calls} tool calls, {used.seconds:.0f} s; {read:,} tokens read "
        f"({share:.0%} cached), {used.output:,} written, {cost}; {len(session.folds)} folds in session {session.id!r}"
    )


def described(arguments: dict[str, object]) -> str:
    """Show the arguments of a call in one line."""
    return short(", ".join(f"{name}={value!r}" for name, value in arguments.items()))


def short(text: str) -> str:
    """Show the beginning of a text in one line."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}..."


if __name__ == "__main__":
    try:
        main()
    except windowsill.WindowsillError as error:
        click.secho(f"Error: {error}", fg="red", err=True)
        sys.exit(1)
