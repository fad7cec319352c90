"""The offline writer: what a summary costs against one pass of the tokenizer over the same text, and how that grows."""

from __future__ import annotations

import gzip
import json
import random
import time

from bench.measure import show
from bench.recorded import DATA
from bench.trace import _WORDS, TASK, prose
from windowsill import providers
from windowsill.history.folds import Brief
from windowsill.messages import Message, Text, ToolResult, ToolUse, text_length, text_message
from windowsill.summaries import Material
from windowsill.summaries.offline import Offline
from windowsill.tokens import counter

SIZES = (20_000, 50_000, 200_000, 1_000_000)
MOST = 3.0
ROUNDS = 5


def run(*, quick: bool) -> None:
    """Print the figures, on a recording where there is one, and on a made-up session."""
    recording = DATA / "coding-agent.jsonl.gz"
    sessions = [("made-up", _made_up())]
    if recording.exists():
        sessions.append(("recorded", _recorded(recording)))
    for name, messages in sessions:
        _measure(name, messages, SIZES[: 3 if quick else None])


def _measure(name, messages, sizes) -> None:
    count = counter("o200k_base").count
    taken, texts, tokens, first = [], [], 0, 0.0
    for size in sizes:
        for message in messages:
            taken.append(message)
            words = list(_texts(message))
            texts += words
            tokens += sum(map(count, words))
            if tokens >= size:
                break
        material = Material(messages=tuple(taken), tokens=tokens, count=count)
        reading = writing = float("inf")
        for _ in range(ROUNDS):  # in turns, so that a busy machine slows both
            reading = min(reading, _seconds(lambda texts=texts: [count(text) for text in texts]))
            writing = min(writing, _seconds(lambda material=material: Offline().write(Brief(), material)))
        ratio, each = writing / reading, writing / tokens
        first = first or each
        show(
            f"offline summary of {tokens:,} tokens ({name}) against counting them",
            f"{ratio:.2f} x",
            f"<= {MOST:.0f}",
            met=ratio <= MOST,
        )
        show(f"  time for each of {tokens:,} tokens", f"{each * 1e6:.2f} us", f"{each / first:.2f} x")


def _seconds(action) -> float:
    # The processor's time: the ratio shall not depend on what else the machine does.
    start = time.process_time()
    action()
    return time.process_time() - start


def _texts(message):
    for block in message.blocks:
        match block:
            case ToolUse():
                yield block.arguments
            case ToolResult():
                yield from (inner.text for inner in block.content if isinstance(inner, Text))
            case _ if text_length((block,)) and hasattr(block, "text"):
                yield block.text


def _recorded(file):
    """One recorded session after the other."""
    read = providers.get("anthropic").read_message
    with gzip.open(file, "rt") as lines:
        for line in lines:
            for number, message in enumerate(json.loads(line)["messages"]):
                yield read(json.dumps(message).encode(), f"m{number}")


def _made_up():
    """Make a coding session without end: reads of whole files, searches, edits and test runs."""
    rng, turn = random.Random(7), 0
    yield text_message("user", TASK, id="m0")
    while True:
        turn += 1
        path = f"src/{rng.choice(_WORDS)}/{rng.choice(_WORDS)}.py"
        found = f"{path}:12:    def {rng.choice(_WORDS)}_{turn}():"
        calls = [
            ({"file_path": path}, _source(rng, rng.choice((40, 120, 400)))),
            ({"pattern": f"def {rng.choice(_WORDS)}", "path": "src"}, found),
            ({"file_path": path, "old_string": "return", "new_string": "yield"}, "The file was updated."),
            ({"command": f"pytest tests/test_{turn}.py"}, rng.choice(("error: broken", prose(rng, 800)))),
        ]
        for number, (arguments, output) in enumerate(calls):
            id = f"c{turn}_{number}"
            use = ToolUse(id=id, name="tool", arguments=json.dumps(arguments))
            answer = ToolResult(tool_use_id=id, content=(Text(text=output),))
            yield Message(role="assistant", blocks=(Text(text=prose(rng, 150)), use), id=f"a{id}")
            yield Message(role="user", blocks=(answer,), id=f"r{id}")


def _source(rng, lines):
    """Make a file as a tool shows it, with line numbers, and names that do not repeat."""
    line = "    {a}_{b} = self.{c}({a})"
    kinds = (*(line,) * 8, "    # {a} {b} {c}", "    return {a}.{b}['{c}']", "def {a}_{b}(self, {c}):")
    names = ((rng.choice(_WORDS), f"{rng.getrandbits(28):x}", rng.choice(_WORDS)) for _ in range(lines))
    written = (rng.choice(kinds).format(a=a, b=b, c=c) for a, b, c in names)
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(written, 1))
