"""What recording the files of a folder costs, against `git status` on the same folder."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from bench.measure import best_of, show, stopwatch
from windowsill.files import Folder, Shadow

FOLDERS = 500
EACH = 100


def run(*, quick: bool = False) -> None:
    """Record 50,000 files (5,000 with `quick`), then record them again unchanged."""
    with tempfile.TemporaryDirectory() as place:
        work = Path(place) / "work"
        for folder in range(FOLDERS // (10 if quick else 1)):
            (work / f"d{folder}").mkdir(parents=True)
            for number in range(EACH):
                (work / f"d{folder}" / f"f{number}.py").write_text(f"{folder} {number}\n")
        identity = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
        for command in (("init", "-q"), ("config", "gc.auto", "0"), ("add", "-A"), (*identity, "commit", "-qm", "all")):
            subprocess.run(["git", *command], cwd=work, check=True)
        shadow = Shadow(Folder(str(work)), Path(place) / "store")
        with stopwatch() as first:
            shadow.record("bench")
        # Alternately, so that a busy machine slows both.
        again = status = float("inf")
        for _ in range(7):
            again = min(again, best_of(1, lambda: shadow.record("bench")))
            status = min(status, best_of(1, lambda: _status(work)))
        count = FOLDERS * EACH // (10 if quick else 1)
        show(f"first record of {count:,} files, seconds", f"{first[0]:.2f}")
        ratio = again / status
        show(f"record of {count:,} unchanged files against git status", f"{ratio:.2f}", "at most 1.5", met=ratio <= 1.5)


def _status(work: Path) -> None:
    subprocess.run(["git", "status", "--porcelain"], cwd=work, check=True, capture_output=True)
