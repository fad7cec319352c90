"""A worker in a process of its own, with a model that answers by what it is sent, and a tool that may stand still."""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

from support.killed_agent import answer
from windowsill import Session
from windowsill.agent import Engine, tool
from windowsill.agent.workers import Order, Workers

STALLED = 1.0


@asynccontextmanager
async def engine(order: Order):
    """Appends each path that it is to put to `done.log`; the second stands still while there is a file `wait`."""
    place = Path(order.settings["folder"])

    @tool(category="write")
    def put(path: str) -> str:
        with (place / "done.log").open("a") as log:
            log.write(f"{path}\n")
        while path == order.settings.get("stop") and (place / "wait").exists():
            time.sleep(0.01)
        return f"wrote {path}"

    @tool(category="read", repeatable=True)
    def look(path: str) -> str:
        return f"contents of {path}"

    with Session.open(order.session, model="gpt-4o", store=order.store) as session:
        yield Engine(session, model=answer, tools=[put, look], phases=("planning", "executing"), listen=order.listen)


async def work(place: str) -> None:
    async with Workers(place, engine=engine, stalled=STALLED) as workers:
        await workers.work()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1]))
