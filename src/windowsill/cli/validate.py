"""`windowsill validate`: what a provider would refuse, before it does."""

from __future__ import annotations

import click

import windowsill
from windowsill import formats
from windowsill.cli.output import Column, print_json, print_table
from windowsill.cli.reading import naming, read_source, require_content
from windowsill.cli.running import FAILED


@click.command(short_help="Say what a provider would refuse in a request.")
@click.argument("file")
@click.option(
    "--format", type=click.Choice(formats.names()), help="The format of FILE; told from its content otherwise."
)
@click.option("--json", "as_json", is_flag=True, help="Print the problems as JSON.")
@click.pass_context
def validate(ctx: click.Context, file: str, format: str | None, *, as_json: bool) -> None:
    """Check a request body or a message list (JSON) in FILE against its provider's rules.

    `-` is standard input. The exit code is 1 when there is a problem.
    """
    data = require_content(read_source(file), file)
    with naming(file):
        problems = windowsill.validate(data, format=format)
    if as_json:
        print_json({"valid": not problems, "problems": problems})
    elif problems:
        columns = [Column("rule"), Column("where"), Column("what"), Column("remedy")]
        print_table(columns, [(each.rule, each.where, each.what, each.remedy) for each in problems])
    else:
        click.echo("valid")
    ctx.exit(FAILED if problems else 0)
