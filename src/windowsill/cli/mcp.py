"""`windowsill mcp`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from windowsill.cli.session_ids import (
    complete_sessions,
    host_option,
    open_session,
    open_store_at,
    store_option,
    token_option,
)
from windowsill.errors import InputError, SettingError

if TYPE_CHECKING:
    from windowsill.mcp.server import StoreToolbox
    from windowsill.session.toolbox import Toolbox


@click.command()
@click.argument("session", required=False, shell_complete=complete_sessions)
@click.option("--http", is_flag=True, help="Serve streamable HTTP instead of standard input and output.")
@host_option
@click.option("--port", default=8765, show_default=True, type=click.IntRange(1, 65535), help="The port to listen on.")
@token_option("The secret that clients must send as a bearer token")
@click.option(
    "--proxy",
    "address",
    metavar="URL",
    envvar="WINDOWSILL_PROXY",
    show_envvar=True,
    help="The proxy whose conversation is meant where none is named.",
)
@click.option("--metrics", metavar="PORT", type=click.IntRange(1, 65535), help="Serve Prometheus metrics on this port.")
@store_option
def mcp(
    session: str | None,
    place: str | None,
    host: str,
    port: int,
    token: str | None,
    address: str | None,
    metrics: int | None,
    *,
    http: bool,
) -> None:
    """Serve the tools of SESSION, or of every session that is kept, to MCP clients.

    A model then reads and searches what left its window: tool_output_cache, tool_output_cache_grep, history_search,
    history_read, context_status. Without SESSION each of them takes one, by default the one that the proxy holds, or
    that was used last in this folder, or at all; and sessions_list lists them.
    """
    import anyio  # noqa: PLC0415 - help does not need it

    from windowsill import telemetry  # noqa: PLC0415 - as above
    from windowsill.mcp import serve_http, serve_stdio  # noqa: PLC0415 - as above

    source = click.get_current_context().get_parameter_source
    if not http and any(source(name) is ParameterSource.COMMANDLINE for name in ("host", "port", "token")):
        raise InputError("--host, --port and --token are for --http", remedy="add --http, or leave them out")
    if address is not None:
        from windowsill.proxy.forward import is_address  # noqa: PLC0415 - as above

        if session is not None and source("address") is ParameterSource.COMMANDLINE:
            raise InputError("--proxy is of no use with a session", remedy="leave out one of them")
        if not is_address(address):
            raise SettingError("proxy", address, "the address of a proxy, such as http://127.0.0.1:8787")
    # On this machine only: metrics have no password.
    with _toolbox(place, session, address) as found, telemetry.serve_metrics(metrics) if metrics else nullcontext():
        if http:
            ready = partial(click.echo, err=True)
            anyio.run(partial(serve_http, found, host=host, port=port, token=token, ready=ready))
        else:
            anyio.run(serve_stdio, found)


@contextmanager
def _toolbox(place: str | None, session: str | None, address: str | None) -> Iterator[Toolbox | StoreToolbox]:
    from windowsill.mcp.server import StoreToolbox  # noqa: PLC0415 - as above

    if session is not None:
        with open_session(place, session) as found:
            yield found.tools
    else:
        with open_store_at(place, create=True) as store:
            current = partial(_held_by, address) if address is not None else None
            yield StoreToolbox(store, current=current, project=str(Path.cwd()))


def _held_by(address: str) -> str:
    """Return the conversation that a proxy composed last; empty when it does not answer."""
    from windowsill.proxy.launch import ask_health  # noqa: PLC0415 - as above

    try:
        return str(ask_health(address).get("session") or "")
    except (OSError, ValueError):
        return ""
