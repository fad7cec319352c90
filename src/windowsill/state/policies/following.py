"""Where a path leads, link by link."""

from __future__ import annotations

import os
import re
import sys
from collections import deque
from collections.abc import Callable

MOST_LINKS = 40
"""Links that Linux follows in one path before it calls it a circle."""

STREAMS = frozenset({"/dev/stdin", "/dev/stdout", "/dev/stderr"})
"""Links into a process that every command may use: its own streams."""

_OF_A_PROCESS = re.compile(r"/proc/[^/]+(/task/[^/]+)?/(root|cwd|exe|fd|map_files)(/|$)")


class CannotTellError(Exception):
    """A path of which nobody can say where it leads."""


def link(path: str) -> str | None:
    """Where a link leads; `None` when there is none."""
    try:
        return os.readlink(path)  # noqa: PTH115 - texts are compared here, and pathlib would tidy them
    except OSError:
        return None


def places(path: str, link: Callable[[str], str | None] = link) -> list[str]:
    """The links that are followed on the way of an absolute path, and where it ends, whether or not that exists."""
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
            here = os.path.dirname(here)  # noqa: PTH120 - as above
            continue
        here = f"{here.rstrip('/')}/{name}"
        target = link(here)
        if target is None:
            continue
        found.append(here)
        if len(found) > MOST_LINKS:
            raise CannotTellError("its links lead in a circle")
        waiting.extendleft(reversed(target.split("/")))
        here = "/" if target.startswith("/") else os.path.dirname(here)  # noqa: PTH120 - as above
    found.append(here)
    if any(map(_OF_A_PROCESS.match, found)):
        raise CannotTellError("where it leads depends on the process that opens it")
    return found
