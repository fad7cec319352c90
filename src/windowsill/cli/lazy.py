"""A group of commands that are imported when they are used: asking for help stays fast."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import click


class Home(NamedTuple):
    """Where a command lives (`module:attribute`), and the line that help shows without loading it."""

    place: str
    help: str


class LazyGroup(click.Group):
    """Shows its commands from a table and imports the one that is called."""

    def __init__(self, *args: Any, homes: Mapping[str, Home], **fields: Any) -> None:
        super().__init__(*args, **fields)
        self.homes = homes

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the table."""
        return [*self.homes, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, imported now."""
        home = self.homes.get(cmd_name)
        if home is None:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = home.place.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """The list of commands in the help, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, home.help) for name, home in self.homes.items()])
