"""Sessions to look at: an agent that reads files in a small window, with folds, calls and what they cost."""

from __future__ import annotations

from contextlib import contextmanager

from starlette.testclient import TestClient

from windowsill import Session
from windowsill.inspector import app
from windowsill.inspector.opened import OpenSessions

TOOLS = [{"name": "read_file", "description": "Read a file.", "input_schema": {"type": "object"}}]
OUTPUT = "".join(f"line {number} of a file that nobody needs later\n" for number in range(60))


def open_session(store, id="work", **settings):
    settings = {"model": "claude-sonnet-5", "window": 8_000} | settings
    return Session.open(id, store=store, config=False, **settings)


def ask(session, system="You read files."):
    return session.compose_sync(system=system, tools=TOOLS)


def answer(session, text, *, cached=None, call=None):
    """Record an answer with its usage, as a provider gives it."""
    tokens = session.composer.last.tokens if session.composer.last is not None else 0
    content = [{"type": "text", "text": text}]
    if call is not None:
        content.append({"type": "tool_use", "id": call, "name": "read_file", "input": {"path": f"{call}.py"}})
    read = session.calls[-1].cached if cached is None and session.calls else cached or 0
    usage = {
        "input_tokens": max(1, tokens - read),
        "output_tokens": 20,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": 0,
    }
    session.add({"type": "message", "role": "assistant", "content": content, "usage": usage}, format="anthropic")


def work(session, turns, first=0):
    """Let an agent read files, one a turn."""
    for number in range(first, first + turns):
        session.add(f"Please read file {number}.")
        ask(session)
        answer(session, f"I read file {number}.", call=f"t{number}")
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"secret number {number}\n{OUTPUT}"}
        session.add({"role": "user", "content": [result]}, format="anthropic")
        ask(session)
        answer(session, f"File {number} is fine.")


@contextmanager
def opened(store, id="work"):
    sessions = OpenSessions(store)
    with sessions.use(id) as found:
        yield found
    sessions.close()


def page(store, **options):
    """A browser at the page of a store."""
    return TestClient(app(store, **options), base_url="http://127.0.0.1:8000")


CHANGES = {"x-windowsill": "inspect"}
