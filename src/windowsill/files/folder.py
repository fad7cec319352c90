"""The folder whose files are recorded: what it may be, how much is recorded, and what git ignores in it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec

from windowsill.errors import InputError, SettingError

GIT_MARK = ".git"

_MEGABYTE = 1_000_000


class Folder(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A folder whose files are recorded at each checkpoint, and how much of it."""

    path: str
    each_step: bool = True
    """An engine records after each step in which a tool ran, too: then a rewind finds the files of every moment."""
    largest_file: int = 100 * _MEGABYTE
    """Bytes: a larger file is left out, and named."""
    largest_record: int = 2_000 * _MEGABYTE
    """Bytes of new and changed files in one record: more is refused."""
    most_files: int = 200_000
    seconds: float = 120.0
    """The time that one record may take."""

    def check(self) -> Folder:
        """Return the folder with its whole path; `InputError` or `SettingError` for one that cannot be recorded."""
        for name in ("largest_file", "largest_record", "most_files", "seconds"):
            if not getattr(self, name) > 0:
                raise SettingError(f"files.{name}", getattr(self, name), "more than 0")
        try:
            path = Path(self.path).expanduser().resolve(strict=True)
        except (OSError, RuntimeError) as error:
            raise InputError(f"the folder of files {self.path!r} cannot be found ({error})", remedy="make it") from None
        if not path.is_dir():
            raise InputError(f"{str(path)!r} is not a folder", remedy="give the folder whose files are worked on")
        home = Path.home().resolve()
        if path == Path(path.anchor) or path == home or path in home.parents:
            raise InputError(
                f"{str(path)!r} holds far more than one project: its files are not recorded",
                remedy="give the folder of the project",
            )
        return msgspec.structs.replace(self, path=str(path))

    @property
    def top(self) -> Path:
        """The top of the user's git repository that holds the folder, or the folder: ignore rules begin there."""
        path = Path(self.path)
        home = Path.home().resolve()
        for each in (path, *path.parents):
            if each == home or each == Path(each.anchor):
                break
            if (each / GIT_MARK).exists():
                return each
        return path


def ignore_rules(top: Path) -> tuple[str, bytes]:
    """Return what the user's git ignores besides `.gitignore` files: the path of their own list, and a repository's.

    Reading a configuration runs nothing.
    """
    asked = subprocess.run(  # noqa: S603 - a fixed command, found by its name as a shell would
        ["git", "-C", str(top), "config", "--type=path", "--get", "core.excludesFile"],  # noqa: S607
        capture_output=True,
        check=False,
        timeout=10,
    )
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    own = os.fsdecode(asked.stdout.strip()) or str(settings / "git" / "ignore")
    for repository in _git_folders(top):
        rules = repository / "info" / "exclude"
        if rules.is_file():
            return own, rules.read_bytes()
    return own, b""


def _git_folders(top: Path) -> Iterator[Path]:
    """Yield the folders that may hold the settings of the user's repository: linked work trees share those of one."""
    mark = top / GIT_MARK
    if mark.is_dir():
        yield mark
    elif mark.is_file():
        linked = (top / os.fsdecode(mark.read_bytes().partition(b"gitdir:")[2].strip())).resolve()
        yield linked
        if (shared := linked / "commondir").is_file():
            yield (linked / os.fsdecode(shared.read_bytes().strip())).resolve()
