"""`windowsill sessions`: the layered state of a session and its checkpoints."""

# ruff: noqa: PLC0415 - a session loads most of the library, which the help of a command does not need

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from windowsill.cli.output import moment, print_json, print_line, print_list, print_result
from windowsill.cli.session_ids import (
    entry_argument,
    find_entry,
    json_option,
    open_session,
    session_argument,
    store_option,
)
from windowsill.cli.sessions_history import current_branch

if TYPE_CHECKING:
    from windowsill.session.checkpoints import Checkpoint, What


@click.command()
@session_argument
@click.option("--at", metavar="ENTRY", help="The state at a message, a fold, a checkpoint or a change.")
@click.option("--changes", is_flag=True, help="Print every change instead, the oldest first.")
@store_option
@json_option
def state(id: str, at: str | None, place: str | None, *, changes: bool, as_json: bool) -> None:
    """Print the layered state of session ID as JSON: goal, phase, memory, evidence, work."""
    import msgspec

    if at is not None and changes:
        raise click.UsageError("--at and --changes exclude each other", click.get_current_context())
    with open_session(place, id) as session:
        if changes:
            events = session.state.history
            if as_json:
                print_json(events)
            for event in () if as_json else events:
                print_line(f"{event.id}  {event}")
            return
        value = session.state.at(find_entry(session, at)) if at is not None else session.state.value
    encoded = value.to_json()
    click.echo(encoded if as_json else msgspec.json.format(encoded, indent=2))


@click.command()
@session_argument
@click.option("--limit", type=click.IntRange(min=0), default=10, show_default=True, metavar="N", help="At most N.")
@store_option
@json_option
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


@click.command()
@session_argument
@click.option("--name", default="", metavar="NAME", help="Its name; it always has an id too.")
@click.option(
    "--files",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False),
    help="Record the files of FOLDER too, now and at each later checkpoint.",
)
@store_option
@json_option
def checkpoint(id: str, name: str, files: str | None, place: str | None, *, as_json: bool) -> None:
    """Name this moment of session ID, so that `restore` can return to it.

    If another checkpoint has this NAME already, that one is then reached by its id only.
    """
    with open_session(place, id, files=files) as session:
        new = session.checkpoint(name)
    recorded = ", files recorded" if new.files else ""
    text = f"checkpoint {_label(new)}: {new.messages:,} messages, {new.tokens:,} tokens{recorded}"
    print_result(new, "\n".join([text, *new.notes]), as_json=as_json)


@click.command()
@session_argument
@entry_argument("checkpoint", "label")
@click.option("--both", "what", flag_value="both", help="Conversation and files: the default where files are recorded.")
@click.option("--conversation", "what", flag_value="conversation", help="The conversation alone.")
@click.option("--files", "what", flag_value="files", help="The files alone.")
@click.option("--remove-new", is_flag=True, help="Remove also files that are new since then and that nothing recorded.")
@store_option
@json_option
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
