"""Recorded sessions under small windows: nothing invalid, nothing above the window, nothing lost."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.measure import show

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
WINDOWS = (8_000, 20_000, 60_000)
FILES = ("coding-agent", "customer-service", "function-calls")


def run(*, quick: bool) -> None:
    """Print the figures, or say that there are no recordings here."""
    files = [DATA / f"{name}.jsonl.gz" for name in FILES]
    missing = [file.name for file in files if not file.exists()]
    if missing:
        show("recorded sessions", "not here", f"looked for {', '.join(missing)} in ../shared/data")
    for file in files:
        if not file.exists():
            continue
        for window in WINDOWS:
            _replay(file, window, ["--limit", "5"] if quick else [])


def _replay(file: Path, window: int, options: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [str(Path(sys.executable).with_name("windowsill")), "replay", str(file), "--window", str(window)]
        command += ["--tokenizer", "o200k_base", "--report", str(report), *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        told = json.loads(report.read_text())
    total = told["total"]
    failed = sum(1 for session in told["sessions"] if session["error"]) + len(told["broken"])
    bad = total["invalid"] + total["over"] + total["lost"] + failed
    show(
        f"{file.name.split('.')[0]} at {window:,}: {total['calls']:,} requests",
        f"{bad} bad",
        f"kept {total['kept']:.3f}, cost {total['cost_ratio']:.2f}, cached {total['cache_hit_share']:.3f}",
        met=bad == 0,
    )
