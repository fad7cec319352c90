"""The table of models that ships with the package, read once on first use."""

from __future__ import annotations

import functools
from typing import Any, TypeAlias

from windowsill.models.names import key

Fields: TypeAlias = dict[str, Any]

GENERIC = "generic"
"""The family of models that nobody knows: conservative ratios, no limits but the stated window."""


@functools.cache
def _document() -> dict[str, dict[str, Fields]]:
    import tomllib  # noqa: PLC0415  loaded on use: importing the package stays cheap
    from importlib import resources  # noqa: PLC0415  as above

    return tomllib.loads(resources.files("windowsill.models").joinpath("table.toml").read_text("utf-8"))


def families() -> dict[str, Fields]:
    """What each family's models share."""
    return _document()["families"]


def models() -> dict[str, Fields]:
    """What each model states itself, by its name."""
    return _document()["models"]


@functools.cache
def keys() -> dict[str, str]:
    """The model's name for the key of every name and alias."""
    index = {key(alias): name for name, fields in models().items() for alias in fields.get("aliases", ())}
    return index | {key(name): name for name in models()}
