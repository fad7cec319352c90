"""The settings of a command: what was typed, over the environment and the settings file; and the strategy they name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from windowsill import models, strategies
from windowsill.config import Loaded, Settings, load, tuned
from windowsill.config.loading import CODE
from windowsill.config.spelling import read
from windowsill.errors import SettingError, UnknownModelError
from windowsill.strategies.refusals import located
from windowsill.text import printable_line


def settings(**typed: Any) -> tuple[Settings, Loaded]:
    """The settings as they hold for what was typed (`None` where nothing was), and where they come from.

    The strategy can be made of them: a name that is none, or a setting it does not take, is refused here.
    """
    loaded = load(typed)
    for note in loaded.notes:
        click.echo(f"windowsill: {printable_line(note)}", err=True)
    held = tuned(loaded.settings)
    if loaded.origin("strategy") == CODE:
        _look_here(held.strategy)
    try:
        strategies.get(held.strategy)
    except SettingError as error:
        raise located(error, loaded) from None
    return held, loaded


def window_of(held: Settings) -> int | None:
    """The window that was stated, for all or for this model."""
    if held.window is not None or held.model is None or not held.models:
        return held.window
    try:
        return models.find(held.model, overrides=held.models).window
    except UnknownModelError:
        return None


def _look_here(line: str) -> None:
    """Let a dotted path that was typed be found in the current folder.

    An installed script does not look where it was called from, and a strategy of one's own is usually tried out there.
    A settings file may come from somebody else together with the folder: what it names is not looked for here.
    """
    here = str(Path.cwd())
    dotted = any("." in stage.name or ":" in stage.name for stage in read(line))
    if dotted and here not in sys.path:
        sys.path.insert(0, here)
