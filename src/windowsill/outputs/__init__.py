"""Whole tool outputs: those that left the window, or never fitted, can be read and searched later."""

from __future__ import annotations

from windowsill.outputs.outputs import Collected, Outputs
from windowsill.outputs.parts import Output, Part, chunks, ref_at
from windowsill.outputs.repeated_lines import SeenLines
from windowsill.outputs.show import Limits, Preview, head_and_tail, preview, trimmed_note
from windowsill.outputs.structure import outline
from windowsill.outputs.write import OutputWriter

__all__ = [
    "Collected",
    "Limits",
    "Output",
    "OutputWriter",
    "Outputs",
    "Part",
    "Preview",
    "SeenLines",
    "chunks",
    "head_and_tail",
    "outline",
    "preview",
    "ref_at",
    "trimmed_note",
]
