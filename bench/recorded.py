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
CACHED = "outputs:at_high=false,budget=60000,repeats=true+condense:keep=10,room=0.3"
OVERHEAD = ["--overhead", "18000"]
EVIDENCE = {
    "condensed by code": (
        [*OVERHEAD, "--strategy", "condense:keep=20,room=0.15"],
        {"kept": 0.985, "kept_from_outputs": 0.95, "kept_lines": 0.95, "cost_ratio": 0.79},
    ),
    "with tools and recall": (
        [*OVERHEAD, "--strategy", CACHED, "--high", "0.95", "--recall", "1000", "--tools"],
        {"kept": 0.99, "kept_from_outputs": 0.97, "within_reach": 1.0},
    ),
}
"""What later calls needed and found in the request: settings, and what is to be reached with them."""


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
            _show_bad(file, window, ["--limit", "5"] if quick else [])
    if files[0].exists():
        for name, (options, targets) in EVIDENCE.items():
            _show_evidence(name, _replay(files[0], 60_000, [*options, *(["--limit", "5"] if quick else [])]), targets)


def _replay(file: Path, window: int, options: list[str]) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [str(Path(sys.executable).with_name("windowsill")), "replay", str(file), "--window", str(window)]
        command += ["--tokenizer", "o200k_base", "--report", str(report), *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return json.loads(report.read_text())


def _show_evidence(name: str, told: dict, targets: dict[str, float]) -> None:
    for figure, target in targets.items():
        found = told["total"][figure]
        met = found <= target if figure == "cost_ratio" else found >= target
        show(f"coding-agent at 60,000, {name}: {figure}", f"{found:.3f}", f"target {target}", met=met)


def _show_bad(file: Path, window: int, options: list[str]) -> None:
    told = _replay(file, window, options)
    total = told["total"]
    failed = sum(1 for session in told["sessions"] if session["error"]) + len(told["broken"])
    bad = total["invalid"] + total["over"] + total["lost"] + failed
    show(
        f"{file.name.split('.')[0]} at {window:,}: {total['calls']:,} requests",
        f"{bad} bad",
        f"kept {total['kept']:.3f}, cost {total['cost_ratio']:.2f}, cached {total['cache_hit_share']:.3f}",
        met=bad == 0,
    )
