"""The tree in a Claude Code file: lines joined into messages, and the branches that rewinds and compactions left.

Lines point to the line before them. One answer of the model is several lines, one for each block; the results of its
calls hang on the lines of those calls, so that a plain walk along the parents would miss all but one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from windowsill.formats.transcripts.charges import Charge, charge
from windowsill.formats.wire import any_decoder, encode


class Said(msgspec.Struct):
    """The `message` of a line."""

    content: str | list[msgspec.Raw]
    role: str = ""
    id: str | None = None
    model: str | None = None
    usage: msgspec.Raw = msgspec.Raw(b"null")


class Step(msgspec.Struct, kw_only=True):
    """A line that says something."""

    said: Said
    at: float | None = None
    session: str | None = None
    results: tuple[str, ...] = ()
    """The calls it answers, when it does nothing else."""


class Node:
    """One message: the lines it was written as."""

    def __init__(self, parent: Node | None, *, fresh: bool) -> None:
        self.parent = parent
        self.fresh = fresh
        """Whether the agent began again here, with a summary of what was before."""
        self.steps: list[Step] = []
        self.answered: set[str] = set()
        self.line = 0
        """The place of its first line among all lines,"""
        self.last = 0
        """and of its last."""
        self._native: bytes | None = None

    @property
    def role(self) -> str:
        """Whose message it is."""
        return self.steps[0].said.role

    @property
    def at(self) -> float | None:
        """When it was complete."""
        return self.steps[-1].at

    @property
    def model(self) -> str | None:
        """The model that wrote it."""
        return next((step.said.model for step in self.steps if step.said.model), None)

    @property
    def usage(self) -> bytes | None:
        """What the provider reported; the last line has the final figures."""
        told = [bytes(step.said.usage) for step in self.steps]
        return next((each for each in reversed(told) if each != b"null"), None)

    @property
    def session(self) -> str | None:
        """The session its last line says."""
        return self.steps[-1].session

    def charge(self, message: int) -> Charge | None:
        """What it cost, as the message at this place; a call is known by the id the provider gave its answer."""
        used = self.usage
        if used is None:
            return None
        key = self.steps[0].said.id or (f"{self.session}/{self.line}" if self.session else None)
        return charge(any_decoder.decode(used), model=self.model, message=message, key=key)

    def again(self, parent: Node, place: int) -> Node:
        """The same message below another one: a compaction kept it."""
        node = Node(parent, fresh=False)
        node.steps, node.answered, node.line, node.last = self.steps, set(self.answered), self.line, place
        return node

    def native(self) -> bytes:
        """The message as it was sent: role and content, each block with its own bytes."""
        if self._native is None:
            contents = [step.said.content for step in self.steps]
            content: Any = contents[0] if len(contents) == 1 else _joined(contents)
            self._native = encode({"role": self.role, "content": content})
        return self._native


def _joined(contents: Iterable[str | list[msgspec.Raw]]) -> list[msgspec.Raw]:
    blocks: dict[bytes, msgspec.Raw] = {}
    for content in contents:
        told = [msgspec.Raw(encode({"type": "text", "text": content}))] if isinstance(content, str) else content
        # A block that was written twice is one block.
        blocks.update((bytes(block), block) for block in told)
    return list(blocks.values())


class Tree:
    """The messages of one chain: the conversation itself, or one sidechain."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._answers: dict[str, Node] = {}
        self._results: dict[int, list[Node]] = {}

    def add(self, step: Step, parent: Node | None, place: int, *, fresh: bool) -> Node:
        """Put a line where it belongs; the message it is now part of."""
        node = self._home(step, parent)
        if node is None:
            node = Node(parent, fresh=fresh)
            node.line = place
            self.nodes.append(node)
            self._note(step, parent, node)
        node.steps.append(step)
        node.answered.update(step.results)
        node.last = place
        return node

    def keep(self, nodes: Iterable[Node], below: Node, place: int) -> dict[int, Node]:
        """Say messages again, one after the other, below another; for the identity of each what it is now."""
        kept: dict[int, Node] = {}
        for node in nodes:
            below = kept[id(node)] = node.again(below, place)
            self.nodes.append(below)
        return kept

    def _home(self, step: Step, parent: Node | None) -> Node | None:
        if step.said.role == "assistant":
            return self._answers.get(step.said.id or "")
        if step.results and parent is not None:
            # Results may hang on the lines of their calls, or one on the other.
            if parent.answered:
                return parent if parent.answered.isdisjoint(step.results) else None
            open_nodes = self._results.get(id(parent), ())
            return next((node for node in open_nodes if node.answered.isdisjoint(step.results)), None)
        return None

    def _note(self, step: Step, parent: Node | None, node: Node) -> None:
        if step.said.role == "assistant" and step.said.id:
            self._answers[step.said.id] = node
        if step.results and parent is not None and not parent.answered:
            self._results.setdefault(id(parent), []).append(node)

    def branches(self) -> Iterator[list[Node]]:
        """Each path from a first message to a last one: the newest first, the others in the order they ended."""
        inner = {id(node.parent) for node in self.nodes}
        leaves = sorted((node for node in self.nodes if id(node) not in inner), key=lambda node: node.last)
        for leaf in leaves[-1:] + leaves[:-1]:
            yield _path(leaf)


def _path(leaf: Node) -> list[Node]:
    path: list[Node] = []
    node: Node | None = leaf
    while node is not None:
        path.append(node)
        node = node.parent
    return path[::-1]


def parts(path: Sequence[Node]) -> Iterator[list[Node]]:
    """A path cut where the agent began again with a summary."""
    part: list[Node] = []
    for node in path:
        if node.fresh and part:
            yield part
            part = []
        part.append(node)
    if part:
        yield part
