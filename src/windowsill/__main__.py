"""`python -m windowsill` is the command `windowsill`."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

from windowsill.cli import main

with suppress(OSError):
    # With -m Python looks for modules in the current folder first. A project that lies there must not run its own code
    # by naming it in a settings file: the command looks there only for what was typed, however it was started.
    if not sys.flags.safe_path and sys.path[:1] == [str(Path.cwd())]:
        del sys.path[0]

main()
