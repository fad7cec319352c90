"""Where the demo keeps its session: never silently among the user's own."""

from __future__ import annotations

import itertools
import os
import tempfile
from pathlib import Path

from windowsill.errors import InputError
from windowsill.store import Store
from windowsill.store.locate import database_file

NAME = "demo"


def choose(stated: str | None, cwd: Path) -> str:
    """The address of the store: the stated one, `.windowsill/` here if there is one, else a new folder that stays."""
    if stated is None:
        local = cwd / ".windowsill"
        return str(local) if local.is_dir() else tempfile.mkdtemp(prefix="windowsill-demo-")
    if database_file(stated, os.environ, cwd) is None:
        raise InputError(
            "the demo reads its session back from disk, and this store is in memory only",
            remedy="give --store a folder, or leave it out",
        )
    return stated


def claim_name(store: Store, *, at: float) -> str:
    """A name that no session has yet, taken in the same step: two demos at once never share one."""
    names = (NAME if number == 1 else f"{NAME}-{number}" for number in itertools.count(1))
    return next(name for name in names if store.create(name, at=at))
