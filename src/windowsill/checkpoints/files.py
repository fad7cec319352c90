"""Snapshot files: numbered in one folder, each whole or not there, the last few kept."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from windowsill.checkpoints.snapshot import Snapshot, pack, unpack
from windowsill.errors import DamagedError, InputError, NotFoundError, SettingError, StoreError

KEEP = 5

PRIVATE_FOLDER = 0o700
"""Snapshots hold what was said: nobody but their owner reads them. (`mkstemp` makes files that way by itself.)"""

ABANDONED_SECONDS = 3_600
"""An unfinished file of this age belongs to a process that died: writing one takes a moment."""

_SNAPSHOT = re.compile(r"([0-9]{4,})\.json")
_UNFINISHED = ".unfinished"


class Damage(msgspec.Struct, frozen=True):
    """A file that could not be used, and why."""

    path: Path
    why: str


class Loaded(msgspec.Struct, frozen=True):
    """The newest whole snapshot, where it is, and the newer files that are damaged."""

    snapshot: Snapshot
    path: Path
    damaged: tuple[Damage, ...] = ()


def save_snapshot(folder: Path, snapshot: Snapshot, *, keep: int = KEEP) -> Path:
    """Write a snapshot behind those in `folder` and remove all but the last `keep`; where it is.

    When it returns, the file survives the loss of power. Whatever happens before, those that were there are whole.
    """
    if keep < 1:
        raise SettingError("keep", keep, "1 or more")
    try:
        _make(folder)
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
    """The snapshot in a file, or the newest whole one of a folder.

    `DamagedError` when none is whole, `NotFoundError` when there is none. A folder above that of one session is fine.
    """
    place = Path(place)
    if place.is_file():
        return Loaded(_named(place), place)
    damaged: list[Damage] = []
    for _, path in _numbered(_session_folder(place)):
        try:
            return Loaded(_read(path), path, tuple(damaged))
        except FileNotFoundError:
            # Another process keeps only the last few, and has removed it since.
            continue
        except (DamagedError, OSError) as error:
            why = error.what if isinstance(error, DamagedError) else error.strerror or str(error)
            damaged.append(Damage(path, why))
    if not damaged:
        raise NotFoundError(f"there is no snapshot in {place}", remedy="`session.write_snapshot()` writes one")
    told = "; ".join(f"{each.path.name}: {each.why}" for each in damaged)
    raise DamagedError(f"no snapshot in {place} is whole ({told})", remedy="restore a backup", damaged=damaged)


def _named(path: Path) -> Snapshot:
    """The snapshot in a file that was asked for by its own name: no other one is meant."""
    try:
        return _read(path)
    except DamagedError as error:
        raise DamagedError(
            f"{path}: {error.what}", remedy="give its folder: then the last whole one before it is used", path=path
        ) from None
    except OSError as error:
        raise StoreError(
            f"{path} cannot be read ({error.strerror or error})", remedy="allow this user to read it", path=path
        ) from error


def _read(path: Path) -> Snapshot:
    return unpack(path.read_bytes())


def _session_folder(place: Path) -> Path:
    """The folder of snapshots itself, or the only one that stands in it."""
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
    """The snapshots of a folder, the newest first."""
    found = ((_SNAPSHOT.fullmatch(path.name), path) for path in folder.iterdir())
    return sorted(((int(match[1]), path) for match, path in found if match), reverse=True)


def _make(folder: Path) -> None:
    """Make a folder, and those above it, in a way that survives the loss of power."""
    missing: Sequence[Path] = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        _sync(each.parent)


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
