"""Replay recorded sessions as an agent would have sent them: requests, costs, kept evidence."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windowsill.replay.page import comparison_page as comparison_page
    from windowsill.replay.report import ReplayReport as ReplayReport
    from windowsill.replay.runs import Replay as Replay
    from windowsill.replay.runs import compare as compare
    from windowsill.replay.runs import cross as cross
    from windowsill.replay.runs import replay as replay
    from windowsill.replay.summary import headline as headline
    from windowsill.replay.walk import ReplayOptions as ReplayOptions


_HOMES = {
    "Replay": "runs",
    "ReplayOptions": "walk",
    "ReplayReport": "report",
    "compare": "runs",
    "comparison_page": "page",
    "cross": "runs",
    "headline": "summary",
    "replay": "runs",
}

__all__ = ["Replay", "ReplayOptions", "ReplayReport", "compare", "comparison_page", "cross", "headline", "replay"]


def __getattr__(name: str) -> Any:
    """Load a name when it is first used: commands that only read recordings start faster."""
    if name not in _HOMES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
