"""`windowsill sessions state`."""

from __future__ import annotations

import click
import msgspec

from windowsill.cli.output import print_json
from windowsill.cli.sessions.place import json_option, opened_session, store_option


@click.command()
@click.argument("id")
@click.option("--at", metavar="ENTRY", help="As it was at a message, a fold, a checkpoint or a change.")
@click.option("--changes", is_flag=True, help="Every change, oldest first, instead.")
@store_option
@json_option
def state(id: str, at: str | None, place: str | None, *, changes: bool, as_json: bool) -> None:
    """Print the layered state of session ID as JSON: goal, phase, memory, evidence, work."""
    if at is not None and changes:
        raise click.UsageError("--at and --changes cannot go together")
    with opened_session(place, id) as (session, _):
        if changes:
            events = session.state.history
            if as_json:
                print_json(events)
            for event in () if as_json else events:
                click.echo(f"{event.id}  {event}")
            return
        value = session.state.at(at) if at is not None else session.state.value
    encoded = value.to_json()
    click.echo(encoded if as_json else msgspec.json.format(encoded, indent=2))
