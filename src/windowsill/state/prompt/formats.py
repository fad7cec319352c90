"""Write the parts of a state as XML or as Markdown. Whatever a text holds, it cannot open or close a tag of the frame.

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
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import zip_longest
from typing import NamedTuple, TypeAlias

import msgspec

from windowsill.errors import WindowsillError

DIGEST_BYTES = 8
"""Enough to notice any change of one element; nobody gains by finding two that look alike."""

CONTROL_PICTURES = 0x2400
"""The first of Unicode's pictures of control characters, which are in the same order."""

DELETE, DELETE_PICTURE = 0x7F, "\u2421"

_UNFIT = re.compile("\r\n?|[\u0085\u2028\u2029]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def clean(text: str) -> str:
    """Make a text that any format can hold.

    Every line break becomes a line feed, a control character its picture, and what is not a character U+FFFD.
    """
    return _UNFIT.sub(_visible, text)


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0][0])
    if code == DELETE:
        return DELETE_PICTURE
    if found[0][0] in "\r\u0085\u2028\u2029":
        return "\n"
    return chr(CONTROL_PICTURES + code) if code < ord(" ") else "\ufffd"


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
    """With the line break behind it."""
    tokens: int
    """Of that text, counted by itself."""
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
        same = next((n for n, (one, other) in enumerate(zip(around, tags, strict=False)) if one != other), None)
        same = min(len(around), len(tags)) if same is None else same
        parts += [Tag(around[depth], depth + 1, closes=True) for depth in reversed(range(same, len(around)))]
        parts += [Tag(tag, depth) for depth, tag in enumerate(tags[same:], same + 1)]
        around = tags
        if rendered is not None:
            parts.append(rendered)
    return [*parts, Tag(root, 0, closes=True)]


def digest(node: Node) -> str:
    """Make a short mark of what a node says."""
    return blake2b(msgspec.json.encode(node), digest_size=DIGEST_BYTES).hexdigest()


class Formatter(ABC):
    """Writes nodes and the frame around them in one format, and counts their tokens."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self.count = count
        self._tag_tokens: dict[tuple[str, int], int] = {}

    @abstractmethod
    def element(self, node: Node) -> str:
        """Write a node as whole lines."""

    @abstractmethod
    def tag(self, tag: Tag) -> str:
        """Write a tag of the frame; it may be empty."""

    @abstractmethod
    def check(self, text: str, parts: Sequence[Part]) -> None:
        """Read the text back: `WindowsillError` when it does not say what the parts say."""

    def render(self, node: Node) -> Rendered:
        """Write a node and count it."""
        text = self.element(node)
        return Rendered(node, text, self.count(text), digest(node))

    def tag_tokens(self, name: str, depth: int) -> int:
        """Count a tag of the frame, opened and closed."""
        found = self._tag_tokens.get((name, depth))
        if found is None:
            both = (self.tag(Tag(name, depth)), self.tag(Tag(name, depth, closes=True)))
            found = self._tag_tokens[name, depth] = sum(map(self.count, filter(None, both)))
        return found

    def text(self, parts: Iterable[Part]) -> str:
        """Write parts one after the other."""
        return "".join(part.text if isinstance(part, Rendered) else self.tag(part) for part in parts)

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


class XmlFormatter(Formatter):
    """Tags around everything."""

    def element(self, node: Node) -> str:
        """Write one element; a text may have lines of its own."""
        return f"{_element(node)}\n"

    def tag(self, tag: Tag) -> str:
        """Write the tag on a line; nothing follows the last one."""
        if not tag.closes:
            return f"<{tag.name}>\n"
        return f"</{tag.name}>\n" if tag.depth else f"</{tag.name}>"

    def check(self, text: str, parts: Sequence[Part]) -> None:
        """Compare every tag with its attributes, and every text between them, with what was meant."""
        meant = [""]
        for piece, is_tag in _pieces(parts):
            if is_tag:
                meant += [piece, ""]
            else:
                meant[-1] += piece
        # Texts and tags take turns.
        for place, (found, wanted) in enumerate(zip_longest(_TAG.split(text), meant, fillvalue="")):
            if (found if place % 2 else _unescaped(found)) != wanted:
                raise _fault(f"the context reads as {found!r} where {wanted!r} was meant")


class MarkdownFormatter(Formatter):
    """Headings, lists and quotations."""

    def element(self, node: Node) -> str:
        """Write a list item with everything below it."""
        return "".join(f"{line}\n" for line in _lines(node, ""))

    def tag(self, tag: Tag) -> str:
        """Write a heading; the next heading ends it."""
        return "" if tag.closes else f"{'#' * (tag.depth + 1)} {tag.name}\n"

    def check(self, text: str, parts: Sequence[Part]) -> None:
        """Compare every line that is not indented with the headings and items that were meant."""
        found = [line for line in text.split("\n")[:-1] if not line.startswith("  ")]
        written = (next(_lines(part.node, "")) if isinstance(part, Rendered) else self.tag(part) for part in parts)
        if found != [line.removesuffix("\n") for line in written if line]:
            raise _fault("the context does not read as it was meant")


def _fault(what: str) -> WindowsillError:
    return WindowsillError(what, remedy="this is a fault of Windowsill")


def _escaped(text: str) -> str:
    # The closing bracket too: `]]>` may not stand in a text.
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _unescaped(text: str) -> str:
    return text.replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&")


def _attribute(text: str) -> str:
    # A parser turns white space in an attribute into spaces unless it is spelled out.
    return _escaped(text).replace('"', "&quot;").replace("'", "&apos;").replace("\n", "&#10;").replace("\t", "&#9;")


_TAG = re.compile(r"(<[^<>]*>)")


def _tag(node: Node) -> str:
    attributes = "".join(f' {name}="{_attribute(value)}"' for name, value in node.attributes)
    return f"<{node.tag}{attributes}>" if node.text or node.children else f"<{node.tag}{attributes}/>"


def _element(node: Node) -> str:
    tag = _tag(node)
    if tag.endswith("/>"):
        return tag
    return f"{tag}{_escaped(node.text)}{''.join(map(_element, node.children))}</{node.tag}>"


def _pieces(parts: Sequence[Part]) -> Iterator[tuple[str, bool]]:
    """Yield tags, and texts before they are escaped."""
    for part in parts:
        if isinstance(part, Rendered):
            yield from _pieces_of_node(part.node)
        else:
            yield f"<{'/' if part.closes else ''}{part.name}>", True
        if isinstance(part, Rendered) or part.depth or not part.closes:
            yield "\n", False


def _pieces_of_node(node: Node) -> Iterator[tuple[str, bool]]:
    yield _tag(node), True
    if node.text or node.children:
        yield node.text, False
        for child in node.children:
            yield from _pieces_of_node(child)
        yield f"</{node.tag}>", True


def _lines(node: Node, indent: str) -> Iterator[str]:
    attributes = "".join(f" {name}={json.dumps(value, ensure_ascii=False)}" for name, value in node.attributes)
    several = "\n" in node.text
    yield f"{indent}- {node.tag}{attributes}{f': {node.text}' if node.text and not several else ''}"
    inner = f"{indent}  "
    if several:
        yield from (f"{inner}> {line}" for line in node.text.split("\n"))
    for child in node.children:
        yield from _lines(child, inner)
