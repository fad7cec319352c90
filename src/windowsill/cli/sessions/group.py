"""The group `windowsill sessions`; without a command it lists."""

from __future__ import annotations

import click

from windowsill.cli.lazy import Home, LazyGroup

_HERE = "windowsill.cli.sessions"

HOMES = {
    "list": Home(f"{_HERE}.listing:list_sessions", "List the sessions, the last used first."),
    "show": Home(f"{_HERE}.show:show", "Show a session: size, folds, branches, messages."),
    "export": Home(f"{_HERE}.export:export", "Print a session as lines of JSON, or its messages."),
    "import": Home(f"{_HERE}.importing:import_file", "Take in an export, or a recorded conversation."),
    "unfold": Home(f"{_HERE}.undo:unfold", "Bring back what a fold hid."),
    "rewind": Home(f"{_HERE}.undo:rewind", "Go back to a message or a time; the other branch stays."),
    "state": Home(f"{_HERE}.state:state", "Print the layered state, as it is or as it was."),
    "checkpoints": Home(f"{_HERE}.checkpoints:checkpoints", "List the checkpoints, the newest first."),
    "checkpoint": Home(f"{_HERE}.checkpoints:checkpoint", "Name this moment, to come back to it."),
    "restore": Home(f"{_HERE}.checkpoints:restore", "Go back to a checkpoint; the other branch stays."),
    "verify": Home(f"{_HERE}.verify:verify", "Check that everything is as it was written."),
}


@click.group(cls=LazyGroup, homes=HOMES, invoke_without_command=True)
@click.pass_context
def sessions(ctx: click.Context) -> None:
    """List, show, move and undo stored sessions.

    They are kept where --store says, else under WINDOWSILL_HOME, else in .windowsill/ of the current folder if there is
    one, else in the user's data folder.
    """
    if ctx.invoked_subcommand is None:
        command = ctx.command
        assert isinstance(command, LazyGroup)
        listing = command.get_command(ctx, "list")
        assert listing is not None
        ctx.invoke(listing)
