"""`windowsill sessions export` and `windowsill sessions import`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click
import msgspec

from windowsill import providers
from windowsill.cli.options import read_input
from windowsill.cli.output import print_bytes, print_json, print_line
from windowsill.cli.session_ids import (
    find_session,
    json_option,
    open_session,
    open_store_at,
    session_argument,
    store_option,
)
from windowsill.errors import InputError
from windowsill.replay.recordings import (
    STANDARD_INPUT,
    BrokenLine,
    ForeignFile,
    Found,
    Recording,
    no_recordings,
    read_content,
    read_recordings,
    source_name,
)
from windowsill.secrets.documents import redact_json
from windowsill.session import Session
from windowsill.session.export import already_there, export_session, import_session, is_export, taken_out
from windowsill.store import Store
from windowsill.text import printable_line

MOST_BROKEN = 5
"""Broken lines printed one by one: they show what is wrong, the rest is counted."""


@click.command()
@session_argument
@click.option(
    "--format", type=click.Choice(providers.names()), help="Only the messages of the current branch, in this format."
)
@click.option(
    "--secrets",
    is_flag=True,
    help="KEEP PASSWORDS, KEYS AND TOKENS as they are: an exact backup. Give it to nobody.",
)
@store_option
def export(id: str, format: str | None, place: str | None, *, secrets: bool) -> None:
    """Print a session as lines of JSON: everything that ever happened to it, without secrets.

    Passwords, keys and tokens are replaced by `[secret: kind]`; only --secrets gives an exact copy. `windowsill
    sessions import` reads the export. With --format, print a plain list of messages instead.
    """
    if format is None:
        with open_store_at(place) as store:
            for line in export_session(store, find_session(store, id).id, secrets=secrets):
                print_bytes(line)
        return
    target = providers.get(format)
    with open_session(place, id) as session:
        chunks = [chunk for message in session.messages() for chunk in target.render_message(message)]
    if not secrets:
        chunks = [redact_json(chunk) for chunk in chunks]
    print_bytes(b"[" + b",".join(chunks) + b"]")


@click.command("import")
@click.argument("file")
@click.option("--id", "name", metavar="ID", help="The id of the new session; the one in FILE if left out.")
@click.option("--format", type=click.Choice(providers.names()), help="The format of a conversation in FILE.")
@click.option("--model", metavar="M", help="The model of a conversation; the one FILE names if left out.")
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
    """Import an export, or a conversation: a request body, a message list, a recorded session, a transcript.

    `-` is standard input; of a folder every recording is imported. A session that exists already is never changed: --id
    gives the new one another id. Transcripts are those that `windowsill replay` reads; broken lines are reported.
    """
    folder = file != STANDARD_INPUT and Path(file).is_dir()
    data = b"" if folder else read_input(file)
    lines = data.split(b"\n")
    exported = is_export(lines[0])
    found = read_recordings([file], format=format) if folder else read_content(data, file, format)
    conversations = [] if exported else _conversations(found, file, name, folder=folder)
    with open_store_at(place, create=True) as store:
        ids = [import_session(store, lines, name)] if exported else _record_all(store, conversations, model, window)
        imported = [{"session": id, "entries": info.version} for id in ids if (info := store.info(id)) is not None]
    if exported and (redacted := taken_out(lines[0])):
        where = f"{redacted:,} place{'' if redacted == 1 else 's'}"
        click.echo(f"secrets were taken out of {where} when it was exported", err=True)
    if as_json:
        print_json(imported)
        return
    for each in imported:
        print_line(f"imported {each['session']}: {each['entries']:,} entries")


def _conversations(found: Iterable[Found], file: str, name: str | None, *, folder: bool) -> list[Recording]:
    recorded: list[Recording] = []
    broken: list[BrokenLine | ForeignFile] = []
    for each in found:
        if isinstance(each, Recording):
            recorded.append(each)
        elif isinstance(each, BrokenLine | ForeignFile):
            broken.append(each)
    if not recorded:
        raise no_recordings(broken, file)
    if name is not None and len(recorded) > 1:
        raise InputError(f"{file} holds {len(recorded)} sessions, and --id names one", remedy="leave out --id")
    if name is not None:
        recorded = [msgspec.structs.replace(recorded[0], id=name, named=True)]
    if not folder and any(not recording.named for recording in recorded):
        raise InputError(f"a conversation in {source_name(file)} has no id", remedy="give one with --id")
    for problem in broken[:MOST_BROKEN]:
        click.echo(printable_line(f"skipped {source_name(problem.where)}: {problem.why}"), err=True)
    if len(broken) > MOST_BROKEN:
        click.echo(f"skipped {len(broken) - MOST_BROKEN:,} more", err=True)
    return list(_with_own_ids(recorded)) if folder else recorded


def _with_own_ids(recorded: Iterable[Recording]) -> Iterator[Recording]:
    """Add numbers to ids that repeat: agents copy a session into a new file when it is resumed or forked."""
    used: set[str] = set()
    for recording in recorded:
        numbered = (f"{recording.id}-{number}" for number in itertools.count(2))
        id = next(each for each in itertools.chain([recording.id], numbered) if each not in used)
        used.add(id)
        yield msgspec.structs.replace(recording, id=id)


def _record_all(store: Store, found: Sequence[Recording], model: str | None, window: int | None) -> list[str]:
    """Create a session for each conversation, or none at all."""
    new_ids: list[str] = []
    try:
        for recording in found:
            _record(store, recording, model, window, new_ids)
    except BaseException:
        for id in new_ids:
            store.delete(id)
        raise
    return new_ids


def _record(store: Store, recording: Recording, model: str | None, window: int | None, new_ids: list[str]) -> None:
    if store.info(recording.id) is not None:
        raise already_there(recording.id)
    request = recording.request
    name = model or request.model
    if name is None and window is None:
        raise InputError("the size of the window is not known", remedy="give --model M or --window N")
    new_ids.append(recording.id)
    with Session.open(recording.id, model=name, window=window, store=store, format=request.format) as session:
        session.extend(request.messages, at=recording.times)
