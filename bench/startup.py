"""What it costs to start: whole commands, in the same run."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench.measure import show

RUNS = 15


def _seconds(*command: str) -> float:
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def run(*, quick: bool) -> None:
    """Print the figures."""
    del quick
    python = sys.executable
    base = _seconds(python, "-c", "import msgspec, sqlite3, click")
    ours = _seconds(python, "-c", "import windowsill")
    click = _seconds(python, "-c", "import click")
    help = _seconds(str(Path(python).with_name("windowsill")), "--help")
    start, page = ours / base, help / click
    show("import windowsill against import msgspec, sqlite3, click", f"{start:.2f} x", "<= 1.5", met=start <= 1.5)
    show("windowsill --help against import click", f"{page:.2f} x", "<= 2", met=page <= 2)
