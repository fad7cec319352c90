"""Writes nodes down in a format, and weighs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from windowsill.state.building.frame import Drawn, Format, Opened, Part, written
from windowsill.state.building.nodes import Node, digest


class Pen:
    """A format and a counter of tokens."""

    def __init__(self, format: Format, count: Callable[[str], int]) -> None:
        self.format = format
        self.count = count
        self._tags: dict[tuple[str, int], int] = {}

    def weigh(self, node: Node) -> int:
        """Tokens of a node by itself."""
        return self.count(self.format.piece(node))

    def draw(self, node: Node) -> Drawn:
        """A node written down."""
        text = self.format.piece(node)
        return Drawn(node, text, self.count(text), digest(node))

    def around(self, tag: str, depth: int) -> int:
        """Tokens of a tag of the frame, opened and closed."""
        found = self._tags.get((tag, depth))
        if found is None:
            both = (self.format.opening(tag, depth), self.format.closing(tag, depth))
            found = self._tags[tag, depth] = sum(map(self.count, filter(None, both)))
        return found

    def text(self, parts: Iterable[Part]) -> str:
        """Parts one after the other."""
        return "".join(written(part, self.format) for part in parts)

    def layers(self, parts: Iterable[Part]) -> dict[str, str]:
        """The text of each layer, by its tag."""
        found: dict[str, list[str]] = {}
        lines: list[str] = []
        for part in parts:
            if isinstance(part, Opened) and part.depth == 1:
                lines = found[part.tag] = []
            if isinstance(part, Drawn) or part.depth:
                lines.append(written(part, self.format))
        return {tag: "".join(lines) for tag, lines in found.items()}
