"""Runs a command and turns whatever went wrong into one line and an exit code."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from windowsill.cli.commands import group
from windowsill.errors import FormatError, InputError, NotFoundError, UnknownModelError, WindowsillError
from windowsill.text import printable_line

DONE = 0
FAILED = 1
WRONG_CALL = 2
INTERRUPTED = 130
"""What a shell reports for a program that Ctrl-C ended."""

DEBUG = "WINDOWSILL_DEBUG"
"""When this variable is set, errors come with their traceback."""

_REMEDIES = {
    errno.ENOENT: "check the path",
    errno.EISDIR: "give a file, not a folder",
    errno.ENOTDIR: "check the path",
    errno.EACCES: "allow this user to read or write it, or give another path",
    errno.EPERM: "allow this user to read or write it, or give another path",
    errno.EROFS: "give a place that can be written",
    errno.ENOSPC: "free some space and try again",
}


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run `windowsill` and end the process with its exit code: 0 done, 1 the work failed, 2 the call was wrong."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run a command; its exit code. Errors are told on standard error, in one line."""
    _write_what_can_be_written()
    try:
        # A closed pipe never gets here: click ends the process quietly.
        code = group.main(list(arguments), prog_name="windowsill", standalone_mode=False)
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        return _ended_by(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    return code if isinstance(code, int) else DONE


def _ended_by(error: Exception) -> int:
    if isinstance(error, click.Abort):
        return INTERRUPTED
    line, code = explain(error)
    click.echo(f"windowsill: {printable_line(line)}", err=True)
    return code


def explain(error: Exception) -> tuple[str, int]:
    """What to tell about an error, and the exit code it means."""
    match error:
        case click.UsageError():
            command = error.ctx.command_path if error.ctx is not None else "windowsill"
            return f"{error.format_message().rstrip('.')}; see `{command} --help`", WRONG_CALL
        case click.ClickException():
            return error.format_message(), error.exit_code
        case UnknownModelError():
            return f"{error.what}; state how large it is with --window N", WRONG_CALL
        case WindowsillError():
            return str(error), WRONG_CALL if _is_wrong_call(error) else FAILED
        case OSError():
            return _file_trouble(error), FAILED
        case RecursionError():
            return "the input is nested too deeply; flatten it, or keep the deep part as text", FAILED
        case _:
            return f"{type(error).__name__}: {error}; this is a fault of windowsill: {DEBUG}=1 shows where", FAILED


def _is_wrong_call(error: WindowsillError) -> bool:
    """Whether what was typed is wrong, rather than what a file or a store holds."""
    if isinstance(error, FormatError):
        return False
    if isinstance(error, NotFoundError):
        return "strategy" in error.about
    return isinstance(error, InputError)


def _file_trouble(error: OSError) -> str:
    what = (error.strerror or str(error) or type(error).__name__).lower()
    where = f"{error.filename}: " if error.filename is not None else ""
    remedy = _REMEDIES.get(error.errno or 0, "check the file and try again")
    return f"{where}{what}; {remedy}"


def _write_what_can_be_written() -> None:
    """Let a terminal that knows few characters show escapes in place of the others."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
