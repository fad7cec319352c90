"""The state as Markdown: headings for the frame, a list item for each element, its lines quoted.

    ## memory
    ### semantic
    #### facts
    - fact id="f1" source="README.md": what is known
    - fact id="f2" source="notes.md"
      > one line
      > and another

An attribute is a JSON string, and a text of several lines stands in a quotation: so no field begins a line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from windowsill.errors import WindowsillError
from windowsill.state.building.frame import Drawn, Opened, Part
from windowsill.state.building.nodes import Node


class Markdown:
    """Headings, lists and quotations."""

    def piece(self, node: Node) -> str:
        """A list item with everything below it."""
        return "".join(f"{line}\n" for line in _lines(node, ""))

    def opening(self, tag: str, depth: int) -> str:
        """A heading."""
        return f"{'#' * (depth + 1)} {tag}\n"

    def closing(self, tag: str, depth: int) -> str:  # noqa: ARG002 - the next heading ends it
        """Nothing: the next heading ends it."""
        return ""

    def check(self, text: str, parts: Sequence[Part]) -> None:
        """Every line that is not indented, compared with the headings and items that were meant."""
        found = [line for line in text.split("\n")[:-1] if not line.startswith("  ")]
        meant = [_first_line(part, self) for part in parts if isinstance(part, Opened | Drawn)]
        if found != meant:
            raise WindowsillError("the context does not read as it was meant", remedy="this is a fault of Windowsill")


def _first_line(part: Opened | Drawn, format: Markdown) -> str:
    if isinstance(part, Opened):
        return format.opening(part.tag, part.depth)[:-1]
    return next(_lines(part.node, ""))


def _lines(node: Node, indent: str) -> Iterator[str]:
    attributes = "".join(f" {name}={json.dumps(value, ensure_ascii=False)}" for name, value in node.attributes)
    several = "\n" in node.text
    yield f"{indent}- {node.tag}{attributes}{f': {node.text}' if node.text and not several else ''}"
    inner = f"{indent}  "
    if several:
        yield from (f"{inner}> {line}" for line in node.text.split("\n"))
    for child in node.children:
        yield from _lines(child, inner)
