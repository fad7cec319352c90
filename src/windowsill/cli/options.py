"""Shared by several commands: options, sizes as they are typed, and the settings of a call."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windowsill import providers
from windowsill.budget import Size, tokens_of
from windowsill.cli.session_ids import complete_strategies
from windowsill.errors import FormatError, SettingError
from windowsill.replay.recordings import name_in_errors, read_source
from windowsill.text import printable_line

if TYPE_CHECKING:
    from windowsill.config import Loaded, Settings


_SHARE = re.compile(r"0?\.\d+|1\.0*")

format_option = click.option(
    "--format", type=click.Choice(providers.names()), help="The format of FILE; detected if left out."
)
tokenizer_option = click.option(
    "--tokenizer", metavar="T", help="Count with this vocabulary, such as o200k_base, without calibration."
)
strategy_option = click.option(
    "--strategy",
    metavar="S",
    shell_complete=complete_strategies,
    help="NAME[:key=value,...] from `windowsill strategies`, several joined by +, or a dotted path.",
)
low_option = click.option("--low", metavar="N", help="Reduce down to this size, such as 50%.")
workers_option = click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Replay in so many processes; if left out, one for each processor where there is much to replay.",
)
report_option = click.option("--report", "report_file", metavar="R.json", help="Write a report to this file.")


def read_input(file: str) -> bytes:
    """Read a file or standard input; an empty one is an error."""
    data = read_source(file)
    if not data.strip():
        with name_in_errors(file):
            raise FormatError("it is empty", remedy="pass a request body or a message list as JSON")
    return data


def parse_size(text: str | None, setting: str = "budget") -> Size | None:
    """Read a size as it was typed: `32000`, `32k`, `80%`, `200k,80%`."""
    if text is None:
        return None
    tokens = tokens_of(text, 1_000_000, setting)
    return text if "%" in text else tokens


def parse_mark(text: str | None, setting: str) -> Size | None:
    """Read a mark as it was typed: a size, or a share as settings files have it (`0.8`)."""
    return float(text) if text is not None and _SHARE.fullmatch(text.strip()) else parse_size(text, setting)


def load_settings(**typed: Any) -> tuple[Settings, Loaded]:
    """Return the settings with the typed ones (those that are not `None`) in place, and their sources.

    Refuses a strategy that does not exist, and a setting it does not take.
    """
    # Not for the help of a command, nor for one without settings.
    from windowsill import strategies  # noqa: PLC0415 - see above
    from windowsill.config import apply_profile, load  # noqa: PLC0415 - see above
    from windowsill.config.load import CODE  # noqa: PLC0415 - see above
    from windowsill.strategies import registry  # noqa: PLC0415 - see above

    loaded = load(typed)
    for note in loaded.notes:
        click.echo(f"windowsill: {printable_line(note)}", err=True)
    settings = apply_profile(loaded.settings)
    if loaded.origin("strategy") == CODE:
        search_current_folder(settings.strategy)
    registry.check_found(loaded)
    try:
        strategies.get(settings.strategy)
    except SettingError as error:
        raise registry.with_place(error, loaded) from None
    return settings, loaded


WORTH_PROCESSES = 500_000
"""Bytes of recordings that take longer to replay than further processes take to start."""

MOST_PROCESSES = 8
"""Processes that are started without being asked for: each takes some memory."""


def processes_for(size: int) -> int:
    """Return in how many processes recordings of so many bytes are replayed, where nobody says."""
    return min(os.cpu_count() or 1, MOST_PROCESSES) if size >= WORTH_PROCESSES else 1


def search_current_folder(strategy: str) -> None:
    """Make the current folder importable for a typed dotted path.

    Not for a strategy that a settings file names: it may come from somebody else, together with the folder.
    """
    from windowsill.config.settings import read_stages  # noqa: PLC0415 - see above

    here = str(Path.cwd())
    dotted = any("." in stage.name or ":" in stage.name for stage in read_stages(strategy))
    if dotted and here not in sys.path:
        sys.path.insert(0, here)
