"""`windowsill models`: the facts about models, and the windows that providers' errors have taught."""

# ruff: noqa: PLC0415 - the table of models takes longer to read than `windowsill models --help` takes to run

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windowsill.cli.main import LazyCommand, LazyGroup
from windowsill.cli.output import print_line, print_list
from windowsill.cli.session_ids import open_store_at, store_and_json, store_option
from windowsill.errors import NotFoundError

if TYPE_CHECKING:
    from windowsill.store import Store

_HERE = "windowsill.cli.models"

COMMANDS = {
    "list": LazyCommand(f"{_HERE}:list_models", "List the models, and the windows that were learned."),
    "forget": LazyCommand(f"{_HERE}:forget", "Forget a window that was learned."),
}


@click.group(cls=LazyGroup, table=COMMANDS, invoke_without_command=True)
@click.pass_context
def models(ctx: click.Context) -> None:
    """List the models with their limits, and the windows that were learned.

    A provider that refuses a request as too long names the window that really holds. It is remembered in the store, for
    all its sessions. A window that is stated (--window, or a settings file) always wins.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_models)


@click.command("list")
@store_and_json
@click.option("--learned", is_flag=True, help="List only models whose window was learned.")
def list_models(place: str | None = None, *, learned: bool = False, as_json: bool = False) -> None:
    """List the models with their limits in tokens, and the windows that were learned."""
    from windowsill.models import names

    with open_store_at(place) as store:
        known = _learned(store)
    found = [_listed(name, known.get(name)) for name in (known if learned else dict.fromkeys([*names(), *known]))]
    columns = ("window", "max_input", "max_output", "learned")
    print_list(
        found,
        [
            {
                "model": each["model"],
                **{name: _tokens(each[name]) for name in columns},
                "provider": each["provider"] or "-",
            }
            for each in found
        ],
        empty="no window was learned",
        as_json=as_json,
    )


@click.command()
@click.argument("name")
@store_option
def forget(name: str, place: str | None) -> None:
    """Forget the window that was learned for the model NAME: the table's, or the stated one, holds again."""
    from windowsill.compose.model_context import WINDOW

    with open_store_at(place) as store:
        known = _learned(store).get(name)
        if not store.forget(WINDOW + name):
            raise NotFoundError(
                f"no window was learned for {name!r}", remedy="`windowsill models list --learned` shows those there are"
            )
    print_line(f"forgotten: the window of {name} was {_tokens(known)} tokens")


def _learned(store: Store) -> dict[str, int]:
    """Return the windows that were learned, by the names of models as they were stated."""
    from windowsill.compose.model_context import WINDOW

    return {key.removeprefix(WINDOW): int(value) for key, value in store.facts(WINDOW).items() if value.isdigit()}


def _listed(name: str, learned: int | None) -> dict[str, Any]:
    from windowsill.models import find_known

    fields = ("window", "max_input", "max_output", "provider")
    # One that the table does not know has a window that was stated somewhere.
    model = find_known(name)
    return {"model": name, **{field: getattr(model, field, None) for field in fields}, "learned": learned}


def _tokens(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
