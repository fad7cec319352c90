"""A git repository of our own beside the store, in which the files of a folder are recorded as trees.

The user's repository is never written to: nothing is committed, staged or checked out there. Git runs without the
user's settings, hooks, filters and protocols, and files are recorded byte for byte.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Literal

import msgspec

from windowsill.errors import InputError, StoreError
from windowsill.files.folder import GIT_MARK, Folder, ignore_rules

PRIVATE = 0o700
ATTEMPTS = 3
"""Times that a file which changes while it is read is read, before it is left out."""

LOCK_STEP = 0.05
NAMED = 20
"""Files that an error or a note names."""

MANY = 500
"""Files from which on contents are written to one pack instead of a file each: five times as fast for 10,000."""

PACKED = ("-c", "core.bigFileThreshold=1")

LINK = "120000"
PROGRAM = "100755"

ATTRIBUTES = b"* -text !eol -ident -filter !working-tree-encoding\n"
"""Bytes are recorded as they are, whatever a `.gitattributes` in the folder asks for."""

CONFIG = (
    "core.bare=false",
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.fileMode=true",
    "core.symlinks=true",
    "core.protectNTFS=false",
    "core.protectHFS=false",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.fsync=loose-object,index",
    "core.fsyncMethod=batch",
    "core.quotePath=false",
    "index.version=4",
    "gc.auto=0",
    "protocol.allow=never",
)

_FAILED = re.compile(rb"^(?:error|fatal): (.*)$", re.MULTILINE)

Status = Literal["added", "changed", "removed"]
_STATUSES: dict[str, Status] = {"A": "added", "M": "changed", "T": "changed", "D": "removed"}


class LeftOut(msgspec.Struct, frozen=True):
    """A file that was not recorded, or not touched, and why."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


class Record(msgspec.Struct, frozen=True):
    """The files of a folder at one moment."""

    tree: str
    left_out: tuple[LeftOut, ...] = ()
    is_new: bool = True
    """True when no earlier record of the session is the same."""


class FileChange(msgspec.Struct, frozen=True):
    """A file that differs between two records; its path is relative to the folder."""

    path: str
    status: Status
    place: bytes
    """The path in the record, as the file system spells it."""
    old: tuple[str, str]
    """Its mode and the id of its content in the first record;"""
    new: tuple[str, str]
    """and in the second."""


class FileDiff(msgspec.Struct, frozen=True):
    """The differences between two records of a folder."""

    changes: tuple[FileChange, ...]
    text: bytes
    """Line by line, as `git diff` prints them; empty when nothing differs."""


class Shadow:
    """Records the files of one folder in a repository below `place`; sessions of a store share it."""

    def __init__(self, folder: Folder, place: Path) -> None:
        if shutil.which("git") is None:
            raise InputError("files are recorded with git, which is not installed", remedy="install git")
        # Records of a folder that is gone can still be deleted.
        self.folder = folder.check() if Path(folder.path).exists() else folder
        self.top = self.folder.top
        self.root = Path(self.folder.path).resolve()
        self.repository = place.resolve() / _name_of(self.root)
        # Where the user's repository begins elsewhere one day, paths in the index do too.
        self._index = self.repository / f"index-{_name_of(self.top)}"
        self._ignore_file = ""
        self._deadline = 0.0

    # Recording

    def record(self, session: str | None) -> Record:
        """Record every file of the folder as it is now, but what git ignores and what is beyond the limits.

        Without a session it is a record to compare with, which nobody goes back to.
        """
        self.folder.check()
        with self.held():
            self._begin()
            left_out = self._update_index()
            tree = self._write_tree()
            if session is None:
                return Record(tree, left_out)
            name = f"{_refs(session)}/{tree}"
            is_new = self._run(("rev-parse", "--quiet", "--verify", name), None).returncode != 0
            if is_new:
                self.git("update-ref", name, tree)
            return Record(tree, left_out, is_new)

    def _write_tree(self) -> str:
        below = os.fsencode(self.root.relative_to(self.top)) + b"/"
        part = (b"--prefix=" + below,) if self.root != self.top and self._recorded() else ()
        return self.git("write-tree", *part).decode().strip()

    def _begin(self) -> None:
        """Make the repository where there is none, and bring its ignore rules up to date."""
        if not (self.repository / "HEAD").exists():
            self.git("init", "--quiet", "--template=")
        info = self.repository / "info"
        info.mkdir(exist_ok=True)
        own, rules = ignore_rules(self.top)
        # The sessions themselves are no work of the agent.
        kept = [b"/" + os.fsencode(each.relative_to(self.top)) + b"/" for each in self._own_folders()]
        (info / "exclude").write_bytes(b"\n".join([rules, *kept]) + b"\n")
        (info / "attributes").write_bytes(ATTRIBUTES)
        self._ignore_file = own

    def _own_folders(self) -> Iterator[Path]:
        for each in (self.repository.parent, self.repository.parent.parent):
            if each.is_relative_to(self.top) and each not in (self.top, self.root, *self.root.parents):
                yield each

    def _update_index(self) -> tuple[LeftOut, ...]:
        left_out: dict[bytes, str] = {}
        changed = self._find_changes(left_out)
        self._check_amount(changed)
        for attempt in range(ATTEMPTS):
            seen = {path: _state(self.root, path) for path in changed}
            left_out |= self._add(changed)
            changed = [path for path in changed if path not in left_out and _state(self.root, path) != seen[path]]
            if not changed:
                break
            if attempt == ATTEMPTS - 1:
                left_out |= dict.fromkeys(changed, "it changes all the time while it is read")
        # An older content must not pass for the one that could not be recorded.
        if left_out:
            self.git("update-index", "-z", "--force-remove", "--stdin", input=_lines(left_out))
        return tuple(LeftOut(shown(path), why) for path, why in sorted(left_out.items()))

    def _find_changes(self, left_out: dict[bytes, str]) -> list[bytes]:
        """List the paths whose files differ from the last record, and note those that are left out."""
        listed = self.git("ls-files", "-z", "--others", "--modified", "--deleted", "--exclude-standard")
        links: dict[bytes, bool] = {}
        found: list[bytes] = []
        for path in dict.fromkeys(filter(None, listed.split(b"\0"))):
            if self._below_link(path, links):
                continue  # The link is recorded; what it leads to is elsewhere.
            if path.endswith(b"/"):
                left_out[path] = "it is a git repository of its own"
            elif GIT_MARK.encode() in path.lower().split(b"/"):
                left_out[path] = "git records no file of this name"
            elif (size := _size(self.root, path)) > self.folder.largest_file:
                left_out[path] = f"{size:,} bytes, more than the {self.folder.largest_file:,} that are recorded"
            else:
                found.append(path)
        return found

    def _below_link(self, path: bytes, links: dict[bytes, bool]) -> bool:
        parent = os.path.dirname(path.rstrip(b"/"))  # noqa: PTH120 - names of any bytes
        if not parent:
            return False
        if parent not in links:
            links[parent] = self._below_link(parent, links) or os.path.islink(os.fsencode(self.root) + b"/" + parent)  # noqa: PTH114
        return links[parent]

    def _check_amount(self, changed: Sequence[bytes]) -> None:
        size = sum(_size(self.root, path) for path in changed)
        if size > self.folder.largest_record:
            largest = sorted(changed, key=lambda path: -_size(self.root, path))[:3]
            raise InputError(
                f"{size:,} bytes of files in {self.folder.path!r} are new, more than the "
                f"{self.folder.largest_record:,} of one record (largest: {', '.join(map(shown, largest))})",
                remedy="name them in .gitignore, or raise largest_record",
            )
        if (count := len(changed) + self._recorded()) > self.folder.most_files:
            raise InputError(
                f"{self.folder.path!r} holds about {count:,} files, more than the {self.folder.most_files:,} that are "
                "recorded",
                remedy="name folders of no interest in .gitignore, or raise most_files",
            )

    def _recorded(self) -> int:
        """Return how many files the index holds, which its first bytes tell."""
        if not self._index.exists():
            return 0
        with self._index.open("rb") as file:
            return int.from_bytes(file.read(12)[8:])

    def _add(self, paths: Sequence[bytes]) -> dict[bytes, str]:
        """Record these paths as they are now, gone ones too; return those that git could not read, and why."""
        if not paths:
            return {}
        command = ("update-index", "-z", "--add", "--remove", "--replace", "--stdin")
        done = self._run((*PACKED, *command) if len(paths) >= MANY else command, _lines(paths))
        if done.returncode == 0:
            return {}
        if len(paths) == 1:
            told = _FAILED.search(done.stderr)
            return {paths[0]: f"git cannot read it ({told[1].decode(errors='replace') if told else 'no reason told'})"}
        # Git stops at the first that fails, and records none of them: halves find all in few steps.
        half = len(paths) // 2
        return self._add(paths[:half]) | self._add(paths[half:])

    # Comparing

    def changes(self, old: str, new: str) -> list[FileChange]:
        """List the files that differ between two records of this folder."""
        data = self.git("diff-tree", "-r", "-z", "--raw", "--no-renames", old, new)
        fields = iter(data.split(b"\0"))
        found = []
        for head, place in zip(fields, fields, strict=False):
            old_mode, new_mode, old_id, new_id, status = head.decode()[1:].split(" ")
            found.append(FileChange(shown(place), _STATUSES[status[0]], place, (old_mode, old_id), (new_mode, new_id)))
        return found

    def compare(self, old: str, new: str) -> FileDiff:
        """Return which files differ between two records, and how."""
        with self.held():
            text = self.git("diff-tree", "-r", "-p", "--no-renames", "--no-ext-diff", old, new)
            return FileDiff(tuple(self.changes(old, new)), text)

    def recorded_before(self, session: str, paths: Sequence[FileChange], *, but: Collection[str]) -> set[bytes]:
        """Return which of these files one of the session's records holds with the content they have now."""
        listed = self.git("for-each-ref", "--format=%(objectname)", _refs(session)).decode().split()
        # Questions are lines: a name with a line break in it cannot be asked for.
        asked = {each.place: each.old[1] for each in paths if b"\n" not in each.place}
        found: set[bytes] = set()
        for tree in dict.fromkeys(listed):
            missing = [] if tree in but else [place for place in asked if place not in found]
            if missing:
                questions = b"".join(tree.encode() + b":" + place + b"\n" for place in missing)
                answers = self.git("cat-file", "--batch-check=%(objectname)", input=questions).splitlines()
                found |= {place for place, id in zip(missing, answers, strict=True) if id.decode() == asked[place]}
        return found

    def has(self, tree: str) -> bool:
        """Tell whether a record is there."""
        done = self._run(("cat-file", "-e", f"{tree}^{{tree}}"), None)
        return done.returncode == 0

    # Deleting

    def forget(self, session: str) -> None:
        """Delete the records of a session, and every content that no other session's record holds."""
        if not (self.repository / "HEAD").exists():
            return
        with self.held():
            listed = self.git("for-each-ref", "--format=delete %(refname)", _refs(session))
            self.git("update-ref", "--stdin", input=listed)
            # The index holds the last record of whichever session made it: what it knows is found again.
            for index in self.repository.glob("index-*"):
                index.unlink()
            self.git("repack", "-a", "-d", "-q")
            self.git("prune", "--expire=now")

    # Running git

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep others out of the repository, within the time of one record."""
        self.repository.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        self._deadline = time.monotonic() + self.folder.seconds
        try:
            import fcntl  # noqa: PLC0415 - a session without files is used where there is none
        except ImportError:
            raise InputError(
                "files cannot be recorded on this system: it has no locks on files", remedy="leave `files` out"
            ) from None
        with (self.repository / "windowsill.lock").open("w") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    self._left()
                    time.sleep(LOCK_STEP)
            # Whoever holds our lock is alone: a lock of git's own was left by a process that died.
            self._index.with_name(f"{self._index.name}.lock").unlink(missing_ok=True)
            yield

    def git(self, *arguments: str | bytes, input: bytes | None = None) -> bytes:
        """Run git and return what it prints; `StoreError` when it fails."""
        done = self._run(arguments, input)
        if done.returncode:
            told = (_FAILED.search(done.stderr) or [b"", done.stderr])[1].decode(errors="replace").strip()
            raise StoreError(
                f"the files of {self.folder.path!r} cannot be recorded or read: git {arguments[0]!s}: {told}",
                remedy=f"if {str(self.repository)!r} is damaged, move it away: the next checkpoint begins a new one",
            )
        return done.stdout

    def open_reader(self) -> subprocess.Popen[bytes]:
        """Start git as a reader of contents, which answers to ids on its standard input."""
        command = self._command(("cat-file", "--batch"))
        return subprocess.Popen(  # noqa: S603 - arguments are ours
            command, cwd=self._cwd, env=self._environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def _run(self, arguments: Iterable[str | bytes], input: bytes | None) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(  # noqa: S603 - arguments are ours, and paths go in by standard input
                self._command(arguments),
                cwd=self._cwd,
                env=self._environment(),
                input=input if input is not None else b"",
                capture_output=True,
                check=False,
                timeout=self._left(),
            )
        except subprocess.TimeoutExpired:
            raise self._late() from None

    def _command(self, arguments: Iterable[str | bytes]) -> list[str | bytes]:
        config = [*CONFIG, f"core.excludesFile={self._ignore_file}"]
        return ["git", *(part for each in config for part in ("-c", each)), *arguments]

    def _environment(self) -> dict[str, str]:
        """Return an environment in which nothing of the user's git settings is read."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.repository),
            "LC_ALL": "C",
            "GIT_DIR": str(self.repository),
            "GIT_WORK_TREE": str(self.top),
            "GIT_INDEX_FILE": str(self._index),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_LITERAL_PATHSPECS": "1",
        }

    @property
    def _cwd(self) -> Path:
        """The folder; where that is gone, its records can still be read and deleted."""
        return self.root if self.root.is_dir() else self.repository

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise self._late()
        return left

    def _late(self) -> StoreError:
        return StoreError(
            f"the files of {self.folder.path!r} took more than {self.folder.seconds:g} seconds",
            remedy="name folders of no interest in .gitignore, or raise seconds",
        )


def shown(place: bytes) -> str:
    """Return a path for a person."""
    return place.decode(errors="backslashreplace")


def _name_of(value: Path | str) -> str:
    """Return a short name that no other path or session has."""
    return sha256(str(value).encode(errors="surrogatepass")).hexdigest()[:20]


def _refs(session: str) -> str:
    return f"refs/sessions/{_name_of(session)}"


def _lines(paths: Iterable[bytes]) -> bytes:
    return b"".join(path.rstrip(b"/") + b"\0" for path in paths)


def _stat(top: Path, path: bytes) -> os.stat_result | None:
    try:
        return os.lstat(os.fsencode(top) + b"/" + path)
    except OSError:
        return None


def _size(top: Path, path: bytes) -> int:
    found = _stat(top, path)
    return found.st_size if found is not None and stat.S_ISREG(found.st_mode) else 0


def _state(top: Path, path: bytes) -> tuple[int, int, int, int] | None:
    found = _stat(top, path)
    return found and (found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode)
