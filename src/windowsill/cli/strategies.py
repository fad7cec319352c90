"""`windowsill strategies`: which there are, what they do, what can be set."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from windowsill import strategies as planners
from windowsill.cli.output import print_json
from windowsill.cli.strategies_docs import about, meanings
from windowsill.text import printable_line, shorten

OURS = "windowsill"

LONGEST_DEFAULT = 40
"""Characters of a default that are shown: word lists are long."""


class Listed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A strategy, or a plug-in that cannot be used."""

    name: str
    package: str
    about: str
    settings: dict[str, Any]
    """Defaults by name."""
    meanings: dict[str, str]
    problem: str = ""


@click.command(short_help="List the strategies and their settings.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
def strategies(names: tuple[str, ...], *, as_json: bool) -> None:
    """List the strategies that have a name, with their settings and defaults, or those that are named.

    Settings are given as `name:key=value,key=value`. Several strategies joined by `+` are a pipeline.
    """
    found = [listed(name) for name in names] if names else list(map(listed, planners.names()))
    if as_json:
        print_json(found)
        return
    for each in found:
        click.echo("\n".join(_lines(each)))


def listed(name: str) -> Listed:
    """What there is to say of a strategy."""
    from windowsill.strategies.plugins import find  # noqa: PLC0415  help needs no plug-ins

    plugin = find(name)
    package = plugin.package if plugin is not None else OURS if name in planners.BUILT_IN else ""
    if plugin is not None and plugin.error:
        return Listed(name=name, package=package, about="", settings={}, meanings={}, problem=plugin.error)
    made = planners.factory(name)
    return Listed(
        name=name,
        package=package,
        about=about(made),
        settings=msgspec.to_builtins(planners.settings_of(name), enc_hook=repr),
        meanings=meanings(made),
    )


def _lines(each: Listed) -> list[str]:
    source = f" (plug-in of {each.package})" if each.package not in ("", OURS) else ""
    what = f"cannot be used: {each.problem}" if each.problem else each.about
    pairs = {name: f"{name}={_default(value)}" for name, value in each.settings.items()}
    width = max((len(pair) for pair in pairs.values()), default=0)
    return [
        printable_line(f"{each.name}{source}: {what}"),
        *(f"  {pair:{width}}  {printable_line(each.meanings.get(name, ''))}".rstrip() for name, pair in pairs.items()),
    ]


def _default(value: Any) -> str:
    text = value if isinstance(value, str) and value else msgspec.json.encode(value).decode()
    return shorten(text, LONGEST_DEFAULT)
