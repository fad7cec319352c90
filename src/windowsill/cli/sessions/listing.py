"""`windowsill sessions list`."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from windowsill.cli.output import Column, on_terminal, print_json, print_table
from windowsill.cli.sessions.place import json_option, moment, opened, store_option
from windowsill.store import SessionInfo


@click.command("list")
@store_option
@json_option
def list_sessions(place: str | None = None, *, as_json: bool = False) -> None:
    """List the sessions, the last used first."""
    with opened(place) as store:
        found = [_told(info) for info in store.sessions()]
    if as_json:
        print_json(found)
    elif not found:
        if on_terminal():
            click.echo("no sessions yet")
    else:
        columns = [Column("session"), Column("model"), Column("entries", right=True), Column("last used")]
        rows = [(each["id"], each["model"] or "-", f"{each['entries']:,}", moment(each["updated"])) for each in found]
        print_table(columns, rows)


def _told(info: SessionInfo) -> dict[str, Any]:
    try:
        settings = msgspec.json.decode(info.settings)
    except msgspec.DecodeError:
        # A damaged session is still listed: `verify` says what is wrong with it.
        settings = {}
    model = settings.get("model") if isinstance(settings, dict) else None
    return {
        "id": info.id,
        "model": model,
        "entries": info.version,
        "created": info.created,
        "updated": info.updated,
        "settings": settings,
    }
