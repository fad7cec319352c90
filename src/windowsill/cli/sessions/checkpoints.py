"""`windowsill sessions checkpoints`, `windowsill sessions checkpoint` and `windowsill sessions restore`."""

from __future__ import annotations

import click

from windowsill.checkpoints.labels import Checkpoint
from windowsill.cli.output import Column, on_terminal, print_json, print_table
from windowsill.cli.sessions.place import json_option, moment, opened_session, store_option


@click.command()
@click.argument("id")
@click.option(
    "--limit", type=click.IntRange(min=0), default=10, show_default=True, metavar="N", help="At most this many."
)
@store_option
@json_option
def checkpoints(id: str, limit: int, place: str | None, *, as_json: bool) -> None:
    """List the checkpoints of session ID, those of every branch, the newest first."""
    with opened_session(place, id) as (session, _):
        found = session.checkpoints(limit)
    if as_json:
        print_json(found)
    elif found:
        _print(found)
    elif on_terminal():
        click.echo("no checkpoints yet")


@click.command()
@click.argument("id")
@click.option("--name", default="", metavar="NAME", help="What it goes by; its id otherwise.")
@store_option
@json_option
def checkpoint(id: str, name: str, place: str | None, *, as_json: bool) -> None:
    """Name this moment of session ID, so that `restore` can return to it.

    A NAME that another checkpoint has is taken over: that one is then reached by its id.
    """
    with opened_session(place, id) as (session, _):
        made = session.checkpoint(name)
    if as_json:
        print_json(made)
    else:
        click.echo(f"checkpoint {_called(made)}: {made.messages:,} messages, {made.tokens:,} tokens")


@click.command()
@click.argument("id")
@click.argument("checkpoint")
@store_option
@json_option
def restore(id: str, checkpoint: str, place: str | None, *, as_json: bool) -> None:
    """Go back to CHECKPOINT (an id or a name) of session ID. What came after stays on its branch."""
    with opened_session(place, id) as (session, _):
        left = next(branch.id for branch in session.branches if branch.current)
        found = session.restore(checkpoint)
        tokens = session.tokens
    if as_json:
        print_json({"session": id, "checkpoint": found, "tokens": tokens, "left": left})
    else:
        click.echo(f"restored {_called(found)}: {found.messages:,} messages; what was left ends at {left}")


def _called(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.name} ({checkpoint.id})" if checkpoint.name else checkpoint.id


def _print(found: list[Checkpoint]) -> None:
    columns = [
        Column("checkpoint"),
        Column("name"),
        Column("messages", right=True),
        Column("tokens", right=True),
        Column("phase"),
        Column("reason"),
        Column("made"),
    ]
    rows = [
        (each.id, each.name or "-", f"{each.messages:,}", f"{each.tokens:,}", each.phase, each.reason, moment(each.at))
        for each in found
    ]
    print_table(columns, rows)
