"""Large tool outputs: what keeping, reading and searching one costs, against `grep -n` on the same bytes."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.measure import best_of, show, stopwatch
from windowsill.outputs import Outputs, Seen
from windowsill.store.sqlite import SQLiteStore

MIB = 2**20
WORDS = ["the", "error", "warning", "connection", "server", "client", "request", "handled", "in", "ms", "id", "user"]
WORDS += ["session", "token", "cache", "miss", "hit", "of"]
PATTERNS = {
    # name: (pattern, grep's options, ours); each is searched to the end, except where it matches too many lines
    "a literal that is not there": ("needle-xyz", ["-F"], {"fixed": True}),
    "a rare literal": ("Segmentation", ["-F"], {"fixed": True}),
    "a literal in some lines": ("worker-7 hit hit", ["-F"], {"fixed": True}),
    "a regular expression": ("worker-1[0-5] .*Segm[a-z]+ion fault$", ["-E"], {}),
    "a literal, ignoring case": ("sEGMENTATION", ["-F", "-i"], {"fixed": True, "ignore_case": True}),
    "a literal in a third of all lines (counted to 100,000)": ("error", ["-F"], {"fixed": True}),
}


def run(*, quick: bool) -> None:
    """Print the figures."""
    size = 128 if quick else 1024
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        log = place / "log.txt"
        _write_log(log, size)
        ref = _keep(place, log, size)
        _search(place, log, ref, size)
        _memory(place, ref, size)
    _repeats()


def _write_log(path: Path, size: int) -> None:
    rng = random.Random(1)
    with path.open("w") as file:
        for block in range(size):
            written = 0
            while written < MIB:
                words = " ".join(rng.choices(WORDS, k=8))
                clock = f"{rng.randrange(60):02d}:{rng.randrange(60):02d}.{rng.randrange(1000):03d}"
                written += file.write(f"2026-11-15T08:{clock} INFO worker-{rng.randrange(16)} {words}\n")
            if block % 16 == 0:
                file.write(f"2026-11-15T08:00:00.000 FATAL worker-1{block % 6} Segmentation fault\n")


def _pieces(path: Path, size: int = 64 * 1024) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(size):
            yield piece


def _keep(place: Path, log: Path, size: int) -> str:
    store = SQLiteStore(place / "outputs.db")
    store.create("bench", at=0.0)
    with stopwatch() as kept:
        ref = Outputs(store, "bench").keep(_pieces(log))
    store.close()
    with stopwatch() as bare:
        _bare_inserts(place / "bare.db", log)
    ratio = kept[0] / bare[0]
    show(f"keep {size:,} MiB that arrives in pieces of 64 KiB", f"{size / kept[0]:.0f} MiB/s")
    show(
        "keep against bare inserts of the same bytes, 2 MiB a transaction", f"{ratio:.2f} x", "<= 1.5", met=ratio <= 1.5
    )
    (place / "bare.db").unlink()
    return ref.id


def _bare_inserts(path: Path, log: Path) -> None:
    store = SQLiteStore(path)
    store.create("bench", at=0.0)
    with store._connections.writing():  # noqa: SLF001 - opens the writer before the clock matters
        pass
    for number, piece in enumerate(_pieces(log, 2 * MIB)):
        store.put_blobs("bench", [(str(number), piece)])
    store.close()


def _search(place: Path, log: Path, ref: str, size: int) -> None:
    outputs = Outputs(SQLiteStore(place / "outputs.db"), "bench")
    times = 3
    for name, (pattern, options, settings) in PATTERNS.items():
        theirs = best_of(times, lambda: _grep(pattern, options, log))  # noqa: B023 - called in this turn
        ours = best_of(times, lambda: outputs.grep(ref, pattern, **settings))  # noqa: B023 - called in this turn
        told = outputs.grep(ref, pattern, limit=1, **settings).rpartition("\n")[2]
        speed = theirs / ours
        show(f"grep: {name}", f"{speed:.2f} x grep -n", ">= 0.5", met=speed >= 0.5)
        print(f"       {ours:.2f} s against {theirs:.2f} s; {told}")
    middle = outputs.open(ref).lines // 2
    reading = best_of(5, lambda: outputs.read(ref, middle))
    show(f"read 2,000 lines in the middle of {size:,} MiB", f"{reading * 1000:.1f} ms")


def _grep(pattern: str, options: list[str], log: Path) -> None:
    # Through a pipe, as an agent's shell would: given /dev/null, grep stops at the first match.
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    command = [shutil.which("grep") or "grep", "-n", *options, "--", pattern, str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        while process.stdout.read(MIB):
            pass


def _memory(place: Path, ref: str, size: int) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "bench.outputs", str(place / "outputs.db"), ref, str(place / "log.txt")],
        check=True,
        capture_output=True,
        text=True,
    )
    extra = int(told.stdout) / 1024
    show(f"memory to keep, read and search {size:,} MiB", f"{extra:.1f} MiB", "< 64", met=extra < 64)


def _extra_memory(database: str, ref: str, log: str) -> int:
    """KiB that a process grows by when it does everything once."""
    outputs = Outputs(SQLiteStore(database), "bench")
    small = outputs.keep(["a small one\n"])
    outputs.grep(small.id, "x")
    before = _peak()
    outputs.keep(_pieces(Path(log)))
    outputs.read(ref, 1_000_000)
    for pattern, _, settings in PATTERNS.values():
        outputs.grep(ref, pattern, context=3, **settings)
    return _peak() - before


def _peak() -> int:
    # Not getrusage: a child begins there with the peak of the process that started it.
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def _repeats() -> None:
    rng = random.Random(2)
    old = [f"{number}: {' '.join(rng.choices(WORDS, k=8))}" for number in range(50_000)]
    new = [line for number, line in enumerate(old) if number % 50 > 10]
    seen = Seen()
    start = time.perf_counter()
    seen.add("o1", "\n".join(old))
    added = time.perf_counter() - start
    text = "\n".join(new)
    taken = best_of(3, lambda: seen.collapse(text))
    shorter = len(seen.collapse(text) or text) / len(text)
    show("lines shown before: add 50,000 lines", f"{added * 1000:.0f} ms")
    show("lines shown before: point to 39,000 of them", f"{taken * 1000:.0f} ms", f"to {shorter:.0%}")


if __name__ == "__main__":
    print(_extra_memory(*sys.argv[1:]))
