"""`windowsill sessions export` and `windowsill sessions import`."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click
import msgspec

from windowsill import providers
from windowsill.cli.options import read_input
from windowsill.cli.output import print_bytes, print_result, print_warning
from windowsill.cli.session_ids import (
    find_session,
    open_session,
    open_store_at,
    session_command,
    store_and_json,
    store_option,
)
from windowsill.config import StatedSettings
from windowsill.errors import InputError
from windowsill.replay.recordings import (
    STANDARD_INPUT,
    BrokenLine,
    ForeignFile,
    Found,
    Recording,
    first_line,
    list_files,
    name_in_errors,
    no_recordings,
    read_content,
    read_files,
    source_name,
)
from windowsill.secrets.documents import redact_json
from windowsill.session import Session
from windowsill.session.export import (
    already_there,
    export_session,
    find_imported,
    import_session,
    is_export,
    left_out,
    taken_out,
)
from windowsill.session.handoff import handoff as write_handoff
from windowsill.store import Store
from windowsill.text import count_of

MOST_BROKEN = 5
"""Broken lines printed one by one: they show what is wrong, the rest is counted."""


@session_command
@click.option(
    "--format", type=click.Choice(providers.names()), help="Only the messages of the current branch, in this format."
)
@click.option("--handoff", is_flag=True, help="A text in Markdown from which a person or any agent goes on.")
@click.option(
    "--secrets",
    is_flag=True,
    help="KEEP PASSWORDS, KEYS AND TOKENS as they are: an exact backup, for yourself only.",
)
@store_option
def export(id: str, format: str | None, place: str | None, *, handoff: bool, secrets: bool) -> None:
    """Print a session as lines of JSON: everything that ever happened to it, without secrets.

    Passwords, keys and tokens are replaced by `[secret: kind]`; only --secrets gives an exact copy. `windowsill
    sessions import` reads the export. With --format, print a plain list of messages instead; with --handoff, what was
    asked for, decided and done, and the last messages, for whoever goes on without Windowsill.
    """
    if handoff:
        if format is not None:
            raise InputError("--handoff and --format exclude each other", remedy="leave out one of them")
        with open_session(place, id) as session:
            print_bytes(write_handoff(session, secrets=secrets).encode(errors="replace"))
        return
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
@click.option("--trust", is_flag=True, help="Take the writer, strategy, user, project and scope of an export too.")
@store_and_json
def import_file(
    file: str,
    name: str | None,
    format: str | None,
    model: str | None,
    window: int | None,
    place: str | None,
    *,
    trust: bool,
    as_json: bool,
) -> None:
    """Import exports or conversations: request bodies, message lists, recorded sessions, transcripts.

    `-` is standard input; of a folder every file is imported. What is stored already is never changed: a session that
    is there is skipped, or continued if the recording has gone on, so that a folder can be imported again. --id gives
    the new one another id. Transcripts are those that `windowsill replay` reads; broken lines are reported.
    """
    folder = file != STANDARD_INPUT and Path(file).is_dir()
    files = list_files(file)
    if folder:
        exports = {each: read_input(each).split(b"\n") for each in files if is_export(first_line(each))}
        found = read_files((each for each in files if each not in exports), format=format)
    else:
        data = read_input(file)
        exports = {file: data.split(b"\n")} if is_export(data.partition(b"\n")[0]) else {}
        found = iter(()) if exports else read_content(data, file, format)
    recordings, broken = _sorted(found)
    if not recordings and not exports:
        raise no_recordings(broken, file)
    if name is not None and len(recordings) + len(exports) > 1:
        count = len(recordings) + len(exports)
        raise InputError(f"{file} holds {count} sessions, and --id names one", remedy="leave out --id")
    named = _with_own_ids(recordings) if folder else _checked(recordings, file, name)
    for problem in broken[:MOST_BROKEN]:
        print_warning(f"skipped {source_name(problem.where)}: {problem.why}")
    if len(broken) > MOST_BROKEN:
        print_warning(f"skipped {len(broken) - MOST_BROKEN:,} more")
    with open_store_at(place, create=True) as store:
        target = _Import(store, model, window, keep=folder, trust=trust)
        imported = [target.export(lines, source, name) for source, lines in exports.items()]
        imported += target.record_all(named)
    lines = [f"{each['done']} {each['session']}: {each['entries']:,} entries" for each in imported]
    print_result(imported, "\n".join(lines), as_json=as_json)


def _sorted(found: Iterable[Found]) -> tuple[list[Recording], list[BrokenLine | ForeignFile]]:
    recorded: list[Recording] = []
    broken: list[BrokenLine | ForeignFile] = []
    for each in found:
        if isinstance(each, Recording):
            recorded.append(each)
        elif isinstance(each, BrokenLine | ForeignFile):
            broken.append(each)
    return recorded, broken


def _checked(recorded: list[Recording], file: str, name: str | None) -> list[Recording]:
    """Return the recordings of a file under the id that was given; refuse those without an id, and one id twice."""
    if name is not None:
        recorded = [msgspec.structs.replace(each, id=name, named=True) for each in recorded]
    if any(not recording.named for recording in recorded):
        raise InputError(f"a conversation in {source_name(file)} has no id", remedy="give one with --id")
    for id, count in Counter(recording.id for recording in recorded).items():
        if count > 1:
            raise InputError(f"{count} sessions of {source_name(file)} have the id {id!r}", remedy="give each its own")
    return recorded


def _with_own_ids(recorded: Iterable[Recording]) -> Iterator[Recording]:
    """Add numbers to ids that repeat: agents copy a session into a new file when it is resumed or forked."""
    used: set[str] = set()
    for recording in recorded:
        numbered = (f"{recording.id}-{number}" for number in itertools.count(2))
        id = next(each for each in itertools.chain([recording.id], numbered) if each not in used)
        used.add(id)
        yield msgspec.structs.replace(recording, id=id)


class _Import:
    """Sessions on their way into a store. With `keep`, one that is there already and differs is no error."""

    def __init__(self, store: Store, model: str | None, window: int | None, *, keep: bool, trust: bool) -> None:
        self._store = store
        self._model = model
        self._window = window
        self._keep = keep
        self._trust = trust
        self._new: list[str] = []

    def export(self, lines: Sequence[bytes], file: str, name: str | None) -> dict[str, object]:
        """Import an export, unless all of it is there."""
        with name_in_errors(file):
            id, known = find_imported(self._store, lines, name)
            if known == "same":
                return self._done(id, "skipped")
            if known == "other":
                return self._differs(id)
            import_session(self._store, lines, name, trusted=self._trust)
        if not self._trust and (names := left_out(lines[0])):
            print_warning(f"not taken from the file: {', '.join(names)}; --trust takes them from a file of your own")
        if redacted := taken_out(lines[0]):
            print_warning(f"secrets were taken out of {count_of(redacted, 'place')} when it was exported")
        return self._done(id, "imported")

    def record_all(self, found: Iterable[Recording]) -> list[dict[str, object]]:
        """Create a session for each conversation that is new, or none at all; continue those that have gone on."""
        try:
            return [self._record(recording) for recording in found]
        except BaseException:
            for id in self._new:
                self._store.delete(id)
            raise

    def _record(self, recording: Recording) -> dict[str, object]:
        request, id = recording.request, recording.id
        known = self._store.info(id) is not None
        name = self._model or request.model
        if name is None and self._window is None and not known:
            raise InputError("the size of the window is not known", remedy="give --model M or --window N")
        settings: StatedSettings = {"model": name, "window": self._window, "format": request.format}
        times = _times(recording)
        if not known:
            self._new.append(id)
        # The session is as old as the conversation, not as its import.
        clock = (lambda: times[0]) if times else time.time
        with Session.open(id, store=self._store, clock=clock, config=False, **({} if known else settings)) as session:
            stored = [message.raw for message in session.messages()] if known else []
            recorded = [message.raw for message in request.messages]
            if any(one != other for one, other in zip(stored, recorded, strict=False)):
                return self._differs(id)
            new = request.messages[len(stored) :]
            session.extend(new, at=times[len(stored) :])
        return self._done(id, "imported" if not known else "continued" if new else "skipped")

    def _differs(self, id: str) -> dict[str, object]:
        if not self._keep:
            raise already_there(id)
        print_warning(f"{id} is stored already and differs from what was to be imported; it stays as it is")
        return self._done(id, "skipped")

    def _done(self, id: str, done: str) -> dict[str, object]:
        info = self._store.info(id)
        return {"session": id, "entries": info.version if info is not None else 0, "done": done}


def _times(recording: Recording) -> list[float]:
    """Return a time for each message, that of the one before where none was recorded; nothing where none was at all."""
    known = next((at for at in recording.times if at is not None), None)
    times = []
    for index in range(len(recording.request.messages) if known is not None else 0):
        at = recording.times[index] if index < len(recording.times) else None
        known = at if at is not None else known
        times.append(float(known or 0.0))
    return times
