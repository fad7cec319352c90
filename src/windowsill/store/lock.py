"""Holders of locks: name this thread of this process, and tell whether a holder still lives."""

from __future__ import annotations

import os
import socket
import sys
import threading
from pathlib import Path

from windowsill.store import Lock

_UNKNOWN = "?"
_PARTS = 4
_DEAD_STATES = ("Z", "X", "x")
_START_FIELD = 19
"""The place of the start time in /proc/PID/stat, counted from the field after the command."""


def holder_name() -> str:
    """Name this thread as `host:pid:start:thread`; no other thread ever has the same name."""
    pid = os.getpid()
    return f"{_host()}:{pid}:{_start(pid) or _UNKNOWN}:{threading.get_native_id()}"


def is_dead(holder: str) -> bool:
    """Tell whether a holder ran on this host and its process is gone; false when that cannot be known from here."""
    parts = holder.rsplit(":", _PARTS - 1)
    if len(parts) != _PARTS or parts[0] != _host() or not parts[1].isdecimal():
        return False
    pid, start = int(parts[1]), parts[2]
    seen = _start(pid)
    if seen is None or start == _UNKNOWN:
        return not _answers(pid)
    # A number is given again to a new process, so the start time has to be the same too.
    return seen != start


def in_force(lock: Lock, now: float) -> bool:
    """Tell whether a lock still keeps others out: its time is not over and its holder is not known to be dead."""
    return lock.expires > now and not is_dead(lock.holder)


def _host() -> str:
    """Name the machine as far as process numbers go: containers may share a host name but not their processes."""
    name = socket.gethostname()
    try:
        return f"{name}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return name


def _start(pid: int) -> str | None:
    """Return when a process started, in ticks of the machine; empty for a dead one, `None` if none can be seen."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The command stands second, in brackets, and may itself hold spaces and brackets.
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in _DEAD_STATES else fields[_START_FIELD]


def _answers(pid: int) -> bool:
    if sys.platform == "win32":
        # There, signal 0 is not a question but Ctrl-C; the lock ends with its time.
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
