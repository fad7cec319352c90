"""Tool outputs, whole: what left the window, or never fitted in, can be read and searched for the life of a session."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windowsill.outputs.collecting import Collected as Collected
    from windowsill.outputs.limits import Limits as Limits
    from windowsill.outputs.output import Output as Output
    from windowsill.outputs.output import Part as Part
    from windowsill.outputs.output import chunks as chunks
    from windowsill.outputs.outputs import Outputs as Outputs
    from windowsill.outputs.refs import ref_at as ref_at
    from windowsill.outputs.repeats import Seen as Seen
    from windowsill.outputs.repeats import expand as expand
    from windowsill.outputs.views import Shown as Shown
    from windowsill.outputs.views import middle as middle
    from windowsill.outputs.views import shown as shown
    from windowsill.outputs.wording import trimmed as trimmed
    from windowsill.outputs.writing import Writing as Writing

_HOMES = {
    "Collected": "collecting",
    "Limits": "limits",
    "Output": "output",
    "Outputs": "outputs",
    "Part": "output",
    "Seen": "repeats",
    "Shown": "views",
    "Writing": "writing",
    "chunks": "output",
    "expand": "repeats",
    "middle": "views",
    "ref_at": "refs",
    "shown": "views",
    "trimmed": "wording",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605 - one list, kept in one place


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: most sessions only need to know how a placeholder is worded."""
    if name not in _HOMES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
