"""Tool outputs, whole: what left the window, or never fitted in, can be read and searched for the life of a session."""

from __future__ import annotations

from windowsill.outputs.collecting import Collected
from windowsill.outputs.limits import Limits
from windowsill.outputs.output import Output, Part, chunks
from windowsill.outputs.outputs import Outputs
from windowsill.outputs.refs import ref_at
from windowsill.outputs.repeats import Seen, expand
from windowsill.outputs.views import Shown, middle, shown
from windowsill.outputs.wording import GREP_TOOL, READ_TOOL, trimmed
from windowsill.outputs.writing import Writing

__all__ = [
    "GREP_TOOL",
    "READ_TOOL",
    "Collected",
    "Limits",
    "Output",
    "Outputs",
    "Part",
    "Seen",
    "Shown",
    "Writing",
    "chunks",
    "expand",
    "middle",
    "ref_at",
    "shown",
    "trimmed",
]
