"""Taking secrets out of text: what it costs against one pass of the tokenizer over it, and how that grows."""

from __future__ import annotations

import base64
import gzip
import json
import random
from pathlib import Path

from bench.measure import best_of, show
from bench.recorded import DATA
from windowsill.secrets import redact
from windowsill.tokens import counter

SIZES = (250_000, 1_000_000, 4_000_000)
ROUNDS = 3
SOURCES = Path(__file__).parent.parent / "src"


def run(*, quick: bool) -> None:
    """Print the figures: usual text first, then text that was made to be slow."""
    recording = DATA / "coding-agent.jsonl.gz"
    usual = {"prose without a hint": _prose(), "our own sources": _sources()}
    if recording.exists():
        usual["recorded tool outputs"] = _recorded(recording)
    for name, text in usual.items():
        _measure(name, text, SIZES[: 2 if quick else None])
    for name, unit in _hostile().items():
        _measure(name, unit * (SIZES[-1] // len(unit) + 1), SIZES[: 2 if quick else None], counted=False)


def _measure(name, text, sizes, *, counted=True) -> None:
    count = counter("o200k_base").count
    first = 0.0
    redact("warm")
    for size in sizes:
        part = text[:size]
        looking = counting = float("inf")
        for number in range(ROUNDS):  # in turns, so that a busy machine slows both
            looking = min(looking, best_of(1, lambda part=part: redact(part)))
            # Another text each time: the counts of the last few are remembered.
            other = f"{number}{part}"
            counting = min(counting, best_of(1, lambda other=other: count(other))) if counted else counting
        each = looking / len(part)
        first = first or each
        if counted:
            figure = f"secrets in {len(part):,} characters ({name}) against counting them"
            show(figure, f"{looking / counting:.2f} x")
        speed = f"{len(part) / 1e6 / looking:.1f} MB/s"
        show(f"  {name}, {len(part):,} characters", speed, f"{each / first:.2f} x the time of each before")


def _prose() -> str:
    chance = random.Random(1)
    words = [" ".join(chance.sample(["the", "boat", "sails", "over", "a", "calm", "sea", "at", "night"], 9))]
    return ". ".join(words * (SIZES[-1] // len(words[0]) + 1))


def _sources() -> str:
    # Without the room that names every format: each of them would be looked for.
    files = [file for file in sorted(SOURCES.rglob("*.py")) if file.parent.name != "secrets"]
    text = "\n".join(file.read_text() for file in files)
    return text * (SIZES[-1] // len(text) + 1)


def _recorded(file) -> str:
    outputs: list[str] = []
    with gzip.open(file) as lines:
        for line in lines:
            for message in json.loads(line)["messages"]:
                blocks = message["content"] if isinstance(message["content"], list) else []
                outputs += [json.dumps(block.get("content") or block.get("input") or "") for block in blocks]
    return "\n".join(outputs)[: SIZES[-1]]


def _hostile() -> dict[str, str]:
    chance = random.Random(2)
    noise = base64.b64encode(chance.randbytes(3_000_000)).decode()
    key = "gh" + "p_" + noise[:36].replace("+", "a").replace("/", "b")
    return {
        "one letter": "a",
        "base64 without an end": noise,
        "beginnings of keys": "-----BEGIN ",
        "assignments": "password=",
        "nothing but keys": f"{key} ",
        "nothing but noise": " ".join(noise[place : place + 40] for place in range(0, 40_000, 40)) + " ",
    }
