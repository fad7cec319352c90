"""Replay recorded sessions as an agent would have sent them: requests, costs, kept evidence."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windowsill.replay.page import comparison_page
    from windowsill.replay.report import ReplayReport
    from windowsill.replay.runs import Replay, compare, cross, replay
    from windowsill.replay.summary import headline
    from windowsill.replay.walk import ReplayOptions

_MODULES = {
    "page": "comparison_page",
    "report": "ReplayReport",
    "runs": "Replay compare cross replay",
    "summary": "headline",
    "walk": "ReplayOptions",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = ["Replay", "ReplayOptions", "ReplayReport", "compare", "comparison_page", "cross", "headline", "replay"]


def __getattr__(name: str) -> Any:
    """Load a name when it is first used: commands that only read recordings start faster."""
    if name not in _HOMES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
