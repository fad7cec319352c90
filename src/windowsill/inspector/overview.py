"""Everything beside one window: the list of sessions, a session's state and tools, engines at work, comparisons."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from windowsill.budget import budget_for
from windowsill.compose.model_context import ModelContext
from windowsill.compose.payload import output_room
from windowsill.config import apply_profile, read_settings
from windowsill.errors import InputError, WindowsillError
from windowsill.evaluation import Evaluation, winner
from windowsill.evaluation.record import find_regressions
from windowsill.history.head import call_meta
from windowsill.inspector.history import parent_of
from windowsill.inspector.ledger import figures
from windowsill.inspector.opened import OpenSession, OpenSessions
from windowsill.providers import answer_limit
from windowsill.replay.report import ReplayReport
from windowsill.replay.summary import cells, compare_headlines, headline
from windowsill.search.archive import setting_of
from windowsill.session.audit import prompt_of, read_part, task_of, tool_decisions
from windowsill.state.layers import State
from windowsill.state.session_state import event_of
from windowsill.store import SessionInfo, Store
from windowsill.text import shorten

PAGE = 100
READ_SECONDS = 0.25
"""Seconds in which one list reads on in the calls of its sessions; the page asks again for the rest."""

MOST_CHANGES = 100
MOST_ENGINES = 8
MOST_FILES = 20
LARGEST_FILE = 20_000_000
DESCRIPTION = 300
"""Characters of a tool's description in a list."""

EVALUATIONS = "windowsill-evaluations.jsonl"


def sessions(opened: OpenSessions, offset: int = 0) -> dict[str, Any]:
    """List sessions, the last used first, with the figures that are known."""
    every = opened.store.sessions()
    until = time.monotonic() + READ_SECONDS
    found = []
    for info in every[offset : offset + PAGE]:
        ledger = opened.ledger(info)
        failed = None
        try:
            if time.monotonic() < until or ledger.last >= 0:
                ledger.catch_up(info.version)
                ledger.reach(seconds=max(0.0, until - time.monotonic()))
            call = ledger.calls[-1].id if ledger.calls else None
            limit = opened.remember((info.settings, info.id, call), partial(_limit, info, opened.store, call))
            known = figures(ledger, limit)
            title = opened.remember((info.id, info.created), partial(task_of, opened.store, info.id))
        except WindowsillError as error:
            known, title, failed = None, "", str(error)
        found.append(
            {
                "id": info.id,
                "title": title,
                "model": setting_of(info, "model"),
                "updated": info.updated,
                "entries": info.version,
                "parent": parent_of(info.id),
                "figures": known,
                "damaged": failed,
            }
        )
    return {"total": len(every), "offset": offset, "sessions": found}


def _limit(info: SessionInfo, store: Store, call: str | None) -> int | None:
    """Return the tokens that a request of a session may have, beside an answer as long as its last request allows."""
    try:
        stated = apply_profile(read_settings(info.settings, ""))
        model = ModelContext(stated, store).model
        entry = store.find(info.id, call) if call is not None else None
        rest = read_part(store, info.id, call_meta(entry.meta), "rest") if entry is not None else None
        room = output_room(answer_limit(rest or {}), model)
        return budget_for(model, budget=stated.budget, max_output=room).limit
    except WindowsillError:
        return None  # Its settings are damaged, or name a model that nobody knows: opening it says so.


# State, tools, policies


def state(opened: OpenSession) -> dict[str, Any]:
    """Return the layered state, the tools and the decisions about them, and the last changes."""
    session = opened.session
    value = session.state.value
    return {
        "version": opened.version,
        "state": _stated(msgspec.to_builtins(value)),
        "empty": value == State(),
        "policies": msgspec.to_builtins(value.system.policies),
        "constraints": msgspec.to_builtins(value.system.constraints),
        "audit": msgspec.to_builtins(value.system.audit),
        "tools": _tools(opened),
        "changes": list(_changes(opened)),
        "settings": msgspec.to_builtins(session.settings),
    }


def _stated(value: Any) -> Any:
    """Leave out of a value what says nothing: empty texts and lists, what is unknown, the number of no entry."""
    if isinstance(value, dict):
        kept = {name: _stated(each) for name, each in value.items() if not (name == "entry" and each == 0)}
        return {name: each for name, each in kept.items() if each not in (None, "", [], {})}
    return [_stated(each) for each in value] if isinstance(value, list | tuple) else value


def _tools(opened: OpenSession) -> dict[str, Any]:
    session = opened.session
    journal = session.journal
    last = journal.last(journal.path(journal.version), "call")
    _, tools = prompt_of(journal, call_meta(last.meta)) if last is not None else (None, ())
    called = Counter(name for item in session.view.items for name in item.tools)
    decided = [msgspec.to_builtins(each) for each in tool_decisions(journal)]
    return {
        "offered": [
            {
                "name": tool.name,
                "tokens": journal.scale.tokens(journal.scale.weigh_tools([tool])),
                "description": shorten(tool.description, DESCRIPTION),
                "calls": called[tool.name],
            }
            for tool in tools
        ],
        "decision": decided[-1] if decided else None,
        "decisions": [
            {"phase": each["phase"], "names": len(each["names"]), "hidden": len(each["hidden"])}
            for each in decided[-MOST_CHANGES:][::-1]
        ],
    }


def _changes(opened: OpenSession) -> Iterator[dict[str, Any]]:
    """Yield the last changes of the state, the newest first."""
    journal = opened.session.journal
    entries = journal.walk_back(journal.path(journal.version), "state", bodies=True)
    for event in islice(filter(None, map(event_of, entries)), MOST_CHANGES):
        yield {"id": event.id, "at": event.at, "text": str(event)}


def engines(opened: OpenSessions) -> list[dict[str, Any]]:
    """List engines among the sessions that were used last: phase, what they have used, whether they work now."""
    found = []
    for info in opened.store.sessions()[:MOST_ENGINES]:
        try:
            with opened.use(info.id) as each:
                value = each.session.state.value
        except WindowsillError:
            continue  # The list of sessions says what is wrong with it.
        holder = opened.store.locked(info.id)
        if value == State() and holder is None:
            continue
        runtime = value.runtime
        found.append(
            {
                "session": info.id,
                "running": holder is not None,
                "updated": info.updated,
                "goal": shorten(value.task.goal, DESCRIPTION),
                "phase": runtime.phase,
                "resources": msgspec.to_builtins(runtime.resources),
                "errors": [each.message for each in runtime.execution.errors[-3:]],
            }
        )
    return found


# Comparisons


def comparisons(folder: Path | None) -> dict[str, Any]:
    """Return what `evaluate` and `replay --compare` have left in a folder, as tables."""
    files = [] if folder is None else sorted(folder.glob("*.json*"), key=_changed, reverse=True)
    found = [table for file in files[:MOST_FILES] if (table := _table(file)) is not None]
    return {"folder": str(folder) if folder is not None else None, "files": found}


def _changed(file: Path) -> float:
    return file.stat().st_mtime


def _table(file: Path) -> dict[str, Any] | None:
    """Read a file as a table; `None` when it is something else."""
    if file.stat().st_size > LARGEST_FILE:
        return None
    data = file.read_bytes()
    told: dict[str, Any] = {"path": file.name, "at": _changed(file), "worse": []}
    try:
        if file.name == EVALUATIONS:
            return told | _evaluation_table(data)
        return told | _replay_table(data)
    except (msgspec.DecodeError, UnicodeDecodeError, InputError):
        return None


def _evaluation_table(data: bytes) -> dict[str, Any]:
    lines = [msgspec.json.decode(line, type=Evaluation) for line in data.splitlines()[-2:]]
    last = lines[-1]
    rows = last.rows(winner(last))
    worse = find_regressions(lines[0], last) if len(lines) > 1 else []
    return _rows("evaluate", "the last evaluation", rows) | {"worse": worse}


def _replay_table(data: bytes) -> dict[str, Any]:
    try:
        reports = msgspec.json.decode(data, type=dict[str, ReplayReport])
    except msgspec.ValidationError:
        single = msgspec.json.decode(data, type=ReplayReport)
        reports = {single.options.strategy or "default": single}
    totals = {name: report.total for name, report in reports.items()}
    rows = [{"strategy": name, **cells(each, each.recorded, each.compared)} for name, each in totals.items()]
    words = compare_headlines(reports) if len(reports) > 1 else headline(next(iter(reports.values())))
    return _rows("replay", " ".join(words), rows)


def _rows(kind: str, title: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    columns = list(rows[0]) if rows else []
    return {"kind": kind, "title": title, "columns": columns, "rows": [[row[name] for name in columns] for row in rows]}
