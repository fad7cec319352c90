"""The commands there are, and what help says about them."""

from __future__ import annotations

import click

import windowsill
from windowsill.cli.lazy import Home, LazyGroup

HOMES = {
    "demo": Home("windowsill.cli.demo:demo", "Watch a real agent session go through a small window."),
    "fit": Home("windowsill.cli.fit:fit", "Make a request or a message list fit, and print it."),
    "replay": Home("windowsill.cli.replay.command:replay", "Go through recorded sessions as an agent would."),
    "validate": Home("windowsill.cli.validate:validate", "Say what a provider would refuse in a request."),
    "sessions": Home("windowsill.cli.sessions.group:sessions", "List, show, move and undo stored sessions."),
    "mcp": Home("windowsill.cli.mcp:mcp", "Serve the tools of a session to MCP clients."),
    "strategies": Home("windowsill.cli.strategies:strategies", "List the strategies and their settings."),
}


@click.group(
    cls=LazyGroup,
    homes=HOMES,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--trace",
    metavar="FILE",
    envvar="WINDOWSILL_TRACE",
    type=click.Path(dir_okay=False),
    help="Append OpenTelemetry spans of what the command does to FILE, one JSON object a line (WINDOWSILL_TRACE).",
)
@click.version_option(windowsill.__version__, "-V", "--version", message="windowsill %(version)s")
@click.pass_context
def group(ctx: click.Context, trace: str | None) -> None:
    """Version control for a context window: keep an LLM agent inside its window without losing anything."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
    elif trace is not None:
        from windowsill import telemetry  # noqa: PLC0415 - most commands are not traced

        ctx.with_resource(telemetry.to_file(trace))
        ctx.with_resource(telemetry.span(f"windowsill {ctx.invoked_subcommand}"))
