"""An agent in a process of its own that asks a model over HTTP and may be killed at any moment."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import windowsill.agent.loop
import windowsill.compose.state_messages
import windowsill.mcp  # noqa: F401 - loaded before the fork
from windowsill import Session
from windowsill.agent import Engine, tool
from windowsill.models import prices
from windowsill.providers.http import RetryPolicy
from windowsill.testing import Scripted

TASK = "Write the files that are needed."

RETRY = RetryPolicy(retries=30, backoff=0.1, longest_wait=60.0, longest_asked=3_600.0)
"""Minutes of pauses, which `at_once` does not wait for."""


async def at_once(seconds: float) -> None:
    """Instead of waiting."""
    del seconds


def warm_up() -> None:
    """Load what every child would load."""
    session = Session.open("s", model="claude-sonnet-4-5", store=":memory:")
    prices(session.model)
    Engine(session, model=Scripted(["x"], format="anthropic"), tools=[]).session.close()


def work(folder: Path, url: str) -> None:
    """Run the task, or go on with it, and write down how it ended."""

    @tool(category="write")
    def put(path: str) -> str:
        with (folder / "done.log").open("a") as log:
            log.write(f"{path}\n")
        return f"wrote {path}\n" + f"a line about {path} that fills the window\n" * 40

    @tool(category="read", repeatable=True, parallel=True)
    def look(path: str) -> str:
        return f"contents of {path}\n" * 60

    with Session.open("s", model="claude-sonnet-4-5", store=folder / "store", budget=9_000) as session:
        engine = Engine(
            session, model=f"anthropic:claude-sonnet-4-5@{url}", tools=[put, look], retry=RETRY, sleep=at_once
        )
        result = engine.run_sync(TASK)
    (folder / "ended.json").write_text(json.dumps({"status": result.status, "error": result.error}))


def serve() -> None:
    """For each line on standard input, a folder and an address, work in a child; say its id, then how it ended."""
    os.environ["ANTHROPIC_API_KEY"] = "none"
    warm_up()
    for line in sys.stdin:
        folder, _, url = line.rstrip("\n").partition("\t")
        child = os.fork()
        if child == 0:
            work(Path(folder), url)
            os._exit(0)
        print(child, flush=True)  # noqa: T201 - the answer
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    serve()
