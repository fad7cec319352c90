"""`windowsill proxy` and `windowsill run`."""

# ruff: noqa: PLC0415 - the proxy loads a web server, which the help of a command does not need

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

import click

from windowsill.budget import OUTPUT_RESERVE
from windowsill.cli.options import parse_size
from windowsill.cli.output import print_line
from windowsill.cli.session_ids import host_option, store_option, token_option
from windowsill.errors import SettingError
from windowsill.models import find_known

PORT = 8787
WINDOW = "The most tokens of a request, such as 60k; of a model that is not known, its whole window."


def session_settings(window: int | None, stated: Mapping[str, Any], model: str | None) -> dict[str, Any]:
    """Return the settings of a session of the proxy: of a model that has more, `window` is all for the request."""
    known = find_known(model)
    if window is None or known is None or known.window <= window:
        return {"window": window, **stated} if window is not None else dict(stated)
    return {"budget": min(window, known.window - min(known.max_output, OUTPUT_RESERVE)), **stated}


def _tokens(window: str | None) -> int | None:
    size = parse_size(window, "window")
    if size is not None and not isinstance(size, int):
        raise SettingError("window", window, "tokens, such as 60000 or 60k: each model has a window of its own")
    return size


def _print_address(address: str) -> None:
    """Print where requests go, and where to look at what was done with them."""
    click.echo(address, err=True)
    click.echo(f"windowsill: look at {address}/__windowsill/inspect/", err=True)


@click.command()
@host_option
@click.option("--port", default=PORT, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
@token_option("What clients must send in x-windowsill-token")
@click.option("--upstream", multiple=True, metavar="NAME=URL", help="Where anthropic, openai or gemini is.")
@click.option("--window", metavar="N", help=WINDOW)
@click.option("--strategy", metavar="S", help="How to reduce; see `windowsill strategies`.")
@click.option("--project", metavar="P", help="The project of new conversations, by which others find them.")
@click.option("--verbose", is_flag=True, help="Log each request: method, path, status, time; never what it says.")
@click.option("--check", is_flag=True, help="Say whether a proxy runs at this address and how it does, then end.")
@store_option
def proxy(
    host: str,
    port: int,
    token: str | None,
    upstream: tuple[str, ...],
    window: str | None,
    strategy: str | None,
    project: str | None,
    place: str | None,
    *,
    verbose: bool,
    check: bool,
) -> None:
    """Stand between agents and providers, so that no conversation outgrows its window.

    Point the base URL of a client here: nothing else changes. Each conversation is kept whole; what does not fit is
    folded, and can be brought back. `http://HOST:PORT/s/NAME/...` names a conversation by hand, `/p/gemini/...` the
    provider. Metrics and health are at /__windowsill/metrics and /__windowsill/health.
    """
    if check:
        from windowsill.proxy.launch import check_health

        sys.exit(0 if check_health(host, port, print_line, token) else 1)
    import anyio

    from windowsill.proxy.forward import parse_upstreams
    from windowsill.proxy.server import serve

    stated = {name: value for name, value in (("strategy", strategy), ("project", project)) if value is not None}
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    anyio.run(
        partial(
            serve,
            store=place,
            host=host,
            port=port,
            token=token,
            upstreams=parse_upstreams(upstream),
            options=partial(session_settings, _tokens(window), stated),
            ready=_print_address,
        )
    )


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--upstream", multiple=True, metavar="NAME=URL", help="Where anthropic, openai or gemini is.")
@click.option("--window", metavar="N", help=WINDOW)
@click.option("--strategy", metavar="S", help="How to reduce; see `windowsill strategies`.")
@store_option
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="AGENT [ARGUMENTS]...")
def run(
    upstream: tuple[str, ...], window: str | None, strategy: str | None, place: str | None, command: tuple[str, ...]
) -> None:
    """Run an agent behind a proxy: claude, codex, gemini, opencode, aider, or any other program.

    The proxy lives as long as the agent. Only the agent's environment is changed, and no settings are written.
    """
    from windowsill.proxy.launch import launch

    options = [part for each in upstream for part in ("--upstream", each)]
    for name, value in (("--window", window), ("--strategy", strategy), ("--store", place)):
        options += [name, value] if value is not None else []
    sys.exit(launch(list(command), options, partial(click.echo, err=True)))
