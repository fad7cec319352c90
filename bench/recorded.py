"""Recorded sessions under small windows: nothing invalid, nothing above the window, nothing lost."""

from __future__ import annotations

from pathlib import Path

from bench.measure import show
from windowsill.replay import ReplayOptions, ReplayReport, replay

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
WINDOWS = (8_000, 20_000, 60_000)
FILES = ("coding-agent", "customer-service", "function-calls")
TOKENIZER = "o200k_base"
CACHED = "outputs:at_high=false,budget=60000,repeats=true+condense:keep=10,room=0.3"
EVIDENCE = {
    "condensed by code": (
        {"strategy": "condense:keep=20,room=0.15"},
        {"kept": 0.985, "kept_from_outputs": 0.95, "kept_lines": 0.95, "cost_ratio": 0.79},
    ),
    "with tools and recall": (
        {"strategy": CACHED, "high": 0.95, "recall": 1_000, "tools": True},
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
    limit = 5 if quick else None
    for file in files:
        if file.exists():
            for window in WINDOWS:
                report = replay(file, ReplayOptions(window=window, tokenizer=TOKENIZER), limit=limit)
                _show_bad(file, window, report)
    if files[0].exists():
        for name, (settings, targets) in EVIDENCE.items():
            options = ReplayOptions(window=60_000, tokenizer=TOKENIZER, overhead=18_000, **settings)
            _show_evidence(name, replay(files[0], options, limit=limit), targets)


def _show_evidence(name: str, report: ReplayReport, targets: dict[str, float]) -> None:
    for figure, target in targets.items():
        found = getattr(report.total, figure)
        met = found <= target if figure == "cost_ratio" else found >= target
        show(f"coding-agent at 60,000, {name}: {figure}", f"{found:.3f}", f"target {target}", met=met)


def _show_bad(file: Path, window: int, report: ReplayReport) -> None:
    total = report.total
    bad = total.invalid + total.over + total.lost + total.failed + total.broken
    show(
        f"{file.name.split('.')[0]} at {window:,}: {total.calls:,} requests",
        f"{bad} bad",
        f"kept {total.kept:.3f}, cost {total.cost_ratio:.2f}, cached {total.cache_hit_share:.3f}",
        met=bad == 0,
    )
