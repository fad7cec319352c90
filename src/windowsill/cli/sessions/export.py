"""`windowsill sessions export`."""

from __future__ import annotations

import click

from windowsill import formats
from windowsill.cli.output import print_bytes
from windowsill.cli.sessions.place import known, opened, opened_session, store_option
from windowsill.redaction import usual
from windowsill.redaction.documents import redacted_json
from windowsill.session.porting import export_session


@click.command()
@click.argument("id")
@click.option(
    "--format", type=click.Choice(formats.names()), help="Only the messages of the current branch, in this format."
)
@click.option(
    "--secrets",
    is_flag=True,
    help="KEEP PASSWORDS, KEYS AND TOKENS as they were said: an exact backup. Give it to nobody.",
)
@store_option
def export(id: str, format: str | None, place: str | None, *, secrets: bool) -> None:
    """Print a session as lines of JSON: everything that ever happened to it, without secrets.

    Where a password, a key or a token was said, `[secret: kind]` stands; only --secrets gives an exact copy.
    `windowsill sessions import` takes it back. With --format, print a plain list of messages instead.
    """
    if format is None:
        with opened(place) as store:
            known(store, id)
            for line in export_session(store, id, secrets=secrets):
                print_bytes(line)
        return
    target = formats.get(format)
    with opened_session(place, id) as (session, _):
        chunks = [chunk for message in session.messages() for chunk in target.render_message(message)]
    if not secrets:
        chunks = [redacted_json(chunk, usual()) for chunk in chunks]
    print_bytes(b"[" + b",".join(chunks) + b"]")
