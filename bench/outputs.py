"""Large tool outputs: what keeping, reading and searching one costs, against `grep -n` on the same bytes."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.measure import best_of, show, stopwatch
from windowsill.outputs import Limits, Outputs, SeenLines, chunks
from windowsill.store.sqlite import SQLiteStore

MIB = 2**20
WORDS = ["the", "error", "warning", "connection", "server", "client", "request", "handled", "in", "ms", "id", "user"]
WORDS += ["session", "token", "cache", "miss", "hit", "of"]
PATTERNS = {
    # name: (pattern, grep's options, ours); both print every matching line, and what they print is compared
    "a literal that is not there": ("needle-xyz", ["-F"], {"fixed": True}),
    "a rare literal": ("Segmentation", ["-F"], {"fixed": True}),
    "a literal in some lines": ("worker-7 hit hit", ["-F"], {"fixed": True}),
    "a regular expression": ("worker-1[0-5] .*Segm[a-z]+ion fault$", ["-E"], {}),
    "a literal, ignoring case": ("sEGMENTATION", ["-F", "-i"], {"fixed": True, "ignore_case": True}),
}
COUNTED = {
    # These match so many lines that ours prints 100 and counts to 100,000; grep prints 100,000 and stops.
    "a literal in a third of all lines": ("error", ["-F", "-m", "100000"], {"fixed": True}),
    "an expression in a third of all lines": ("err[aeo]r", ["-E", "-m", "100000"], {}),
}
EVERYTHING = {"limit": 10_000}
ROUNDS = 5


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
    store = SQLiteStore(place / "outputs.db")
    _reading(store, log, ref)
    for name, (pattern, options, settings) in PATTERNS.items():
        printed = _compare(store, log, ref, name, (pattern, options, {**settings, **EVERYTHING}))
        assert printed.splitlines()[:-1] == _grep(pattern, options, log).decode().splitlines(), name
    for name, searched in COUNTED.items():
        _compare(store, log, ref, name, searched)
    outputs = Outputs(store, "bench")
    middle = outputs.open(ref).lines // 2
    reading = best_of(5, lambda: outputs.read(ref, middle))
    show(f"read 2,000 lines in the middle of {size:,} MiB", f"{reading * 1000:.1f} ms")
    store.close()


def _reading(store: SQLiteStore, log: Path, ref: str) -> None:
    """Measure reading alone; it also brings both files into the page cache, so that no search waits for a disk."""
    plain, checked, again = [], [], []
    for _ in range(ROUNDS):
        output = Outputs(store, "bench").open(ref)
        plain.append(_seconds(lambda: [None for _ in _pieces(log, 2 * MIB)]))
        checked.append(_seconds(lambda: [None for _ in chunks(output)]))  # noqa: B023 - called in this turn
        again.append(_seconds(lambda: [None for _ in chunks(output)]))  # noqa: B023 - called in this turn
    show("read everything, the first time (checked)", f"{min(checked):.2f} s")
    show("read everything, again", f"{min(again):.2f} s")
    show("read the same bytes from a file", f"{min(plain):.2f} s")


def _compare(
    store: SQLiteStore, log: Path, ref: str, name: str, searched: tuple[str, list[str], dict[str, Any]]
) -> str:
    """Search in turns with grep, so that whatever else the machine does slows both; what ours printed."""
    pattern, options, settings = searched
    theirs, first, again = [], [], []
    for _ in range(ROUNDS):
        # A new one has checked nothing yet.
        outputs = Outputs(store, "bench", limits=Limits(bytes=8 * MIB))
        theirs.append(_seconds(lambda: _grep(pattern, options, log)))
        first.append(_seconds(lambda: outputs.grep(ref, pattern, **settings)))  # noqa: B023 - called in this turn
        again.append(_seconds(lambda: outputs.grep(ref, pattern, **settings)))  # noqa: B023 - called in this turn
    printed = outputs.grep(ref, pattern, **settings)
    for when, ours in (("first", first), ("again", again)):
        speed = min(theirs) / min(ours)
        show(f"grep, {when}: {name}", f"{speed:.2f} x grep -n", ">= 0.3", met=speed >= 0.3)
    told = printed.rpartition("\n")[2]
    print(f"       {min(first):.3f} s, {min(again):.3f} s against {min(theirs):.3f} s; {told}")
    return printed


def _seconds(work: Callable[[], object]) -> float:
    with stopwatch() as taken:
        work()
    return taken[0]


def _grep(pattern: str, options: list[str], log: Path) -> bytes:
    # Through a pipe, as an agent's shell would: given /dev/null, grep stops at the first match.
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    command = [shutil.which("grep") or "grep", "-n", *options, "--", pattern, str(log)]
    return subprocess.run(command, stdout=subprocess.PIPE, env=environment, check=False).stdout


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
    for pattern, _, settings in (*PATTERNS.values(), *COUNTED.values()):
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
    seen = SeenLines()
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
