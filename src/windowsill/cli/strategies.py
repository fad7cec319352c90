"""`windowsill strategies`: which there are, what they do, what can be set."""

from __future__ import annotations

import inspect

import click

from windowsill import strategies as planners
from windowsill.cli.output import Column, print_json, print_table


@click.command(short_help="List the strategies and their settings.")
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
def strategies(*, as_json: bool) -> None:
    """List the strategies that have a name. Settings are given as `name:key=value,key=value`."""
    found = [{"name": name, "about": _about(name), "settings": planners.settings_of(name)} for name in planners.names()]
    if as_json:
        print_json(found)
        return
    rows = [(str(each["name"]), str(each["about"]), _settings(each["settings"])) for each in found]
    print_table([Column("strategy"), Column("what it does"), Column("settings")], rows)


def _about(name: str) -> str:
    return (inspect.getdoc(type(planners.get(name))) or "").partition("\n")[0]


def _settings(settings: object) -> str:
    return ", ".join(f"{key}={value}" for key, value in settings.items()) if isinstance(settings, dict) else ""
