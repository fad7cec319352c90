"""Runs all benchmarks: `python -m bench [--quick] [NAME...]`."""

from __future__ import annotations

import sys

from bench import (
    files,
    formats,
    growth,
    inspector,
    layers,
    loop,
    outputs,
    page,
    planning,
    prefix,
    projection,
    proxy,
    recall,
    recorded,
    redaction,
    scale,
    startup,
    stores,
    telemetry,
    writers,
)

ALL = {
    "startup": startup.run,
    "prefix": prefix.run,
    "loop": loop.run,
    "growth": growth.run,
    "files": files.run,
    "formats": formats.run,
    "writers": writers.run,
    "page": page.run,
    "planning": planning.run,
    "recall": recall.run,
    "recorded": recorded.run,
    "stores": stores.run,
    "scale": scale.run,
    "outputs": outputs.run,
    "layers": layers.run,
    "projection": projection.run,
    "proxy": proxy.run,
    "inspector": inspector.run,
    "telemetry": telemetry.run,
    "redaction": redaction.run,
}


def main(arguments: list[str]) -> None:
    """Run the named benchmarks, or all."""
    quick = "--quick" in arguments
    chosen = [name for name in arguments if not name.startswith("-")] or list(ALL)
    for name in chosen:
        print(f"-- {name}")
        ALL[name](quick=quick)


main(sys.argv[1:])
