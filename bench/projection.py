"""Projecting many tools, against encoding their definitions as JSON once."""

from __future__ import annotations

import msgspec

from bench.measure import best_of, show
from windowsill.messages import Tool
from windowsill.state import State
from windowsill.state.layers import Runtime
from windowsill.state.tools import Projection, ToolOffer
from windowsill.state.tools.projection import SHOWN
from windowsill.tokens import counter

SIZES = (50, 500, 2_000)
TARGET = 1.0
MANY = 500
"""Below it both take some microseconds."""
ROUNDS = 20
PARAMETERS = 5
NEEDED = ("read", "write", "execute", "admin")
CATEGORIES = sorted({category for shown in SHOWN.values() for category in shown} | {"general"})


def tools(count: int) -> list[ToolOffer]:
    """Tools of every category, with definitions as agents have them: about 150 tokens each."""
    return [
        ToolOffer(
            Tool(
                name=f"{CATEGORIES[number % len(CATEGORIES)]}_{number}",
                description=f"Does thing {number} with the file or the service it is given, and says what came of it.",
                schema={
                    "type": "object",
                    "properties": {
                        f"parameter_{each}": {
                            "type": "string",
                            "description": f"Value {each} that thing {number} needs.",
                        }
                        for each in range(PARAMETERS)
                    },
                    "required": ["parameter_0"],
                    "additionalProperties": False,
                },
            ),
            permissions=(NEEDED[number % len(NEEDED)],),
            priority=number * 7 % 100,
        )
        for number in range(count)
    ]


def run(*, quick: bool = False) -> None:
    """Print the ratios."""
    state = State(runtime=Runtime(phase="executing", permissions=("read", "write", "execute")))
    for size in SIZES[:2] if quick else SIZES:
        offered = tools(size)
        definitions = [each.tool for each in offered]
        encoding = best_of(ROUNDS, lambda definitions=definitions: msgspec.json.encode(definitions))
        for mode in ("remove", "mask"):
            made = iter([Projection(offered, count=counter("chars/4").count, mode=mode) for _ in range(ROUNDS)])
            first = best_of(ROUNDS, lambda made=made: next(made).project(state))
            ratio = first / encoding
            what = f"first projection ({mode}) of {size:,} tools, of encoding them"
            show(what, f"{ratio:.3f}", f"<= {TARGET}", met=ratio <= TARGET if size >= MANY else None)
        projection = Projection(offered, count=counter("chars/4").count)
        again = best_of(ROUNDS, lambda projection=projection: projection.project(state)) / encoding
        show(
            f"the same state again, {size:,} tools, of encoding them",
            f"{again:.4f}",
            f"<= {TARGET}",
            met=again <= TARGET,
        )
        for name in ("chars/4", "o200k_base"):
            count = counter(name).count
            count("")
            setting_up = best_of(3, lambda count=count, offered=offered: Projection(offered, count=count)) / encoding
            show(f"setting up {size:,} tools, counted with {name}, of encoding them", f"{setting_up:.1f}")
