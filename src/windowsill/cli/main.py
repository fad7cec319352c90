"""The command `windowsill`: its table of commands, running one, reporting errors."""

# ruff: noqa: PLC0415 - help needs neither errors nor telemetry, and should be quick

from __future__ import annotations

import errno
import importlib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

import windowsill

if TYPE_CHECKING:
    from windowsill.errors import WindowsillError

DONE = 0
FAILED = 1
WRONG_CALL = 2
INTERRUPTED = 130
"""The exit code that shells report for a program ended by Ctrl-C."""

DEBUG = "WINDOWSILL_DEBUG"
"""The variable that makes errors come with their traceback."""

_IN_PYTHON = {"folds": "show", "branches": "branches", "checkpoint()": "checkpoint"}
"""Names of a session that errors point to, and the commands that show or do the same."""

_ARGUMENT = re.compile(r"\b(format|model|budget|window)=(?=[\s,;]|$)")

_REMEDIES = {
    errno.ENOENT: "check the path",
    errno.EISDIR: "give a file, not a folder",
    errno.ENOTDIR: "check the path",
    errno.EACCES: "allow this user to read or write it, or give another path",
    errno.EPERM: "allow this user to read or write it, or give another path",
    errno.EROFS: "give a place that can be written",
    errno.ENOSPC: "free some space and try again",
}


class LazyCommand(NamedTuple):
    """The place of a command (`module:attribute`), and the line that help shows without loading it."""

    place: str
    help: str


class LazyGroup(click.Group):
    """A group that lists its commands from a table and imports the one that is called: help stays fast."""

    def __init__(self, *args: Any, table: Mapping[str, LazyCommand], **fields: Any) -> None:
        super().__init__(*args, **fields)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """List the names, in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import the command of this name."""
        if cmd_name not in self.table:
            return None
        module, _, attribute = self.table[cmd_name].place.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write the list of commands from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.help) for name, command in self.table.items()])


COMMANDS = {
    "demo": LazyCommand("windowsill.cli.demo:demo", "Watch an agent work through a small window."),
    "agent": LazyCommand("windowsill.cli.agent:agent", "Let a model work on a task with tools; resume it by name."),
    "worker": LazyCommand("windowsill.cli.agent:worker", "Do the runs that `windowsill agent --queue` hands over."),
    "fit": LazyCommand("windowsill.cli.fit:fit", "Make a request or a message list fit, and print it."),
    "replay": LazyCommand("windowsill.cli.replay:replay", "Replay recorded sessions: what is saved, and what is lost."),
    "evaluate": LazyCommand(
        "windowsill.cli.evaluate:evaluate_command", "Repeat tasks and recordings, and fail when something got worse."
    ),
    "run": LazyCommand("windowsill.cli.proxy:run", "Run an agent behind a proxy: nothing else to set up."),
    "proxy": LazyCommand("windowsill.cli.proxy:proxy", "Stand between agents and providers."),
    "validate": LazyCommand("windowsill.cli.fit:validate", "List what a provider would refuse in a request."),
    "inspect": LazyCommand("windowsill.cli.inspect:inspect", "See what fills a window, and why something left it."),
    "sessions": LazyCommand("windowsill.cli.sessions:sessions", "List, show, move and undo stored sessions."),
    "store": LazyCommand("windowsill.cli.store:store", "Look after the place where sessions are kept."),
    "mcp": LazyCommand("windowsill.cli.mcp:mcp", "Serve the tools of sessions to MCP clients."),
    "models": LazyCommand("windowsill.cli.models:models", "List the models and the windows that were learned."),
    "strategies": LazyCommand("windowsill.cli.strategies:strategies", "List the strategies and their settings."),
}


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--trace",
    metavar="FILE",
    envvar="WINDOWSILL_TRACE",
    type=click.Path(dir_okay=False),
    help="Append OpenTelemetry spans of the command to FILE, one JSON object per line (WINDOWSILL_TRACE).",
)
@click.version_option(windowsill.__version__, "-V", "--version", message="windowsill %(version)s")
@click.pass_context
def group(ctx: click.Context, trace: str | None) -> None:
    """Version control for a context window: keep an LLM agent inside its window, and keep everything that happened."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
    elif trace is not None:
        from windowsill import telemetry

        ctx.with_resource(telemetry.to_file(trace))
        ctx.with_resource(telemetry.span(f"windowsill {ctx.invoked_subcommand}"))


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run `windowsill` and end the process with its exit code: 0 done, 1 the work failed, 2 the call was wrong."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code. Errors go to standard error, in one line."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that knows few characters shows escapes in place of the others.
        if (reconfigure := getattr(stream, "reconfigure", None)) is not None:
            reconfigure(errors="backslashreplace")
    try:
        # A closed pipe never gets here: click ends the process quietly.
        code = group.main(list(arguments), prog_name="windowsill", standalone_mode=False)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        from windowsill.text import printable_line

        line, code = explain(error)
        click.echo(f"windowsill: {printable_line(line)}", err=True)
    return code if isinstance(code, int) else DONE


def explain(error: Exception) -> tuple[str, int]:
    """Return the line that reports an error, and the exit code it means."""
    from windowsill.errors import UnknownModelError, WindowsillError

    match error:
        case click.UsageError():
            command = error.ctx.command_path if error.ctx is not None else "windowsill"
            return f"{error.format_message().rstrip('.')}; see `{command} --help`", WRONG_CALL
        case click.ClickException():
            return error.format_message(), error.exit_code
        case UnknownModelError():
            return f"{error.what}; state how large it is with --window N", WRONG_CALL
        case WindowsillError():
            return as_options(str(error)), WRONG_CALL if _is_wrong_call(error) else FAILED
        case OSError():
            what = (error.strerror or str(error) or type(error).__name__).lower()
            where = f"{error.filename}: " if error.filename is not None else ""
            return f"{where}{what}; {_REMEDIES.get(error.errno or 0, 'check the file and try again')}", FAILED
        case RecursionError():
            return "the input is nested too deeply; flatten it, or keep the deep part as text", FAILED
        case _:
            return f"{type(error).__name__}: {error}; this is a fault of windowsill: {DEBUG}=1 shows where", FAILED


def as_options(text: str) -> str:
    """Name options (`--format`) and commands where the library names arguments (`format=`) and what Python has."""
    for name, command in _IN_PYTHON.items():
        text = text.replace(f"`session.{name}`", f"`windowsill sessions {command}`")
    return _ARGUMENT.sub(r"--\1", text)


def _is_wrong_call(error: WindowsillError) -> bool:
    """Tell whether what was typed is wrong, rather than the content of a file or a store."""
    from windowsill.errors import FormatError, InputError, NotFoundError

    if isinstance(error, NotFoundError):
        return not {"strategy", "provider"}.isdisjoint(error.about)
    return isinstance(error, InputError) and not isinstance(error, FormatError)
