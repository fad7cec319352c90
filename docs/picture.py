"""Draw docs/window.svg: the demo's picture at one moment of a real run (`make docs`)."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

from rich.console import Console

from windowsill.cli.demo import CALLS, WINDOW
from windowsill.cli.demo.picture import paint
from windowsill.cli.demo.run import Run

SHOWN = 0.6
"""The share of the run after which the picture is taken: several folds have been made by then."""


def draw() -> str:
    """Draw the picture as SVG, without the web fonts that the exporter would load."""
    console = Console(width=96, record=True, file=StringIO(), force_terminal=True, color_system="truecolor")
    run = Run(CALLS, WINDOW)
    images = [paint(console, run, call) for call in run.moments()]
    console.print(images[int(len(images) * SHOWN)])
    svg = console.export_svg(title="windowsill demo")
    return re.sub(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", "", svg, flags=re.DOTALL)


if __name__ == "__main__":
    Path(__file__).with_name("window.svg").write_text(draw())
