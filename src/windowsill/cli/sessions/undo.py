"""`windowsill sessions unfold` and `windowsill sessions rewind`."""

from __future__ import annotations

import math

import click

from windowsill.cli.output import print_json
from windowsill.cli.recordings import timestamp
from windowsill.cli.sessions.place import json_option, opened_session, store_option


@click.command()
@click.argument("id")
@click.argument("fold")
@click.option("--span", type=click.IntRange(min=0), metavar="N", help="Only this span of the fold, counted from 0.")
@click.option("--fit", is_flag=True, help="Only as much as the budget allows, the newest first.")
@store_option
@json_option
def unfold(id: str, fold: str, span: int | None, place: str | None, *, fit: bool, as_json: bool) -> None:
    """Bring back what FOLD of session ID hid."""
    if fit and span is not None:
        raise click.UsageError("--span and --fit exclude each other", click.get_current_context())
    with opened_session(place, id) as (session, _):
        before = session.tokens
        entry = session.unfold(fold, span=span, fit=fit, reason="on the command line")
        after = session.tokens
    if as_json:
        print_json({"session": id, "entry": entry, "fold": fold, "tokens_before": before, "tokens": after})
    else:
        click.echo(f"unfolded {fold}: {before:,} tokens became {after:,}")


@click.command()
@click.argument("id")
@click.argument("message", required=False)
@click.option("--before", is_flag=True, help="Leave MESSAGE too.")
@click.option(
    "--at", "when", metavar="TIME", help="Go back to a time: ISO 8601 (UTC without a zone), or epoch seconds."
)
@store_option
@json_option
def rewind(id: str, message: str | None, when: str | None, place: str | None, *, before: bool, as_json: bool) -> None:
    """Go back to MESSAGE of session ID, which becomes the last one, or to a time. The branch that is left stays."""
    ctx = click.get_current_context()
    if (message is None) == (when is None):
        raise click.UsageError("give either MESSAGE or --at TIME", ctx)
    if before and message is None:
        raise click.UsageError("--before needs MESSAGE", ctx)
    with opened_session(place, id) as (session, _):
        left = next((branch.id for branch in session.branches if branch.current), None)
        entry = session.rewind(message, at=None if when is None else _time(when, ctx), before=before)
        messages = sum(1 for _ in session.messages())
    if as_json:
        print_json({"session": id, "entry": entry, "messages": messages, "left": left})
    else:
        click.echo(f"rewound {id} to {messages:,} messages; what was left ends at {left}")


def _time(text: str, ctx: click.Context) -> float:
    try:
        at: float | None = float(text)
    except ValueError:
        at = timestamp(text)
    if at is None or not math.isfinite(at):
        raise click.UsageError(f"{text!r} is no time; give 2026-01-31T12:00:00Z or epoch seconds", ctx)
    return at
