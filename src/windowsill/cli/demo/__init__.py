"""`windowsill demo`: a real session over the project's own files through a small window, live."""

# ruff: noqa: PLC0415 - what the command needs is imported when it runs: a list of commands must not wait for it

from __future__ import annotations

import itertools
import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from windowsill.cli.demo.agent import Run
    from windowsill.session import Session


MODEL = "claude-sonnet-5"
CALLS, MOST_CALLS = 280, 10_000
WINDOW, SMALLEST_WINDOW = 8_000, 4_000
"""The demo's system prompt, tools, task and one tool result take about half of the smallest one."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--calls", default=CALLS, show_default=True, type=click.IntRange(1, MOST_CALLS), help="Tool calls the agent makes."
)
@click.option(
    "--window",
    default=WINDOW,
    show_default=True,
    type=click.IntRange(SMALLEST_WINDOW, 1_000_000),
    help="The most tokens a request may have.",
)
@click.option("--store", metavar="PLACE", help="Keep the session in this folder; it is removed if left out.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON, without the picture.")
@click.pass_context
def demo(context: click.Context, *, calls: int, window: int, store: str | None, as_json: bool) -> None:
    """Watch an agent work through a small window and lose nothing.

    A scripted agent (no model, no network) reviews Windowsill's own source with real tools. The report compares what
    it sent with sending everything, and checks every message on disk. Exit code 1 when a check fails.
    """
    from windowsill.cli.demo.picture import print_report
    from windowsill.cli.output import print_json

    data, run = run_demo(calls=calls, window=window, store=store, picture=not as_json)
    if as_json:
        print_json(data)
    else:
        print_report(data, run)
    context.exit(0 if data["ok"] else 1)


def run_demo(*, calls: int, window: int, store: str | None, picture: bool) -> tuple[dict[str, Any], Run]:
    """Run the agent, then close the session, open it again and check it; return the report, and the run."""
    import windowsill
    from windowsill.cli.demo.agent import Run, Workbench, conversation, recording
    from windowsill.replay.walk import ReplayOptions, Walk

    started = time.monotonic()
    kept = choose_place(store, Path.cwd())
    messages = conversation(Workbench(Path(windowsill.__file__).parent), calls)
    new_folder = tempfile.TemporaryDirectory(prefix="windowsill-demo-") if kept is None else nullcontext(kept)
    with new_folder as place:
        opened = windowsill.open_store(place)
        names = ("demo" if number == 1 else f"demo-{number}" for number in itertools.count(1))
        # Taken in the same step as found free: two demos at once never share a session.
        name = next(name for name in names if opened.create(name, at=time.time()))
        walk = Walk(recording(name, MODEL, messages), ReplayOptions(window=window), store=opened, clock=time.time)
        run = Run(walk, calls)
        with walk.session:
            _watch(run, picture=picture)
        opened.close()
        with windowsill.Session.open(name, store=place) as again:
            checks = check(run, again, window)
            hidden = sum(item.hides for item in again.view.items)
    return report(run, checks, kept, window, hidden, time.monotonic() - started), run


def choose_place(stated: str | None, cwd: Path) -> str | None:
    """Return where the session is kept: the stated place, or `.windowsill/` here; `None` if it is not to stay."""
    from windowsill.errors import InputError
    from windowsill.store import database_file, server_address

    if stated is None:
        local = cwd / ".windowsill"
        return str(local) if local.is_dir() else None
    if not server_address(stated, os.environ) and database_file(stated, os.environ, cwd) is None:
        raise InputError(
            "the demo reads its session back from disk, and this store is in memory only",
            remedy="give --store a folder, or leave it out",
        )
    return stated


def _watch(run: Run, *, picture: bool) -> None:
    """Run with the picture on a terminal, and silently in a pipe."""
    from rich.console import Console
    from rich.live import Live

    from windowsill.cli.demo.picture import Picture
    from windowsill.cli.output import on_terminal

    console = Console(highlight=False)
    if not picture or not on_terminal() or console.is_dumb_terminal:
        for _ in run.moments():
            pass
        return
    painter = Picture(console, run)
    with Live(console=console, refresh_per_second=15, transient=True) as live:
        for call in run.moments():
            live.update(painter.paint(call))
            painter.pause(call)


def check(run: Run, session: Session, window: int) -> list[dict[str, Any]]:
    """Check every promise of a finished run; `session` is the same session, opened again."""
    import msgspec

    figures, defects = run.tally.figures(), run.tally.defects
    first = f"; {defects[0].problems[0]}" if defects else ""
    messages = run.walk.recording.request.messages
    added, stored = [message.raw for message in messages], [message.raw for message in session.messages()]
    same = sum(one == other for one, other in zip(added, stored, strict=False))
    other = f", {len(stored):,} found" if added != stored else ""
    broken = session.verify()
    requests = [message.text for message in messages if message.role == "user" and message.text]
    quoted = sum(msgspec.json.encode(text).strip(b'"') in run.body for text in requests)
    peak = figures.peak_tokens
    checks = [
        ("every request fits", peak <= window, f"the largest had {peak:,} of {window:,} tokens"),
        ("every request is valid", not defects, f"{figures.calls:,} checked, {len(defects)} problems{first}"),
        ("nothing is lost", added == stored, f"{len(added):,} messages written, {same:,} read back equal{other}"),
        ("the journal is whole", not broken, broken[0] if broken else "every entry has the hash it was sealed with"),
        ("the user's words stay", quoted == len(requests), f"{quoted} of {len(requests)} are in the last request"),
        ("what is hidden is explained", *_explained(added, session)),
    ]
    return [{"name": name, "ok": ok, "seen": seen} for name, ok, seen in checks]


def _explained(added: Sequence[bytes | None], session: Session) -> tuple[bool, str]:
    """Check one message that the window does not show: it can be read, and the session says why it is hidden."""
    visible = {item.id for item in session.view.items}
    ids = [message.id for message in session.messages()]
    hidden = [(id, raw) for id, raw in zip(ids, added, strict=False) if id not in visible]
    if not hidden:
        return True, "nothing had to be hidden"
    id, raw = hidden[len(hidden) // 2]
    found = session.explain(id)
    return session.message(id).raw == raw and not found.visible and bool(found.folds), f"{id} {found.why}"


def report(
    run: Run, checks: list[dict[str, Any]], place: str | None, window: int, hidden: int, seconds: float
) -> dict[str, Any]:
    """Return the report for a program."""
    import msgspec

    figures, everything = run.tally.figures(), run.everything
    messages = run.walk.recording.request.messages
    return {
        "session": run.walk.recording.id,
        "store": place,
        "model": MODEL,
        "window": window,
        "model_calls": figures.calls,
        "tool_calls": run.tools,
        "with_windowsill": {
            "peak_tokens": figures.peak_tokens,
            "tokens_sent": figures.tokens_sent,
            "cache_hits": figures.cache_hit_share,
            "cost_dollars": figures.dollars,
        },
        "sending_everything": {
            "peak_tokens": max(everything),
            "tokens_sent": sum(everything),
            "cache_hits": round(sum(everything[:-1]) / sum(everything), 4),
            "cost_dollars": figures.dollars_everything,
        },
        "cost_ratio": figures.cost_ratio,
        "messages": {"written": len(messages), "hidden": hidden},
        "folds": msgspec.to_builtins(run.folds),
        "answer": messages[-1].text,
        "checks": checks,
        "ok": all(each["ok"] for each in checks),
        "seconds": round(seconds, 2),
    }
