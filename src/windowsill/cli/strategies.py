"""`windowsill strategies`: list the strategies, their purpose and their settings."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from typing import Any

import click
import msgspec

from windowsill.cli.output import print_json, print_text
from windowsill.cli.session_ids import complete_strategies
from windowsill.config.settings import DEFAULT_STRATEGY
from windowsill.strategies import registry
from windowsill.text import shorten

OURS = "windowsill"

LONGEST_DEFAULT = 40
"""Characters of a default that are shown: word lists are long."""


class StrategyListing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A strategy, or a plug-in that cannot be used."""

    name: str
    package: str
    about: str
    settings: dict[str, Any]
    """Defaults by name."""
    meanings: dict[str, str]
    problem: str = ""
    default: bool = False
    """True for the strategy that a session has if none is stated."""


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_strategies)
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
def strategies(names: tuple[str, ...], *, as_json: bool) -> None:
    """List strategies, all or the named ones, with their settings and defaults.

    Settings are given as `name:key=value,key=value`. Several strategies joined by `+` are a pipeline.
    """
    found = [_listing(name) for name in names or registry.names()]
    if as_json:
        print_json(found)
        return
    for each in found:
        _print_listing(each)


def _listing(name: str) -> StrategyListing:
    plugin = registry.find_plugin(name)
    package = plugin.package if plugin is not None else OURS if name in registry.BUILT_IN else ""
    if plugin is not None and plugin.error:
        problem = plugin.error
        return StrategyListing(name=name, package=package, about="", settings={}, meanings={}, problem=problem)
    strategy = registry.factory(name)
    return StrategyListing(
        name=name,
        package=package,
        about=(inspect.getdoc(strategy) or "").partition("\n")[0],
        settings=msgspec.to_builtins(registry.settings_of(name), enc_hook=repr),
        meanings=_meanings(strategy),
        default=name == DEFAULT_STRATEGY,
    )


def _meanings(strategy: object) -> dict[str, str]:
    """Read the text under each field of a strategy's class; nothing where there is none, or no source."""
    found: dict[str, str] = {}
    for kind in reversed(strategy.__mro__) if isinstance(strategy, type) else ():
        if issubclass(kind, msgspec.Struct) and kind is not msgspec.Struct:
            found |= _field_texts(kind)
    return found


def _field_texts(kind: type) -> dict[str, str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError, SyntaxError):
        return {}
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    return {
        field.target.id: " ".join(text.value.value.partition("\n\n")[0].split())
        for field, text in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def _print_listing(each: StrategyListing) -> None:
    source = f" (plug-in of {each.package})" if each.package not in ("", OURS) else ""
    default = " (default)" if each.default else ""
    what = f"cannot be used: {each.problem}" if each.problem else each.about
    print_text(f"{each.name}{default}{source}: {what}")
    pairs = {name: f"{name}={_default(value)}" for name, value in each.settings.items()}
    width = max((len(pair) for pair in pairs.values()), default=0)
    for name, pair in pairs.items():
        print_text(each.meanings.get(name, ""), begin=f"  {pair:{width}}  ")


def _default(value: Any) -> str:
    text = value if isinstance(value, str) and value else msgspec.json.encode(value).decode()
    return shorten(text, LONGEST_DEFAULT)
