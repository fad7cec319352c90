"""`windowsill sessions`: the history of a session, as version control shows and moves it.

Look: log, diff, branches, explain, request, search. Change: unfold, rewind, switch, pin. And its layered state, and its
checkpoints.
"""

# ruff: noqa: PLC0415 - a session loads most of the library, which the help of a command does not need

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from windowsill.cli.output import moment, print_bytes, print_json, print_line, print_list, print_result, print_rows
from windowsill.cli.session_ids import (
    complete_sessions,
    entry_argument,
    find_entry,
    find_session,
    open_session,
    open_store_at,
    session_command,
    store_and_json,
    store_option,
)
from windowsill.errors import NotFoundError
from windowsill.text import shorten

if TYPE_CHECKING:
    from windowsill.history.entries import Entry
    from windowsill.history.view import View
    from windowsill.messages import Message
    from windowsill.session import Session
    from windowsill.session.checkpoints import Checkpoint, What

PREVIEW = 60
"""Characters of a message that a list shows."""

FOUND = 80
"""Characters of what a search found."""

BY_HAND = "on the command line"

limit_option = click.option("--limit", type=click.IntRange(min=1), metavar="N", default=30, show_default=True)


def preview(message: Message) -> str:
    """Return the beginning of what a message says: its text, with its calls and results."""
    from windowsill.messages import Text

    calls = [f"{call.name}({call.arguments})" for call in message.calls]
    results = [block.text for result in message.results for block in result.content if isinstance(block, Text)]
    done = " ".join(calls + results)
    said = shorten(message.text, PREVIEW // 2 if done else PREVIEW)
    return shorten(" ".join(filter(None, (said, done))) or "(no text)", PREVIEW)


def speaker(message: Message) -> str:
    """Return who speaks: results of tools stand under the role of the user in some formats."""
    return "tool" if message.results and not message.text.strip() else message.role


# Look


@session_command
@click.option("--all", "every", is_flag=True, help="Every branch, not only the current one.")
@click.option("--calls", is_flag=True, help="The requests that were composed, too.")
@limit_option
@store_and_json
def log(id: str, place: str | None, limit: int, *, every: bool, calls: bool, as_json: bool) -> None:
    """Show what happened to session ID, the newest first: messages, folds, marks, rewinds, checkpoints."""
    from windowsill.history.entries import on_path

    with open_session(place, id) as session:
        journal = session.journal
        path = journal.path(journal.version)
        kinds = ("message", "fold", "unfold", "mark", "rewind", "state", "label", *(("call",) if calls else ()))
        entries = list(journal.walk([(1, journal.version)] if every else path, kinds=kinds))[::-1]
        changes = {event.id: event.what for event in session.audit}
        rows = [
            {"entry": entry.id, "at": moment(entry.at), "kind": entry.kind, "what": _what(session, entry, changes)}
            | ({"branch": "current" if on_path(path, entry.seq) else "left"} if every else {})
            for entry in entries[:limit]
        ]
    if as_json:
        print_json(rows)
        return
    print_rows(rows, empty="nothing has happened in this session yet")
    if len(entries) > limit:
        print_line(f"and {len(entries) - limit:,} older; --limit {len(entries)} shows all")


def _what(session: Session, entry: Entry, changes: dict[str, str]) -> str:
    from windowsill.history.head import call_meta

    if entry.kind == "message":
        message = session.message(entry.id)
        return f"{speaker(message)}: {preview(message)}"
    if entry.kind == "call":
        call = call_meta(entry.meta)
        return f"request of {call.tokens:,} tokens" + (f" to {call.model}" if call.model else "")
    return changes.get(entry.id, "")


@session_command
@entry_argument("first", metavar="A")
@entry_argument("second", metavar="[B]", required=False)
@click.option("--files", is_flag=True, help="Compare the recorded files instead, line by line.")
@store_and_json
def diff(id: str, first: str, second: str | None, place: str | None, *, files: bool, as_json: bool) -> None:
    """Compare what the model saw at A with what it saw at B, or with what it sees now.

    A and B are ids of messages, calls (`log --calls`), folds, branches or checkpoints of session ID, or checkpoints'
    names.
    """
    with open_session(place, id) as session:
        if files:
            found = session.checkpoints.file_changes(*(_id_of(session, each) for each in (first, second) if each))
            if as_json:
                print_json([{"path": each.path, "status": each.status} for each in found.changes])
            else:
                print_bytes(found.text or b"no difference between the recorded files\n")
            return
        views = [_view_at(session, first), _view_at(session, second) if second else ("now", session.view)]
        lines = [_lines(view) for _, view in views]
        titles = [f"{name}: {view.tokens():,} tokens, {len(view.items):,} items" for name, view in views]
        tokens = [view.tokens() for _, view in views]
    changes = list(difflib.unified_diff(lines[0], lines[1], titles[0], titles[1], n=1, lineterm=""))
    if as_json:
        removed, added = ([line[1:] for line in changes[2:] if line[0] == sign] for sign in "-+")
        print_json(
            {"from": views[0][0], "to": views[1][0], "tokens": tokens, "removed": removed, "added": added},
        )
        return
    for line in changes or [f"no difference: {titles[0]}"]:
        print_line(line, colour={"+": "green", "-": "red"}.get(line[0]))


def _id_of(session: Session, typed: str) -> str:
    names = {each.name: each.id for each in session.checkpoints(None) if each.name}
    return find_entry(session, names.get(typed, typed))


def _view_at(session: Session, typed: str) -> tuple[str, View]:
    """Return the id of a moment and what the model saw then."""
    id = _id_of(session, typed)
    return id, session.journal.seen_at(id)


def _lines(view: View) -> list[str]:
    messages = [view.read(item) for item in view.items]
    return [
        f"{item.id} {speaker(message)}{' (cut)' if item.cuts else ''}"
        f"{f' hides {item.hides:,}' if item.fold else ''}, {view.tokens_of(item.weight):,} tokens: {preview(message)}"
        for item, message in zip(view.items, messages, strict=True)
    ]


@session_command
@store_and_json
def branches(id: str, place: str | None, *, as_json: bool) -> None:
    """List the branches of session ID: the current one, and those that were left by a rewind."""
    with open_session(place, id) as session:
        found = session.branches
    print_list(found, branch_rows(found), empty="no branch yet: the session is empty", as_json=as_json)


def branch_rows(found: Sequence[Any]) -> list[dict[str, object]]:
    """Return the rows of a table of branches."""
    return [
        {
            "branch": each.id,
            "messages": each.messages,
            "last entry": moment(each.at),
            "": "current" if each.current else "",
        }
        for each in found
    ]


@session_command
@entry_argument("message", "message")
@click.option("--call", metavar="CALL", help="In the window of this request (`log --calls`), not in that of now.")
@store_and_json
def explain(id: str, message: str, call: str | None, place: str | None, *, as_json: bool) -> None:
    """Explain why MESSAGE of session ID is in the window, or is not."""
    with open_session(place, id) as session:
        past = None if call is None else find_entry(session, call, "call")
        found = session.explain(find_entry(session, message, "message"), call=past)
    shown = "in the window" if found.visible else "not in the window"
    lines = [f"{found.message} is {shown}{f' of {past}' if past else ''}: {found.why}"]
    lines += [
        f"  {fold.id} {fold.kind} by {fold.strategy}: {fold.reason}, saved {fold.saved:,}" for fold in found.folds
    ]
    print_result(found, "\n".join(lines), as_json=as_json)


@session_command
@entry_argument("call", "call", required=False)
@store_option
def request(id: str, call: str | None, place: str | None) -> None:
    """Print the exact body of a past request of session ID: of CALL, or of the last one.

    CALL is an id (`log --calls`), or a number: 57 is the 57th request of the session.
    """
    with open_session(place, id) as session:
        calls = session.calls
        if call is None and not calls:
            raise NotFoundError(f"session {session.id!r} has composed no request yet", remedy="compose one first")
        print_bytes(session.request(calls[-1].id if call is None else find_entry(session, call, "call")))


@click.command()
@click.argument("query")
@click.option("--session", "id", metavar="ID", shell_complete=complete_sessions, help="Only in this session.")
@click.option("-k", "most", type=click.IntRange(min=1), default=10, show_default=True, metavar="N", help="At most N.")
@store_and_json
def search(query: str, id: str | None, most: int, place: str | None, *, as_json: bool) -> None:
    """Search everything that was ever said in the stored sessions, hidden or not, the best match first."""
    from windowsill.search import Archive

    with open_store_at(place) as store:
        within = None if id is None else [find_session(store, id).id]
        archive = Archive(store, within[0] if within else "", scope="session" if within else "all")
        found = archive.retrieve(query, most)
    print_list(
        found,
        [
            {"session": each.session, "message": each.message_id, "role": each.role, "text": _around(each.text, query)}
            for each in found
        ],
        empty="nothing found",
        as_json=as_json,
    )


def _around(text: str, query: str) -> str:
    """Return a line of a text: its beginning, or what stands around the first word of the query."""
    low, words = text.lower(), re.findall(r"\w+", query.lower())
    at = min((place for word in words if (place := low.find(word)) >= 0), default=0)
    return shorten(text, FOUND) if at < FOUND // 2 else "…" + shorten(text[at - FOUND // 4 :], FOUND - 1)


# Change


@session_command
@entry_argument("messages", "message", nargs=-1, required=True, metavar="MESSAGE...")
@click.option("--off", is_flag=True, help="Let them be hidden again.")
@store_option
def pin(id: str, messages: tuple[str, ...], place: str | None, *, off: bool) -> None:
    """Never hide these messages of session ID."""
    with open_session(place, id) as session:
        for typed in messages:
            message = find_entry(session, typed, "message")
            session.pin(message, off=off)
            told = session.explain(message)
            still = "" if off or told.visible or not told.folds else f"; hidden until {told.folds[0].id} is unfolded"
            print_line(f"{'unpinned' if off else 'pinned'} {message}{still}")


@session_command
@entry_argument("branch")
@store_and_json
def switch(id: str, branch: str, place: str | None, *, as_json: bool) -> None:
    """Return session ID to BRANCH, which a rewind left, or to any other entry. The branch that is left stays."""
    with open_session(place, id) as session:
        to = find_entry(session, branch)
        left = current_branch(session)
        entry = session.switch(to, reason=BY_HAND)
        messages = sum(1 for _ in session.messages())
        value = {"session": session.id, "entry": entry, "to": to, "messages": messages, "left": left}
    text = f"switched {value['session']} to {to}: {messages:,} messages; the branch that was left ends at {left}"
    print_result(value, text, as_json=as_json)


def current_branch(session: Session) -> str | None:
    """Return the id of the end of the current branch; `None` while there is nothing."""
    return next((branch.id for branch in session.branches if branch.current), None)


@session_command
@entry_argument("fold", "fold")
@click.option("--span", type=click.IntRange(min=0), metavar="N", help="Only this span of the fold, counted from 0.")
@click.option("--fit", is_flag=True, help="Only as much as the budget allows, the newest first.")
@store_and_json
def unfold(id: str, fold: str, span: int | None, place: str | None, *, fit: bool, as_json: bool) -> None:
    """Bring back what FOLD of session ID hid."""
    if fit and span is not None:
        raise click.UsageError("--span and --fit exclude each other", click.get_current_context())
    with open_session(place, id) as session:
        fold = find_entry(session, fold, "fold")
        before = session.view.tokens()
        inside = next((made.inside for made in session.folds if made.id == fold), "")
        entry = session.unfold(fold, span=span, fit=fit, reason=BY_HAND)
        after, most = session.view.tokens(), session.composer.budget(0).limit
        value = {"session": session.id, "entry": entry, "fold": fold, "tokens_before": before, "tokens": after}
    still = f"; {inside} still hides what it hid" if inside else ""
    if after > most:
        still += f"; a request may have {most:,}, so the next one is reduced again: --fit brings back what fits"
    print_result(value, f"unfolded {fold}: {before:,} tokens became {after:,}{still}", as_json=as_json)


@session_command
@entry_argument("message", "message", required=False)
@click.option("--before", is_flag=True, help="Leave MESSAGE out too.")
@click.option(
    "--at", "when", metavar="TIME", help="Go back to a time: ISO 8601 (UTC without a zone), or epoch seconds."
)
@click.option("--files", is_flag=True, help="Bring the recorded files back too.")
@store_and_json
def rewind(
    id: str, message: str | None, when: str | None, place: str | None, *, before: bool, files: bool, as_json: bool
) -> None:
    """Go back to MESSAGE of session ID, which becomes the last one, or to a time. The branch that is left stays."""
    ctx = click.get_current_context()
    if (message is None) == (when is None):
        raise click.UsageError("give either MESSAGE or --at TIME", ctx)
    if before and message is None:
        raise click.UsageError("--before needs MESSAGE", ctx)
    with open_session(place, id) as session:
        left = current_branch(session)
        to = None if message is None else find_entry(session, message, "message")
        at = None if when is None else _time(when, ctx)
        entry = session.rewind(to, at=at, before=before, reason=BY_HAND, files=files)
        messages = sum(1 for _ in session.messages())
        value = {"session": session.id, "entry": entry, "messages": messages, "left": left}
        text = f"rewound {session.id} to {messages:,} messages; the branch that was left ends at {left}"
        if files:
            value["undo"] = undo = session.checkpoints(1)[0].id
            text += f"; its files are back too (to undo both: windowsill sessions restore {quote(session.id)} {undo})"
    print_result(value, text, as_json=as_json)


def _time(text: str, ctx: click.Context) -> float:
    from windowsill.transcripts.base import timestamp

    try:
        at: float | None = float(text)
    except ValueError:
        at = timestamp(text)
    if at is None or not math.isfinite(at):
        raise click.UsageError(f"{text!r} is not a time; give 2026-01-31T12:00:00Z or epoch seconds", ctx)
    return at


@session_command
@click.option("--at", metavar="ENTRY", help="The state at a message, a fold, a checkpoint or a change.")
@click.option("--changes", is_flag=True, help="Print every change instead, the oldest first.")
@store_and_json
def state(id: str, at: str | None, place: str | None, *, changes: bool, as_json: bool) -> None:
    """Print the layered state of session ID as JSON: goal, phase, memory, evidence, work."""
    import msgspec

    if at is not None and changes:
        raise click.UsageError("--at and --changes exclude each other", click.get_current_context())
    with open_session(place, id) as session:
        if changes:
            events = session.state.history
            print_result(events, "\n".join(f"{event.id}  {event}" for event in events), as_json=as_json)
            return
        value = session.state.at(find_entry(session, at)) if at is not None else session.state.value
    encoded = value.to_json()
    click.echo(encoded if as_json else msgspec.json.format(encoded, indent=2))


@session_command
@click.option("--limit", type=click.IntRange(min=0), default=10, show_default=True, metavar="N", help="At most N.")
@store_and_json
def checkpoints(id: str, limit: int, place: str | None, *, as_json: bool) -> None:
    """List the checkpoints of session ID on all branches, the newest first."""
    with open_session(place, id) as session:
        found = session.checkpoints(limit)
    print_list(
        found,
        [
            {
                "checkpoint": each.id,
                "name": each.name or "-",
                "messages": each.messages,
                "tokens": each.tokens,
                "phase": each.phase,
                "reason": each.reason,
                "files": each.files[:7] or "-",
                "made": moment(each.at),
            }
            for each in found
        ],
        empty="no checkpoints yet",
        as_json=as_json,
    )


@session_command
@click.option("--name", default="", metavar="NAME", help="Its name; it always has an id too.")
@click.option(
    "--files",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False),
    help="Record the files of FOLDER too, now and at each later checkpoint.",
)
@store_and_json
def checkpoint(id: str, name: str, files: str | None, place: str | None, *, as_json: bool) -> None:
    """Name this moment of session ID, so that `restore` can return to it.

    If another checkpoint has this NAME already, that one is then reached by its id only.
    """
    with open_session(place, id, files=files) as session:
        new = session.checkpoint(name)
    recorded = ", files recorded" if new.files else ""
    text = f"checkpoint {_label(new)}: {new.messages:,} messages, {new.tokens:,} tokens{recorded}"
    print_result(new, "\n".join([text, *new.notes]), as_json=as_json)


@session_command
@entry_argument("checkpoint", "label")
@click.option("--both", "what", flag_value="both", help="Conversation and files: the default where files are recorded.")
@click.option("--conversation", "what", flag_value="conversation", help="The conversation alone.")
@click.option("--files", "what", flag_value="files", help="The files alone.")
@click.option("--remove-new", is_flag=True, help="Remove also files that are new since then and that nothing recorded.")
@store_and_json
def restore(id: str, checkpoint: str, what: What | None, place: str | None, *, remove_new: bool, as_json: bool) -> None:
    """Go back to CHECKPOINT (an id or a name) of session ID. What came after stays on its branch.

    Files are restored all or none, and only where their present content is recorded, so that it can be undone.
    """
    with open_session(place, id) as session:
        name, left = session.id, current_branch(session)
        found = session.restore(checkpoint, what, remove_new=remove_new)
        tokens = session.view.tokens()
    text = f"restored {_label(found)}: {found.messages:,} messages; the branch that was left ends at {left}"
    if what == "files":
        text = f"restored the files of {_label(found)}; the conversation is as it was"
    answer = {"session": name, "checkpoint": found, "tokens": tokens, "left": left}
    print_result(answer, "\n".join([text, *found.notes]), as_json=as_json)


def _label(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.name} ({checkpoint.id})" if checkpoint.name else checkpoint.id
