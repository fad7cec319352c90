"""Branches, checkpoints and threads of a session as a tree, and the difference between two moments."""

from __future__ import annotations

from typing import Any

import msgspec

from windowsill.compose.composition import part_of
from windowsill.history.entries import ROOT, Range, on_path
from windowsill.history.view import Item, View
from windowsill.inspector.opened import OpenSession
from windowsill.inspector.window import preview
from windowsill.journal.writer import JournalWriter
from windowsill.search.archive import setting_of
from windowsill.session.branches import branch_heads
from windowsill.store import SessionInfo

NOW = "now"
MOST_CHECKPOINTS = 500
MOST_BRANCHES = 500
MOST_CHANGED = 500
MARK = "~"
"""Stands before the owner in the id of a session that the proxy keeps."""

AGENT = "-agent-"
"""Stands before the name of a sub-agent in the id of a session that the proxy keeps."""


def history(opened: OpenSession) -> dict[str, Any]:
    """Return the branches and the checkpoints, as lists and as a tree that is ready to draw."""
    session = opened.session
    journal = session.journal
    ends = branch_ends(journal)
    checkpoints = [msgspec.to_builtins(each) for each in session.checkpoints(MOST_CHECKPOINTS)]
    for each in checkpoints:
        holder = next((end for end in ends if on_path(end["path"], each["entry"])), None)
        each["branch"] = holder["id"] if holder is not None else None
    return {
        "version": opened.version,
        "branches": [{name: value for name, value in each.items() if name != "path"} for each in ends],
        "checkpoints": checkpoints,
        "tree": tree(ends, checkpoints),
        "threads": threads(opened),
    }


def branch_ends(journal: JournalWriter) -> list[dict[str, Any]]:
    """List every end of the history, the current one first, each with its path and where it leaves an earlier one."""
    heads = branch_heads(journal)
    found: list[dict[str, Any]] = []
    for head in list(heads)[:MOST_BRANCHES]:
        entry, path = journal.entry(head), journal.path(head)
        found.append(
            {
                "id": entry.id,
                "seq": head,
                "at": entry.at,
                "entries": sum(last - first + 1 for first, last in path),
                "current": head == journal.version,
                "from": max((_meeting(path, other["path"]) for other in found), default=ROOT),
                "reason": heads[head],
                "path": path,
            }
        )
    return found


def _meeting(one: list[Range], other: list[Range]) -> int:
    """Return the last entry that two paths share."""
    last = ROOT
    for left, right in zip(one, other, strict=False):
        if left[0] != right[0]:
            break
        last = min(left[1], right[1])
        if left[1] != right[1]:
            break
    return last


def tree(ends: list[dict[str, Any]], checkpoints: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the nodes of the history in order: start, forks, checkpoints, ends; each with the one before it."""
    marks: dict[int, tuple[str, str, float | None, str]] = {}
    for end in ends:
        if end["from"] != ROOT:
            marks.setdefault(end["from"], (f"e{end['from']}", "fork", None, ""))
    for each in checkpoints:
        marks[each["entry"]] = (each["id"], "checkpoint", each["at"], each["name"] or each["id"])
    for end in ends:
        marks[end["seq"]] = (end["id"], "end", end["at"], end["reason"] or ("now" if end["current"] else end["id"]))
    nodes: list[dict[str, Any]] = [
        {"id": "e0", "parent": None, "kind": "start", "seq": ROOT, "label": "start", "at": None, "current": True}
    ]
    order = sorted(marks)
    for number, seq in enumerate(order):
        id, kind, at, label = marks[seq]
        path: list[Range] = next((end["path"] for end in ends if on_path(end["path"], seq)), [])
        before = next((other for other in reversed(order[:number]) if on_path(path, other)), None)
        nodes.append(
            {
                "id": id,
                "parent": marks[before][0] if before is not None else "e0",
                "kind": kind,
                "seq": seq,
                "label": label,
                "at": at,
                "current": bool(ends) and on_path(ends[0]["path"], seq),
            }
        )
    return nodes


def threads(opened: OpenSession) -> list[dict[str, Any]]:
    """List the sessions of the same conversation: the main agent's, and those of its sub-agents."""
    own = thread_of(opened.session.id)
    if own is None:
        return []
    found = [info for info in opened.session.journal.store.sessions() if thread_of(info.id) == own]
    return [_thread(info, opened.session.id) for info in found] if len(found) > 1 else []


def thread_of(id: str) -> tuple[str, str] | None:
    """Return the conversation that a session of the proxy belongs to, and its owner; `None` for other sessions."""
    name, mark, owner = id.rpartition(MARK)
    return (name.partition(AGENT)[0], owner) if mark else None


def parent_of(id: str) -> str | None:
    """Return the session of the main agent, for that of a sub-agent behind the proxy."""
    thread = thread_of(id)
    main = None if thread is None else f"{thread[0]}{MARK}{thread[1]}"
    return None if main == id else main


def _thread(info: SessionInfo, own: str) -> dict[str, Any]:
    relation = "self" if info.id == own else "child" if parent_of(info.id) is not None else "parent"
    return {
        "id": info.id,
        "relation": relation,
        "model": setting_of(info, "model"),
        "updated": info.updated,
        "entries": info.version,
    }


# Two moments


def diff(opened: OpenSession, since: str, until: str) -> dict[str, Any]:
    """Compare what the model saw at two moments: what left the window, what came, what was cut."""
    views = [_view_at(opened, each) for each in (since, until)]
    before, after = ({_key(item): (index, item) for index, item in enumerate(view.items)} for view in views)
    gone = [item for key, (_, item) in before.items() if key not in after]
    new = [item for key, (_, item) in after.items() if key not in before]
    changed = [item for key, (_, item) in after.items() if key in before and before[key][1].cuts != item.cuts]
    lists = {
        "removed": [_changed(views[0], item, _reason(views[1], item)) for item in gone[:MOST_CHANGED]],
        "added": [_changed(views[1], item, "stands for others" if item.fold else "") for item in new[:MOST_CHANGED]],
        "changed": [_changed(views[1], item, "cut" if item.cuts else "shown whole") for item in changed[:MOST_CHANGED]],
    }
    return {
        **{
            name: {"id": id, "tokens": view.tokens(), "items": len(view.items)}
            for name, id, view in zip(("from", "to"), (since, until), views, strict=True)
        },
        "same": len(after) - len(new) - len(changed),
        **lists,
        "cut": max(len(gone), len(new), len(changed)) > MOST_CHANGED,
    }


def _key(item: Item) -> tuple[int, int, int]:
    return item.seq, item.first, item.last


def _view_at(opened: OpenSession, id: str) -> View:
    """Return what the model saw at an entry, or at the moment a checkpoint names; a call saw what was before it."""
    journal = opened.session.journal
    if id == NOW:
        return journal.view
    named = next((each for each in opened.session.checkpoints(None) if id in (each.id, each.name)), None)
    if named is not None:
        return journal.at(named.entry).view
    return journal.seen_at(id)


def _reason(view: View, item: Item) -> str:
    """Say why an item is not in a view."""
    cover = view.cover(item.first)
    if cover is None:
        return "not on that branch, or not yet"
    return f"folded by {cover.id.partition(':')[0]}" if cover.fold else "shown again"


def _changed(view: View, item: Item, why: str) -> dict[str, Any]:
    return {
        "id": item.id,
        "role": item.role,
        "part": part_of(item, view.task_seq()),
        "tokens": view.tokens(item),
        "text": preview(view.read(item)),
        "why": why,
    }
