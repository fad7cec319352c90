"""`windowsill inspect`: open the page that shows sessions, or write one session to a file."""

# ruff: noqa: PLC0415 - the inspector loads a web server, which the help of a command does not need

from __future__ import annotations

import webbrowser
from functools import partial
from pathlib import Path

import click

from windowsill.cli.output import on_terminal, print_line
from windowsill.cli.session_ids import (
    complete_sessions,
    find_session,
    host_option,
    open_store_at,
    store_option,
    token_option,
)
from windowsill.errors import InputError


@click.command()
@click.argument("id", required=False, metavar="[SESSION]", shell_complete=complete_sessions)
@host_option
@click.option("--port", default=0, show_default="a free one", type=click.IntRange(0, 65535), help="The port.")
@token_option("What the page must bring; it is part of the printed address")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@click.option(
    "--html",
    "file",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the session to one file that needs no server, and end.",
)
@store_option
def inspect(
    id: str | None,
    host: str,
    port: int,
    token: str | None,
    file: Path | None,
    place: str | None,
    *,
    no_browser: bool,
) -> None:
    """Open a page that shows what fills a window now and over time, what left it and why, and brings it back.

    SESSION is shown first; without it, the list of all. The page is served to this machine only, and nothing of it
    leaves. It follows agents that are running. With --html it is one file to send around: it holds the conversation,
    secrets included.
    """
    # Where nothing was kept yet, the page waits for the first session.
    with open_store_at(place, create=place is None and file is None) as store:
        session = None if id is None else find_session(store, id).id
        if file is not None:
            from windowsill.inspector.html_file import export_page

            if session is None:
                raise click.UsageError("--html needs a SESSION", click.get_current_context())
            page = export_page(store, session)
            file.write_text(page.html, encoding="utf-8")
            for note in page.notes:
                click.echo(f"windowsill: {note}", err=True)
            print_line(f"wrote {file} ({len(page.html):,} characters)")
            return
        import anyio

        from windowsill.inspector import serve

        run = partial(
            serve,
            store,
            session=session,
            host=host,
            port=port,
            token=token,
            folder=Path.cwd(),
            ready=partial(_show, browser=not no_browser and on_terminal()),
        )
        anyio.run(run)


def _show(address: str, *, browser: bool) -> None:
    """Print the address of the page, and open it where somebody sits at the machine."""
    click.echo(address, err=True)
    if browser:
        try:
            webbrowser.open(address)
        except webbrowser.Error as error:
            raise InputError(
                f"no browser could be opened ({error})", remedy="open the address, or --no-browser"
            ) from None
