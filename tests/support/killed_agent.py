"""An agent in a process of its own that is killed at a stated moment; the model answers by what it is sent."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import windowsill.agent.loop
import windowsill.compose.state_messages  # noqa: F401 - loaded before the fork
from windowsill import Session
from windowsill.agent import Engine, tool
from windowsill.models import prices
from windowsill.store.sqlite import SQLiteStore

TASK = "Write two files."


def warm_up() -> None:
    """Load what every child would load: vocabulary, prices, schemas, without a thread that a fork would lose."""
    session = Session.open("s", model="gpt-4o", store=":memory:")
    prices(session.model)
    session.state.set_goal("x")
    session.add("x")
    Engine(session, model=answer, tools=[])
    session.compose_sync(tools=session.tools.tools)
    session.close()


class Deadline:
    """Kills this process at the n-th time that something happens, before or after it."""

    def __init__(self, what: str) -> None:
        self.kind, number, self.when = what.split(":") if what else ("", "0", "")
        self.left = int(number)

    def __call__(self, kind: str, when: str) -> None:
        if (kind, when) == (self.kind, self.when):
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def answer(request: dict[str, Any]) -> Any:
    """The next step, by the results that the request holds."""
    answered = sum(message["role"] == "tool" for message in request["messages"])
    if answered and "[phase: executing]" not in str(request["messages"]):
        return "I will write them."
    files = {1: [("put", "a")], 2: [("put", "b"), ("look", "c"), ("put", "d")]}.get(answered, [])
    calls = [(name, {"path": path}) for name, path in files]
    if not answered:
        calls = [("update_plan", {"steps": [{"description": "write", "status": "completed"}]})]
    if not calls:
        return "Both are written."
    made = [
        {"id": f"call_{place}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for place, (name, arguments) in enumerate(calls)
    ]
    return {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": made}}]}


def work(folder: str, deadline: str) -> None:
    """Run the task, or go on with it, and write down how it ended."""
    place = Path(folder)
    end = Deadline(deadline)
    store = SQLiteStore(place / "sessions.db")
    append = store.append

    def watched(*arguments: Any, **named: Any) -> None:
        end("append", "before")
        append(*arguments, **named)
        end("append", "after")

    store.append = watched  # type: ignore[method-assign]

    @tool(category="write")
    def put(path: str) -> str:
        end("tool", "before")
        with (place / "done.log").open("a") as log:
            log.write(f"{path}\n")
        end("tool", "after")
        return f"wrote {path}"

    @tool(category="read", repeatable=True)
    def look(path: str) -> str:
        end("look", "before")
        return f"contents of {path}"

    def model(request: dict[str, Any]) -> Any:
        end("model", "before")
        return answer(request)

    session = Session.open("s", model="gpt-4o", store=store)
    result = Engine(session, model=model, tools=[put, look], phases=("planning", "executing")).run_sync(TASK)
    told = [
        (each.name, "".join(block.text for block in each.content))
        for message in session.messages()
        for each in message.results
    ]
    ended = {
        "status": result.status,
        "text": result.text,
        "problems": session.verify(),
        "results": told,
        "tasks": sum(message.text == TASK for message in session.messages()),
        "phase": session.state.value.runtime.phase,
    }
    (place / "ended.json").write_text(json.dumps(ended))


def serve() -> None:
    """For each line on standard input, a folder and a deadline, work in a child; say how it ended."""
    warm_up()
    for line in sys.stdin:
        folder, _, deadline = line.rstrip("\n").partition("\t")
        child = os.fork()
        if child == 0:
            work(folder, deadline)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    serve()
