"""Snapshots: files with what a model saw at one moment and the state, from which a session can begin again."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from windowsill import providers
from windowsill.compose.render import without_hint, without_refs
from windowsill.config import Settings, read_settings
from windowsill.errors import DamagedError, InputError, NotFoundError, SettingError, StoreError, log
from windowsill.files import Folder, Shadow
from windowsill.history.entries import Entry
from windowsill.history.head import Draft
from windowsill.journal.writer import JournalWriter
from windowsill.messages import Mark, Message, Origin, ToolResult
from windowsill.providers import Format
from windowsill.session.export import already_there, limit_trust
from windowsill.state.layers import State
from windowsill.state.session_state import StateMeta
from windowsill.store import Store, default_place
from windowsill.store.codec import open_file, seal_file

VERSION = "1.0"

NO_STATE = msgspec.Raw(b"null")
"""The state of a session that keeps none."""

_CHECKSUM = b',"checksum":"'

REASON = "begun from a snapshot"

_GIVEN_HERE = re.compile(r"[a-z][0-9]+")
"""Ids that a journal gives by itself: in another journal the same number is another entry."""

FILES = "files"
"""The folder beside the database that holds the records of files."""

SNAPSHOTS = "snapshots"
"""The folder beside the database that holds a folder of snapshot files for each session."""

PRIVATE_FOLDER = 0o700
"""Snapshots hold what was said: nobody but their owner reads them. (`mkstemp` makes files that way by itself.)"""

ABANDONED_SECONDS = 3_600
"""An unfinished file of this age belongs to a process that died: writing one takes a moment."""

_SNAPSHOT = re.compile(r"([0-9]{4,})\.json")

_UNFINISHED = ".unfinished"

READABLE = 40
"""Characters of a session's name that a folder's name repeats, for people who look for it."""

DIGITS = 20
"""Of the hash that tells two sessions apart: 80 bits, which no two names share by chance."""

_OTHER = re.compile(r"[^a-z0-9]+")


class About(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The id, time, marks and metadata of one item of the view, which stand beside its words."""

    count: int = 1
    """The number of `messages`, one after the other, that it is in the wire format."""
    id: str = ""
    at: float = 0.0
    marks: tuple[Mark, ...] = ()
    metadata: dict[str, Any] = {}


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A view and a state from which a session begins when its database is lost."""

    version: str = VERSION
    timestamp: float
    """Seconds since the epoch, UTC."""
    token_count: int
    messages: tuple[msgspec.Raw, ...]
    """The view, in `format`: it is as large as the window lets it be, whatever the history has."""
    summary: str | None = None
    """The newest summary among them, by itself."""
    session: str
    entry: str | None = None
    """The id of the last entry then."""
    format: str
    model: str | None = None
    phase: str = ""
    settings: msgspec.Raw = msgspec.Raw(b"{}")
    state: msgspec.Raw = NO_STATE
    about: tuple[About, ...] = ()


def pack(snapshot: Snapshot) -> bytes:
    """Encode a snapshot as the bytes of a file."""
    body = msgspec.json.encode(snapshot)
    return seal_file(body[:-1] + _CHECKSUM + _end(body))


def unpack(data: bytes) -> Snapshot:
    """Decode a snapshot from the bytes of a file; `DamagedError` says what is wrong with them."""
    if not data:
        raise _damaged("it is empty")
    start, found, end = open_file(data).rpartition(_CHECKSUM)
    body = start + b"}"
    if not found or len(end) != len(_end(body)) or not end.endswith(b'"}'):
        raise _damaged("it does not end with a checksum")
    if end != _end(body):
        raise _damaged("it is not what was written")
    try:
        version = msgspec.json.decode(body, type=_Version).version
        if version == VERSION:
            return msgspec.json.decode(body, type=Snapshot)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _damaged(f"not a snapshot ({error})") from None
    raise _damaged(f"it has version {version!r}, and this Windowsill reads {VERSION!r}")


class _Version(msgspec.Struct):
    version: str


def _end(body: bytes) -> bytes:
    return f'{hashlib.sha256(body).hexdigest()}"}}'.encode()


def _damaged(why: str) -> DamagedError:
    return DamagedError(why, remedy="use the snapshot before it")


def snapshot_of(journal: JournalWriter, format: Format, settings: Settings, state: State) -> Snapshot:
    """Take a snapshot of what the model sees at the head, with all that is needed to go on from it."""
    view = journal.view
    journal.load(view)
    messages: list[msgspec.Raw] = []
    about: list[About] = []
    names: dict[str, str] = {}
    newest_first = sorted((item for item in view.items if item.fold), key=lambda item: item.fold, reverse=True)
    stand_ins = map(view.read, newest_first)
    for item in view.items:
        # What a stand-in hides is not in the snapshot: no tool finds it there.
        message = without_hint(view.read(item)) if item.fold else view.read(item)
        names.update((call.id, call.name) for call in message.calls)
        chunks = format.render_message(_alone(message, names, format) if item.results else message)
        messages += map(msgspec.Raw, chunks)
        own_id = "" if item.fold or _GIVEN_HERE.fullmatch(item.id) else item.id
        about.append(About(count=len(chunks), id=own_id, at=message.at, marks=item.marks, metadata=message.metadata))
    return Snapshot(
        timestamp=journal.clock(),
        token_count=view.tokens(),
        messages=tuple(messages),
        summary=next((message.text for message in stand_ins if message.origin == Origin.SUMMARY), None),
        session=journal.session,
        entry=journal.entry(journal.version).id if journal.version else None,
        format=format.name,
        model=settings.model,
        phase=state.runtime.phase,
        settings=msgspec.Raw(msgspec.json.encode(settings)),
        # A state that says nothing but the defaults is none.
        state=msgspec.Raw(state.to_json()) if state != State() else NO_STATE,
        about=tuple(about),
    )


def _alone(message: Message, names: Mapping[str, str], format: Format) -> Message:
    """Make a message with results stand by itself.

    Refs of outputs lead nowhere once the database is lost; and where a format names the tool beside each result, the
    name is that of the call.
    """
    message = without_refs(message)
    if not format.rules.named_results or all(result.name for result in message.results):
        return message
    blocks = tuple(
        msgspec.structs.replace(block, name=block.name or names.get(block.tool_use_id), raw=None)
        if isinstance(block, ToolResult)
        else block
        for block in message.blocks
    )
    return msgspec.structs.replace(message, blocks=blocks, edited=True)


def fill(journal: JournalWriter, snapshot: Snapshot) -> None:
    """Write what a snapshot holds to a session that holds nothing: all of it or nothing."""
    state = State.from_json(bytes(snapshot.state)) if snapshot.state != NO_STATE else None

    def note(draft: Draft, _: list[Entry]) -> None:
        if state is not None:
            draft.record("state", StateMeta("whole", REASON), msgspec.msgpack.encode(state))

    messages = list(_messages(snapshot))
    if messages:
        journal.add(messages, conversation=journal.view.conversation_hash, also=note)
    elif state is not None:
        journal.append(lambda draft: note(draft, []))


@contextmanager
def begin_session(store: Store, id: str, at: float, settings: bytes, *, owned: bool) -> Iterator[None]:
    """Begin a new session, or take an empty one, to be filled; when that fails, the store is left as it was."""
    made = False
    try:
        made = store.create(id, at=at, settings=settings)
        if not made and (info := store.info(id)) is not None and info.version:
            raise already_there(id)  # noqa: TRY301 - an owned store is closed after it too
        yield
    except BaseException:
        if made:
            store.delete(id)
        if owned:
            store.close()
        raise


def _messages(snapshot: Snapshot) -> Iterator[Message]:
    format = providers.get(snapshot.format)
    raws = iter(enumerate(snapshot.messages))
    for about in snapshot.about:
        id = about.id
        for _, (place, raw) in zip(range(about.count), raws, strict=False):
            message = format.read_message(bytes(raw), f"messages[{place}]")
            yield msgspec.structs.replace(
                message, id=id, at=about.at, marks=frozenset(about.marks), metadata=about.metadata
            )
            id = ""
    for place, raw in raws:
        # Written by another program, which knows nothing of what stands beside the messages.
        yield format.read_message(bytes(raw), f"messages[{place}]")


class Damage(msgspec.Struct, frozen=True):
    """A file that could not be used, and why."""

    path: Path
    why: str


class Loaded(msgspec.Struct, frozen=True):
    """The newest whole snapshot, where it is, and the newer files that are damaged."""

    snapshot: Snapshot
    path: Path
    damaged: tuple[Damage, ...] = ()


def save_snapshot(folder: Path, snapshot: Snapshot, *, keep: int = 5) -> Path:
    """Write a snapshot behind those in `folder` and remove all but the last `keep`; return its path.

    When it returns, the file survives the loss of power. Whatever happens before, those that were there are whole.
    """
    if keep < 1:
        raise SettingError("keep", keep, "1 or more")
    try:
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        for each in reversed(missing):
            each.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
            _sync(each.parent)
        path = _write(folder, pack(snapshot))
        _rotate(folder, keep, path.stat().st_mtime)
    except OSError as error:
        raise StoreError(
            f"no snapshot can be written to {folder} ({error.strerror or error})",
            remedy="check free space and permissions, or give another folder",
            path=folder,
        ) from error
    return path


def load_snapshot(place: Path | str) -> Loaded:
    """Load the snapshot in a file, or the newest whole one of a folder.

    `DamagedError` when none is whole, `NotFoundError` when there is none. A folder above that of one session is fine.
    """
    place = Path(place)
    if place.is_file():
        return Loaded(_named(place), place)
    damaged: list[Damage] = []
    for _, path in _numbered(_session_folder(place)):
        try:
            return Loaded(unpack(path.read_bytes()), path, tuple(damaged))
        except FileNotFoundError:
            # Another process keeps only the last few, and has removed it since.
            continue
        except (DamagedError, OSError) as error:
            why = error.what if isinstance(error, DamagedError) else error.strerror or str(error)
            damaged.append(Damage(path, why))
    if not damaged:
        raise NotFoundError(f"there is no snapshot in {place}", remedy="`session.write_snapshot()` writes one")
    listed = "; ".join(f"{each.path.name}: {each.why}" for each in damaged)
    raise DamagedError(f"no snapshot in {place} is whole ({listed})", remedy="restore a backup", damaged=damaged)


def choose_snapshot(place: Path | str, *, trusted: bool) -> Snapshot:
    """Load a snapshot to begin a session from; unless it is `trusted`, without settings that only a user may decide."""
    loaded = load_snapshot(place)
    for each in loaded.damaged:
        log.warning("snapshot %s is damaged: %s", each.path, each.why)
    if trusted:
        return loaded.snapshot
    settings, dropped = limit_trust(loaded.snapshot.settings, loaded.snapshot.session)
    if dropped:
        log.warning("%s: not taken from the snapshot: %s; state them, or trust it", loaded.path, ", ".join(dropped))
    return msgspec.structs.replace(loaded.snapshot, settings=settings)


def _named(path: Path) -> Snapshot:
    """Read a snapshot that was asked for by the name of its file: no other one is meant."""
    try:
        return unpack(path.read_bytes())
    except DamagedError as error:
        raise DamagedError(
            f"{path}: {error.what}", remedy="give its folder: then the last whole one before it is used", path=path
        ) from None
    except OSError as error:
        raise StoreError(
            f"{path} cannot be read ({error.strerror or error})", remedy="allow this user to read it", path=path
        ) from error


def _session_folder(place: Path) -> Path:
    """Return the folder of snapshots itself, or the only one that stands in it."""
    if not place.is_dir():
        raise NotFoundError(f"there is no snapshot at {place}", remedy="check the path")
    if _numbered(place):
        return place
    inside = sorted(each for each in place.iterdir() if each.is_dir() and _numbered(each))
    if len(inside) > 1:
        named = ", ".join(each.name for each in inside)
        raise InputError(f"{place} has snapshots of {len(inside)} sessions", remedy=f"give one of its folders: {named}")
    return inside[0] if inside else place


def _numbered(folder: Path) -> list[tuple[int, Path]]:
    found = ((_SNAPSHOT.fullmatch(path.name), path) for path in folder.iterdir())
    return sorted(((int(match[1]), path) for match, path in found if match), reverse=True)


def _write(folder: Path, data: bytes) -> Path:
    handle, name = tempfile.mkstemp(dir=folder, suffix=_UNFINISHED)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        path = _take_number(folder, Path(name))
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
    _sync(folder)
    return path


def _take_number(folder: Path, written: Path) -> Path:
    """Give a file the next number. Of several processes that want the same one, each gets its own."""
    while True:
        there = _numbered(folder)
        path = folder / f"{(there[0][0] if there else 0) + 1:04}.json"
        try:
            path.hardlink_to(written)
        except FileExistsError:
            continue
        except OSError:
            # A file system without links, where two may take the same number: the later one has it then.
            return written.replace(path)
        written.unlink()
        return path


def _sync(folder: Path) -> None:
    """Make sure that the names in a folder are on disk; where folders cannot be opened, the system sees to it."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _rotate(folder: Path, keep: int, now: float) -> None:
    """Remove what is no longer needed. The new one is there already: whatever cannot be removed costs only space."""
    for _, path in _numbered(folder)[keep:]:
        with suppress(OSError):
            path.unlink()
    for path in folder.glob(f"*{_UNFINISHED}"):
        with suppress(OSError):
            if now - path.stat().st_mtime > ABANDONED_SECONDS:
                path.unlink()


def snapshot_folder(store: Store, session: str, folder: Path | str | None = None) -> Path:
    """Return where the snapshot files of a session are written: beside its database, or in a folder that is given."""
    if not folder:
        database = getattr(store, "path", None)
        if not isinstance(database, Path):
            raise InputError(f"session {session!r} is kept in no folder", remedy="give the folder for snapshots")
        folder = database.parent / SNAPSHOTS
    return Path(folder) / folder_name(session)


def shadow_of(store: Store, folder: Folder) -> Shadow:
    """Return what records the files of a folder: beside the database, or where sessions are kept by default."""
    return Shadow(folder, _place_of_files(store))


def _place_of_files(store: Store) -> Path:
    database = getattr(store, "path", None)
    place = database.parent if isinstance(database, Path) else default_place(os.environ, Path.cwd())
    return place / FILES


def delete_session(store: Store, session: str) -> bool:
    """Remove a session with everything that belongs to it, its snapshots and records of files too; false if none."""
    files = None
    if (info := store.info(session)) is not None:
        # Settings that cannot be read do not say which folder was recorded.
        with suppress(DamagedError):
            files = read_settings(info.settings, session).files
    if files is not None and _place_of_files(store).is_dir():
        shadow_of(store, files).forget(session)
    if isinstance(getattr(store, "path", None), Path) and (folder := snapshot_folder(store, session)).is_dir():
        shutil.rmtree(folder)
    return store.delete(session)


def folder_name(session: str) -> str:
    """Return a name that every file system takes, and that no other session has.

    It is made of lower-case letters, digits and hyphens: some file systems do not tell cases apart, some give names
    with dots or certain words a meaning.
    """
    readable = _OTHER.sub("-", session.lower())[:READABLE].strip("-") or "session"
    return f"{readable}-{hashlib.sha256(session.encode(errors='surrogatepass')).hexdigest()[:DIGITS]}"
