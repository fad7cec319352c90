"""Write the parts of a state as XML or as Markdown. No text can open or close a tag of the frame, whatever it holds.

XML has each element on a line of its own, every text and attribute escaped. Markdown has headings for the frame and a
list item for each element:

    ## memory
    ### semantic
    #### facts
    - fact id="f1" source="README.md": what is known
    - fact id="f2" source="notes.md"
      > one line
      > and another

There an attribute is a JSON string, and a text of several lines is quoted: so no field begins a line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from itertools import takewhile
from typing import Literal, NamedTuple, TypeAlias

import msgspec

FormatName: TypeAlias = Literal["xml", "markdown"]

DIGEST_BYTES = 8
"""Enough to notice any change of one element; nobody gains by finding two that look alike."""

CONTROL_PICTURES = 0x2400
"""The first of Unicode's pictures of control characters, which are in the same order."""

_UNFIT = re.compile("\r\n?|[\u0085\u2028\u2029]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def clean(text: str) -> str:
    """Make a text that any format can hold.

    Every line break becomes a line feed, a control character its picture, and what is not a character U+FFFD.
    """
    return _UNFIT.sub(_visible, text)


def _visible(found: re.Match[str]) -> str:
    first = found[0][0]
    if first in "\r\u0085\u2028\u2029":
        return "\n"
    if first == "\x7f":
        return "\u2421"
    return chr(CONTROL_PICTURES + ord(first)) if first < " " else "\ufffd"


class Node(NamedTuple):
    """One element before it has a format: a tag, attributes, a text and further nodes. Its strings are clean."""

    tag: str
    attributes: tuple[tuple[str, str], ...] = ()
    text: str = ""
    children: tuple[Node, ...] = ()


class Rendered(NamedTuple):
    """A node in its format."""

    node: Node
    text: str
    """The text, with the line break behind it."""
    tokens: int
    """The tokens of that text, counted by itself."""
    digest: str
    """The same in every format."""


class Tag(NamedTuple):
    """A tag of the frame that opens or closes here; `depth` is 0 for the outermost."""

    name: str
    depth: int
    closes: bool = False


Part: TypeAlias = Tag | Rendered


def lay_out(root: str, placed: Iterable[tuple[tuple[str, ...], Rendered]]) -> list[Part]:
    """Put a frame around rendered nodes, each given with its tags. Neighbours with the same tags share them."""
    parts: list[Part] = [Tag(root, 0)]
    around: tuple[str, ...] = ()
    for tags, rendered in (*placed, ((), None)):
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(around, tags, strict=False)))
        parts += [Tag(around[depth], depth + 1, closes=True) for depth in reversed(range(same, len(around)))]
        parts += [Tag(tag, depth) for depth, tag in enumerate(tags[same:], same + 1)]
        around = tags
        if rendered is not None:
            parts.append(rendered)
    return [*parts, Tag(root, 0, closes=True)]


def digest(node: Node) -> str:
    """Return a short hash of what a node says."""
    return blake2b(msgspec.json.encode(node), digest_size=DIGEST_BYTES).hexdigest()


class Formatter:
    """Writes nodes and the frame around them in one format, and counts their tokens.

    `element` writes a node as whole lines, `tag` a tag of the frame, which may be empty.
    """

    def __init__(self, count: Callable[[str], int], element: Callable[[Node], str], tag: Callable[[Tag], str]) -> None:
        self.count = count
        self._element, self._tag = element, tag
        self._tag_tokens: dict[tuple[str, int], int] = {}

    def render(self, node: Node) -> Rendered:
        """Write a node and count it."""
        text = self._element(node)
        return Rendered(node, text, self.count(text), digest(node))

    def tag_tokens(self, name: str, depth: int) -> int:
        """Count a tag of the frame, opened and closed."""
        if (name, depth) not in self._tag_tokens:
            both = (self._tag(Tag(name, depth)), self._tag(Tag(name, depth, closes=True)))
            self._tag_tokens[name, depth] = sum(map(self.count, filter(None, both)))
        return self._tag_tokens[name, depth]

    def text(self, parts: Iterable[Part]) -> str:
        """Write parts one after the other."""
        return "".join(part.text if isinstance(part, Rendered) else self._tag(part) for part in parts)

    def layer_texts(self, parts: Iterable[Part]) -> dict[str, str]:
        """Write each layer by itself, by its tag."""
        found: dict[str, list[Part]] = {}
        layer: list[Part] = []
        for part in parts:
            if isinstance(part, Tag) and part.depth == 1 and not part.closes:
                layer = found[part.name] = []
            if isinstance(part, Rendered) or part.depth:
                layer.append(part)
        return {tag: self.text(inside) for tag, inside in found.items()}


def _tag(tag: Tag) -> str:
    """Write a tag on a line; nothing follows the last one."""
    if not tag.closes:
        return f"<{tag.name}>\n"
    return f"</{tag.name}>\n" if tag.depth else f"</{tag.name}>"


def _heading(tag: Tag) -> str:
    """Write a heading; the next heading ends it."""
    return "" if tag.closes else f"{'#' * (tag.depth + 1)} {tag.name}\n"


def _escaped(text: str) -> str:
    # The closing bracket too: `]]>` may not stand in a text.
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _attribute(text: str) -> str:
    # A parser turns white space in an attribute into spaces unless it is spelled out.
    return _escaped(text).replace('"', "&quot;").replace("'", "&apos;").replace("\n", "&#10;").replace("\t", "&#9;")


def _element(node: Node) -> str:
    attributes = "".join(f' {name}="{_attribute(value)}"' for name, value in node.attributes)
    if not (node.text or node.children):
        return f"<{node.tag}{attributes}/>"
    return f"<{node.tag}{attributes}>{_escaped(node.text)}{''.join(map(_element, node.children))}</{node.tag}>"


def _lines(node: Node, indent: str) -> Iterator[str]:
    attributes = "".join(f" {name}={json.dumps(value, ensure_ascii=False)}" for name, value in node.attributes)
    several = "\n" in node.text
    yield f"{indent}- {node.tag}{attributes}{f': {node.text}' if node.text and not several else ''}"
    inner = f"{indent}  "
    if several:
        yield from (f"{inner}> {line}" for line in node.text.split("\n"))
    for child in node.children:
        yield from _lines(child, inner)


FORMATS: dict[FormatName, tuple[Callable[[Node], str], Callable[[Tag], str]]] = {
    "xml": (lambda node: f"{_element(node)}\n", _tag),
    "markdown": (lambda node: "".join(f"{line}\n" for line in _lines(node, "")), _heading),
}
"""By format, how an element is written, and how a tag of the frame."""
