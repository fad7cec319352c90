"""Close SQLite's connections before this process forks.

Opening new ones in the child is not enough: SQLite remembers per process which file locks it holds, and a child
inherits that memory without the locks. The parent could then remove the write-ahead log while the child writes to it.
"""

from __future__ import annotations

import os
import weakref
from functools import cache
from typing import Protocol


class Pausable(Protocol):
    """What holds connections."""

    def pause(self) -> bool:
        """Close all connections and keep new calls waiting; false when a running call did not end in time."""

    def resume(self) -> None:
        """Let calls go on."""


_watched: weakref.WeakSet[Pausable] = weakref.WeakSet()
_paused: list[Pausable] = []


def watch(holder: Pausable) -> None:
    """Pause a holder of connections around every fork, for as long as it lives."""
    _watched.add(holder)
    _register()


@cache
def _register() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_pause, after_in_parent=_resume, after_in_child=_resume)


def _pause() -> None:
    _paused.extend(holder for holder in list(_watched) if holder.pause())


def _resume() -> None:
    while _paused:
        _paused.pop().resume()
