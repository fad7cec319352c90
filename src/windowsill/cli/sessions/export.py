"""`windowsill sessions export`."""

from __future__ import annotations

import click

from windowsill import formats
from windowsill.cli.output import print_bytes
from windowsill.cli.sessions.place import known, opened, opened_session, store_option
from windowsill.session.porting import export_session


@click.command()
@click.argument("id")
@click.option(
    "--format", type=click.Choice(formats.names()), help="Only the messages of the current branch, in this format."
)
@store_option
def export(id: str, format: str | None, place: str | None) -> None:
    """Print a session as lines of JSON: everything that ever happened to it.

    `windowsill sessions import` takes it back. With --format, print a plain list of messages instead.
    """
    if format is None:
        with opened(place) as store:
            known(store, id)
            for line in export_session(store, id):
                print_bytes(line)
        return
    target = formats.get(format)
    with opened_session(place, id) as (session, _):
        chunks = [chunk for message in session.messages() for chunk in target.render_message(message)]
    print_bytes(b"[" + b",".join(chunks) + b"]")
