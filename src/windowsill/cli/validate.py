"""`windowsill validate`: list what a provider would refuse."""

from __future__ import annotations

import click
import msgspec

import windowsill
from windowsill.cli.main import FAILED
from windowsill.cli.options import format_option, read_input
from windowsill.cli.output import print_json, print_table
from windowsill.replay.recordings import name_in_errors


@click.command()
@click.argument("file")
@format_option
@click.option("--model", help="Check the length, too, for this model; by default the one in FILE.")
@click.option("--json", "as_json", is_flag=True, help="Print the problems as JSON.")
@click.pass_context
def validate(ctx: click.Context, file: str, format: str | None, model: str | None, *, as_json: bool) -> None:
    """Check a request body or a message list (JSON) in FILE against its provider's rules.

    `-` is standard input. The exit code is 1 if there is a problem.
    """
    data = read_input(file)
    with name_in_errors(file):
        problems = windowsill.validate(data, format=format, model=model)
    if as_json:
        print_json({"valid": not problems, "problems": problems})
    elif problems:
        print_table([msgspec.structs.asdict(problem) for problem in problems])
    else:
        click.secho("valid", fg="green")
    ctx.exit(FAILED if problems else 0)
