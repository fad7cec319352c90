from __future__ import annotations

import click
import pytest

from support.cli_calls import call
from windowsill.cli import sessions
from windowsill.cli.main import COMMANDS, LazyCommand, LazyGroup, group

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("lazy", [group, sessions.sessions])
def test_every_command_of_the_table_can_be_loaded(lazy):
    """Each place in the table holds a command that goes by the name it is listed under."""
    context = click.Context(lazy)
    assert [lazy.get_command(context, name).name for name in lazy.list_commands(context)] == list(lazy.table)


def test_help_is_shown_without_loading():
    """The list of commands comes from the table: a module that does not exist is not missed."""
    lazy = LazyGroup("tool", table={"far": LazyCommand("no.such.module:far", "Far away.")})
    assert "far  Far away." in lazy.get_help(click.Context(lazy))


@pytest.mark.parametrize("name", list(COMMANDS))
def test_help_of_each_command_begins_with_its_usage(name):
    """`windowsill COMMAND --help` works for each."""
    done = call(name, "--help")
    assert done.code == 0
    assert done.out.startswith(f"Usage: windowsill {name} ")


@pytest.mark.parametrize("name", list(sessions.COMMANDS))
def test_help_of_each_sessions_command_begins_with_its_usage(name):
    """`windowsill sessions COMMAND --help` works for each."""
    done = call("sessions", name, "--help")
    assert done.code == 0
    assert done.out.startswith(f"Usage: windowsill sessions {name} ")
