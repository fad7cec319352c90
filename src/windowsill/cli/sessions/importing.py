"""`windowsill sessions import`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click
import msgspec

from windowsill import formats
from windowsill.cli.output import print_json
from windowsill.cli.reading import STANDARD_INPUT, read_source, require_content
from windowsill.cli.recordings import Broken, Foreign, Found, Recording, recorded_in, recordings
from windowsill.cli.room import room
from windowsill.cli.sessions.place import json_option, opened, store_option
from windowsill.errors import FormatError, InputError
from windowsill.session import Session
from windowsill.session.porting import import_session, is_export, taken, taken_out
from windowsill.store import Store
from windowsill.text import printable_line

MOST_BROKEN = 5
"""Lines told one by one: they show what is wrong, the rest is counted."""


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
    """Take in an export, or a conversation: a request body, a message list, a recorded session, a transcript.

    `-` is standard input, and a folder every recording in it. A session that exists already is never touched: --id
    gives the new one another id. Transcripts are those that `windowsill replay` knows; broken lines are told.
    """
    folder = file != STANDARD_INPUT and Path(file).is_dir()
    data = b"" if folder else require_content(read_source(file), file)
    lines = data.split(b"\n")
    exported = is_export(lines[0])
    found = recordings([file], format=format) if folder else recorded_in(data, file, format)
    conversations = [] if exported else _conversations(found, file, name, folder=folder)
    with opened(place, create=True) as store:
        done = [import_session(store, lines, name)] if exported else _record_all(store, conversations, model, window)
        told = [{"session": id, "entries": info.version} for id in done if (info := store.info(id)) is not None]
    if exported and (redacted := taken_out(lines[0])):
        where = f"{redacted:,} place{'' if redacted == 1 else 's'}"
        click.echo(f"secrets were taken out of {where} when it was exported", err=True)
    if as_json:
        print_json(told)
        return
    for each in told:
        click.echo(f"imported {each['session']}: {each['entries']:,} entries")


def _conversations(found: Iterable[Found], file: str, name: str | None, *, folder: bool) -> list[Recording]:
    told: list[Recording] = []
    broken: list[Broken | Foreign] = []
    for each in found:
        if isinstance(each, Recording):
            told.append(each)
        elif isinstance(each, Broken | Foreign):
            broken.append(each)
    if not told:
        raise _nothing(broken, file)
    if name is not None and len(told) > 1:
        raise InputError(f"{file} holds {len(told)} sessions, and --id names one", remedy="leave out --id")
    if name is not None:
        told = [msgspec.structs.replace(told[0], id=name, named=True)]
    if not folder and any(not recording.named for recording in told):
        raise InputError(f"a conversation in {_name(file)} has no id", remedy="give one with --id")
    _tell(broken)
    return list(_apart(told)) if folder else told


def _apart(told: Iterable[Recording]) -> Iterator[Recording]:
    """Recordings with an id each: agents copy a session into a new file when it is resumed or forked."""
    taken_ids: set[str] = set()
    for recording in told:
        numbered = (f"{recording.id}-{number}" for number in itertools.count(2))
        id = next(each for each in itertools.chain([recording.id], numbered) if each not in taken_ids)
        taken_ids.add(id)
        yield recording if id == recording.id else msgspec.structs.replace(recording, id=id)


def _nothing(broken: Sequence[Broken | Foreign], file: str) -> FormatError:
    if not broken:
        return FormatError("there is no session in it", where=_name(file), remedy="pass recorded sessions as JSON")
    more = f" (and {len(broken) - 1:,} more like this)" if len(broken) > 1 else ""
    return FormatError(f"{broken[0].why}{more}", where=_where(broken[0]))


def _tell(broken: Sequence[Broken | Foreign]) -> None:
    """The first few that could not be read, and how many there are, for people: on standard error."""
    for each in broken[:MOST_BROKEN]:
        click.echo(printable_line(f"skipped {_where(each)}: {each.why}"), err=True)
    if len(broken) > MOST_BROKEN:
        click.echo(f"skipped {len(broken) - MOST_BROKEN:,} more", err=True)


def _where(broken: Broken | Foreign) -> str:
    return _name(broken.where)


def _name(file: str) -> str:
    return f"standard input{file[1:]}" if file == STANDARD_INPUT or file.startswith("- line ") else file


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
