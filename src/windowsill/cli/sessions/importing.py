"""`windowsill sessions import`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from windowsill import formats
from windowsill.cli.output import print_json
from windowsill.cli.reading import STANDARD_INPUT, naming, read_source, require_content
from windowsill.cli.recordings import LINES, Recording, parse
from windowsill.cli.room import room
from windowsill.cli.sessions.place import json_option, opened, store_option
from windowsill.errors import FormatError, InputError
from windowsill.session import Session
from windowsill.session.porting import import_session, is_export, taken
from windowsill.store import Store


@click.command("import")
@click.argument("file")
@click.option("--id", "name", metavar="ID", help="The id of the new session; the one in FILE otherwise.")
@click.option("--format", type=click.Choice(formats.names()), help="The format of a conversation in FILE.")
@click.option("--model", metavar="M", help="The model of a conversation; the one FILE names otherwise.")
@click.option("--window", type=click.IntRange(min=1), metavar="N", help="The model's context window in tokens.")
@store_option
@json_option
def import_file(
    file: str,
    name: str | None,
    format: str | None,
    model: str | None,
    window: int | None,
    place: str | None,
    *,
    as_json: bool,
) -> None:
    """Take in an export, or a conversation: a request body, a message list, a recorded session.

    `-` is standard input. A session that exists already is never touched: --id gives the new one another id.
    """
    data = require_content(read_source(file), file)
    lines = data.split(b"\n")
    exported = is_export(lines[0])
    with naming(file):
        conversations = [] if exported else _conversations(data, file, name, format)
    with opened(place, create=True) as store:
        done = [import_session(store, lines, name)] if exported else _record_all(store, conversations, model, window)
        told = [{"session": id, "entries": info.version} for id in done if (info := store.info(id)) is not None]
    if as_json:
        print_json(told)
        return
    for each in told:
        click.echo(f"imported {each['session']}: {each['entries']:,} entries")


def _conversations(data: bytes, file: str, name: str | None, format: str | None) -> list[Recording]:
    documents: Iterable[bytes] = [data]
    if file.endswith(LINES):
        documents = [line for line in data.split(b"\n") if line.strip()]
    found = [_conversation(document, name, format, number) for number, document in enumerate(documents, 1)]
    if name is not None and len(found) > 1:
        raise InputError(f"{file} holds {len(found)} sessions, and --id names one", remedy="leave out --id")
    for recording in found:
        if not recording.named and name is None:
            source = "standard input" if file == STANDARD_INPUT else Path(file).name
            raise InputError(f"a conversation in {source} has no id", remedy="give one with --id")
    return found


def _conversation(document: bytes, name: str | None, format: str | None, number: int) -> Recording:
    try:
        recording = parse(document, name or "", format)
    except FormatError as error:
        raise FormatError(error.what, where=f"line {number}" if number > 1 else "", remedy=error.remedy) from None
    if name is None:
        return recording
    return Recording(id=name, request=recording.request, times=recording.times)


def _record_all(store: Store, found: Sequence[Recording], model: str | None, window: int | None) -> list[str]:
    """New sessions for all conversations, or for none."""
    made: list[str] = []
    try:
        for recording in found:
            _refuse_known(store, recording.id)
            made.append(recording.id)
            _record(store, recording, model, window)
    except BaseException:
        for id in made:
            store.delete(id)
        raise
    return made


def _refuse_known(store: Store, id: str) -> None:
    if store.info(id) is not None:
        raise taken(id)


def _record(store: Store, recording: Recording, model: str | None, window: int | None) -> None:
    request = recording.request
    where = room(model=model, named=request.model, window=window, budget=None)
    with Session.open(
        recording.id, model=where.model, window=where.window, store=store, format=request.format
    ) as session:
        session.extend(request.messages, at=recording.times)
