"""Tells which tools a model was shown, and which of its calls were run."""

from __future__ import annotations

from windowsill.errors import DamagedError
from windowsill.history.entries import reader
from windowsill.history.view import message_meta
from windowsill.session.ledger import Ledger
from windowsill.session.stating import event_of
from windowsill.state.changes import Put
from windowsill.state.tools import Decided

_decided = reader(Decided)


def decisions(ledger: Ledger) -> list[Decided]:
    """The decisions of the current branch, oldest first."""
    path = ledger.path(ledger.version)
    return [_decided(entry.meta) for entry in ledger.walk(path, kinds=("tools",))]


RUNS = "runtime.execution.tool_calls"


def run_key(message_id: str, call_id: str) -> str:
    """Under which the state notes the run of a call: models give the same call ids again and again."""
    return f"{message_id}/{call_id}"


def begun(ledger: Ledger, message_id: str) -> frozenset[str]:
    """The calls of a message that were begun or answered after it, on whatever branch."""
    message = ledger.find(message_id, "message")
    calls = message_meta(message.meta).calls
    later = [(message.seq + 1, ledger.version)]
    found = {id for entry in ledger.walk(later, kinds=("message",)) for id in message_meta(entry.meta).results}
    noted = set()
    for entry in ledger.walk(later, kinds=("state",), bodies=True):
        try:
            change = event_of(entry)
        except DamagedError:
            # What cannot be read may have noted any of them.
            return frozenset(calls)
        puts = (each for each in (change.changes if change is not None else ()) if isinstance(each, Put))
        noted |= {each.value.get("id") for each in puts if each.path == RUNS}
    return frozenset(id for id in calls if id in found or run_key(message_id, id) in noted)
