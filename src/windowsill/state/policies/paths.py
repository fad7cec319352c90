"""Paths that are out of bounds, however they are written."""

from __future__ import annotations

import fnmatch
import os
import re
import sys
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache, partial
from itertools import zip_longest
from urllib.parse import unquote

from windowsill.shell import expand_variables
from windowsill.state.tools.argument_checks import quote

LONGEST_PATH = 400
"""Characters of a path that a refusal quotes."""

MOST_LINKS = 40
"""Links that Linux follows in one path before it calls it a circle."""

LONGEST_OPENED = 32_768 if sys.platform == "win32" else 8_192
"""Characters of a path that a system opens; twice as many on POSIX, where the folder it begins in counts apart."""

STREAMS = frozenset({"/dev/stdin", "/dev/stdout", "/dev/stderr"})
"""Links into a process that every command may use: its own streams."""

_OF_A_PROCESS = re.compile(r"/proc/[^/]+(/task/[^/]+)?/(root|cwd|exe|fd|map_files)(/|$)")
_FILE_URL = re.compile(r"file:(?://(?P<host>[^/]*))?(?P<path>/.*)?", re.IGNORECASE | re.DOTALL)
_WILD = re.compile(r"[*?\[]")
_ONE_OF = re.compile(r"\[[!^]?\]?+((?:\[:[a-z]+:\]|[^\]])*+)\]")


class CannotTellError(Exception):
    """A path of which nobody can say where it leads."""


class ForbiddenPaths:
    """The paths that are out of bounds; relative ones, here and in calls, begin at `base`.

    It is made for one call: what it has seen of the file system it does not look at again. Paths are compared as texts:
    pathlib would tidy them.
    """

    def __init__(self, forbidden_paths: Iterable[str], *, base: str | os.PathLike[str]) -> None:
        self._base = os.path.abspath(os.fspath(base))  # noqa: PTH100 - a text, see above
        self._roots = [(stated, root) for stated in forbidden_paths for root in self._spellings(stated)]
        self._identities = {
            identity: stated for stated, root in self._roots if (identity := _identity(root, follow=True)) is not None
        }
        self._link = cache(_link)
        self._identity = cache(partial(_identity, follow=False))  # where a link leads is a place of its own

    def crossing(self, path: str, *, expands: bool = False) -> str | None:
        """Return why this path may not be touched; with `expands` it may be a shell's pattern for several."""
        if not self._roots:
            return None
        try:
            os.fsencode(path)
        except UnicodeEncodeError:
            return f"{quote(path, LONGEST_PATH)} cannot be the name of a file"
        if "\0" in path:
            return f"{quote(path, LONGEST_PATH)} holds a NUL byte"
        for reading in _readings(path):
            absolute = os.path.join(self._base, os.path.expanduser(reading))  # noqa: PTH111, PTH118 - `..` has to stay
            found = self._entered(absolute, reading)
            if found is None and expands and _WILD.search(reading):
                found = self._matched(os.path.normpath(absolute))
            if found is not None:
                return f"{quote(path, LONGEST_PATH)} {found}"
        return None

    def _entered(self, absolute: str, written: str) -> str | None:
        try:
            # A tool may tidy `..` away before it opens a path, or leave that to the system, which follows links first.
            both = dict.fromkeys((absolute, os.path.normpath(absolute)))
            ways = [way for way in both if len(way) <= LONGEST_OPENED]
            reached = [place for way in ways for place in reversed(self._places(way))]
        except CannotTellError as error:
            return f"is out of bounds: {error}"
        for place in reached:
            below = (stated for stated, root in self._roots if _is_below(place, root))
            if (stated := next(below, None) or self._other_name(place)) is not None:
                led = "" if place == written else f"{quote(place, LONGEST_PATH)}, which is "
                return f"is {led}in the forbidden {quote(stated, LONGEST_PATH)}"
        return None

    def _places(self, path: str) -> list[str]:
        """Return the links that are followed on the way of an absolute path, and where it ends, existing or not."""
        if path in STREAMS:
            return [path]
        if sys.platform == "win32":
            return [os.path.realpath(path)]
        found: list[str] = []
        here, waiting = "/", deque(path.split("/"))
        while waiting:
            name = waiting.popleft()
            if name in {"", "."}:
                continue
            if name == "..":
                here = os.path.dirname(here)  # noqa: PTH120 - a text
                continue
            here = f"{here.rstrip('/')}/{name}"
            target = self._link(here)
            if target is None:
                continue
            found.append(here)
            if len(found) > MOST_LINKS:
                raise CannotTellError("its links lead in a circle")
            waiting.extendleft(reversed(target.split("/")))
            here = "/" if target.startswith("/") else os.path.dirname(here)  # noqa: PTH120 - a text
        found.append(here)
        if any(map(_OF_A_PROCESS.match, found)):
            raise CannotTellError("where it leads depends on the process that opens it")
        return found

    def _matched(self, pattern: str) -> str | None:
        """Return why a pattern may not be expanded: it can mean a forbidden path, or a link to one."""
        parts = [_tidy(part) for part in _parts(pattern)]
        for stated, root in self._roots:
            if _can_mean(parts, root):
                return f"can stand for something in the forbidden {quote(stated, LONGEST_PATH)}"
        folder, name = os.path.split(pattern)
        if _WILD.search(folder):
            return None  # what may lie in many folders is not looked for
        try:
            names = fnmatch.filter(os.listdir(folder), _tidy(name))  # noqa: PTH208 - texts
        except OSError:
            return None
        found = (self._entered(f"{folder}/{each}", "") for each in names)
        return next((why for why in found if why is not None), None)

    def _other_name(self, place: str) -> str | None:
        """Find the forbidden path that this or a folder above it is by another name: a mount, a hard link."""
        while self._identities:
            identity = self._identity(place)
            if identity is not None and identity in self._identities:
                return self._identities[identity]
            above = os.path.dirname(place)  # noqa: PTH120 - a text
            if above == place:
                return None
            place = above
        return None

    def _spellings(self, stated: str) -> Iterator[str]:
        """Spell a forbidden path as it is written and as it is reached, by the shell's home and the account's."""
        homes = [os.path.expanduser(stated)]  # noqa: PTH111 - an unknown user's home stays as it is written
        if sys.platform != "win32" and (stated == "~" or stated.startswith("~/")):
            import pwd  # noqa: PLC0415 - not on every system

            with suppress(KeyError):  # an account without an entry, as containers have
                homes.append(pwd.getpwuid(os.getuid()).pw_dir + stated[1:])
        for home in homes:
            absolute = os.path.normpath(os.path.join(self._base, home))  # noqa: PTH118 - a text
            yield from dict.fromkeys((absolute, os.path.realpath(absolute)))


def _readings(path: str) -> Iterator[str]:
    """Yield what a tool may take a text for: itself, without spaces, with variables, the path of a `file:` address."""
    yield path
    if "$" in path:
        yield expand_variables(path)
    bare = path.strip()
    if bare != path:
        yield bare
    if match := _FILE_URL.fullmatch(bare):
        plain = unquote(match["path"] or "/")
        yield plain
        yield plain.partition("?")[0].partition("#")[0]


def _link(path: str) -> str | None:
    try:
        return os.readlink(path)  # noqa: PTH115 - a text
    except OSError:
        return None


def _is_below(place: str, root: str) -> bool:
    place, root = _same_letters(place), _same_letters(root)
    return place == root or place.startswith(root.rstrip("/") + "/")


def _same_letters(path: str) -> str:
    """Spell a path in the letters its file system tells apart, where that is known for names that do not exist."""
    path = f"/{path.lstrip('/')}" if path.startswith("/") else path
    if sys.platform == "darwin":
        return unicodedata.normalize("NFC", path).casefold()
    return os.path.normcase(path)


def _identity(path: str, *, follow: bool) -> tuple[int, int] | None:
    try:
        found = os.stat(path, follow_symlinks=follow)  # noqa: PTH116 - a text
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if found.st_ino else None


def _tidy(pattern: str) -> str:
    """Spell a shell's pattern as `fnmatch` reads it, in linear time: sets that are not closed are plain brackets."""
    closed = pattern.rfind("]") + 1
    return _ONE_OF.sub(_tidy_set, pattern[:closed]) + pattern[closed:].replace("[", "[[]")


def _tidy_set(match: re.Match[str]) -> str:
    # A class such as `[:alpha:]` may be any character here: a pattern is refused for what it can mean.
    return "?" if "[:" in match[1] else f"[!{match[0][2:]}" if match[0].startswith("[^") else match[0]


def _can_mean(parts: list[str], root: str) -> bool:
    """Tell whether a pattern can mean a path or something below it."""
    names = _parts(root)
    for name, part in zip_longest(names, parts[: len(names)]):
        if part == "**":
            # Any folders, and then what the last part says: of a file that is its own name.
            return parts[-1] == "**" or fnmatch.fnmatchcase(names[-1], parts[-1]) or not os.path.isfile(root)  # noqa: PTH113 - a text
        if part is None or not fnmatch.fnmatchcase(name, part):
            return False
    return True


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]
