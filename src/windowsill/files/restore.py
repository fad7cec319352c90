"""Bring the files of a folder back to a record: all of them, or none.

New contents are first written beside the files; then they take their places. Where that fails, what was done is
undone. A file is overwritten or removed only where a record has its content, so that every restore can itself be
undone. Folders are entered without following links: nothing outside of the folder is written to.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import msgspec

from windowsill.errors import InputError, StoreError
from windowsill.files.shadow import LINK, NAMED, PROGRAM, FileChange, LeftOut, Record, Shadow, shown

STAGE = ".windowsill-restore-"

PIECE = 1 << 20


class Restored(msgspec.Struct, frozen=True):
    """The result of a restore of files."""

    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    left_alone: tuple[LeftOut, ...] = ()
    """Files that differ from the record and were not touched, and why."""


def restore_files(
    shadow: Shadow, session: str, tree: str, now: Record, *, remove_new: bool = False, but: Collection[str] = ()
) -> Restored:
    """Make the files of the folder those of `tree`; `now` is the record of them as they are, made a moment ago.

    A file that is new since `tree` is removed only where an earlier record of the session, none of `but`, has it as it
    is, or with `remove_new`: else it may be somebody's who never asked for it to be recorded.
    """
    with shadow.held():
        if not shadow.has(tree):
            raise InputError(
                f"the files of that moment are not recorded in {str(shadow.repository)!r}",
                remedy="restore the conversation alone, or another checkpoint",
            )
        changes, left_alone = _plan(shadow, session, tree, now, remove_new=remove_new, but=but)
        apply_changes(shadow, changes)
    return Restored(
        tuple(each.path for each in changes if each.status != "removed"),
        tuple(each.path for each in changes if each.status == "removed"),
        tuple(left_alone),
    )


def _plan(
    shadow: Shadow, session: str, tree: str, now: Record, *, remove_new: bool, but: Collection[str]
) -> tuple[list[FileChange], list[LeftOut]]:
    changes: list[FileChange] = []
    left_alone: list[LeftOut] = []
    found = shadow.changes(now.tree, tree)
    gone = [each for each in found if each.status == "removed"]
    known = (
        {each.place for each in gone}
        if remove_new
        else shadow.recorded_before(session, gone, but={now.tree if now.is_new else "", *but})
    )
    known |= _in_the_way(gone, [each.place for each in found if each.status != "removed"])
    for each in found:
        if each.status == "removed" and each.place not in known:
            left_alone.append(LeftOut(each.path, "it is new since, and no checkpoint or step recorded it"))
        elif each.status == "added" and _is_there(shadow.root, each.place):
            left_alone.append(LeftOut(each.path, "it is there, and could not be recorded as it is now"))
        else:
            changes.append(each)
    return changes, left_alone


def _is_there(root: Path, place: bytes) -> bool:
    """Tell whether something stands at a place; a folder does not count, as what it holds is asked for by itself."""
    try:
        with _parent(root, place, make=False) as (folder, name):
            return not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except (OSError, StoreError):
        return False


def _in_the_way(gone: Sequence[FileChange], wanted: Sequence[bytes]) -> set[bytes]:
    """Return the new files that stand where a folder must be, or below a name that must be a file."""
    folders = {folder for place in wanted for folder in _folders(place)}
    files = set(wanted)
    return {each.place for each in gone if each.place in folders or not files.isdisjoint(_folders(each.place))}


def _folders(place: bytes) -> Iterator[bytes]:
    """Yield the folders that hold a place, the inmost first."""
    while b"/" in place:
        place = place.rpartition(b"/")[0]
        yield place


def apply_changes(shadow: Shadow, changes: Sequence[FileChange]) -> None:
    """Make each file what the second record of its change has, or leave all of them as they were."""
    done: list[FileChange] = []
    try:
        with _staged(shadow, changes) as stage:
            _put(shadow, changes, stage, done)
    except (OSError, StoreError) as error:
        try:
            back = undone(done)
            with _staged(shadow, back) as stage:
                _put(shadow, back, stage, [])
        except (OSError, StoreError) as second:
            names = ", ".join(each.path for each in done[:NAMED])
            raise StoreError(
                f"restoring the files of {shadow.folder.path!r} failed ({error}), and so did undoing it ({second}): "
                f"{len(done)} of {len(changes)} are as wanted ({names})",
                remedy="mend the cause, then restore again: the checkpoint that was made just before has every file",
            ) from error
        raise StoreError(
            f"the files of {shadow.folder.path!r} could not be restored, and are as they were: {error}",
            remedy="mend the cause, then restore again",
        ) from error


def undone(changes: Iterable[FileChange]) -> list[FileChange]:
    """Return the changes that undo these."""
    opposite = {"added": "removed", "removed": "added", "changed": "changed"}
    return [msgspec.structs.replace(each, status=opposite[each.status], old=each.new, new=each.old) for each in changes]


@contextmanager
def _staged(shadow: Shadow, changes: Sequence[FileChange]) -> Iterator[Path]:
    """Write the new contents into a folder beside the files, each under the number of its change."""
    for abandoned in shadow.root.glob(f"{STAGE}*"):
        shutil.rmtree(abandoned)
    stage = Path(tempfile.mkdtemp(prefix=STAGE, dir=shadow.root))
    try:
        _write_contents(shadow, changes, stage)
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _write_contents(shadow: Shadow, changes: Sequence[FileChange], stage: Path) -> None:
    with shadow.open_reader() as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        for number, change in enumerate(changes):
            if change.status == "removed":
                continue
            reader.stdin.write(change.new[1].encode() + b"\n")
            reader.stdin.flush()
            head = reader.stdout.readline().split()
            if len(head) != 3:  # noqa: PLR2004 - id, kind, size
                raise StoreError(f"the content of {change.path!r} is missing in {str(shadow.repository)!r}")
            size, path = int(head[2]), stage / str(number)
            if change.new[0] == LINK:
                path.symlink_to(os.fsdecode(reader.stdout.read(size)))
            else:
                with path.open("xb") as file:
                    _copy(reader.stdout, file, size)
                    file.flush()
                    os.fsync(file.fileno())
                path.chmod(_mode(shadow, change))
            reader.stdout.read(1)
        reader.stdin.close()


def _copy(source: IO[bytes], target: IO[bytes], size: int) -> None:
    while size:
        piece = source.read(min(size, PIECE))
        if not piece:
            raise StoreError("the content of a file ends too early")
        target.write(piece)
        size -= len(piece)


def _mode(shadow: Shadow, change: FileChange) -> int:
    """Return the permissions of a file: those it has, where the record asks for nothing else."""
    runs = change.new[0] == PROGRAM
    with suppress(OSError):
        found = os.lstat(os.fsencode(shadow.root) + b"/" + change.place).st_mode
        if stat.S_ISREG(found) and bool(found & stat.S_IXUSR) == runs:
            return stat.S_IMODE(found)
    mask = os.umask(0)
    os.umask(mask)
    return (0o777 if runs else 0o666) & ~mask


def _put(shadow: Shadow, changes: Sequence[FileChange], stage: Path, done: list[FileChange]) -> None:
    """Remove what goes, then move what comes to its place; `done` grows with each."""
    numbered = list(enumerate(changes))
    for _, change in numbered:
        if change.status == "removed":
            with _parent(shadow.root, change.place, make=False) as (folder, name):
                os.unlink(name, dir_fd=folder)
            done.append(change)
            _remove_empty(shadow.root, change.place)
    for number, change in numbered:
        if change.status != "removed":
            with _parent(shadow.root, change.place, make=True) as (folder, name):
                with suppress(OSError):
                    os.rmdir(name, dir_fd=folder)  # An empty folder in its place; nothing else is removed by this.
                os.rename(stage / str(number), name, dst_dir_fd=folder)
            done.append(change)


@contextmanager
def _parent(root: Path, place: bytes, *, make: bool) -> Iterator[tuple[int, bytes]]:
    """Open the folder of a place without following a link; yield it with the name in it."""
    *folders, name = place.split(b"/")
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in folders:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=handle)
            try:
                inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handle)
            except OSError as error:
                if error.errno in (errno.ENOTDIR, errno.ELOOP):
                    raise StoreError(f"{shown(place)!r} lies below {shown(part)!r}, which is no folder now") from error
                raise
            os.close(handle)
            handle = inner
        yield handle, name
    finally:
        os.close(handle)


def _remove_empty(root: Path, place: bytes) -> None:
    """Remove the folders that a removed file leaves empty: records hold files only."""
    for folder in _folders(place):
        with suppress(OSError), _parent(root, folder, make=False) as (handle, name):
            os.rmdir(name, dir_fd=handle)
