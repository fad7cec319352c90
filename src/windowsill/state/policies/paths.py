"""Paths that are out of bounds, however they are written."""

from __future__ import annotations

import fnmatch
import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache, partial
from itertools import zip_longest
from urllib.parse import unquote

from windowsill.state.policies.following import CannotTellError, link, places
from windowsill.state.tools.arguments import quote

LONGEST_PATH = 400
"""Characters of a path that a refusal quotes."""

_FILE_URL = re.compile(r"file:(?://(?P<host>[^/]*))?(?P<path>/.*)?", re.IGNORECASE | re.DOTALL)
_WILD = re.compile(r"[*?\[]")


def forbidden(path: str, forbidden_paths: Iterable[str], *, base: str | os.PathLike[str]) -> str | None:
    """Why a path may not be touched: it is one of these, or below one of them. `None` when it may."""
    return Fence(forbidden_paths, base=base).crossing(path)


class Fence:
    """The paths that are out of bounds; relative ones, here and in calls, begin at `base`.

    It is made for one call: what it has seen of the file system it does not look at again.
    """

    def __init__(self, forbidden_paths: Iterable[str], *, base: str | os.PathLike[str]) -> None:
        self._base = os.path.abspath(os.fspath(base))  # noqa: PTH100 - texts are compared here, and pathlib would tidy
        self._roots = [(stated, root) for stated in forbidden_paths for root in self._spellings(stated)]
        self._identities = {
            identity: stated for stated, root in self._roots if (identity := _identity(root, follow=True)) is not None
        }
        self._link = cache(link)
        self._identity = cache(partial(_identity, follow=False))  # where a link leads is a place of its own

    def crossing(self, path: str, *, wild: bool = False) -> str | None:
        """Why this path may not be touched; with `wild` it may be a shell's pattern for several."""
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
            if found is None and wild and _WILD.search(reading):
                found = self._matched(os.path.normpath(absolute))
            if found is not None:
                return f"{quote(path, LONGEST_PATH)} {found}"
        return None

    def _entered(self, absolute: str, written: str) -> str | None:
        try:
            # A tool may tidy `..` away before it opens a path, or leave that to the system, which follows links first.
            ways = dict.fromkeys((absolute, os.path.normpath(absolute)))
            reached = [place for way in ways for place in reversed(places(way, self._link))]
        except CannotTellError as error:
            return f"is out of bounds: {error}"
        for place in reached:
            stated = next((stated for stated, root in self._roots if _below(place, root)), None) or self._known(place)
            if stated is not None:
                led = "" if place == written else f"{quote(place, LONGEST_PATH)}, which is "
                return f"is {led}in the forbidden {quote(stated, LONGEST_PATH)}"
        return None

    def _matched(self, pattern: str) -> str | None:
        """Why a pattern may not be expanded: it can mean a forbidden path, or a link to one."""
        parts = _parts(pattern)
        for stated, root in self._roots:
            if _means(parts, _parts(root)):
                return f"can stand for something in the forbidden {quote(stated, LONGEST_PATH)}"
        folder, name = os.path.split(pattern)
        if _WILD.search(folder):
            return None  # what may lie in many folders is not looked for
        try:
            names = fnmatch.filter(os.listdir(folder), name)  # noqa: PTH208 - as above
        except OSError:
            return None
        found = (self._entered(f"{folder}/{each}", "") for each in names)
        return next((why for why in found if why is not None), None)

    def _known(self, place: str) -> str | None:
        """The forbidden path that this or a folder above it is by another name: other letters, a mount, a hard link."""
        while self._identities:
            identity = self._identity(place)
            if identity is not None and identity in self._identities:
                return self._identities[identity]
            above = os.path.dirname(place)  # noqa: PTH120 - as above
            if above == place:
                return None
            place = above
        return None

    def _spellings(self, stated: str) -> Iterator[str]:
        """A forbidden path as it is written and as it is reached; both the shell's home and the account's count."""
        for home in _homes(stated):
            absolute = os.path.normpath(os.path.join(self._base, home))  # noqa: PTH118 - as above
            yield from dict.fromkeys((absolute, os.path.realpath(absolute)))


def _homes(stated: str) -> Iterator[str]:
    yield os.path.expanduser(stated)  # noqa: PTH111 - an unknown user's home stays as it is written
    if sys.platform != "win32" and (stated == "~" or stated.startswith("~/")):
        import pwd  # noqa: PLC0415 - not on every system

        try:
            yield pwd.getpwuid(os.getuid()).pw_dir + stated[1:]
        except KeyError:
            return  # an account without an entry, as containers have


def _readings(path: str) -> Iterator[str]:
    """What a tool may take this text for: itself, without spaces, with variables, the path of a `file:` address."""
    yield path
    if "$" in path:
        yield os.path.expandvars(path)
    bare = path.strip()
    if bare != path:
        yield bare
    if match := _FILE_URL.fullmatch(bare):
        plain = unquote(match["path"] or "/")
        yield plain
        yield plain.partition("?")[0].partition("#")[0]


def _below(place: str, root: str) -> bool:
    place, root = _spelled(place), _spelled(root)
    return place == root or place.startswith(root.rstrip("/") + "/")


def _spelled(path: str) -> str:
    """A path in the letters its file system tells apart, where that is known for names that do not exist."""
    path = f"/{path.lstrip('/')}" if path.startswith("/") else path
    if sys.platform == "darwin":
        return unicodedata.normalize("NFC", path).casefold()
    return os.path.normcase(path)


def _identity(path: str, *, follow: bool) -> tuple[int, int] | None:
    try:
        found = os.stat(path, follow_symlinks=follow)  # noqa: PTH116 - as above
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if found.st_ino else None


def _means(parts: list[str], names: list[str]) -> bool:
    """Whether a pattern can mean a path of these names or something below it."""
    for name, part in zip_longest(names, parts[: len(names)]):
        if part == "**":
            return True
        if part is None or not fnmatch.fnmatchcase(name, part):
            return False
    return True


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]
