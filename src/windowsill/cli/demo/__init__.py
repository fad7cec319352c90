"""`windowsill demo`: a real session over the project's own files through a small window, live."""

# ruff: noqa: PLC0415 - a session loads most of the library, which the help of a command does not need

from __future__ import annotations

import click

CALLS, WINDOW = 280, 8_000
WINDOWS = click.IntRange(4_000, 1_000_000)
"""The demo's system prompt, tools, task and one tool result take about half of the smallest one."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--calls", default=CALLS, show_default=True, type=click.IntRange(1, 10_000), help="Tool calls to make.")
@click.option("--window", default=WINDOW, show_default=True, type=WINDOWS, help="The most tokens of a request.")
@click.option("--store", metavar="PLACE", help="Keep the session in this folder; it is removed if left out.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON, without the picture.")
@click.pass_context
def demo(context: click.Context, *, calls: int, window: int, store: str | None, as_json: bool) -> None:
    """Watch an agent work through a small window and lose nothing.

    A scripted agent (no model, no network) reviews Windowsill's own source with real tools. The report compares what
    it sent with sending everything, and checks every message on disk. Exit code 1 when a check fails.
    """
    from windowsill.cli.demo.picture import print_report, watch
    from windowsill.cli.demo.run import Run, run_demo
    from windowsill.cli.output import print_json

    data, run = run_demo(calls=calls, window=window, store=store, watch=Run.finish if as_json else watch)
    if as_json:
        print_json(data)
    else:
        print_report(data, run)
    context.exit(0 if data["ok"] else 1)
