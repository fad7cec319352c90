"""`windowsill sessions verify`."""

from __future__ import annotations

import click
import msgspec

from windowsill.cli.output import print_json
from windowsill.cli.running import FAILED
from windowsill.cli.sessions.place import json_option, known, opened, store_option
from windowsill.config import Settings
from windowsill.errors import WindowsillError
from windowsill.session.journal import Journal
from windowsill.store import SessionInfo, Store
from windowsill.text import printable_line


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID...]")
@store_option
@json_option
@click.pass_context
def verify(ctx: click.Context, ids: tuple[str, ...], place: str | None, *, as_json: bool) -> None:
    """Check that sessions are as they were written: those named, or all. The exit code is 1 when one is not."""
    with opened(place) as store:
        chosen = [known(store, id) for id in ids] if ids else store.sessions()
        found = {info.id: _problems(store, info) for info in chosen}
        of_store = store.check() if chosen and not ids else []
    sound = not of_store and not any(found.values())
    if as_json:
        print_json({"sound": sound, "store": of_store, "sessions": found})
    else:
        lines = [f"store: {problem}" for problem in of_store]
        for id, problems in found.items():
            lines += [f"{id}: {problem}" for problem in problems] or [f"{id}: sound"]
        for line in lines:
            click.echo(printable_line(line))
    ctx.exit(0 if sound else FAILED)


def _problems(store: Store, info: SessionInfo) -> list[str]:
    """Everything wrong with a session, read entry by entry: one that can no longer be opened is checked too."""
    problems: list[str] = []
    try:
        msgspec.json.decode(info.settings, type=Settings)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        problems.append(f"its settings cannot be read ({error})")
    try:
        problems += store.check(info.id)
        problems += Journal(store, info.id).problems(info.version)
    except WindowsillError as error:
        problems.append(str(error))
    return problems
