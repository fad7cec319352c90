"""The state as XML: each element on a line of its own, every text and attribute escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, TypeAlias

from windowsill.errors import WindowsillError
from windowsill.state.building.frame import Closed, Drawn, Opened, Part
from windowsill.state.building.nodes import Node

Event: TypeAlias = tuple[str, str, dict[str, str]]
"""`start`, `text` or `end`; the tag or the text; the attributes."""


def _text(text: str) -> str:
    # The closing bracket too: `]]>` may not stand in a text.
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _attribute(text: str) -> str:
    # A parser turns white space in an attribute into spaces unless it is spelled out.
    return _text(text).replace('"', "&quot;").replace("'", "&apos;").replace("\n", "&#10;").replace("\t", "&#9;")


class XML:
    """Tags around everything."""

    def piece(self, node: Node) -> str:
        """One element; a text may have lines of its own."""
        return f"{_element(node)}\n"

    def opening(self, tag: str, depth: int) -> str:  # noqa: ARG002 - a heading needs its depth, a tag does not
        """The tag on a line."""
        return f"<{tag}>\n"

    def closing(self, tag: str, depth: int) -> str:
        """The tag on a line; nothing follows the last one."""
        return f"</{tag}>\n" if depth else f"</{tag}>"

    def check(self, text: str, parts: Sequence[Part]) -> None:
        """Every element, attribute and text, compared with what a parser reads."""
        for meant, found in zip_longest(_meant(parts), _parsed(text)):
            if meant != found:
                raise WindowsillError(
                    f"the context reads as {found!r} where {meant!r} was meant", remedy="this is a fault of Windowsill"
                )


def _element(node: Node) -> str:
    attributes = "".join(f' {name}="{_attribute(value)}"' for name, value in node.attributes)
    if not node.text and not node.children:
        return f"<{node.tag}{attributes}/>"
    return f"<{node.tag}{attributes}>{_text(node.text)}{''.join(map(_element, node.children))}</{node.tag}>"


def _meant(parts: Sequence[Part]) -> Iterator[Event]:
    for part in parts:
        if isinstance(part, Drawn):
            yield from _events(part.node)
        else:
            yield "start" if isinstance(part, Opened) else "end", part.tag, {}
        if not isinstance(part, Closed) or part.depth:
            yield "text", "\n", {}


def _events(node: Node) -> Iterator[Event]:
    yield "start", node.tag, dict(node.attributes)
    if node.text:
        yield "text", node.text, {}
    for child in node.children:
        yield from _events(child)
    yield "end", node.tag, {}


def _parsed(text: str) -> list[Event]:
    """What a parser reads, line breaks between the elements included."""
    from xml.parsers import expat  # noqa: PLC0415 - only who builds a context needs a parser

    reading = _Reading()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = reading.start
    parser.EndElementHandler = reading.end
    parser.CharacterDataHandler = reading.data
    # Nothing of the kind is ever written; a document type could declare entities.
    parser.StartDoctypeDeclHandler = reading.refuse
    parser.ProcessingInstructionHandler = reading.refuse
    parser.CommentHandler = reading.refuse
    parser.StartCdataSectionHandler = reading.refuse
    try:
        parser.Parse(text.encode(), True)  # noqa: FBT003 - the parser takes no keywords
    except expat.ExpatError as error:
        raise WindowsillError(f"the context is no XML: {error}", remedy="this is a fault of Windowsill") from error
    return reading.events


class _Reading:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self._data: list[str] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._flush()
        self.events.append(("start", tag, attributes))

    def end(self, tag: str) -> None:
        self._flush()
        self.events.append(("end", tag, {}))

    def data(self, data: str) -> None:
        self._data.append(data)

    def refuse(self, *found: Any) -> None:
        raise WindowsillError(f"the context holds {found!r}, which is not text", remedy="this is a fault of Windowsill")

    def _flush(self) -> None:
        if self._data:
            self.events.append(("text", "".join(self._data), {}))
            self._data.clear()
