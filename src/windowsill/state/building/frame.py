"""Puts what is shown into its frame: which tags are opened and closed around it, whatever the format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from windowsill.state.building.nodes import Node


class Opened(NamedTuple):
    """Here a tag of the frame opens; `depth` is 0 for the outermost."""

    tag: str
    depth: int


class Closed(NamedTuple):
    """Here it closes."""

    tag: str
    depth: int


class Drawn(NamedTuple):
    """A node in its format."""

    node: Node
    text: str
    """With the line break behind it."""
    weight: int
    """Tokens of that text, counted by itself."""
    digest: str


Part: TypeAlias = Opened | Closed | Drawn


class Format(Protocol):
    """A way to write the state down. Whatever a text holds, it cannot end or begin anything of the frame."""

    def piece(self, node: Node) -> str:
        """A node as whole lines."""

    def opening(self, tag: str, depth: int) -> str:
        """What stands before what a tag holds."""

    def closing(self, tag: str, depth: int) -> str:
        """What stands behind it."""

    def check(self, text: str, parts: Sequence[Part]) -> None:
        """Read the text back: `WindowsillError` when it is not what was meant."""


def lay_out(root: str, placed: Iterable[tuple[tuple[str, ...], Drawn]]) -> Iterator[Part]:
    """The parts of a text, in order. Neighbours with the same tags around them share these."""
    yield Opened(root, 0)
    around: tuple[str, ...] = ()
    for tags, drawn in placed:
        same = _common(around, tags)
        yield from _close(around, same)
        yield from (Opened(tag, depth) for depth, tag in enumerate(tags[same:], same + 1))
        around = tags
        yield drawn
    yield from _close(around, 0)
    yield Closed(root, 0)


def _common(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    for place, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return place
    return min(len(one), len(other))


def _close(tags: tuple[str, ...], down_to: int) -> Iterator[Closed]:
    return (Closed(tags[depth], depth + 1) for depth in reversed(range(down_to, len(tags))))


def written(part: Part, format: Format) -> str:
    """A part as it stands in the text."""
    if isinstance(part, Drawn):
        return part.text
    return (format.opening if isinstance(part, Opened) else format.closing)(part.tag, part.depth)
