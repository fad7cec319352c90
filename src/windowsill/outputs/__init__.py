"""Tool outputs, whole: what left the window, or never fitted in, can be read and searched for the life of a session."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windowsill.outputs.outputs import Collected as Collected
    from windowsill.outputs.outputs import Outputs as Outputs
    from windowsill.outputs.parts import Output as Output
    from windowsill.outputs.parts import Part as Part
    from windowsill.outputs.parts import chunks as chunks
    from windowsill.outputs.parts import ref_at as ref_at
    from windowsill.outputs.repeated_lines import Seen as Seen
    from windowsill.outputs.repeated_lines import expand as expand
    from windowsill.outputs.show import Limits as Limits
    from windowsill.outputs.show import Shown as Shown
    from windowsill.outputs.show import middle as middle
    from windowsill.outputs.show import shown as shown
    from windowsill.outputs.show import trimmed as trimmed
    from windowsill.outputs.write import Writing as Writing


_HOMES = {
    "Collected": "outputs",
    "Limits": "show",
    "Output": "parts",
    "Outputs": "outputs",
    "Part": "parts",
    "Seen": "repeated_lines",
    "Shown": "show",
    "Writing": "write",
    "chunks": "parts",
    "expand": "repeated_lines",
    "middle": "show",
    "ref_at": "parts",
    "shown": "show",
    "trimmed": "show",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605 - one list, kept in one place


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: most sessions only need to know how a placeholder is worded."""
    if name not in _HOMES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
